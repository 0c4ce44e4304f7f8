//! Groups that run side by side.
//!
//! Leaves out what a group is, and in what order they begin.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives the jobs, in order, to as many threads as there are (see [`set_jobs`]).
pub fn on_all_cores<T: Sync>(jobs: &[T], job: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(one) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            job(one);
        }
    };
    rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| worker())));
}

/// Sets how many groups run at the same time; the first call counts, and without one it is a group per core.
pub fn set_jobs(jobs: usize) {
    // A second call finds the pool made, and it stays as it is.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
}

/// Does something with so many threads for groups that run at the same time, which are gone when it is done: for programs
/// that run several campaigns, each with its own number, or that may be forked in between.
///
/// # Panics
/// Where the machine gives no threads.
pub fn with_jobs<T: Send>(jobs: usize, what: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.expect("a machine has threads").install(what)
}
