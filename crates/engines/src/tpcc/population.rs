//! The rows of a fresh database (clause 4.3.3).
//!
//! The rows of a table in a warehouse depend on the seed and on nothing else, so tables and warehouses can be made in any
//! order and side by side, and equal seeds give equal bytes. Rows come in the order of the primary key. Leaves out where
//! they go. Amounts are in cents.
//!
//! Where a test has fewer customers than the specification, what follows from their number follows: the amounts of
//! districts and warehouses, the next order, and the names that there are.

use crate::tpcc::random::{LAST_NAMES, NuRand, Random, last_name};
use crate::tpcc::rows::Rows;
use crate::tpcc::{DISTRICTS, Scale, Table};
use lowtide_core::Seed;

/// Every date and time of the load: fixed, so that equal seeds give equal rows.
pub const LOADED_AT: &str = "2026-01-01 00:00:00";
/// [`LOADED_AT`] as seconds since the beginning of 1970, UTC.
pub const LOADED_AT_SECONDS: i64 = 1_767_225_600;

/// What each customer has paid by then, in cents.
pub const PAID: i64 = 1_000;

/// Orders that are not delivered, of a district: the last 30 % (clause 4.3.3.1).
pub fn undelivered(scale: &Scale) -> u32 {
    scale.customers * 3 / 10
}

/// How many rows `table` has in all warehouses of `scale`; for `order_line` about as many.
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

/// Gives `rows` the rows of `table` in `warehouse`; those of `item`, whichever warehouse is named.
///
/// # Errors
/// Those of `rows`, at once.
pub fn write<R: Rows>(
    table: Table,
    warehouse: u32,
    scale: &Scale,
    seed: Seed,
    rows: &mut R,
) -> Result<(), R::Error> {
    let number = if table.per_warehouse() { u64::from(warehouse) } else { 0 };
    let mut random = Random::new(seed.part(table.name(), number));
    let random = &mut random;
    match table {
        Table::Item => items(scale, random, rows),
        Table::Warehouse => warehouse_row(warehouse, scale, random, rows),
        Table::District => districts(warehouse, scale, random, rows),
        Table::Customer => customers(warehouse, scale, random, rows),
        Table::History => history(warehouse, scale, random, rows),
        Table::Stock => stock(warehouse, scale, random, rows),
        Table::Orders => orders(warehouse, scale, seed, random, rows),
        Table::NewOrder => new_orders(warehouse, scale, rows),
        Table::OrderLine => order_lines(warehouse, scale, seed, random, rows),
    }
}

fn items<R: Rows>(scale: &Scale, random: &mut Random, rows: &mut R) -> Result<(), R::Error> {
    for item in 1..=scale.items {
        rows.int(item.into());
        rows.int(random.between(1, 10_000).into());
        rows.text(random.letters(14, 24));
        rows.int(random.between(100, 10_000).into());
        rows.text(random.data(26, 50));
        rows.end()?;
    }
    Ok(())
}

fn warehouse_row<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    rows.int(warehouse.into());
    rows.text(random.letters(6, 10));
    address(random, rows);
    rows.int(random.between(0, 2_000).into());
    rows.int(i64::from(DISTRICTS) * i64::from(scale.customers) * PAID);
    rows.end()
}

fn districts<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    for district in 1..=DISTRICTS {
        rows.int(district.into());
        rows.int(warehouse.into());
        rows.text(random.letters(6, 10));
        address(random, rows);
        rows.int(random.between(0, 2_000).into());
        rows.int(i64::from(scale.customers) * PAID);
        rows.int((scale.customers + 1).into());
        rows.end()?;
    }
    Ok(())
}

fn customers<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    let names: Vec<String> = (0..LAST_NAMES).map(last_name).collect();
    for district in 1..=DISTRICTS {
        for customer in 1..=scale.customers {
            let name = match customer - 1 {
                first @ 0..LAST_NAMES => first,
                _ => NuRand::LAST_NAMES_OF_LOAD.draw(random, 0, LAST_NAMES - 1),
            };
            rows.int(customer.into());
            rows.int(district.into());
            rows.int(warehouse.into());
            rows.text(random.letters(8, 16));
            rows.text("OE");
            rows.text(&names[name as usize]);
            address(random, rows);
            rows.text(random.digits(16));
            rows.time();
            rows.text(if random.chance(10) { "BC" } else { "GC" });
            rows.int(5_000_000);
            rows.int(random.between(0, 5_000).into());
            rows.int(-PAID);
            rows.int(PAID);
            rows.int(1);
            rows.int(0);
            rows.text(random.letters(300, 500));
            rows.end()?;
        }
    }
    Ok(())
}

fn history<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    for district in 1..=DISTRICTS {
        for customer in 1..=scale.customers {
            rows.int(customer.into());
            rows.int(district.into());
            rows.int(warehouse.into());
            rows.int(district.into());
            rows.int(warehouse.into());
            rows.time();
            rows.int(PAID);
            rows.text(random.letters(12, 24));
            rows.end()?;
        }
    }
    Ok(())
}

fn stock<R: Rows>(warehouse: u32, scale: &Scale, random: &mut Random, rows: &mut R) -> Result<(), R::Error> {
    for item in 1..=scale.items {
        rows.int(item.into());
        rows.int(warehouse.into());
        rows.int(random.between(10, 100).into());
        for _ in 0..DISTRICTS {
            rows.text(random.letters(24, 24));
        }
        rows.int(0);
        rows.int(0);
        rows.int(0);
        rows.text(random.data(26, 50));
        rows.end()?;
    }
    Ok(())
}

fn orders<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    seed: Seed,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    let mut lines = LineCounts::new(warehouse, seed);
    let mut customers: Vec<u32> = (1..=scale.customers).collect();
    for district in 1..=DISTRICTS {
        random.shuffle(&mut customers);
        for (order, customer) in (1..).zip(&customers) {
            rows.int(order.into());
            rows.int(district.into());
            rows.int(warehouse.into());
            rows.int((*customer).into());
            rows.time();
            if delivered(order, scale) {
                rows.int(random.between(1, 10).into());
            } else {
                rows.null();
            }
            rows.int(lines.next().into());
            rows.int(1);
            rows.end()?;
        }
    }
    Ok(())
}

fn new_orders<R: Rows>(warehouse: u32, scale: &Scale, rows: &mut R) -> Result<(), R::Error> {
    for district in 1..=DISTRICTS {
        for order in scale.customers - undelivered(scale) + 1..=scale.customers {
            rows.int(order.into());
            rows.int(district.into());
            rows.int(warehouse.into());
            rows.end()?;
        }
    }
    Ok(())
}

fn order_lines<R: Rows>(
    warehouse: u32,
    scale: &Scale,
    seed: Seed,
    random: &mut Random,
    rows: &mut R,
) -> Result<(), R::Error> {
    let mut lines = LineCounts::new(warehouse, seed);
    for district in 1..=DISTRICTS {
        for order in 1..=scale.customers {
            for line in 1..=lines.next() {
                rows.int(order.into());
                rows.int(district.into());
                rows.int(warehouse.into());
                rows.int(line.into());
                rows.int(random.between(1, scale.items).into());
                rows.int(warehouse.into());
                if delivered(order, scale) {
                    rows.time();
                    rows.int(5);
                    rows.int(0);
                } else {
                    rows.null();
                    rows.int(5);
                    rows.int(random.between(1, 999_999).into());
                }
                rows.text(random.letters(24, 24));
                rows.end()?;
            }
        }
    }
    Ok(())
}

/// How many lines each order of a warehouse has: a stream of its own, because `orders` and `order_line` both need it.
struct LineCounts(Random);

impl LineCounts {
    fn new(warehouse: u32, seed: Seed) -> Self {
        LineCounts(Random::new(seed.part("lines of orders", warehouse.into())))
    }
    fn next(&mut self) -> u32 {
        self.0.between(5, 15)
    }
}

fn delivered(order: u32, scale: &Scale) -> bool {
    order <= scale.customers - undelivered(scale)
}

/// Two lines of street, city, state and zip code.
fn address<R: Rows>(random: &mut Random, rows: &mut R) {
    rows.text(random.letters(10, 20));
    rows.text(random.letters(10, 20));
    rows.text(random.letters(10, 20));
    rows.text(random.letters(2, 2));
    rows.text(random.zip());
}
