//! Sizes of the database (clause 1.2.1).

use std::ops::RangeInclusive;

/// Districts per warehouse.
pub const DISTRICTS: u32 = 10;
/// Customers per district, which is also its number of orders after the load.
pub const CUSTOMERS_PER_DISTRICT: u32 = 3_000;
/// Number of items, which is also the number of stock rows per warehouse.
pub const ITEMS: u32 = 100_000;

/// Size of a database, or of a shard: several servers may share the warehouses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Warehouse numbers, from 1.
    pub warehouses: RangeInclusive<u32>,
    /// Customers per district: a multiple of 10, because the last 30 % of a district's orders are undelivered. Only
    /// tests use fewer than the specification.
    pub customers: u32,
    /// Number of items. Only tests use fewer than the specification.
    pub items: u32,
}

impl Scale {
    /// Warehouses 1 to `count`, with the sizes of the specification.
    pub fn warehouses(count: u32) -> Self {
        Scale { warehouses: 1..=count, customers: CUSTOMERS_PER_DISTRICT, items: ITEMS }
    }
    /// Number of warehouses; 0 for an empty range.
    pub fn count(&self) -> u32 {
        (self.warehouses.end() + 1).saturating_sub(*self.warehouses.start())
    }
}
