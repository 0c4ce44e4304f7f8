//! The pipeline of lowtide: experiment → plan → prepare → load → store → analysis → report.
//!
//! Each module is one stage and takes only what the stage before it gives; [`campaign`] runs them. Leaves out
//! the models (crate `lowtide-device`), everything Linux (crate `lowtide-host`) and the command line (crate
//! `lowtide-cli`).

pub mod adaptive;
pub mod advise;
pub mod analysis;
pub(crate) mod answer;
pub(crate) mod application;
pub mod ask;
pub mod bench;
pub mod campaign;
pub mod catalogue;
pub mod compare;
pub mod cost;
pub mod device;
pub mod experiment;
pub mod failure;
pub(crate) mod find;
pub mod fio_job;
pub mod fit;
pub mod frame;
pub mod import;
pub mod interleave;
pub mod lifetime;
pub mod live;
pub mod load;
pub mod logdisk;
pub mod output;
pub mod passwords;
pub mod plan;
pub mod powercut;
pub mod prepare;
pub mod record;
pub mod report;
pub mod rounds;
pub mod store;
pub mod table;
pub mod trace;
pub mod validate;
pub mod witness;
