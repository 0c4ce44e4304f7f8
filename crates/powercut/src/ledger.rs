//! The ledger of acknowledged transactions ([`Ledger`]), kept outside the database, and the lookup of these
//! transactions after a power cut.
//!
//! Each payment is found by its unique amount. New orders are counted per customer, deliveries in total. If some of
//! several equal transactions are lost, the newest count as lost. A transaction in flight at a cut may or may not be
//! found. A transaction lost at an earlier cut may return. `lowtide_oltp::check` checks the consistency of rows.

use lowtide_core::Nanos;
use lowtide_engines::tpcc::{DISTRICTS, Scale, Transaction};
use lowtide_oltp::{Database, OltpError, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// The first unique amount, in cents. Amounts in the loaded data and amounts allowed by the specification are
/// smaller.
const FIRST_AMOUNT: i64 = 1_000_000;

/// The visible effect of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    /// The amount of a payment, in cents.
    Amount(i64),
    /// A new order of a customer: district and customer number.
    Order(u32, u32),
    /// A number of delivered orders.
    Delivered(u32),
}

/// A transaction that was acknowledged.
#[derive(Debug, Clone)]
struct Entry {
    mark: Mark,
    /// The time of the acknowledgement, on the client's clock.
    at: Nanos,
}

/// The result of looking up a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Acknowledged transactions that were not found.
    pub lost: u64,
    /// Time from the acknowledgement of the oldest lost transaction to the cut.
    pub oldest: Option<Nanos>,
    /// A found transaction was acknowledged after a lost transaction. With concurrent terminals this is not damage,
    /// because acknowledgements may arrive in a different order from commits.
    pub gap: bool,
    /// Transactions that were lost after an earlier cut and are now found.
    pub returned: u64,
    /// Transactions that were found but never requested.
    pub strange: u64,
}

impl Found {
    /// Describes an impossible result; `None` if the result is possible. A gap is impossible if transactions were
    /// `sequential`.
    pub fn damage(&self, sequential: bool) -> Option<String> {
        if self.strange > 0 {
            return Some(format!("{} transactions were found but never requested", self.strange));
        }
        (self.gap && sequential)
            .then(|| format!("a later transaction was found without {} earlier ones", self.lost))
    }
}

/// The transactions acknowledged by a database since its load, and the transactions in flight at a cut.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    /// Transactions with an unknown outcome.
    unknown: Vec<Transaction>,
    /// Transactions lost at earlier cuts.
    lost: Vec<Mark>,
    next_amount: i64,
    /// Number of entries that an earlier lookup checked.
    looked: usize,
}

impl Ledger {
    /// Gives a payment a unique amount.
    pub fn name(&mut self, transaction: &mut Transaction) {
        if let Transaction::Payment(payment) = transaction {
            payment.amount = FIRST_AMOUNT + self.next_amount;
            self.next_amount += 1;
        }
    }

    /// Adds a transaction acknowledged at `at`. Returns `true` if its loss would be visible.
    pub fn acknowledge(&mut self, transaction: &Transaction, outcome: Outcome, at: Nanos) -> bool {
        let mark = match (transaction, outcome) {
            (Transaction::Payment(payment), Outcome::Committed) => Mark::Amount(payment.amount),
            (Transaction::NewOrder(order), Outcome::Committed) => Mark::Order(order.district, order.customer),
            (_, Outcome::Delivered { skipped }) if skipped < DISTRICTS => {
                Mark::Delivered(DISTRICTS - skipped)
            }
            _ => return false,
        };
        self.entries.push(Entry { mark, at });
        true
    }

    /// Adds a transaction with an unknown outcome.
    pub fn unknown(&mut self, transaction: Transaction) {
        self.unknown.push(transaction);
    }

    /// The number of transactions acknowledged since the last lookup.
    pub fn new_entries(&self) -> u64 {
        (self.entries.len() - self.looked) as u64
    }

    /// The number of transactions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the ledger is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Looks up all acknowledged transactions after the power cut at `cut`. On return, the ledger holds the
    /// transactions that were found.
    ///
    /// # Errors
    /// [`OltpError`] if the database does not answer. The ledger is then unchanged.
    pub fn look(&mut self, database: &dyn Database, scale: &Scale, cut: Nanos) -> Result<Found, OltpError> {
        let mut effects = Effects::read(database, scale)?;
        let mut found = Found::default();
        // Effects are assigned to entries from oldest to newest, so the newest of several equal transactions are
        // lost.
        let kept: Vec<bool> = self.entries.iter().map(|entry| effects.take(&entry.mark)).collect();
        let last_kept = kept.iter().rposition(|kept| *kept).map_or(0, |last| last + 1);
        for (number, entry) in self.entries.iter().enumerate().filter(|(number, _)| !kept[*number]) {
            found.lost += 1;
            found.gap |= number < last_kept;
            let age = Nanos::new(cut.get().saturating_sub(entry.at.get()));
            found.oldest = found.oldest.max(Some(age));
        }
        // Remaining effects come from transactions in flight or from earlier losses. All other effects are strange.
        let mut marks = Vec::new();
        for transaction in std::mem::take(&mut self.unknown) {
            marks.extend(effects.mark_of(&transaction).filter(|mark| effects.take(mark)));
        }
        found.gap |= found.lost > 0 && !marks.is_empty();
        let (returned, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.lost).into_iter().partition(|mark| effects.take(mark));
        found.returned = returned.len() as u64;
        found.strange = effects.remaining();
        self.lost = lost;
        for (entry, kept) in std::mem::take(&mut self.entries).into_iter().zip(kept) {
            if kept {
                self.entries.push(entry);
            } else {
                self.lost.push(entry.mark);
            }
        }
        self.entries.extend(marks.into_iter().chain(returned).map(|mark| Entry { mark, at: cut }));
        self.looked = self.entries.len();
        Ok(found)
    }
}

/// The effects of transactions since the load.
struct Effects {
    amounts: BTreeSet<i64>,
    orders: BTreeMap<(u32, u32), u64>,
    delivered: u64,
}

impl Effects {
    fn read(database: &dyn Database, scale: &Scale) -> Result<Effects, OltpError> {
        let paid = format!("SELECT h_amount FROM history WHERE h_amount >= {FIRST_AMOUNT}");
        let entered = format!(
            "SELECT o_d_id, o_c_id, count(*) FROM orders WHERE o_id > {} GROUP BY o_d_id, o_c_id",
            scale.customers
        );
        let delivered = database.number("SELECT sum(c_delivery_cnt) FROM customer")?;
        let order = |row: Vec<i64>| ((row[0] as u32, row[1] as u32), row[2] as u64);
        Ok(Effects {
            amounts: database.numbers(&paid)?.into_iter().map(|row| row[0]).collect(),
            orders: database.numbers(&entered)?.into_iter().map(order).collect(),
            delivered: delivered.max(0) as u64,
        })
    }

    /// Removes the effect of a transaction. Returns whether it was present.
    fn take(&mut self, mark: &Mark) -> bool {
        let (count, by) = match mark {
            Mark::Amount(amount) => return self.amounts.remove(amount),
            Mark::Order(district, customer) => (self.orders.entry((*district, *customer)).or_default(), 1),
            Mark::Delivered(orders) => (&mut self.delivered, u64::from(*orders)),
        };
        let remaining = count.checked_sub(by);
        *count = remaining.unwrap_or(*count);
        remaining.is_some()
    }

    /// The effect of a transaction with an unknown outcome. Because the number of orders in such a delivery is
    /// unknown, the delivery accounts for all remaining delivered orders.
    fn mark_of(&self, transaction: &Transaction) -> Option<Mark> {
        match transaction {
            Transaction::Payment(payment) => Some(Mark::Amount(payment.amount)),
            Transaction::NewOrder(order) => Some(Mark::Order(order.district, order.customer)),
            Transaction::Delivery(_) if self.delivered > 0 => {
                Some(Mark::Delivered(self.delivered.min(u64::from(DISTRICTS)) as u32))
            }
            _ => None,
        }
    }

    /// The number of remaining effects.
    fn remaining(&self) -> u64 {
        self.amounts.len() as u64
            + self.orders.values().sum::<u64>()
            + self.delivered.div_ceil(DISTRICTS.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_engines::tpcc::{Delivery, NewOrder, Payment, Who};
    use lowtide_oltp::Session;
    use std::sync::atomic::AtomicBool;

    /// A database with these amounts, orders of customer 1 of district 1, and deliveries.
    struct Holds(Vec<i64>, i64, i64);

    impl Database for Holds {
        fn version(&self) -> &str {
            "none"
        }
        fn session(&self) -> Result<Box<dyn Session>, OltpError> {
            unreachable!("the test runs no transactions")
        }
        fn load(
            &self,
            _: &Scale,
            _: Seed,
            _: &AtomicBool,
            _: &(dyn Fn(f64) + Sync),
        ) -> Result<(), OltpError> {
            Ok(())
        }
        fn number(&self, _: &str) -> Result<i64, OltpError> {
            Ok(self.2)
        }
        fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError> {
            Ok(match query.contains("h_amount") {
                true => self.0.iter().map(|amount| vec![FIRST_AMOUNT + amount]).collect(),
                false => vec![vec![1, 1, self.1]],
            })
        }
        fn damage(&self) -> Result<Vec<String>, OltpError> {
            Ok(Vec::new())
        }
        fn execute(&self, _: &str) -> Result<(), OltpError> {
            Ok(())
        }
        fn counters(&self) -> Result<Vec<lowtide_oltp::Counter>, OltpError> {
            Ok(Vec::new())
        }
    }

    const CUT: Nanos = Nanos::new(1_000);

    fn pay(ledger: &mut Ledger) -> Transaction {
        let (warehouse, district, customer_warehouse, customer_district) = (1, 1, 1, 1);
        let (who, amount) = (Who::Number(1), 0);
        let payment = Payment { warehouse, district, customer_warehouse, customer_district, who, amount };
        let mut payment = Transaction::Payment(payment);
        ledger.name(&mut payment);
        payment
    }

    /// Payment 0, an order, a delivery of four, payment 1: acknowledged at 100, 200, 300 and 400.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        let order = Transaction::NewOrder(NewOrder { warehouse: 1, district: 1, customer: 1, lines: vec![] });
        let delivery = Transaction::Delivery(Delivery { warehouse: 1, carrier: 1 });
        let (first, second) = (pay(&mut ledger), pay(&mut ledger));
        let ended = [
            (first, Outcome::Committed),
            (order, Outcome::Committed),
            (delivery, Outcome::Delivered { skipped: 6 }),
            (second, Outcome::Committed),
        ];
        for ((transaction, outcome), at) in ended.into_iter().zip([100, 200, 300, 400]) {
            assert!(ledger.acknowledge(&transaction, outcome, Nanos::new(at)));
        }
        ledger
    }

    #[test]
    fn lost_transactions_are_distinguished_from_those_in_flight() {
        let scale = Scale::warehouses(1);
        let mut unknown = ledger();
        let third = pay(&mut unknown);
        unknown.unknown(third);
        let age = |ns| Some(Nanos::new(ns));
        let nothing = Found::default();
        for (holds, ledger, expected) in [
            (Holds(vec![0, 1], 1, 4), ledger(), nothing),
            (Holds(vec![0], 1, 4), ledger(), Found { lost: 1, oldest: age(600), ..nothing }),
            (Holds(vec![0], 0, 0), ledger(), Found { lost: 3, oldest: age(800), ..nothing }),
            (Holds(vec![], 0, 0), ledger(), Found { lost: 4, oldest: age(900), ..nothing }),
            // A later transaction was found without an earlier one.
            (Holds(vec![1], 1, 4), ledger(), Found { lost: 1, oldest: age(900), gap: true, ..nothing }),
            (
                Holds(vec![0, 1], 1, 3),
                ledger(),
                Found { lost: 1, oldest: age(700), gap: true, strange: 1, ..nothing },
            ),
            // Transactions that were never requested.
            (Holds(vec![0, 1, 2], 2, 4), ledger(), Found { strange: 2, ..nothing }),
            // A transaction in flight may or may not be found. If it is found, all earlier transactions must be found
            // too.
            (Holds(vec![0, 1, 2], 1, 4), unknown.clone(), nothing),
            (Holds(vec![0, 1], 1, 4), unknown.clone(), nothing),
            (
                Holds(vec![0, 2], 1, 4),
                unknown.clone(),
                Found { lost: 1, oldest: age(600), gap: true, ..nothing },
            ),
        ] {
            let mut ledger = ledger;
            let text = format!("{:?}, {} orders, {} delivered", holds.0, holds.1, holds.2);
            assert_eq!(ledger.look(&holds, &scale, CUT).expect("an answer"), expected, "{text}");
            if expected.strange == 0 {
                let again = ledger.look(&holds, &scale, CUT).expect("an answer");
                assert_eq!(again, nothing, "{text}: the ledger has only found transactions");
            }
            assert_eq!(ledger.new_entries(), 0);
        }
    }

    #[test]
    fn a_lost_transaction_that_returns_is_not_strange() {
        let (scale, mut ledger) = (Scale::warehouses(1), ledger());
        let first = ledger.look(&Holds(vec![0], 1, 4), &scale, CUT).expect("it answers");
        assert_eq!((first.lost, first.returned), (1, 0));
        let third = pay(&mut ledger);
        assert!(ledger.acknowledge(&third, Outcome::Committed, CUT));
        let second = ledger.look(&Holds(vec![0, 1], 1, 4), &scale, CUT).expect("it answers");
        assert_eq!(second, Found { lost: 1, oldest: Some(Nanos::ZERO), returned: 1, ..Found::default() });
        let third = ledger.look(&Holds(vec![0, 1, 7], 1, 4), &scale, CUT).expect("it answers");
        assert_eq!((third.lost, third.returned, third.strange), (0, 0, 1));
    }
}
