//! The loop's clock, and how it wakes at an instant ([`Clock`]).
//!
//! A thread that sleeps wakes late: the processor has to come back from idleness, and the scheduler has to notice. So the
//! loop sleeps until shortly before an instant and asks the clock for the rest. How much before is measured at the start. `unsafe` stands here because rustix has no `sched_setscheduler`.

#![allow(unsafe_code)]

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// How often the start measures how late a sleeper wakes, and how long it sleeps each time.
const SLEEPS: usize = 40;
const SLEEP: Duration = Duration::from_micros(100);

/// No more than this is spent asking the clock before an instant.
const MOST_NS: u64 = 150_000;

/// How long a waiter stays awake, and within what time it must have been woken for that; to be woken takes its time too.
const EAGER_NS: u64 = 40_000;
const SOON_NS: u64 = 120_000;

/// A clock that begins with 0 and never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// How long before an instant the loop is awake.
    early_ns: u64,
}

impl Clock {
    /// A clock that begins now; it takes a few milliseconds to learn how late this machine wakes.
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
        // All but a tenth are awake in time.
        let early_ns = (late_ns[SLEEPS * 9 / 10] + 2_000).min(MOST_NS);
        Clock { start: Instant::now(), early_ns }
    }

    /// Nanoseconds since it began.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// How long before an instant the loop is awake, in nanoseconds.
    pub fn early_ns(&self) -> u64 {
        self.early_ns
    }

    /// How long to sleep for something that is due at an instant: not at all where it is near, for ever where there is none.
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

/// Keeps the processors from sleeping so deep that they wake late, as long as it lives: a client that waits 40 µs for its
/// processor to come back sees a drive that is 40 µs slower. It costs power.
#[derive(Debug)]
pub(super) struct Awake(#[expect(dead_code, reason = "held open")] File);

impl Awake {
    /// Asks for no latency of wake-ups at all (Documentation/power/pm_qos_interface.rst of Linux).
    ///
    /// # Errors
    /// What the kernel says: it is root's to ask, and virtual machines may not have it.
    pub(super) fn new() -> std::io::Result<Awake> {
        let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(Awake(file))
    }
}

/// Waits for descriptors, or for an instant.
///
/// Clients that are answered often ask again at once. To sleep meanwhile would cost two decisions of the scheduler and a
/// processor that comes back from idleness, so a waiter that was woken soon stays awake for a while the next time.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    eager: bool,
}

impl Waiter {
    /// How many descriptors have something; 0 where the instant is near, or the longest wait is over.
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
            // A client that was just answered may have been woken on this processor, and waits for it.
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

/// Asks the scheduler to run the calling thread before all ordinary ones (`SCHED_FIFO`, the lowest of its priorities).
///
/// # Errors
/// What the kernel says: it wants `CAP_SYS_NICE`, or a limit of real-time priority.
pub fn real_time() -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the parameters, which outlive the call; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Asks the kernel not to put the wake-ups of this thread together with others.
pub(super) fn precise_wakeups() {
    // Where it is refused, wake-ups are late, which is measured.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
