//! Events: what an experiment lets happen to a simulated device while a load runs on it, and what came of each.
//!
//! Time without power counts as idle time to the model. Not here: what each event does to a device (crate
//! `lowtide-device`), and what the load does then (`core::virtual_load`).

use crate::experiment::{Event, Happens};
use lowtide_core::virtual_load::{Happening, Script, Scripted};
use lowtide_core::{BlockDevice, Nanos, Seed, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_device::fault::{Fault, Faults};
use lowtide_device::power::{Cache, Loss, PowerCut, Tear};
use std::collections::VecDeque;

/// A device to which events happen.
pub(super) type Eventful<'a> = Fault<PowerCut<&'a mut AnyDevice>>;

/// The device of a cell as events find it.
pub(super) fn eventful(device: &mut AnyDevice, cache: Cache, seed: Seed) -> Eventful<'_> {
    let power = PowerCut::counting(device, cache, Tear::default(), seed.part("power", 0));
    Fault::new(power, seed.part("faults", 0))
}

/// What came of an event, or of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When it happened, since the load began.
    pub at: Option<Nanos>,
    /// What came of it, for people.
    pub what: String,
}

/// The events of a cell that are still to come, and what is said of the others.
pub(super) struct Events {
    start: VirtualTime,
    /// By when they happen since the start.
    coming: VecDeque<(Nanos, Step)>,
    /// The power is off until then.
    off_until: VirtualTime,
    told: Vec<Told>,
}

enum Step {
    Event(Happens),
    /// The faults end.
    Heal,
}

impl Events {
    pub(super) fn new(events: &[Event], start: VirtualTime) -> Self {
        let ends = |event: &Event| match event.what {
            Happens::Fail { length: Some(length), .. } => Some((event.at + length, Step::Heal)),
            _ => None,
        };
        let mut coming: Vec<_> =
            events.iter().map(|event| (event.at, Step::Event(event.what.clone()))).collect();
        coming.extend(events.iter().filter_map(ends));
        // Of two at the same instant, faults end before others begin.
        coming.sort_by_key(|(at, step)| (*at, !matches!(step, Step::Heal)));
        Events { start, coming: coming.into(), off_until: start, told: Vec::new() }
    }

    /// What came of each event that happened, and what they did to requests.
    pub(super) fn told(mut self, ended: &Scripted) -> Vec<Told> {
        for (count, what) in [
            (ended.gone, "requests in flight were lost, and asked for again"),
            (ended.failed, "requests failed"),
        ] {
            if count > 0 {
                self.told.push(Told { at: None, what: format!("{count} {what}") });
            }
        }
        self.told
    }
}

impl Script<Eventful<'_>> for Events {
    fn next(&self) -> Option<VirtualTime> {
        self.coming.front().map(|(at, _)| (self.start + *at).max(self.off_until))
    }

    fn happen(&mut self, device: &mut Eventful<'_>) -> Happening {
        let now = self.next().unwrap_or(self.start);
        let mut happening = Happening { resume: now, gone: false };
        let Some((_, step)) = self.coming.pop_front() else { return happening };
        let what = match step {
            Step::Heal => {
                device.set(Faults::default()).expect("no faults are sound");
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
        self.told.push(Told { at: Some(now.since(self.start)), what });
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
    use super::Told;
    use crate::experiment::Experiment;
    use crate::load::{Ended, on_drive};
    use crate::plan::{Plan, PlanTarget};
    use crate::prepare::History;
    use lowtide_core::Seed;
    use std::sync::atomic::AtomicBool;

    /// Runs an hour of small writes on the Intel 320, a hundredth of it; writes in each of 36 intervals, and what is
    /// told.
    fn run(events: &str) -> (Vec<u64>, Vec<Told>) {
        let text = format!(
            "name = 'events'\n[target]\ndevice = 'intel-320-160gb'\n[before-each-cell]\nfill = 'sequential'\n\
             [workload]\npattern = 'random-write'\nblock = '16KiB'\nfile_size = '80GB'\nthreads = 8\n\
             duration = '1h'\ninterval = '100s'\n{events}"
        );
        let experiment = Experiment::parse("events.toml", &text, &[]).expect("sound");
        let plan = Plan::new(experiment, Seed::new(3), 100).expect("it fits");
        let PlanTarget::Simulated(devices) = &plan.target else { unreachable!("a simulated device") };
        let cell = &plan.cells[0];
        let mut history = History::new(&devices["intel-320-160gb"].spec, Seed::new(3));
        let prepared = history.prepare(cell, Seed::new(4)).expect("it fits");
        let (mut writes, mut told) = (Vec::new(), Vec::new());
        let each = &mut |interval: &lowtide_core::Interval,
                         _: f64,
                         _: &dyn Fn() -> lowtide_record::analysis::Verdict| {
            writes.push(interval.writes);
        };
        let load = &cell.settings.load;
        let ended = on_drive(prepared, load, Seed::new(5), &AtomicBool::new(false), each, &mut told);
        assert!(matches!(ended, Ok(Ended::Complete(_))), "{ended:?}");
        (writes, told)
    }

    #[test]
    fn each_event_is_seen_in_the_numbers_and_told() {
        let (plain, told) = run("");
        assert_eq!((plain.len(), told), (36, Vec::new()));
        let (writes, told) = run("[[event]]\nat = '1000s'\ndo = 'power-cut'\nfor = '500s'\n\
             [[event]]\nat = '2000s'\ndo = 'pause'\nfor = '300s'\n\
             [[event]]\nat = '3000s'\ndo = 'fail'\nend-of-life = true\nfor = '200s'\n");
        assert_eq!(writes[..10], plain[..10], "nothing changes before the first event");
        // What was in flight when a pause or the end of life began is complete a little later.
        let idle: Vec<usize> = (0..36).filter(|interval| writes[*interval] <= 8).collect();
        assert_eq!(idle, [10, 11, 12, 13, 14, 20, 21, 22, 30, 31], "{writes:?}");
        let at: Vec<_> = told.iter().map(|told| told.at.map(|at| at.get() / 1_000_000_000)).collect();
        assert_eq!(at, [Some(10), Some(20), Some(30), Some(32), None, None]);
        let what: Vec<_> = told.iter().map(|told| told.what.as_str()).collect();
        assert!(what[0].starts_with("power cut: of "), "{what:?}");
        assert_eq!(what[1..4], ["pause", "the device failed", "the faults ended"]);
        assert_eq!(what[4], "8 requests in flight were lost, and asked for again");
        assert!(what[5].ends_with(" requests failed"), "{what:?}");
        assert_eq!(run("[[event]]\nat = '1s'\ndo = 'pause'\nfor = '1s'\n").0.len(), 36);
    }
}
