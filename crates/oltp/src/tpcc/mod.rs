//! What TPC-C asks, whichever database answers.
//!
//! Pure: sizes, inputs and rows come from a seed. Leaves out statements.

mod scale;
mod transaction;

pub use scale::{CUSTOMERS_PER_DISTRICT, DISTRICTS, ITEMS, Scale};
pub use transaction::{Delivery, Kind, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction, Who};
