//! A log-structured layer over another device, which turns all writes into sequential writes.
//!
//! This module holds only the description. The layer and its behaviour in virtual time are in `lowtide_logdisk`; the
//! rules are in `docs/guide/logdisk.md`.

pub mod spec;

pub use spec::{LogParameters, LogSpec};
