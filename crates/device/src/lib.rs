//! Models of storage devices in virtual time, deterministic from a seed.
//!
//! * Devices: a flash drive ([`SimulatedSsd`]), a hard disk ([`SimulatedDisk`]), several devices behind one
//!   controller ([`Array`]), a flash cache ([`Cache`]), a log-structured layer ([`log`]) and a cloud volume
//!   ([`Volume`]).
//! * In front of a device: a partition ([`Partition`]), faults ([`fault`]) and power cuts ([`power`]).
//! * Saved devices: [`state`] converts a device to bytes.
//! * Filesystems: [`layout`] gives the positions of files.
//!
//! Every device implements the contract of [`lowtide_core::BlockDevice`]. Device files are read in
//! `lowtide_files::device`.
//!
//! # Not modelled
//! Contents of blocks.

pub mod array;
pub mod cache;
mod composite;
pub mod disk;
pub mod fault;
pub mod flash;
pub mod layout;
pub mod log;
mod partition;
pub mod power;
pub mod spec;
pub mod state;
pub mod volume;

pub use array::Array;
pub use cache::Cache;
pub use disk::SimulatedDisk;
pub use flash::SimulatedSsd;
pub use partition::Partition;
pub use spec::{AnyDevice, DeviceSpec, SpecError, Wear};
pub use volume::Volume;
