//! Thread pools for groups of cells that run concurrently.
//!
//! Not here: what a group is, and the order of the groups.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs the jobs on all threads of the current pool (see [`set_jobs`]); they start in order.
pub fn on_all_cores<T: Sync>(jobs: &[T], job: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(one) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            job(one);
        }
    };
    rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| worker())));
}

/// Sets how many groups run concurrently, by default one per core. Only the first call has an effect.
pub fn set_jobs(jobs: usize) {
    // An error means that the pool exists already; it stays as it is.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
}

/// Runs `what` in a thread pool of its own with `jobs` threads. For programs that run several campaigns, each
/// with its own number of threads, or that may fork in between.
///
/// # Panics
/// If no threads can be started.
pub fn with_jobs<T: Send>(jobs: usize, what: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.expect("a machine has threads").install(what)
}
