//! Targets: makes, fills, reuses and removes the files under test, and never touches files of the user.
//!
//! ```text
//!   TargetSpec + Layout ──examine──► Outlook      (what would be written; for `plan`)
//!          │
//!          └──Target::prepare──► Target ──data()──► TestData ──► engine
//!             kind, marker, lock, space,   │
//!             fallocate, fill, sync        └──remove() or drop: removes the files, except those to be kept
//! ```
//!
//! Safety invariant: lowtide writes to and removes only files that it created itself, in this run (`O_EXCL`) or in an
//! earlier one (the file has a marker with its own inode number; see [`marker`]). Block devices are rejected here;
//! they are in [`crate::block`].

mod file;
mod marker;
mod prepare;
mod spec;

pub use crate::data::{Order, Progress, TestData};
pub use prepare::{Outlook, Preparation, Target, examine, remove_left_over};
pub use spec::{Layout, TargetSpec};
