//! Models of storage devices in virtual time, deterministic from a seed.
//!
//! Here: the simulated flash drive ([`SimulatedSsd`]), the simulated hard disk ([`SimulatedDisk`]), several
//! devices behind one controller ([`Array`]), a flash cache in front of another device ([`Cache`]), a log-structured layer
//! over another device ([`log`]), a cloud volume ([`Volume`]), a partition of any device ([`Partition`]), faults in front of it ([`fault`]), what a power cut leaves
//! ([`power`]), a device's state as bytes ([`state`]) and the layout a filesystem gives its files ([`layout`]). Every device
//! keeps the contract of [`lowtide_core::BlockDevice`]. Leaves out data contents; and how device files are read and
//! diagnosed, see `lowtide_files::device`.

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
