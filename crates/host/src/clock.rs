//! The clock of a measurement in wall time ([`GapClock`]), which stops while lowtide itself does not run.
//!
//! ```text
//!   readers ──► raw time (CLOCK_BOOTTIME) − gaps             wait if there was no reading for 250 ms
//!                       ▲                         ▲
//!   heartbeat, every 50 ms: silent for 250 ms? ───┘  suspended: CLOCK_BOOTTIME gained on CLOCK_MONOTONIC
//!                                                    stopped:   SIGCONT arrived
//!                                                    neither:   the machine is busy; the time counts
//! ```
//!
//! SIGSTOP cannot be caught; SIGCONT, which ends the stop, can. Both signs are needed for a stop: a SIGCONT without a
//! stop comes without a silent heartbeat, and a heartbeat that is silent on a busy machine comes without a SIGCONT.
//! If the heartbeat waited for a processor during the silence (`/proc/thread-self/schedstat`), the clock does not
//! wait for a SIGCONT that may still arrive.
//!
//! A gap begins at the last reading of any thread before it, to within a millisecond, and ends when it is noticed. No
//! request counts within a gap, and readings never decrease. Each reading contains the number of earlier gaps, which
//! identifies requests that were in flight during a gap.
//!
//! # Not handled
//! Stops shorter than 250 ms. Frozen control groups (`docker pause`), debuggers and paused virtual machines, which
//! cannot be distinguished from a busy machine.

use lowtide_core::Nanos;
use lowtide_core::measure::{Cause, Clock, Gap, Reading};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::SigId;
use signal_hook::consts::SIGCONT;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// The period of the heartbeat.
const BEAT: Duration = Duration::from_millis(50);
const LEAST_GAP_NS: u64 = 250_000_000;
/// The maximum delay of a SIGCONT handler.
const DELIVERY_NS: u64 = 200_000_000;
/// The minimum length of a suspension; a shorter suspension counts as a busy machine.
const LEAST_SUSPENSION_NS: u64 = 10_000_000;
/// The resolution of the last reading before a gap. Readings that are closer together write nothing, so that threads
/// do not contend for the cache line.
const RESOLUTION_NS: u64 = 1_000_000;
/// The interval and maximum number of a reader's checks for the decision of the heartbeat.
const LOOK: (Duration, u32) = (Duration::from_micros(500), 4000);

/// The clock of a measurement. Dropping it stops the heartbeat.
#[derive(Debug)]
pub struct GapClock {
    state: Arc<State>,
    heartbeat: Thread,
    continued: SigId,
}

/// The state that readers and the heartbeat share. Raw times are nanoseconds of [`ClockId::Boottime`].
#[derive(Debug)]
struct State {
    begun_ns: u64,
    /// The time up to which gaps are decided.
    settled_ns: AtomicU64,
    /// The last reading, with [`RESOLUTION_NS`].
    seen_ns: AtomicU64,
    /// Twice the number of gaps; one more while `left_out_ns` changes.
    version: AtomicU64,
    left_out_ns: AtomicU64,
    gaps: Mutex<Vec<Gap>>,
    /// Whether a SIGCONT arrived since the last check.
    continued: Arc<AtomicBool>,
    over: AtomicBool,
}

impl GapClock {
    /// Starts a clock at 0.
    ///
    /// # Errors
    /// If the thread or the SIGCONT handler cannot be installed.
    pub fn start() -> io::Result<GapClock> {
        let continued = Arc::new(AtomicBool::new(false));
        let handler = signal_hook::flag::register(SIGCONT, Arc::clone(&continued))?;
        let now_ns = raw_ns();
        let state = Arc::new(State {
            begun_ns: now_ns,
            settled_ns: AtomicU64::new(now_ns),
            seen_ns: AtomicU64::new(now_ns),
            version: AtomicU64::new(0),
            left_out_ns: AtomicU64::new(0),
            gaps: Mutex::default(),
            continued,
            over: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("lowtide-clock".to_owned())
            .stack_size(64 << 10)
            .spawn(move || of_thread.beat())
            .inspect_err(|_| {
                signal_hook::low_level::unregister(handler);
            })?;
        Ok(GapClock { state, heartbeat: thread.thread().clone(), continued: handler })
    }

    /// The gaps so far, in order.
    pub fn gaps(&self) -> Vec<Gap> {
        self.state.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for GapClock {
    fn drop(&mut self) {
        self.state.over.store(true, SeqCst);
        self.heartbeat.unpark();
        signal_hook::low_level::unregister(self.continued);
    }
}

impl Clock for GapClock {
    #[inline]
    fn read(&self) -> Reading {
        let state = &*self.state;
        let mut looks = 0;
        loop {
            let version = state.version.load(SeqCst);
            let now_ns = raw_ns();
            let seen_ns = state.seen_ns.load(Relaxed);
            // A recent reading of another thread rules out a gap, however late the heartbeat is.
            let last_ns = state.settled_ns.load(SeqCst).max(seen_ns);
            let unsettled = now_ns.saturating_sub(last_ns) >= LEAST_GAP_NS;
            if version % 2 == 1 || (unsettled && looks < LOOK.1) {
                looks += 1;
                thread::sleep(LOOK.0);
                continue;
            }
            let left_out_ns = state.left_out_ns.load(SeqCst);
            if state.version.load(SeqCst) != version {
                // A gap may have been left out after this reading.
                continue;
            }
            if now_ns > seen_ns + RESOLUTION_NS {
                state.seen_ns.fetch_max(now_ns, Relaxed);
            }
            let ns = now_ns.saturating_sub(state.begun_ns + left_out_ns);
            return Reading { ns, gaps: (version / 2) as u32 };
        }
    }
}

impl State {
    /// The heartbeat, until the clock is dropped.
    fn beat(&self) {
        let schedule = File::open("/proc/thread-self/schedstat").ok();
        let mut before = Evidence::now(schedule.as_ref());
        loop {
            thread::park_timeout(BEAT);
            if self.over.load(SeqCst) {
                return;
            }
            let now = Evidence::now(schedule.as_ref());
            // A reading of the clock by any thread also ends the silence.
            let last_ns = self.settled_ns.load(SeqCst).max(self.seen_ns.load(SeqCst));
            let silent_ns = now.raw_ns.saturating_sub(last_ns);
            let (cause, waited_ns) =
                if silent_ns >= LEAST_GAP_NS { self.cause(silent_ns, &before, &now) } else { (None, 0) };
            let continued = self.continued.swap(false, SeqCst);
            // The end of the silence: waiting readers continue now.
            let end = Evidence::now(schedule.as_ref());
            if cause.is_none() && end.raw_ns - now.raw_ns >= waited_ns + LEAST_GAP_NS {
                // A stop may have begun since `now`: decide again, with the evidence from before that stop.
                self.continued.fetch_or(continued, SeqCst);
                continue;
            }
            before = end;
            if let Some(cause) = cause {
                self.leave_out(last_ns + RESOLUTION_NS, before.raw_ns, cause);
            }
            self.settled_ns.store(before.raw_ns, SeqCst);
        }
    }

    /// The cause of a silence, `None` on a busy machine, and the maximum time spent waiting for a SIGCONT.
    fn cause(&self, silent_ns: u64, before: &Evidence, now: &Evidence) -> (Option<Cause>, u64) {
        if now.suspended_ns.saturating_sub(before.suspended_ns) >= LEAST_SUSPENSION_NS {
            return (Some(Cause::Suspended), 0);
        }
        let waited_ns = now.waited_ns.saturating_sub(before.waited_ns);
        if silent_ns.saturating_sub(waited_ns) < LEAST_GAP_NS {
            return (None, 0);
        }
        while !self.continued.load(SeqCst) {
            if raw_ns().saturating_sub(now.raw_ns) >= DELIVERY_NS {
                return (None, DELIVERY_NS);
            }
            thread::sleep(Duration::from_millis(1));
        }
        (Some(Cause::Stopped), DELIVERY_NS)
    }

    fn leave_out(&self, from_ns: u64, to_ns: u64, cause: Cause) {
        let before_ns = self.left_out_ns.load(SeqCst);
        let length_ns = to_ns.saturating_sub(from_ns);
        let at_ns = from_ns - self.begun_ns - before_ns;
        let gap = Gap { at_ns, length: Nanos::new(length_ns), cause };
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push(gap);
        self.version.fetch_add(1, SeqCst);
        self.left_out_ns.store(before_ns + length_ns, SeqCst);
        self.version.fetch_add(1, SeqCst);
    }
}

/// The heartbeat's observations.
#[derive(Debug, Clone, Copy)]
struct Evidence {
    raw_ns: u64,
    /// Total time of suspensions since boot.
    suspended_ns: u64,
    /// Total time that this thread waited for a processor; 0 if the kernel does not report it.
    waited_ns: u64,
}

impl Evidence {
    fn now(schedule: Option<&File>) -> Evidence {
        Evidence {
            suspended_ns: suspended_ns(),
            waited_ns: schedule.and_then(waited_ns).unwrap_or(0),
            raw_ns: raw_ns(),
        }
    }
}

/// The lead of [`ClockId::Boottime`] over [`ClockId::Monotonic`].
fn suspended_ns() -> u64 {
    let mut least_ns = u64::MAX;
    for _ in 0..10 {
        let (monotonic_ns, raw_ns, after_ns) = (ns(ClockId::Monotonic), raw_ns(), ns(ClockId::Monotonic));
        // The value is too large by the time between both readings, which is long if another thread ran in between.
        least_ns = least_ns.min(raw_ns.saturating_sub(monotonic_ns));
        if after_ns - monotonic_ns < RESOLUTION_NS {
            break;
        }
    }
    least_ns
}

/// The second number of a `schedstat`: nanoseconds that the thread was runnable and had no processor.
fn waited_ns(schedule: &File) -> Option<u64> {
    let mut text = [0; 128];
    let read = schedule.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..read]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Nanoseconds since boot, including suspensions.
#[inline]
fn raw_ns() -> u64 {
    ns(ClockId::Boottime)
}

/// Nanoseconds of a clock.
#[inline]
pub fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    const SECOND_NS: u64 = 1_000_000_000;

    /// Evidence of a heartbeat `at_s` seconds from now.
    fn seen(at_s: u64, suspended_s: u64, waited_s: u64) -> Evidence {
        Evidence {
            raw_ns: raw_ns() + at_s * SECOND_NS,
            suspended_ns: suspended_s * SECOND_NS,
            waited_ns: waited_s * SECOND_NS,
        }
    }

    /// A clock without a heartbeat, and without the signals of other tests.
    fn clock() -> GapClock {
        let clock = GapClock::start().expect("there is a thread");
        clock.state.over.store(true, SeqCst);
        clock.heartbeat.unpark();
        signal_hook::low_level::unregister(clock.continued);
        clock.state.continued.store(false, SeqCst);
        clock.state.settled_ns.store(u64::MAX, SeqCst);
        clock
    }

    #[test]
    fn a_silence_needs_a_sigcont_or_a_suspension_to_be_a_gap() {
        let clock = clock();
        let (before, silent_ns) = (seen(0, 5, 0), 3 * SECOND_NS);
        let cause = |now: Evidence| clock.state.cause(silent_ns, &before, &now).0;
        assert_eq!(cause(seen(0, 5, 0)), None, "no sign of a stop arrives");
        clock.state.continued.store(true, SeqCst);
        assert_eq!(cause(seen(0, 5, 0)), Some(Cause::Stopped));
        assert_eq!(cause(seen(0, 5, 1)), Some(Cause::Stopped), "stopped, and waited for a processor");
        assert_eq!(cause(seen(0, 5, 3)), None, "only waited for a processor");
        clock.state.continued.store(false, SeqCst);
        assert_eq!(cause(seen(0, 8, 0)), Some(Cause::Suspended));
    }

    #[test]
    fn a_clock_stands_still_in_a_gap_and_never_goes_back() {
        let clock = clock();
        let before = clock.read();
        thread::sleep(Duration::from_millis(30));
        let from_ns = clock.state.seen_ns.load(SeqCst) + RESOLUTION_NS;
        let to_ns = raw_ns();
        clock.state.leave_out(from_ns, to_ns, Cause::Stopped);
        let after = clock.read();
        assert_eq!((before.gaps, after.gaps), (0, 1));
        assert!(after.ns >= before.ns);
        // Only time outside the gap passed between both readings.
        let passed_ns = raw_ns() - clock.state.begun_ns;
        assert!(after.ns <= passed_ns - (to_ns - from_ns), "{after:?} of {passed_ns} ns");
        let gaps = clock.gaps();
        assert_eq!(gaps.len(), 1);
        assert_eq!((gaps[0].length.get(), gaps[0].cause), (to_ns - from_ns, Cause::Stopped));
        assert!((before.ns..=after.ns).contains(&gaps[0].at_ns), "{gaps:?} {before:?} {after:?}");
    }

    #[test]
    fn a_sigcont_without_a_stop_makes_no_gap() {
        let clock = GapClock::start().expect("there is a thread");
        for _ in 0..10 {
            kill_process(getpid(), Signal::CONT).expect("it is this process");
            thread::sleep(Duration::from_millis(20));
            clock.read();
        }
        assert_eq!((clock.read().gaps, clock.gaps()), (0, vec![]));
    }
}
