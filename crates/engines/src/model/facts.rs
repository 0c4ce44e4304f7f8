//! Database contents that decide which rows a transaction touches ([`Facts`]): last names, open orders,
//! recent items.
//!
//! The contents come from the load (clause 4.3.3) and from later transactions. Only the items of the most recent
//! orders differ from the load: they start as in a database that has run for a while, to match the warm memory.
//! Stock-Level reads recently ordered stock, and Delivery reads customers with older orders, so both find many pages
//! in memory.
//!
//! # Not modelled
//!
//! Positions and other contents of rows.

use super::ModelLoad;
use crate::tpcc::random::{LAST_NAMES, NuRand, Random, RunConstants, last_name};
use crate::tpcc::{CUSTOMERS_PER_DISTRICT, DISTRICTS, ITEMS};
use lowtide_core::Seed;
use lowtide_core::rng::below;
use std::collections::{BTreeMap, VecDeque};

/// Number of a district's orders that Stock-Level reads (clause 2.8.2.2).
const LOOKED_AT: usize = 20;
/// Mean number of lines of an order.
const LINES: usize = 10;
/// Undelivered orders of a district after the load (clause 4.3.3.1).
pub(super) const UNDELIVERED: u32 = 900;
/// Customers of a district whose last names are assigned in order. The names of later customers are drawn at random.
const NAMED_IN_ORDER: u32 = LAST_NAMES;

/// Index of a district over all warehouses.
pub(super) fn district(w: u32, d: u32) -> u32 {
    w * DISTRICTS + d
}

/// Returns the page at index `at` of a list that grows as needed, and `true` if the page was created.
pub(super) fn page_at(pages: &mut Vec<u32>, at: u32, mut create: impl FnMut() -> u32) -> (u32, bool) {
    let created = at as usize >= pages.len();
    while at as usize >= pages.len() {
        pages.push(create());
    }
    (pages[at as usize], created)
}

/// State of a district.
#[derive(Debug, Clone, Default)]
struct District {
    /// Number of orders, including loaded orders. `delivered` is the number of delivered orders.
    orders: u32,
    delivered: u32,
    /// Customers of undelivered orders added after the load, the oldest first.
    undelivered: VecDeque<u16>,
    /// Items of the last orders added.
    recent: VecDeque<Vec<u32>>,
    /// For each customer, the number of the last order added; 0 if none.
    last: Vec<u32>,
}

/// Contents of the database. Customers and orders are numbered from 0 in each district; items and districts are
/// numbered from 0 over all warehouses.
#[derive(Debug)]
pub(super) struct Facts {
    seed: Seed,
    districts: Vec<District>,
    names: Names,
    item: NuRand,
}

impl Facts {
    /// Contents after the load.
    pub(super) fn new(load: &ModelLoad) -> Facts {
        let loaded = District {
            orders: CUSTOMERS_PER_DISTRICT,
            delivered: CUSTOMERS_PER_DISTRICT - UNDELIVERED,
            ..District::default()
        };
        let seed = load.seed.part("facts", 0);
        let districts = vec![loaded; (load.warehouses * DISTRICTS) as usize];
        Facts { seed, districts, names: Names::new(seed), item: RunConstants::of(load.seed).item }
    }

    /// Number of orders of a district, which is the number of the next order.
    pub(super) fn orders(&self, district: u32) -> u32 {
        self.districts[district as usize].orders
    }

    /// Adds an order of a customer.
    pub(super) fn order(&mut self, district: u32, customer: u32, items: impl Iterator<Item = u32>) {
        let it = &mut self.districts[district as usize];
        it.last.resize(CUSTOMERS_PER_DISTRICT as usize, 0);
        it.last[customer as usize] = it.orders;
        it.orders += 1;
        it.undelivered.push_back(customer as u16);
        let mut list =
            if it.recent.len() == LOOKED_AT { it.recent.pop_front() } else { None }.unwrap_or_default();
        list.clear();
        list.extend(items);
        it.recent.push_back(list);
    }

    /// Delivers the oldest undelivered order. Returns its number and its customer.
    pub(super) fn deliver(&mut self, district: u32) -> Option<(u32, u32)> {
        let it = &mut self.districts[district as usize];
        let number = it.delivered;
        if number == it.orders {
            return None;
        }
        it.delivered += 1;
        let customer = match number < CUSTOMERS_PER_DISTRICT {
            true => self.loaded(district).customer(number),
            false => u32::from(it.undelivered.pop_front().expect("an order was added")),
        };
        Some((number, customer))
    }

    /// Number of a customer's last order.
    pub(super) fn last_order(&self, district: u32, customer: u32) -> u32 {
        match self.districts[district as usize].last.get(customer as usize) {
            None | Some(0) => self.loaded(district).number(customer),
            Some(number) => *number,
        }
    }

    /// Items of a district's last orders, one list per order, the oldest first.
    pub(super) fn recent_items(&self, district: u32) -> impl Iterator<Item = Vec<u32>> + use<'_> {
        let it = &self.districts[district as usize];
        let before = (LOOKED_AT - it.recent.len()) as u32;
        let before = (CUSTOMERS_PER_DISTRICT - before..CUSTOMERS_PER_DISTRICT).map(move |number| {
            let order = u64::from(district) * u64::from(CUSTOMERS_PER_DISTRICT) + u64::from(number);
            let mut random = Random::new(self.seed.part("items", order));
            (0..LINES).map(|_| self.item.draw(&mut random, 1, ITEMS) - 1).collect()
        });
        before.chain(it.recent.iter().cloned())
    }

    /// Customers of a district with the last name `name`, and the position of their index entries as a share of the
    /// district's entries.
    pub(super) fn bearers(&self, district: u32, name: &str) -> (Vec<u32>, f64) {
        self.names.bearers(district, name)
    }

    /// The customer of each loaded order of a district. Each customer has one loaded order (clause 4.3.3.1).
    fn loaded(&self, district: u32) -> Permutation {
        Permutation::new(self.seed.part("orders", u64::from(district)))
    }
}

/// A permutation of the numbers below [`CUSTOMERS_PER_DISTRICT`] that needs no table: n ↦ (a n + b) modulo that
/// number.
#[derive(Debug, Clone, Copy)]
struct Permutation {
    factor: u32,
    shift: u32,
}

impl Permutation {
    fn new(seed: Seed) -> Permutation {
        let mut rng = seed.stream();
        let mut draw = || below(&mut rng, u64::from(CUSTOMERS_PER_DISTRICT)) as u32;
        let shift = draw();
        loop {
            let factor = draw();
            if inverse(factor).is_some() {
                return Permutation { factor, shift };
            }
        }
    }
    fn customer(self, number: u32) -> u32 {
        (self.factor * number + self.shift) % CUSTOMERS_PER_DISTRICT
    }
    fn number(self, customer: u32) -> u32 {
        let inverse = inverse(self.factor).expect("the factor is invertible");
        (customer + CUSTOMERS_PER_DISTRICT - self.shift) * inverse % CUSTOMERS_PER_DISTRICT
    }
}

/// Multiplicative inverse of `factor` modulo [`CUSTOMERS_PER_DISTRICT`] by Euclid's algorithm; `None` if `factor` has
/// no inverse.
fn inverse(factor: u32) -> Option<u32> {
    let modulus = i64::from(CUSTOMERS_PER_DISTRICT);
    let (mut old, mut new) = ((modulus, 0), (i64::from(factor), 1));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    (old.0 == 1).then(|| old.1.rem_euclid(modulus) as u32)
}

/// Last names of customers. The load draws the names once, and each district assigns the drawn names to different
/// customers.
#[derive(Debug)]
struct Names {
    numbers: BTreeMap<String, u32>,
    /// For each name, indices of the customers for whom it was drawn.
    bearers: Vec<Vec<u32>>,
    /// For each name, the share of a district's customers whose names sort before it.
    before: Vec<f64>,
}

impl Names {
    fn new(seed: Seed) -> Names {
        let numbers: BTreeMap<String, u32> =
            (0..LAST_NAMES).map(|number| (last_name(number), number)).collect();
        let mut bearers = vec![Vec::new(); LAST_NAMES as usize];
        let mut random = Random::new(seed.part("names", 0));
        for customer in 0..CUSTOMERS_PER_DISTRICT - NAMED_IN_ORDER {
            let name = NuRand::LAST_NAMES_OF_LOAD.draw(&mut random, 0, LAST_NAMES - 1);
            bearers[name as usize].push(customer);
        }
        let (mut before, mut count) = (vec![0.0; LAST_NAMES as usize], 0);
        for number in numbers.values() {
            before[*number as usize] = count as f64 / f64::from(CUSTOMERS_PER_DISTRICT);
            count += 1 + bearers[*number as usize].len();
        }
        Names { numbers, bearers, before }
    }

    fn bearers(&self, district: u32, name: &str) -> (Vec<u32>, f64) {
        let number = self.numbers[name];
        let drawn = CUSTOMERS_PER_DISTRICT - NAMED_IN_ORDER;
        // Any shift that differs between districts is suitable.
        let shift = district.wrapping_mul(2_654_435_761) % drawn;
        let others = self.bearers[number as usize].iter();
        let others = others.map(|customer| NAMED_IN_ORDER + (customer + shift) % drawn);
        (std::iter::once(number).chain(others).collect(), self.before[number as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Nanos;
    use std::collections::BTreeSet;

    const SEED: u64 = 23;

    fn facts() -> Facts {
        let load =
            ModelLoad { warehouses: 2, terminals: 1, interval: Nanos::from_secs(1), seed: Seed::new(SEED) };
        Facts::new(&load)
    }

    #[test]
    fn each_customer_has_one_loaded_order_and_one_name() {
        let facts = facts();
        for district in [0, 7, 19] {
            let loaded = facts.loaded(district);
            let customers: BTreeSet<u32> = (0..3000).map(|number| loaded.customer(number)).collect();
            assert_eq!(customers.len(), 3000, "seed {SEED}");
            for customer in 0..3000 {
                assert_eq!(loaded.customer(facts.last_order(district, customer)), customer, "seed {SEED}");
            }
            let mut all = BTreeSet::new();
            for name in 0..LAST_NAMES {
                let (bearers, at) = facts.bearers(district, &last_name(name));
                assert!(bearers[0] == name && at < 1.0, "seed {SEED}");
                all.extend(bearers);
            }
            assert_eq!(all.len(), 3000, "seed {SEED}");
        }
        assert_ne!(facts.loaded(0).customer(0), facts.loaded(1).customer(0), "seed {SEED}");
    }

    #[test]
    fn orders_are_delivered_in_order_and_the_last_twenty_are_remembered() {
        let mut facts = facts();
        for n in 0..3 {
            assert_eq!(facts.orders(4), 3000 + n);
            facts.order(4, 10 + n, [n, n + 1].into_iter());
        }
        assert_eq!([facts.last_order(4, 11), facts.orders(5)], [3001, 3000]);
        let recent: Vec<Vec<u32>> = facts.recent_items(4).collect();
        assert_eq!(recent.len(), 20);
        assert!(recent[..17].iter().all(|items| items.len() == 10), "items of the load");
        assert_eq!(recent[17..], [vec![0, 1], vec![1, 2], vec![2, 3]]);
        assert_eq!(facts.recent_items(4).collect::<Vec<_>>(), recent, "a second read");
        let delivered: Vec<(u32, u32)> = std::iter::from_fn(|| facts.deliver(4)).collect();
        assert_eq!((delivered.len(), delivered[0].0), (903, 2100));
        assert_eq!(delivered[900..], [(3000, 10), (3001, 11), (3002, 12)]);
        (0..25).for_each(|n| facts.order(4, 0, [n].into_iter()));
        assert_eq!(facts.recent_items(4).collect::<Vec<_>>(), (5..25).map(|n| vec![n]).collect::<Vec<_>>());
    }
}
