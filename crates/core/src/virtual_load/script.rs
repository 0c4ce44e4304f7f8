//! A closed load with scripted events on its device, such as power cuts, faults and pauses ([`run_scripted`]).
//!
//! The load counts failed requests and continues. After a power cut, it replaces the requests that were lost, as an
//! operating system would retry them. The replacements are drawn anew, and their latency counts from the end of the
//! outage.
//!
//! # Not supported
//! Open loops and traces, whose requests have fixed times.

use super::{Control, Load, Source, Span, drain};
use crate::block::{BlockDevice, DeviceError};
use crate::extents::Extents;
use crate::measure::{Interval, Recorder};
use crate::rng::Seed;
use crate::units::VirtualTime;
use crate::workload::{Sync, Workload};

/// The effect of an event on the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// No request is submitted before this instant.
    pub resume: VirtualTime,
    /// Whether in-flight requests were lost. If not, they complete normally.
    pub gone: bool,
}

/// A sequence of events on a device during a load.
pub trait Script<D: ?Sized> {
    /// The instant of the next event.
    fn next(&self) -> Option<VirtualTime>;

    /// Applies the next event to the device. Events never go back in time.
    fn happen(&mut self, device: &mut D) -> Happening;
}

/// The end of a scripted load and its counts of unsuccessful requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scripted {
    /// The instant of the end.
    pub end: VirtualTime,
    /// Requests that the device refused or failed.
    pub failed: u64,
    /// Requests in flight at power cuts, which were lost.
    pub gone: u64,
}

/// Runs `workload` over the data in `extents` while `script` acts on the device. Otherwise like [`super::run_span`],
/// except that the loop is closed whatever the workload's arrivals.
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
    /// Returns the instant of the end and the number of requests lost.
    fn scripted(
        &mut self,
        mut recorder: Recorder,
        outstanding: usize,
        script: &mut dyn Script<D>,
        each: &mut dyn FnMut(Interval) -> Control,
    ) -> Result<(u64, u64), DeviceError> {
        // Number of free slots that wait for the load to resume, and the instant at which it resumes.
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

    /// Discards the requests in flight and returns their number.
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

    /// Serves all requests in parallel, each in one millisecond. Asserts that none arrives while the power is off.
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

    /// Events: instant and resumption in microseconds, whether requests are lost, and whether the device then refuses
    /// writes.
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

    /// Runs four threads for ten intervals of 10 ms. Returns the writes of each interval and the result of the load.
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
        // The pause is from 20.5 ms to 50 ms. The four requests in flight complete at 21 ms.
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
        // Requests submitted from 21 ms to 80 ms fail. There are four threads, and the last failures are at 81 ms.
        assert_eq!(ended.failed, 60 * 4);
    }
}
