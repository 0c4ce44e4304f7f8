//! Thread pools for groups of cells that run concurrently.
//!
//! Module `plan` forms and orders the groups.

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

/// Sets the number of groups that run concurrently; the default is one per core. Only the first call has an effect.
pub fn set_jobs(jobs: usize) {
    // An error means that the pool already exists.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
}

/// Runs `f` in a thread pool of its own with `jobs` threads. This suits programs that run several campaigns with
/// different numbers of threads, or that fork between campaigns.
///
/// # Panics
/// If the threads cannot be started.
pub fn with_jobs<T: Send>(jobs: usize, f: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    pool.expect("threads can be started").install(f)
}
