//! The server's clock and its precise waiting ([`Clock`], [`Waiter`]).
//!
//! A sleeping thread wakes late, because the processor leaves an idle state and the scheduler runs. The server
//! therefore sleeps until shortly before an instant and polls the clock for the remaining time. The clock measures
//! that time when it is created. This file contains `unsafe`, because rustix has no `sched_setscheduler`.

#![allow(unsafe_code)]

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// Number of sleeps to measure the wake-up delay.
const SLEEPS: usize = 40;
const SLEEP: Duration = Duration::from_micros(100);

/// Maximum time of polling the clock before an instant, in nanoseconds.
const MOST_NS: u64 = 150_000;

/// Time for which an eager waiter polls before it sleeps.
const EAGER_NS: u64 = 40_000;
/// A waiter that sleeps for less than this time, including the wake-up delay, becomes eager.
const SOON_NS: u64 = 120_000;

/// A monotonic clock that begins at 0.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// The time between waking and the awaited instant.
    early_ns: u64,
}

impl Clock {
    /// Starts a clock. Measuring the wake-up delay takes a few milliseconds.
    pub fn new() -> Clock {
        precise_wakeups();
        let _awake = Awake::new();
        let mut late_ns: Vec<u64> = (0..SLEEPS)
            .map(|_| {
                let begin = Instant::now();
                std::thread::sleep(SLEEP);
                begin.elapsed().saturating_sub(SLEEP).as_nanos() as u64
            })
            .collect();
        late_ns.sort_unstable();
        // The 90th percentile.
        let early_ns = (late_ns[SLEEPS * 9 / 10] + 2_000).min(MOST_NS);
        Clock { start: Instant::now(), early_ns }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The time between the server's wake-up and the awaited instant, in nanoseconds.
    pub fn early_ns(&self) -> u64 {
        self.early_ns
    }

    /// The time to sleep before an instant; `None` without one.
    pub(super) fn timeout(&self, due_ns: Option<u64>) -> Option<Timespec> {
        let due_ns = due_ns?;
        let sleep_ns = if due_ns == 0 { 0 } else { due_ns.saturating_sub(self.now_ns() + self.early_ns) };
        let (tv_sec, tv_nsec) = ((sleep_ns / 1_000_000_000) as i64, (sleep_ns % 1_000_000_000) as _);
        Some(Timespec { tv_sec, tv_nsec })
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// Keeps the processors out of deep idle states until dropped, at the cost of power. Otherwise, a client whose
/// processor takes 40 µs to wake sees a drive that is 40 µs slower.
#[derive(Debug)]
pub(super) struct Awake(#[expect(dead_code, reason = "held open")] File);

impl Awake {
    /// Requests a wake-up latency of 0 (Documentation/power/pm_qos_interface.rst of Linux).
    ///
    /// # Errors
    /// If the process is not root, or the machine has no such interface, as some virtual machines.
    pub(super) fn new() -> std::io::Result<Awake> {
        let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(Awake(file))
    }
}

/// Waits for file descriptors or an instant.
///
/// Clients often send a request right after an answer. Sleeping meanwhile would cost two scheduling decisions and a
/// wake-up from an idle state, so a waiter that was woken soon polls for a while the next time.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    eager: bool,
}

impl Waiter {
    /// Returns the number of ready descriptors; 0 if the instant is near, or `longest` has passed.
    pub(super) fn wait(
        &mut self,
        clock: &Clock,
        fds: &mut [PollFd<'_>],
        due_ns: Option<u64>,
        longest: Option<Timespec>,
    ) -> Result<usize, Errno> {
        let began_ns = clock.now_ns();
        let near_ns = due_ns.map_or(u64::MAX, |due_ns| due_ns.saturating_sub(clock.early_ns));
        loop {
            let now_ns = clock.now_ns();
            let near = now_ns >= near_ns;
            if !(near || self.eager && now_ns - began_ns < EAGER_NS) {
                break;
            }
            match poll(fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(0) => {}
                ready => return ready,
            }
            // The client that was just answered may wait for this processor.
            std::thread::yield_now();
            if near {
                return Ok(0);
            }
        }
        let slept_ns = clock.now_ns();
        let timeout = clock.timeout(due_ns).or(longest);
        let ready = poll(fds, timeout.as_ref());
        self.eager = ready.is_ok_and(|ready| ready > 0) && clock.now_ns() - slept_ns < SOON_NS;
        ready
    }
}

/// Gives the calling thread the lowest real-time priority (`SCHED_FIFO`).
///
/// # Errors
/// If the process lacks `CAP_SYS_NICE` and `RLIMIT_RTPRIO`.
pub fn real_time() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Sets the smallest timer slack, so that timers of this thread fire on time.
pub(super) fn precise_wakeups() {
    // If the kernel refuses, the clock measures the later wake-ups.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
