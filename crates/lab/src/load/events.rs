//! Events of an experiment that happen to a simulated device while a load runs, and their outcomes.
//!
//! The model treats time without power as idle time. The effects of an event on the device are in crate
//! `lowtide-device`, and its effects on the load in `core::virtual_load`.

use crate::experiment::{Event, Happens};
use lowtide_core::virtual_load::{Happening, Script, Scripted};
use lowtide_core::{BlockDevice, Nanos, Seed, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_device::fault::{Fault, Faults};
use lowtide_device::power::{Cache, Loss, PowerCut, Tear};
use std::collections::VecDeque;

/// A device to which events happen.
pub(super) type Eventful<'a> = Fault<PowerCut<&'a mut AnyDevice>>;

/// Wraps the device of a cell so that events can happen to it.
pub(super) fn eventful(device: &mut AnyDevice, cache: Cache, seed: Seed) -> Eventful<'_> {
    let power = PowerCut::counting(device, cache, Tear::default(), seed.part("power", 0));
    Fault::new(power, seed.part("faults", 0))
}

/// The outcome of an event, or of all events together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOutcome {
    /// Time of the event since the load began; `None` for all events together.
    pub at: Option<Nanos>,
    /// The outcome, as text for people.
    pub outcome: String,
}

/// The pending events of a cell, and the outcomes of past events.
pub(super) struct Events {
    start: VirtualTime,
    /// Pending events, by their time since the start.
    pending: VecDeque<(Nanos, Step)>,
    /// End of the last power cut.
    off_until: VirtualTime,
    outcomes: Vec<EventOutcome>,
}

enum Step {
    Event(Happens),
    EndOfFaults,
}

impl Events {
    pub(super) fn new(events: &[Event], start: VirtualTime) -> Self {
        let ends = |event: &Event| match event.what {
            Happens::Fail { length: Some(length), .. } => Some((event.at + length, Step::EndOfFaults)),
            _ => None,
        };
        let mut pending: Vec<_> =
            events.iter().map(|event| (event.at, Step::Event(event.what.clone()))).collect();
        pending.extend(events.iter().filter_map(ends));
        // At the same instant, old faults end before new faults begin.
        pending.sort_by_key(|(at, step)| (*at, !matches!(step, Step::EndOfFaults)));
        Events { start, pending: pending.into(), off_until: start, outcomes: Vec::new() }
    }

    /// The outcome of each event, followed by the effects on requests.
    pub(super) fn outcomes(mut self, ended: &Scripted) -> Vec<EventOutcome> {
        for (count, effect) in [
            (ended.gone, "requests in flight were lost, and asked for again"),
            (ended.failed, "requests failed"),
        ] {
            if count > 0 {
                self.outcomes.push(EventOutcome { at: None, outcome: format!("{count} {effect}") });
            }
        }
        self.outcomes
    }
}

impl Script<Eventful<'_>> for Events {
    fn next(&self) -> Option<VirtualTime> {
        self.pending.front().map(|(at, _)| (self.start + *at).max(self.off_until))
    }

    fn happen(&mut self, device: &mut Eventful<'_>) -> Happening {
        let now = self.next().unwrap_or(self.start);
        let mut happening = Happening { resume: now, gone: false };
        let Some((_, step)) = self.pending.pop_front() else { return happening };
        let outcome = match step {
            Step::EndOfFaults => {
                device.set(Faults::default()).expect("no faults are valid");
                "the faults ended".to_owned()
            }
            Step::Event(Happens::Fail { faults, .. }) => {
                device.set(faults).expect("the experiment checked its faults");
                "the device failed".to_owned()
            }
            Step::Event(Happens::Pause { length }) => {
                happening.resume = now + length;
                "pause".to_owned()
            }
            Step::Event(Happens::SecureErase) => {
                device.secure_erase();
                "secure erase".to_owned()
            }
            Step::Event(Happens::PowerCut { off, tear }) => {
                device.inner_mut().set_tear(tear);
                device.power_cut(now);
                self.off_until = now + off;
                happening = Happening { resume: self.off_until, gone: true };
                format!("power cut: {}", lost(&device.inner().loss()))
            }
        };
        self.outcomes.push(EventOutcome { at: Some(now.since(self.start)), outcome });
        happening
    }
}

fn lost(loss: &Loss) -> String {
    let Loss { kept, dropped, torn, acknowledged_bytes_lost } = *loss;
    let writes = kept.writes + dropped.writes + torn.writes;
    format!(
        "of {writes} writes that were not durable {} survived, {} were lost and {} torn; {acknowledged_bytes_lost} \
         acknowledged bytes were lost",
        kept.writes, dropped.writes, torn.writes
    )
}

#[cfg(test)]
mod tests {
    use super::EventOutcome;
    use crate::experiment::Experiment;
    use crate::load::{Each, Ended, on_drive};
    use crate::plan::{Plan, PlanTarget};
    use crate::prepare::History;
    use lowtide_core::Seed;
    use std::sync::atomic::AtomicBool;

    /// Runs an hour of small writes on an Intel 320 at scale 1/100. Returns the writes of each of the 36 intervals,
    /// and the outcomes of the events.
    fn run(events: &str) -> (Vec<u64>, Vec<EventOutcome>) {
        let text = format!(
            "name = 'events'\n[target]\ndevice = 'intel-320-160gb'\n[before-each-cell]\nfill = 'sequential'\n\
             [workload]\npattern = 'random-write'\nblock = '16KiB'\nfile_size = '80GB'\nthreads = 8\n\
             duration = '1h'\ninterval = '100s'\n{events}"
        );
        let experiment = Experiment::parse("events.toml", &text, &[]).expect("valid");
        let plan = Plan::new(experiment, Seed::new(3), 100).expect("fits");
        let PlanTarget::Simulated(devices) = &plan.target else { unreachable!("a simulated device") };
        let cell = &plan.cells[0];
        let mut history = History::new(&devices["intel-320-160gb"].spec, Seed::new(3));
        let prepared = history.prepare(cell, Seed::new(4)).expect("fits");
        let mut writes = Vec::new();
        let each: &mut Each<'_> = &mut |interval, _, _| writes.push(interval.writes);
        let load = &cell.settings.load;
        let (ended, events) =
            on_drive(prepared, load, Seed::new(5), &AtomicBool::new(false), each).expect("runs");
        assert!(matches!(ended, Ended::Complete(_)), "{ended:?}");
        (writes, events)
    }

    #[test]
    fn each_event_shows_in_the_intervals_and_has_an_outcome() {
        let (plain, events) = run("");
        assert_eq!((plain.len(), events), (36, Vec::new()));
        let (writes, events) = run("[[event]]\nat = '1000s'\ndo = 'power-cut'\nfor = '500s'\n\
             [[event]]\nat = '2000s'\ndo = 'pause'\nfor = '300s'\n\
             [[event]]\nat = '3000s'\ndo = 'fail'\nend-of-life = true\nfor = '200s'\n");
        assert_eq!(writes[..10], plain[..10], "nothing changes before the first event");
        // Up to 8 requests in flight at the beginning of a pause, or of the end of life, complete in the next
        // interval.
        let idle: Vec<usize> = (0..36).filter(|interval| writes[*interval] <= 8).collect();
        assert_eq!(idle, [10, 11, 12, 13, 14, 20, 21, 22, 30, 31], "{writes:?}");
        let at: Vec<_> = events.iter().map(|event| event.at.map(|at| at.get() / 1_000_000_000)).collect();
        assert_eq!(at, [Some(10), Some(20), Some(30), Some(32), None, None]);
        let outcomes: Vec<_> = events.iter().map(|event| event.outcome.as_str()).collect();
        assert!(outcomes[0].starts_with("power cut: of "), "{outcomes:?}");
        assert_eq!(outcomes[1..4], ["pause", "the device failed", "the faults ended"]);
        assert_eq!(outcomes[4], "8 requests in flight were lost, and asked for again");
        assert!(outcomes[5].ends_with(" requests failed"), "{outcomes:?}");
        assert_eq!(run("[[event]]\nat = '1s'\ndo = 'pause'\nfor = '1s'\n").0.len(), 36);
    }
}
