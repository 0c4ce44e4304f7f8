//! `[[event]]`: events of a simulated device during the load, in every cell.
//!
//! Module `load::events` triggers the events. `lowtide_device::{power, fault}` model their effects on a device.

use super::error::Problems;
use super::length::Length;
use super::load::{Load, Pace};
use super::read::{Entry, Table};
use super::schema;
use super::target::Target;
use super::words::words;
use super::work::Work;
use lowtide_core::{Bytes, Nanos};
use lowtide_device::fault::{EndOfLife, Errors, Faults, Slow};
use lowtide_device::power::Tear;

words! {
    /// The kind of an event.
    Kind, "event";
    /// Cuts the power.
    PowerCut = "power-cut",
    /// Pauses the load.
    Pause = "pause",
    /// Erases the device.
    SecureErase = "secure-erase",
    /// Injects faults into the device.
    Fail = "fail",
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Time since the load began.
    pub at: Nanos,
    /// The event.
    pub what: Happens,
}

/// An event of a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Happens {
    /// The power is cut. Requests in flight are issued again when it is restored.
    PowerCut {
        /// Time without power.
        off: Nanos,
        /// The size of the pieces in which writes tear.
        tear: Tear,
    },
    /// No request is issued.
    Pause {
        /// Length of the pause.
        length: Nanos,
    },
    /// The device is erased instantly.
    SecureErase,
    /// Faults replace the current faults of the device.
    Fail {
        /// The faults.
        faults: Faults,
        /// Duration of the faults; `None` for the rest of the load.
        length: Option<Nanos>,
    },
}

impl Event {
    /// The same event with its times divided by `scale`.
    pub(crate) fn scaled(&self, scale: u64) -> Event {
        let shorter = |span: Nanos| span / scale.max(1);
        let mut what = self.what.clone();
        match &mut what {
            Happens::PowerCut { off: span, .. } | Happens::Pause { length: span } => *span = shorter(*span),
            Happens::Fail { length, .. } => *length = length.map(shorter),
            Happens::SecureErase => {}
        }
        Event { at: shorter(self.at), what }
    }
}

/// Keys that only some kinds of events have.
const BELONGS: [(&str, &[Kind]); 8] = [
    ("for", &[Kind::PowerCut, Kind::Pause, Kind::Fail]),
    ("granule", &[Kind::PowerCut]),
    ("read-errors", &[Kind::Fail]),
    ("write-errors", &[Kind::Fail]),
    ("factor", &[Kind::Fail]),
    ("added", &[Kind::Fail]),
    ("share", &[Kind::Fail]),
    ("end-of-life", &[Kind::Fail]),
];

/// Reads the events, in order of time.
pub(super) fn read(tables: Vec<Table<'_>>) -> Vec<Event> {
    let mut events: Vec<Event> = tables.iter().filter_map(|table| one(table)).collect();
    events.sort_by_key(|event| event.at);
    events
}

fn one(table: &Table<'_>) -> Option<Event> {
    table.only(&schema::EVENT);
    let at = table.require("at", "\"10min\"").and_then(|entry| entry.nanos());
    let kind: Kind = table.require("do", "\"power-cut\"").and_then(|entry| entry.word())?;
    for (key, kinds) in BELONGS.into_iter().filter(|(_, kinds)| !kinds.contains(&kind)) {
        let owners: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let message = format!("`{key}` belongs to {}, not to `{kind}`", owners.join(", "));
        table.refuse_key(key, message, "remove it");
    }
    let length = table.optional("for", Entry::some_time);
    let what = match kind {
        Kind::SecureErase => Happens::SecureErase,
        Kind::Pause => {
            table.require("for", "\"30s\"")?;
            Happens::Pause { length: length?? }
        }
        Kind::PowerCut => {
            let tear = table.value_or("granule", Tear::default(), granule);
            Happens::PowerCut { off: length?.unwrap_or(Nanos::from_secs(1)), tear: tear? }
        }
        Kind::Fail => Happens::Fail { faults: faults(table)?, length: length? },
    };
    Some(Event { at: at?, what })
}

fn granule(entry: &Entry<'_>) -> Option<Tear> {
    let size = entry.bytes()?;
    let tear = [Tear::Sector, Tear::Page].into_iter().find(|tear| Bytes::new(tear.granule()) == size);
    let fault = format!("{size} is not the size of an atomic write");
    tear.or_else(|| entry.refuse(fault, "`\"512B\"` or `\"4KiB\"`"))
}

fn faults(table: &Table<'_>) -> Option<Faults> {
    let number = |key: &str, example| table.optional(key, |entry| entry.number(example));
    let errors = |share: Option<f64>| share.map(|share| Errors { share, ..Errors::default() });
    let (read_errors, write_errors) =
        (errors(number("read-errors", "0.01")?), errors(number("write-errors", "0.01")?));
    let (factor, share) = (number("factor", "3")?, number("share", "0.1")?);
    let added = table.optional("added", Entry::nanos)?;
    let ended = table.value_or("end-of-life", false, Entry::boolean)?;
    let slow = (factor.is_some() || added.is_some()).then(|| Slow {
        factor: factor.unwrap_or(1.0),
        added: added.unwrap_or_default(),
        share: share.unwrap_or(1.0),
        until: None,
    });
    if let (Some(entry), None) = (table.get("share"), &slow) {
        let message = "`share` belongs to `factor` and `added`, which are absent";
        table.problems.add(entry.key_span, message, "has no effect", "remove it, or add one of them");
    }
    let faults = Faults { read_errors, write_errors, slow, end_of_life: ended.then_some(EndOfLife::Now) };
    if faults == Faults::default() {
        let help = "`read-errors`, `write-errors`, `factor`, `added` or `end-of-life`";
        table.problems.add(table.span.clone(), "`fail` without a fault", "how?", help);
        return None;
    }
    if let Err(error) = faults.validate() {
        // In an experiment, `read-errors` and `write-errors` are single keys, and each field of `slow` is a key.
        let (key, part) = error.key.split_once('.').unwrap_or((error.key, ""));
        let entry = table.get(key).or_else(|| table.get(part))?;
        return entry.refuse(error.message, "a number within these limits");
    }
    Some(faults)
}

/// Records impossible events: on a real target, in a load that is not a closed loop, or after the end of the load.
pub(super) fn check(problems: &Problems<'_>, target: Option<&Target>, load: &Load, swept_rate: bool) {
    if load.events.is_empty() {
        return;
    }
    let document = problems.document;
    let place = |path: &str| document.place(path).map_or(0..0, |place| place.value.clone());
    let refuse = |path: &str, message: &str, help: &str| problems.add(place(path), message, "here", help);
    if !matches!(target, Some(Target::Device(_)) | None) {
        refuse("event.0", "events on a real target", "events happen to simulated devices: `device = \"…\"`");
    }
    let open = load.pace != Pace::Closed || swept_rate;
    if open || matches!(load.work, Work::Inserts(_) | Work::Trace(_)) || load.burst.is_some() {
        let message = "events in a load that is not a closed loop";
        let help = "a `[workload]` without `rate`, `arrival`, `trace` or `burst`; or no events";
        refuse("event.0", message, help);
    }
    let Length::For(duration) = load.length else { return };
    for number in 0.. {
        let path = format!("event.{number}.at");
        let Some(written) = document.place(&path) else { break };
        let text = document.text()[written.value.clone()].trim_matches(['"', '\'']);
        if text.parse::<Nanos>().is_ok_and(|at| at >= duration) {
            refuse(&path, "an event after the end", &format!("an instant before the `duration`, {duration}"));
        }
    }
}
