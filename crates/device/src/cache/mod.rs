//! A flash cache in front of a slower device.
//!
//! The flash holds as many lines of the backing device as fit. It is never trimmed, so it is full and collects
//! garbage while it serves requests. The rules are in `docs/models/cache.md`.
//!
//! # Not modelled
//! The cost of a durable directory.

mod device;
mod directory;
mod lines;
mod lru;
pub mod spec;
mod streams;

pub use device::{Cache, Traffic};
pub use spec::{CacheParameters, CacheSpec, Mode};
