//! Inputs of each transaction (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1).

use crate::tpcc::random::{LAST_NAMES, Random, RunConstants, last_name};
use crate::tpcc::{
    DISTRICTS, Delivery, Kind, Line, NewOrder, OrderStatus, Payment, Scale, StockLevel, Transaction, Who,
};

/// Generator of the inputs of a terminal.
#[derive(Debug, Clone)]
pub struct Inputs {
    scale: Scale,
    home: u32,
    district: u32,
    constants: RunConstants,
    random: Random,
}

impl Inputs {
    /// Inputs for a terminal of warehouse `home`, bound to `district` for Stock-Level (clause 2.8.1.1).
    /// Remote warehouses are drawn from all of `scale`.
    pub fn new(scale: &Scale, (home, district): (u32, u32), constants: RunConstants, random: Random) -> Self {
        Inputs { scale: scale.clone(), home, district, constants, random }
    }

    /// Sets the home warehouse and district, for a session that acts for several terminals.
    pub fn speak_for(&mut self, (home, district): (u32, u32)) {
        (self.home, self.district) = (home, district);
    }

    /// Home warehouse.
    pub fn home(&self) -> u32 {
        self.home
    }

    /// Draws the next transaction of a kind.
    pub fn next(&mut self, kind: Kind) -> Transaction {
        match kind {
            Kind::NewOrder => Transaction::NewOrder(self.new_order()),
            Kind::Payment => Transaction::Payment(self.payment()),
            Kind::OrderStatus => Transaction::OrderStatus(self.order_status()),
            Kind::Delivery => {
                Transaction::Delivery(Delivery { warehouse: self.home, carrier: self.random.between(1, 10) })
            }
            Kind::StockLevel => Transaction::StockLevel(StockLevel {
                warehouse: self.home,
                district: self.district,
                threshold: self.random.between(10, 20),
            }),
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let district = self.random.between(1, DISTRICTS);
        let customer = self.customer();
        let count = self.random.between(5, 15);
        let rolled_back = self.random.chance(1);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        if let Some(last) = lines.last_mut().filter(|_| rolled_back) {
            last.item = self.scale.items + 1;
        }
        NewOrder { warehouse: self.home, district, customer, lines }
    }

    fn line(&mut self) -> Line {
        let item = self.constants.item.draw(&mut self.random, 1, self.scale.items);
        let supply = if self.random.chance(1) { self.remote() } else { self.home };
        Line { item, supply, quantity: self.random.between(1, 10) }
    }

    fn payment(&mut self) -> Payment {
        let district = self.random.between(1, DISTRICTS);
        let (customer_warehouse, customer_district) = if self.random.chance(15) {
            (self.remote(), self.random.between(1, DISTRICTS))
        } else {
            (self.home, district)
        };
        Payment {
            warehouse: self.home,
            district,
            customer_warehouse,
            customer_district,
            who: self.who(),
            amount: self.random.between(100, 500_000).into(),
        }
    }

    fn order_status(&mut self) -> OrderStatus {
        OrderStatus { warehouse: self.home, district: self.random.between(1, DISTRICTS), who: self.who() }
    }

    /// Draws a warehouse other than the home warehouse (clauses 2.4.1.5, 2.5.1.2). Returns the home warehouse if the
    /// database has only one.
    fn remote(&mut self) -> u32 {
        let (first, last) = (*self.scale.warehouses.start(), *self.scale.warehouses.end());
        if first == last {
            return first;
        }
        let other = self.random.between(first, last - 1);
        if other < self.home { other } else { other + 1 }
    }

    fn who(&mut self) -> Who {
        if self.random.chance(60) {
            // A database with few customers lacks some names.
            let names = LAST_NAMES.min(self.scale.customers);
            Who::LastName(last_name(self.constants.last_name.draw(&mut self.random, 0, names - 1)))
        } else {
            Who::Number(self.customer())
        }
    }

    fn customer(&mut self) -> u32 {
        self.constants.customer.draw(&mut self.random, 1, self.scale.customers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    const SEED: u64 = 17;
    const DRAWS: u32 = 200_000;

    fn inputs(scale: &Scale, home: u32) -> Inputs {
        let constants = RunConstants::of(Seed::new(SEED));
        Inputs::new(scale, (home, 4), constants, Random::new(Seed::new(SEED).part("inputs", 0)))
    }

    /// Asserts a share within five standard deviations.
    fn assert_share(what: &str, hits: u32, of: u32, share: f64) {
        let deviation = (share * (1.0 - share) / f64::from(of)).sqrt();
        let found = f64::from(hits) / f64::from(of);
        assert!((found - share).abs() < 5.0 * deviation, "seed {SEED}: {what}: {found}, not {share}");
    }

    /// Asserts a uniform distribution by a chi-square test. The statistic has the mean `n − 1` and the variance `2 (n
    /// − 1)`.
    fn assert_even(what: &str, counts: &[u32]) {
        let degrees = (counts.len() - 1) as f64;
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let squares: f64 = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        assert!(squares < degrees + 5.0 * (2.0 * degrees).sqrt(), "seed {SEED}: {what}: {counts:?}");
    }

    #[test]
    fn orders_are_as_clause_2_4_1_says() {
        let scale = Scale { warehouses: 3..=7, ..Scale::warehouses(1) };
        let mut inputs = inputs(&scale, 5);
        let (mut lines, mut remote, mut rolled_back) = (0, 0, 0);
        let (mut districts, mut counts) = ([0; 10], [0; 11]);
        let (mut supplies, mut quantities) = ([0; 5], [0; 10]);
        for _ in 0..DRAWS / 10 {
            let order = inputs.new_order();
            assert_eq!(order.warehouse, 5);
            assert!((1..=3_000).contains(&order.customer));
            districts[order.district as usize - 1] += 1;
            counts[order.lines.len() - 5] += 1;
            let (last, others) = order.lines.split_last().expect("an order has lines");
            rolled_back += u32::from(last.item == 100_001);
            assert!(others.iter().all(|line| (1..=100_000).contains(&line.item)), "seed {SEED}");
            assert_eq!(order.all_local(), order.lines.iter().all(|line| line.supply == 5));
            for line in &order.lines {
                lines += 1;
                remote += u32::from(line.supply != 5);
                supplies[line.supply as usize - 3] += 1;
                quantities[line.quantity as usize - 1] += 1;
            }
        }
        assert_share("rolled back", rolled_back, DRAWS / 10, 0.01);
        assert_share("remote lines", remote, lines, 0.01);
        assert_even("districts", &districts);
        assert_even("lines", &counts);
        assert_even("quantities", &quantities);
        let [one, two, _, four, five] = supplies;
        assert_even("remote warehouses", &[one, two, four, five]);
    }

    #[test]
    fn payments_are_as_clause_2_5_1_says() {
        let scale = Scale::warehouses(4);
        let mut inputs = inputs(&scale, 1);
        let (mut remote, mut named, mut same) = (0, 0, 0);
        let (mut warehouses, mut low, mut high) = ([0; 4], i64::MAX, 0);
        for _ in 0..DRAWS {
            let payment = inputs.payment();
            warehouses[payment.customer_warehouse as usize - 1] += 1;
            named += u32::from(matches!(payment.who, Who::LastName(_)));
            (low, high) = (low.min(payment.amount), high.max(payment.amount));
            if payment.customer_warehouse == 1 {
                assert_eq!(payment.customer_district, payment.district, "seed {SEED}");
            } else {
                remote += 1;
                same += u32::from(payment.customer_district == payment.district);
            }
        }
        assert_share("remote payments", remote, DRAWS, 0.15);
        assert_share("districts of remote customers", same, remote, 0.1);
        assert_share("by last name", named, DRAWS, 0.6);
        assert_even("remote warehouses", &warehouses[1..]);
        assert!((100..200).contains(&low) && (499_900..=500_000).contains(&high), "seed {SEED}");
    }

    #[test]
    fn other_transactions_stay_at_home_and_stock_level_in_its_district() {
        let mut inputs = inputs(&Scale::warehouses(3), 2);
        let (mut carriers, mut thresholds, mut named) = ([0; 10], [0; 11], 0);
        for _ in 0..DRAWS / 10 {
            let Transaction::Delivery(delivery) = inputs.next(Kind::Delivery) else { panic!() };
            let Transaction::StockLevel(level) = inputs.next(Kind::StockLevel) else { panic!() };
            let Transaction::OrderStatus(status) = inputs.next(Kind::OrderStatus) else { panic!() };
            assert_eq!((delivery.warehouse, level.warehouse, status.warehouse), (2, 2, 2));
            assert_eq!(level.district, 4);
            carriers[delivery.carrier as usize - 1] += 1;
            thresholds[level.threshold as usize - 10] += 1;
            named += u32::from(matches!(status.who, Who::LastName(_)));
        }
        assert_even("carriers", &carriers);
        assert_even("thresholds", &thresholds);
        assert_share("by last name", named, DRAWS / 10, 0.6);
    }

    #[test]
    fn with_one_warehouse_everything_is_local_and_small_databases_have_all_inputs() {
        let scale = Scale { warehouses: 9..=9, customers: 30, items: 100 };
        let mut inputs = inputs(&scale, 9);
        let there: Vec<String> = (0..30).map(last_name).collect();
        for _ in 0..20_000 {
            let (order, payment) = (inputs.new_order(), inputs.payment());
            assert!(order.all_local() && payment.customer_warehouse == 9, "seed {SEED}");
            assert!(order.lines.iter().all(|line| line.item <= 101) && order.customer <= 30, "seed {SEED}");
            match payment.who {
                Who::LastName(name) => assert!(there.contains(&name), "seed {SEED}: {name}"),
                Who::Number(number) => assert!((1..=30).contains(&number), "seed {SEED}: {number}"),
            }
        }
    }
}
