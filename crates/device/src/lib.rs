//! Models of storage devices in virtual time, deterministic from a seed.
//!
//! Here: the simulated flash drive ([`SimulatedSsd`]), the simulated hard disk ([`SimulatedDisk`]), a partition of any device ([`Partition`]) and the
//! layout a filesystem gives its files ([`layout`]). Every device keeps the contract of
//! [`lowtide_core::BlockDevice`]. Leaves out data contents, arrays and caches; and how device files are
//! read and diagnosed, which is the lab's work.

pub mod disk;
pub mod flash;
pub mod layout;
mod partition;
pub mod spec;

pub use disk::SimulatedDisk;
pub use flash::SimulatedSsd;
pub use partition::Partition;
pub use spec::{AnyDevice, DeviceSpec, SpecError};
