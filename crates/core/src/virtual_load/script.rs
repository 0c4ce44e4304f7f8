//! A closed load on a device to which things happen: its power is cut, it fails, the load pauses ([`run_scripted`]).
//!
//! Requests that fail are counted and the load goes on. Requests that a power cut takes are asked for again when the load
//! goes on, as an operating system does; their latency counts from then, and what they were is drawn anew. Leaves out open
//! loads and traces, whose times are told from outside.

use super::{Control, Load, Source, Span, drain};
use crate::block::{BlockDevice, DeviceError};
use crate::extents::Extents;
use crate::measure::{Interval, Recorder};
use crate::rng::Seed;
use crate::units::VirtualTime;
use crate::workload::{Sync, Workload};

/// What has happened to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// No request is made before this instant.
    pub resume: VirtualTime,
    /// Whether the requests in flight are gone; else they are complete as if nothing had been.
    pub gone: bool,
}

/// What happens to a device while a load runs on it.
pub trait Script<D: ?Sized> {
    /// The instant of the next thing to happen.
    fn next(&self) -> Option<VirtualTime>;

    /// Lets it happen; the next one is not before it.
    fn happen(&mut self, device: &mut D) -> Happening;
}

/// How a scripted load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scripted {
    /// The instant of the end.
    pub end: VirtualTime,
    /// Requests that the device refused or failed at.
    pub failed: u64,
    /// Requests that were in flight when the power was cut.
    pub gone: u64,
}

/// Runs `workload` over the data in `extents` as [`super::run_span`] does, in a closed loop, whatever its arrivals, while
/// what `script` says happens to the device.
pub fn run_scripted<D: BlockDevice + ?Sized>(
    device: &mut D,
    extents: &Extents,
    workload: &Workload,
    seed: Seed,
    span: Span,
    script: &mut dyn Script<D>,
    each: &mut dyn FnMut(Interval) -> Control,
) -> Scripted {
    let mut load = Load::new(device, extents, Source::new(workload, extents, seed), span);
    load.flushes = workload.sync == Sync::Flush;
    load.failed = Some(0);
    let ended = load.scripted(Recorder::new(span.interval), workload.outstanding(), script, each);
    let drained = drain(load.device);
    let (end_ns, gone) = ended.expect("requests that fail are counted, and end nothing");
    let end = VirtualTime::from_nanos(end_ns).max(drained);
    Scripted { end, failed: load.failed.unwrap_or(0), gone }
}

impl<D: BlockDevice + ?Sized> Load<'_, D> {
    /// The instant of the end, and how many requests were gone.
    fn scripted(
        &mut self,
        mut recorder: Recorder,
        outstanding: usize,
        script: &mut dyn Script<D>,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Result<(u64, u64), DeviceError> {
        // Requests that wait until the load goes on, and when that is.
        let (mut held, mut resume_ns) = (outstanding, self.start_ns);
        let (mut now_ns, mut gone) = (self.start_ns, 0);
        loop {
            let resumes_ns = if held > 0 { resume_ns } else { u64::MAX };
            let happens_ns = script.next().map_or(u64::MAX, |at| at.as_nanos().max(now_ns));
            let until_ns = resumes_ns.min(happens_ns);
            let done = self.next_done(until_ns)?;
            if done.is_none() && held == 0 && (until_ns == u64::MAX || self.left == 0) {
                return Ok((self.finish(recorder, now_ns, each), gone));
            }
            now_ns = done.map_or(until_ns, |(done_ns, _)| done_ns);
            if self.hand_out(&mut recorder, now_ns, each) == Control::Stop {
                return Ok((now_ns, gone));
            }
            match done {
                Some((_, operation)) => {
                    operation.record(&mut recorder, now_ns);
                    if now_ns < resume_ns {
                        held += 1;
                    } else {
                        self.issue_wanted(now_ns)?;
                    }
                }
                None if resumes_ns <= happens_ns => {
                    for _ in 0..std::mem::take(&mut held) {
                        self.issue_wanted(now_ns)?;
                    }
                }
                None => {
                    let happening = script.happen(self.device);
                    resume_ns = resume_ns.max(happening.resume.as_nanos()).max(now_ns);
                    if happening.gone {
                        let forgotten = self.forget();
                        held += forgotten;
                        gone += forgotten as u64;
                        self.left = self.left.saturating_add(forgotten as u64);
                    }
                }
            }
        }
    }

    /// Forgets the requests in flight; how many there were.
    fn forget(&mut self) -> usize {
        drain(self.device);
        let waiting = std::mem::take(&mut self.waiting);
        let mut forgotten = waiting.slots.iter().flatten().count();
        while self.in_flight.pop().is_some() {
            forgotten += 1;
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Completion, Counters, Op, Request};
    use crate::units::{Bytes, Nanos};

    /// Serves every request in a millisecond, all at the same time, and none before it was powered on.
    struct Device {
        on: VirtualTime,
        refuses: bool,
        submitted: Vec<VirtualTime>,
    }

    impl BlockDevice for Device {
        fn capacity(&self) -> Bytes {
            Bytes::mib(1)
        }
        fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
            assert!(now >= self.on, "asked at {now:?}, off until {:?}", self.on);
            assert!(self.submitted.last().is_none_or(|last| *last <= now), "in order of time");
            self.submitted.push(now);
            let status =
                if self.refuses && request.op != Op::Read { Err(DeviceError::WornOut) } else { Ok(()) };
            Completion { at: now + Nanos::from_millis(1), status }
        }
        fn idle_until(&mut self, _: VirtualTime) {}
        fn power_cut(&mut self, _: VirtualTime) {}
        fn secure_erase(&mut self) {}
        fn counters(&self) -> Counters {
            Counters::default()
        }
    }

    /// Instants in microseconds, when the load goes on, whether requests are gone, whether it refuses from then on.
    struct Plan(Vec<(u64, u64, bool, bool)>);

    fn us(n: u64) -> VirtualTime {
        VirtualTime::from_nanos(n * 1000)
    }

    impl Script<Device> for Plan {
        fn next(&self) -> Option<VirtualTime> {
            self.0.first().map(|one| us(one.0))
        }
        fn happen(&mut self, device: &mut Device) -> Happening {
            let (_, resume, gone, refuses) = self.0.remove(0);
            (device.on, device.refuses) = (us(resume), refuses);
            Happening { resume: us(resume), gone }
        }
    }

    /// Four threads for ten intervals of 10 ms: operations in each, requests that failed and were gone.
    fn run(plan: Vec<(u64, u64, bool, bool)>) -> (Vec<u64>, Scripted) {
        let mut device = Device { on: VirtualTime::START, refuses: false, submitted: Vec::new() };
        let workload = Workload { threads: 4, ..Workload::random_write(Bytes::kib(4)) };
        let span = Span { start: VirtualTime::START, interval: Nanos::from_millis(10), requests: None };
        let mut writes = Vec::new();
        let each = &mut |interval: Interval| {
            writes.push(interval.writes);
            if writes.len() == 10 { Control::Stop } else { Control::Continue }
        };
        let extents = Extents::whole(1 << 20);
        let script = &mut Plan(plan);
        let ended = run_scripted(&mut device, &extents, &workload, Seed::new(1), span, script, each);
        (writes, ended)
    }

    #[test]
    fn without_a_script_it_is_a_closed_load() {
        let (writes, ended) = run(Vec::new());
        assert_eq!(writes[1..], [40; 9]);
        assert_eq!((ended.failed, ended.gone), (0, 0));
    }

    #[test]
    fn a_pause_lets_what_is_in_flight_end() {
        // From 20.5 ms to 50 ms; the four that are in flight end at 21 ms.
        let (writes, ended) = run(vec![(20_500, 50_000, false, false)]);
        assert_eq!(writes, [36, 40, 8, 0, 0, 36, 40, 40, 40, 40]);
        assert_eq!(ended.gone, 0);
    }

    #[test]
    fn a_cut_takes_what_is_in_flight_and_the_load_goes_on() {
        let (writes, ended) = run(vec![(20_500, 50_000, true, false), (51_500, 80_000, true, false)]);
        assert_eq!(writes, [36, 40, 4, 0, 0, 4, 0, 0, 36, 40]);
        assert_eq!((ended.gone, ended.failed), (8, 0));
    }

    #[test]
    fn requests_that_fail_are_counted_and_are_no_writes() {
        let (writes, ended) = run(vec![(20_500, 20_500, false, true), (80_500, 80_500, false, false)]);
        assert_eq!(writes, [36, 40, 8, 0, 0, 0, 0, 0, 32, 40]);
        // Those asked for from 21 ms to 80 ms, by four threads; the last are complete at 81 ms.
        assert_eq!(ended.failed, 60 * 4);
    }
}
