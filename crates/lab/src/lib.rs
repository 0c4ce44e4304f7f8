//! The pipeline of lowtide: experiment → plan → prepare → load → store.
//!
//! Each stage is a module and takes only the result of the previous stage; [`campaign`] runs the stages.
//!
//! Other crates contain the models (`lowtide-device`), all code for Linux (`lowtide-host`), the reports
//! (`lowtide-report`) and the command line (`lowtide-cli`).

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
