//! Preparation: a target with exactly the history its cell asks for.
//!
//! A load takes a [`PreparedDrive`] or a [`PreparedFiles`], and only this stage makes them, so that nothing is
//! measured on a target that was not prepared. Leaves out measuring.

mod database;
mod drive;
mod files;

pub use database::Database;
pub use drive::{History, PreparedDrive};
pub use files::{Files, PreparedFiles};
