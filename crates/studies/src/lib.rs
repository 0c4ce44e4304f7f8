//! Questions that take many campaigns: are the models right, which drive meets a rate, what would another
//! size give.
//!
//! [`ask`] is the entry point for the command line and for Python. Not here: running a single campaign
//! (crate `lowtide-lab`) and reporting its results (crate `lowtide-report`).

pub mod adaptive;
pub mod advise;
pub mod ask;
pub mod bench;
pub mod failure;
pub mod fit;
pub mod interleave;
pub mod validate;
