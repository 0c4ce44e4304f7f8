//! The ledger of what a database acknowledged ([`Ledger`]), kept outside of it, and what of that is found again.
//!
//! Payments have amounts that no other has, so each is found by its own; new orders are counted by customer, deliveries in all;
//! of what is missing among equals, the newest is taken for lost. What was under way when the power went may be there or
//! not, and what a cut before took may come back. Not here: whether rows fit each other, which the conditions of consistency tell (`lowtide_oltp::check`).

use lowtide_core::Nanos;
use lowtide_engines::tpcc::{DISTRICTS, Scale, Transaction};
use lowtide_oltp::{Database, OltpError, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Cents. Those of the load, and those that the specification allows, are less.
const FIRST_AMOUNT: i64 = 1_000_000;

/// What a transaction leaves behind that can be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    /// A payment of an amount.
    Amount(i64),
    /// An order of a customer: district and number.
    Order(u32, u32),
    /// So many orders delivered.
    Delivered(u32),
}

/// A transaction that was acknowledged.
#[derive(Debug, Clone)]
struct Entry {
    mark: Mark,
    /// When, on the clock of whoever asked.
    at: Nanos,
}

/// What of a ledger was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// Acknowledged, and not there.
    pub lost: u64,
    /// How long before the cut the oldest of them was acknowledged.
    pub oldest: Option<Nanos>,
    /// Something is there that was acknowledged after something that is not. It says something where one asked after the
    /// other; where several ask at once, acknowledgements come in another order than commits.
    pub gap: bool,
    /// There again, though it was not after a cut before.
    pub returned: u64,
    /// There, though nobody asked for it.
    pub strange: u64,
}

impl Found {
    /// What cannot be, in words; nothing where all is well. A gap counts `in_turns`: where one asked after the other.
    pub fn told(&self, in_turns: bool) -> Option<String> {
        if self.strange > 0 {
            return Some(format!("{} transactions are there that nobody asked for", self.strange));
        }
        (self.gap && in_turns)
            .then(|| format!("a later transaction is there without {} earlier ones", self.lost))
    }
}

/// What a database acknowledged since it was loaded, and what it may have done besides.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    /// Transactions whose end was not heard of.
    unknown: Vec<Transaction>,
    /// What was not there when it was looked for.
    lost: Vec<Mark>,
    next_amount: i64,
    /// Entries that were looked for before.
    looked: usize,
}

impl Ledger {
    /// Gives a payment an amount of its own.
    pub fn name(&mut self, transaction: &mut Transaction) {
        if let Transaction::Payment(payment) = transaction {
            payment.amount = FIRST_AMOUNT + self.next_amount;
            self.next_amount += 1;
        }
    }

    /// A transaction was acknowledged at an instant; whether it is one that can be lost.
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

    /// A transaction was asked for, and it is not known how it ended.
    pub fn unknown(&mut self, transaction: Transaction) {
        self.unknown.push(transaction);
    }

    /// Transactions acknowledged since it was last looked for them.
    pub fn new_entries(&self) -> u64 {
        (self.entries.len() - self.looked) as u64
    }

    /// How many transactions it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Looks for everything that was acknowledged before the power was cut at an instant. Afterwards the ledger holds what is
    /// there.
    ///
    /// # Errors
    /// [`OltpError`] where the database does not answer; the ledger is as it was.
    pub fn look(&mut self, database: &dyn Database, scale: &Scale, cut: Nanos) -> Result<Found, OltpError> {
        let mut there = There::ask(database, scale)?;
        let mut found = Found::default();
        // From the oldest on: of equal ones, the newest are missing.
        let kept: Vec<bool> = self.entries.iter().map(|entry| there.take(&entry.mark)).collect();
        let last_kept = kept.iter().rposition(|kept| *kept).map_or(0, |last| last + 1);
        for (number, entry) in self.entries.iter().enumerate().filter(|(number, _)| !kept[*number]) {
            found.lost += 1;
            found.gap |= number < last_kept;
            let age = Nanos::new(cut.get().saturating_sub(entry.at.get()));
            found.oldest = found.oldest.max(Some(age));
        }
        // What is left was under way, or is nobody's.
        let mut more = Vec::new();
        for transaction in std::mem::take(&mut self.unknown) {
            if let Some(mark) = there.mark_of(&transaction).filter(|mark| there.take(mark)) {
                more.push(Entry { mark, at: cut });
            }
        }
        found.gap |= found.lost > 0 && !more.is_empty();
        let (returned, lost) = std::mem::take(&mut self.lost).into_iter().partition(|mark| there.take(mark));
        self.lost = lost;
        found.returned = Vec::len(&returned) as u64;
        more.extend(returned.into_iter().map(|mark| Entry { mark, at: cut }));
        found.strange = there.left();
        let mut kept = kept.into_iter();
        let (kept, lost) =
            std::mem::take(&mut self.entries).into_iter().partition(|_| kept.next() == Some(true));
        self.lost.extend(Vec::into_iter(lost).map(|entry: Entry| entry.mark));
        self.entries = kept;
        self.entries.append(&mut more);
        self.looked = self.entries.len();
        Ok(found)
    }
}

/// What is there of transactions since the load.
struct There {
    amounts: BTreeSet<i64>,
    orders: BTreeMap<(u32, u32), u64>,
    delivered: u64,
}

impl There {
    fn ask(database: &dyn Database, scale: &Scale) -> Result<There, OltpError> {
        let paid = format!("SELECT h_amount FROM history WHERE h_amount >= {FIRST_AMOUNT}");
        let entered = format!(
            "SELECT o_d_id, o_c_id, count(*) FROM orders WHERE o_id > {} GROUP BY o_d_id, o_c_id",
            scale.customers
        );
        let delivered = database.number("SELECT sum(c_delivery_cnt) FROM customer")?;
        let order = |row: Vec<i64>| ((row[0] as u32, row[1] as u32), row[2] as u64);
        Ok(There {
            amounts: database.numbers(&paid)?.into_iter().map(|row| row[0]).collect(),
            orders: database.numbers(&entered)?.into_iter().map(order).collect(),
            delivered: delivered.max(0) as u64,
        })
    }

    /// Whether it is there; then it is another's no more.
    fn take(&mut self, mark: &Mark) -> bool {
        match mark {
            Mark::Amount(amount) => self.amounts.remove(amount),
            Mark::Order(district, customer) => {
                let left = self.orders.get_mut(&(*district, *customer)).filter(|left| **left > 0);
                left.map(|left| *left -= 1).is_some()
            }
            Mark::Delivered(orders) => {
                let enough = self.delivered >= u64::from(*orders);
                self.delivered -= if enough { u64::from(*orders) } else { 0 };
                enough
            }
        }
    }

    /// The mark of a transaction whose end is not known. Of how many districts a delivery found an order, nobody knows: as
    /// many as are left.
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

    /// How much nobody took.
    fn left(&self) -> u64 {
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

    /// A database that holds these amounts, orders of customer 1 of district 1, and deliveries.
    struct Holds(Vec<i64>, i64, i64);

    impl Database for Holds {
        fn version(&self) -> &str {
            "none"
        }
        fn session(&self) -> Result<Box<dyn Session>, OltpError> {
            unreachable!("nobody asks for transactions")
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
        let who = Who::Number(1);
        let mut payment = Transaction::Payment(Payment {
            warehouse: 1,
            district: 1,
            customer_warehouse: 1,
            customer_district: 1,
            who,
            amount: 0,
        });
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
    fn what_is_lost_is_counted_and_told_from_what_was_under_way() {
        let scale = Scale::warehouses(1);
        let mut unknown = ledger();
        let third = pay(&mut unknown);
        unknown.unknown(third);
        let age = |ns| Some(Nanos::new(ns));
        let nothing = Found::default();
        for (holds, whose, expected) in [
            (Holds(vec![0, 1], 1, 4), ledger(), nothing),
            (Holds(vec![0], 1, 4), ledger(), Found { lost: 1, oldest: age(600), ..nothing }),
            (Holds(vec![0], 0, 0), ledger(), Found { lost: 3, oldest: age(800), ..nothing }),
            (Holds(vec![], 0, 0), ledger(), Found { lost: 4, oldest: age(900), ..nothing }),
            // A later one is there without an earlier one.
            (Holds(vec![1], 1, 4), ledger(), Found { lost: 1, oldest: age(900), gap: true, ..nothing }),
            (
                Holds(vec![0, 1], 1, 3),
                ledger(),
                Found { lost: 1, oldest: age(700), gap: true, strange: 1, ..nothing },
            ),
            // Nobody asked for these.
            (Holds(vec![0, 1, 2], 2, 4), ledger(), Found { strange: 2, ..nothing }),
            // One was under way: it may be there or not, but not without all before it.
            (Holds(vec![0, 1, 2], 1, 4), unknown.clone(), nothing),
            (Holds(vec![0, 1], 1, 4), unknown.clone(), nothing),
            (
                Holds(vec![0, 2], 1, 4),
                unknown.clone(),
                Found { lost: 1, oldest: age(600), gap: true, ..nothing },
            ),
        ] {
            let mut whose = whose;
            let told = format!("{:?}, {} orders, {} delivered", holds.0, holds.1, holds.2);
            assert_eq!(whose.look(&holds, &scale, CUT).expect("it answers"), expected, "{told}");
            if expected.strange == 0 {
                let again = whose.look(&holds, &scale, CUT).expect("it answers");
                assert_eq!(again, nothing, "{told}: afterwards the ledger holds what is there");
            }
            assert_eq!(whose.new_entries(), 0);
        }
    }

    #[test]
    fn what_was_lost_and_comes_back_is_nobody_elses() {
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
