//! How large the database is (clause 1.2.1).

use std::ops::RangeInclusive;

/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;
/// Customers of a district, and its orders after the load.
pub const CUSTOMERS_PER_DISTRICT: u32 = 3_000;
/// Items, and stock rows of a warehouse.
pub const ITEMS: u32 = 100_000;

/// The size of a database, or of a part of it: several servers may share the warehouses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The warehouses that are in it, by number from 1.
    pub warehouses: RangeInclusive<u32>,
    /// Customers of each district; fewer than the specification's only in tests. The last 30 % of a
    /// district's orders are undelivered, so a multiple of 10.
    pub customers: u32,
    /// Items; fewer than the specification's only in tests.
    pub items: u32,
}

impl Scale {
    /// Warehouses 1 to `count`, as specified.
    pub fn warehouses(count: u32) -> Self {
        Scale { warehouses: 1..=count, customers: CUSTOMERS_PER_DISTRICT, items: ITEMS }
    }
    /// How many warehouses; none where the last is before the first.
    pub fn count(&self) -> u32 {
        (self.warehouses.end() + 1).saturating_sub(*self.warehouses.start())
    }
}
