//! A check of the quantities in stock against those of the load (clause 2.4.2.2).
//!
//! New-Order subtracts a quantity from the stock and adds 91 if fewer than 10 would be left. A quantity thus
//! stays between 10 and 100, and `s_quantity + s_ytd` never changes modulo 91. The quantities of the load
//! follow from its seed. The check compares one sum per warehouse, with a different weight for each item.
//!
//! # Limits
//! The check does not name the items that are wrong.

use super::Condition;
use crate::{Database, OltpError};
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Rows, Scale, Table, population};
use std::convert::Infallible;

/// Number of values of a quantity: 10 to 100.
const VALUES: i64 = 91;
/// The weights of the items cycle through 1 to this number.
const WEIGHTS: i64 = 97;

/// Compares the quantities of every warehouse with those of a load with `seed`. The result counts warehouses.
///
/// # Errors
/// [`OltpError`] if a query fails.
pub fn quantities(database: &dyn Database, scale: &Scale, seed: Seed) -> Result<Condition, OltpError> {
    let mut broken = 0;
    for warehouse in scale.warehouses.clone() {
        let found = database.number(&format!(
            "SELECT sum((s_quantity + s_ytd) % {VALUES} * (s_i_id % {WEIGHTS} + 1)) FROM stock
             WHERE s_w_id = {warehouse}"
        ))?;
        let mut loaded = Loaded::default();
        let Ok(()) = population::write(Table::Stock, warehouse, scale, seed, &mut loaded);
        broken += i64::from(found != loaded.sum);
    }
    Ok(Condition { name: "s_quantity = first quantity - s_ytd, modulo 91", clause: "2.4.2.2", broken })
}

/// Sums the rows of `stock`, whose first columns are item, warehouse and quantity.
#[derive(Default)]
struct Loaded {
    item: i64,
    column: usize,
    sum: i64,
}

impl Rows for Loaded {
    type Error = Infallible;
    fn int(&mut self, value: i64) {
        match self.column {
            0 => self.item = value,
            2 => self.sum += value % VALUES * (self.item % WEIGHTS + 1),
            _ => {}
        }
        self.column += 1;
    }
    fn text(&mut self, _: &str) {
        self.column += 1;
    }
    fn null(&mut self) {
        self.column += 1;
    }
    fn time(&mut self) {
        self.column += 1;
    }
    fn end(&mut self) -> Result<(), Infallible> {
        self.column = 0;
        Ok(())
    }
}
