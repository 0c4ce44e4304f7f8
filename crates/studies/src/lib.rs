//! Studies that consist of many campaigns: validation against published numbers, choice of a device, adaptive size
//! curves, and fits of a device.
//!
//! [`ask`] is the entry point for the command line and Python. Crate `lowtide-lab` runs single campaigns, and
//! `lowtide-report` reports their results.

pub mod adaptive;
pub mod advise;
pub mod ask;
pub mod bench;
pub mod failure;
pub mod fit;
pub mod interleave;
pub mod validate;
