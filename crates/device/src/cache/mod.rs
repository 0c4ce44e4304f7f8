//! A flash cache in front of a slower device.
//!
//! The flash holds lines of the backing device, as many as fit, and is never trimmed: it works full, and cleans
//! itself while it serves. The rules are in `docs/models/cache.md`. Leaves out what it costs to keep the directory of
//! lines durable.

mod device;
mod directory;
mod lines;
mod lru;
pub mod spec;
mod streams;

pub use device::{Cache, Traffic};
pub use spec::{CacheParameters, CacheSpec, Mode};
