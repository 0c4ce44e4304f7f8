//! The pipeline of lowtide: experiment → plan → prepare → load → store → analysis → report.
//!
//! Each module is one stage and takes only what the stage before it gives. Leaves out the models (crate
//! `lowtide-device`), everything Linux (crate `lowtide-host`) and the command line (crate `lowtide-cli`).

pub mod analysis;
pub mod record;
