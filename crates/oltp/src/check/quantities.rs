//! Checks that stock quantities follow from the quantities of the load, by clause 2.4.2.2.
//!
//! New-Order subtracts a quantity and keeps the result within 10 and 100 by adding 91, the number of possible values.
//! So `s_quantity + s_ytd` never changes modulo 91 after the load, and the quantities of the load follow from its
//! seed. Each warehouse is compared by one sum in which items have different weights.
//!
//! # Not handled
//! The sum does not tell which item is wrong.

use super::Condition;
use crate::{Database, OltpError};
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Rows, Scale, Table, population};
use std::convert::Infallible;

/// Number of values that a quantity can have.
const VALUES: i64 = 91;
/// Item weights cycle from 1 to this number.
const WEIGHTS: i64 = 97;

/// Checks the quantities of every warehouse against a load with this seed.
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

/// Sums over the rows of `stock`, whose first columns are item, warehouse and quantity.
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
