//! The rows of a fresh database (clause 4.3.3).
//!
//! The rows of a table in a warehouse depend only on the seed. Tables and warehouses can therefore be generated
//! concurrently and in any order, and equal seeds give equal bytes. Rows are generated in the order of the primary
//! key. Amounts are in cents.
//!
//! Tests may have fewer customers than the specification. Dependent values are then scaled: the totals of districts
//! and warehouses, the next order number, and the set of last names.

use crate::tpcc::random::{LAST_NAMES, NuRand, Random, last_name};
use crate::tpcc::rows::Rows;
use crate::tpcc::{DISTRICTS, Scale, Table};
use lowtide_core::Seed;

/// The date and time of all rows of the load, fixed so that equal seeds give equal rows.
pub const LOADED_AT: &str = "2026-01-01 00:00:00";
/// [`LOADED_AT`] in seconds since 1970-01-01, UTC.
pub const LOADED_AT_SECONDS: i64 = 1_767_225_600;

/// Initial payment of each customer, in cents.
pub const PAID: i64 = 1_000;

/// Undelivered orders of a district: the last 30 % (clause 4.3.3.1).
pub fn undelivered(scale: &Scale) -> u32 {
    scale.customers * 3 / 10
}

/// Number of rows of `table` in all warehouses of `scale`. Approximate for `order_line`.
pub fn count(table: Table, scale: &Scale) -> u64 {
    let warehouses = u64::from(scale.count());
    let districts = warehouses * u64::from(DISTRICTS);
    let customers = districts * u64::from(scale.customers);
    match table {
        Table::Item => u64::from(scale.items),
        Table::Warehouse => warehouses,
        Table::District => districts,
        Table::Customer | Table::History | Table::Orders => customers,
        Table::Stock => warehouses * u64::from(scale.items),
        Table::NewOrder => districts * u64::from(undelivered(scale)),
        Table::OrderLine => customers * 10,
    }
}

/// Writes the rows of `table` in `warehouse` to `rows`. The rows of `item` do not depend on the warehouse.
///
/// # Errors
/// The first error of `rows`, which ends the generation.
pub fn write<R: Rows>(
    table: Table,
    warehouse: u32,
    scale: &Scale,
    seed: Seed,
    rows: &mut R,
) -> Result<(), R::Error> {
    let number = if table.per_warehouse() { u64::from(warehouse) } else { 0 };
    let random = Random::new(seed.part(table.name(), number));
    let mut population = Population { warehouse, scale, seed, random, rows };
    match table {
        Table::Item => population.items(),
        Table::Warehouse => population.warehouse(),
        Table::District => population.districts(),
        Table::Customer => population.customers(),
        Table::History => population.history(),
        Table::Stock => population.stock(),
        Table::Orders => population.orders(),
        Table::NewOrder => population.new_orders(),
        Table::OrderLine => population.order_lines(),
    }
}

/// Generator of the rows of one table in one warehouse.
struct Population<'a, R> {
    warehouse: u32,
    scale: &'a Scale,
    seed: Seed,
    random: Random,
    rows: &'a mut R,
}

impl<R: Rows> Population<'_, R> {
    fn ints<const N: usize>(&mut self, values: [u32; N]) {
        values.into_iter().for_each(|value| self.rows.int(value.into()));
    }
    fn between(&mut self, low: u32, high: u32) {
        self.rows.int(self.random.between(low, high).into());
    }
    fn letters(&mut self, low: u32, high: u32) {
        self.rows.text(self.random.letters(low, high));
    }

    fn items(&mut self) -> Result<(), R::Error> {
        for item in 1..=self.scale.items {
            self.ints([item]);
            self.between(1, 10_000);
            self.letters(14, 24);
            self.between(100, 10_000);
            self.rows.text(self.random.data(26, 50));
            self.rows.end()?;
        }
        Ok(())
    }

    fn warehouse(&mut self) -> Result<(), R::Error> {
        self.ints([self.warehouse]);
        self.letters(6, 10);
        self.address();
        self.between(0, 2_000);
        self.rows.int(i64::from(DISTRICTS) * i64::from(self.scale.customers) * PAID);
        self.rows.end()
    }

    fn districts(&mut self) -> Result<(), R::Error> {
        for district in 1..=DISTRICTS {
            self.ints([district, self.warehouse]);
            self.letters(6, 10);
            self.address();
            self.between(0, 2_000);
            self.rows.int(i64::from(self.scale.customers) * PAID);
            self.ints([self.scale.customers + 1]);
            self.rows.end()?;
        }
        Ok(())
    }

    fn customers(&mut self) -> Result<(), R::Error> {
        let names: Vec<String> = (0..LAST_NAMES).map(last_name).collect();
        for district in 1..=DISTRICTS {
            for customer in 1..=self.scale.customers {
                let name = match customer - 1 {
                    first @ 0..LAST_NAMES => first,
                    _ => NuRand::LAST_NAMES_OF_LOAD.draw(&mut self.random, 0, LAST_NAMES - 1),
                };
                self.ints([customer, district, self.warehouse]);
                self.letters(8, 16);
                self.rows.text("OE");
                self.rows.text(&names[name as usize]);
                self.address();
                self.rows.text(self.random.digits(16));
                self.rows.time();
                self.rows.text(if self.random.chance(10) { "BC" } else { "GC" });
                self.rows.int(5_000_000);
                self.between(0, 5_000);
                [-PAID, PAID, 1, 0].into_iter().for_each(|value| self.rows.int(value));
                self.letters(300, 500);
                self.rows.end()?;
            }
        }
        Ok(())
    }

    fn history(&mut self) -> Result<(), R::Error> {
        for district in 1..=DISTRICTS {
            for customer in 1..=self.scale.customers {
                self.ints([customer, district, self.warehouse, district, self.warehouse]);
                self.rows.time();
                self.rows.int(PAID);
                self.letters(12, 24);
                self.rows.end()?;
            }
        }
        Ok(())
    }

    fn stock(&mut self) -> Result<(), R::Error> {
        for item in 1..=self.scale.items {
            self.ints([item, self.warehouse]);
            self.between(10, 100);
            (0..DISTRICTS).for_each(|_| self.letters(24, 24));
            self.ints([0, 0, 0]);
            self.rows.text(self.random.data(26, 50));
            self.rows.end()?;
        }
        Ok(())
    }

    fn orders(&mut self) -> Result<(), R::Error> {
        let mut lines = LineCounts::new(self.warehouse, self.seed);
        let mut customers: Vec<u32> = (1..=self.scale.customers).collect();
        for district in 1..=DISTRICTS {
            self.random.shuffle(&mut customers);
            for (order, customer) in (1..).zip(&customers) {
                self.ints([order, district, self.warehouse, *customer]);
                self.rows.time();
                match self.is_delivered(order) {
                    true => self.between(1, 10),
                    false => self.rows.null(),
                }
                self.ints([lines.next(), 1]);
                self.rows.end()?;
            }
        }
        Ok(())
    }

    fn new_orders(&mut self) -> Result<(), R::Error> {
        for district in 1..=DISTRICTS {
            for order in self.scale.customers - undelivered(self.scale) + 1..=self.scale.customers {
                self.ints([order, district, self.warehouse]);
                self.rows.end()?;
            }
        }
        Ok(())
    }

    fn order_lines(&mut self) -> Result<(), R::Error> {
        let mut lines = LineCounts::new(self.warehouse, self.seed);
        for district in 1..=DISTRICTS {
            for order in 1..=self.scale.customers {
                for line in 1..=lines.next() {
                    self.ints([order, district, self.warehouse, line]);
                    self.between(1, self.scale.items);
                    self.ints([self.warehouse]);
                    if self.is_delivered(order) {
                        self.rows.time();
                        self.ints([5, 0]);
                    } else {
                        self.rows.null();
                        self.ints([5]);
                        self.between(1, 999_999);
                    }
                    self.letters(24, 24);
                    self.rows.end()?;
                }
            }
        }
        Ok(())
    }

    fn is_delivered(&self, order: u32) -> bool {
        order <= self.scale.customers - undelivered(self.scale)
    }

    /// Adds an address: two street lines, city, state and zip code.
    fn address(&mut self) {
        (0..3).for_each(|_| self.letters(10, 20));
        self.letters(2, 2);
        self.rows.text(self.random.zip());
    }
}

/// Generator of the number of lines of each order in a warehouse. It is a separate stream, because `orders` and
/// `order_line` need equal numbers.
struct LineCounts(Random);

impl LineCounts {
    fn new(warehouse: u32, seed: Seed) -> Self {
        LineCounts(Random::new(seed.part("lines of orders", warehouse.into())))
    }
    fn next(&mut self) -> u32 {
        self.0.between(5, 15)
    }
}
