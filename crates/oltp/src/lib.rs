//! TPC-C on real databases.
//!
//! ```text
//!   Settings ─► Instance (a server of our own) ─► Database ─► load ─► terminals, a Session each ─► Interval
//!                                                    └─► check: the consistency conditions
//! ```
//!
//! The benchmark itself (rows, transaction inputs and their mix) is `lowtide_engines::tpcc`. Each engine has a
//! module that turns them into statements. The crate `lowtide-lab` chooses the data directory and the length of a
//! measurement; the crate `lowtide-record` interprets the numbers.
//!
//! Source: TPC Benchmark C, Standard Specification, Revision 5.11 (clauses are named in the code).

mod address;
pub mod bench;
pub mod check;
pub mod database;
mod error;
pub mod folder;
pub mod instance;
pub mod mariadb;
mod named;
mod network;
pub mod postgres;
mod server;
pub mod snapshot;
pub mod sqlite;
pub mod terminals;
mod watchdog;

pub use address::{Address, HIDDEN, passwords, without_password};
pub use database::{Counter, CounterUnit, Database, Failure, Outcome, Session};
pub use error::OltpError;
pub use folder::Folder;
pub use instance::{Instance, Places};
