//! TPC-C, and the databases it runs on.
//!
//! ```text
//!   Settings ─► Instance (a server of our own) ─► Database ─► load ─► terminals, a Session each ─► Interval
//!                                                    └─► check: the conditions of consistency
//! ```
//!
//! `tpcc` is what the benchmark asks, whichever database answers: the rows, the inputs of each transaction and their
//! mix. Each engine has a module that turns them into statements. Leaves out where the data directory lies, how long
//! a measurement is and what its numbers mean: that is the lab's.
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
