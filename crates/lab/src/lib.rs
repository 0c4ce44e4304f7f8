//! The pipeline of lowtide: experiment → plan → prepare → load → store.
//!
//! Each module is one stage and takes only what the stage before it gives; [`campaign`] runs them. Leaves out
//! the models (crate `lowtide-device`), everything Linux (crate `lowtide-host`), what is made of the records (crate
//! `lowtide-report`) and the command line (crate `lowtide-cli`).

pub mod campaign;
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
