//! The TPC-C benchmark, independent of the database.
//!
//! The module is pure: sizes, inputs and rows follow from a seed. SQL statements are in crate `lowtide-oltp`.

mod deck;
mod homes;
mod input;
pub mod pause;
pub mod population;
pub mod random;
mod rows;
mod scale;
mod schema;
mod transaction;

pub use deck::{CARDS, Deck};
pub use homes::Homes;
pub use input::Inputs;
pub use population::{LOADED_AT, LOADED_AT_SECONDS};
pub use rows::{Rows, TabSeparated, column_list};
pub use scale::{CUSTOMERS_PER_DISTRICT, DISTRICTS, ITEMS, Scale};
pub use schema::{Column, Index, Table, Type};
pub use transaction::{Delivery, Kind, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction, Who};
