//! The pipeline of lowtide: experiment → plan → prepare → load → store.
//!
//! Each stage is a module and takes only the result of the stage before it; [`campaign`] runs them. Leaves
//! out the models (crate `lowtide-device`), everything Linux (crate `lowtide-host`), reports (crate
//! `lowtide-report`) and the command line (crate `lowtide-cli`).

pub mod campaign;
mod cell_error;
pub mod experiment;
pub mod fio_job;
pub mod import;
pub mod load;
pub mod plan;
pub mod prepare;
pub mod rounds;
pub mod smart;
pub mod store;
pub mod witness;
