//! Questions that take many campaigns: are the models right, which drive fits, what would another size give.
//!
//! [`ask`] is where a command line or a notebook enters. Leaves out a single campaign (crate `lowtide-lab`) and how its
//! answer is shown (crate `lowtide-report`).

pub mod adaptive;
pub mod advise;
pub mod ask;
pub mod bench;
pub mod failure;
pub mod fit;
pub mod interleave;
pub mod validate;
