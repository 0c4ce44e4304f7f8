//! `[[event]]`: what happens to a simulated device while a load runs on it, in every cell.
//!
//! Not here: what makes it happen (`load::events`), and what each does to a device (crate `lowtide-device`; `power`, `fault`).

use super::document::Document;
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
    /// What an event does.
    Deed, "event";
    /// Cuts the power.
    PowerCut = "power-cut",
    /// Holds the load back.
    Pause = "pause",
    /// Erases the device.
    SecureErase = "secure-erase",
    /// Gives the device faults.
    Fail = "fail",
}

/// What happens, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Since the load began.
    pub at: Nanos,
    /// What happens then.
    pub what: Happens,
}

/// What happens to a device.
#[derive(Debug, Clone, PartialEq)]
pub enum Happens {
    /// The power is cut: what was in flight is asked for again when it is back.
    PowerCut {
        /// How long it is off.
        off: Nanos,
        /// In which pieces writes tear.
        tear: Tear,
    },
    /// No request is made.
    Pause {
        /// For so long.
        length: Nanos,
    },
    /// The device is erased, in no time.
    SecureErase,
    /// The device has these faults, in place of those it had.
    Fail {
        /// Which.
        faults: Faults,
        /// For how long; to the end where absent.
        length: Option<Nanos>,
    },
}

impl Event {
    /// The same in an experiment whose times are `scale` times shorter.
    pub(crate) fn scaled(&self, scale: u64) -> Event {
        let shorter = |span: Nanos| span / scale.max(1);
        let what = match self.what.clone() {
            Happens::PowerCut { off, tear } => Happens::PowerCut { off: shorter(off), tear },
            Happens::Pause { length } => Happens::Pause { length: shorter(length) },
            Happens::SecureErase => Happens::SecureErase,
            Happens::Fail { faults, length } => Happens::Fail { faults, length: length.map(shorter) },
        };
        Event { at: shorter(self.at), what }
    }
}

/// Keys that only some deeds have.
const BELONGS: [(&str, &[Deed]); 8] = [
    ("for", &[Deed::PowerCut, Deed::Pause, Deed::Fail]),
    ("granule", &[Deed::PowerCut]),
    ("read-errors", &[Deed::Fail]),
    ("write-errors", &[Deed::Fail]),
    ("factor", &[Deed::Fail]),
    ("added", &[Deed::Fail]),
    ("share", &[Deed::Fail]),
    ("end-of-life", &[Deed::Fail]),
];

/// Reads the events, in order of time.
pub(super) fn read(tables: Vec<Table<'_>>, problems: &mut Problems<'_>) -> Vec<Event> {
    let mut events: Vec<Event> = tables.iter().filter_map(|table| one(table, problems)).collect();
    events.sort_by_key(|event| event.at);
    events
}

fn one(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Event> {
    table.only(&schema::EVENT, problems);
    let at = table.require("at", "\"10min\"", problems).and_then(|entry| entry.nanos(problems));
    let deed: Deed = table.require("do", "\"power-cut\"", problems).and_then(|entry| entry.word(problems))?;
    for (key, deeds) in BELONGS {
        if let (Some(entry), false) = (table.get(key), deeds.contains(&deed)) {
            let whose: Vec<_> = deeds.iter().map(|deed| format!("`{deed}`")).collect();
            let message = format!("`{key}` belongs to {}, not to `{deed}`", whose.join(", "));
            problems.add(entry.key_span, message, "has no effect", "remove it");
        }
    }
    let length = table.get("for").map(|entry| entry.some_time(problems));
    let what = match deed {
        Deed::SecureErase => Happens::SecureErase,
        Deed::Pause => {
            let length = table.require("for", "\"30s\"", problems).and(length.flatten());
            Happens::Pause { length: length? }
        }
        Deed::PowerCut => {
            let tear = table.get("granule").map(|entry| granule(&entry, problems));
            let off = length.unwrap_or(Some(Nanos::from_secs(1)));
            Happens::PowerCut { off: off?, tear: tear.unwrap_or(Some(Tear::default()))? }
        }
        Deed::Fail => Happens::Fail {
            faults: faults(table, problems)?,
            length: match length {
                Some(length) => Some(length?),
                None => None,
            },
        },
    };
    Some(Event { at: at?, what })
}

fn granule(entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Tear> {
    let size = entry.bytes(problems)?;
    let tears = [Tear::Sector, Tear::Page];
    let found = tears.into_iter().find(|tear| Bytes::new(tear.granule()) == size);
    found.or_else(|| {
        entry.refuse(
            format!("{size} is no piece that is written whole"),
            "`\"512B\"` or `\"4KiB\"`",
            problems,
        )
    })
}

fn faults(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Faults> {
    let mut number = |key: &str, example| match table.get(key) {
        None => Some(None),
        Some(entry) => entry.number(example, problems).map(Some),
    };
    let errors = |share: Option<f64>| share.map(|share| Errors { share, ..Errors::default() });
    let (read_errors, write_errors) =
        (errors(number("read-errors", "0.01")?), errors(number("write-errors", "0.01")?));
    let (factor, share) = (number("factor", "3")?, number("share", "0.1")?);
    let added = match table.get("added") {
        None => None,
        Some(entry) => Some(entry.nanos(problems)?),
    };
    let ended = match table.get("end-of-life") {
        None => false,
        Some(entry) => entry.boolean(problems)?,
    };
    let slow = (factor.is_some() || added.is_some()).then(|| Slow {
        factor: factor.unwrap_or(1.0),
        added: added.unwrap_or_default(),
        share: share.unwrap_or(1.0),
        until: None,
    });
    if let (Some(entry), None) = (table.get("share"), &slow) {
        let message = "`share` belongs to `factor` and `added`, which are absent";
        problems.add(entry.key_span, message, "has no effect", "remove it, or add one of them");
    }
    let faults = Faults { read_errors, write_errors, slow, end_of_life: ended.then_some(EndOfLife::Now) };
    if faults == Faults::default() {
        let help = "`read-errors`, `write-errors`, `factor`, `added` or `end-of-life`";
        problems.add(table.span.clone(), "`fail` without a fault", "how?", help);
        return None;
    }
    if let Err(error) = faults.validate() {
        // A share of errors is the key itself here; what is slow has keys of its own.
        let (key, part) = error.key.split_once('.').unwrap_or((error.key, ""));
        let entry = table.get(key).or_else(|| table.get(part))?;
        return entry.refuse(error.message, "a number within these limits", problems);
    }
    Some(faults)
}

/// Records events that could not happen: on a target that is no model, in a load whose requests come at times of their
/// own, or after the end.
pub(super) fn check(
    document: &Document,
    target: Option<&Target>,
    load: &Load,
    swept_rate: bool,
    problems: &mut Problems<'_>,
) {
    if load.events.is_empty() {
        return;
    }
    let place = |path: &str| document.place(path).map_or(0..0, |place| place.value.clone());
    let mut refuse = |path: &str, message: &str, help: &str| problems.add(place(path), message, "here", help);
    if !matches!(target, Some(Target::Device(_)) | None) {
        refuse("event.0", "events on a real target", "events happen to simulated devices: `device = \"…\"`");
    }
    let open = load.pace != Pace::Closed || swept_rate;
    if open || matches!(load.work, Work::Inserts(_) | Work::Trace(_)) || load.burst.is_some() {
        let message = "events in a load whose requests do not simply follow one another";
        refuse(
            "event.0",
            message,
            "a `[workload]` without `rate`, `arrival`, `trace` or `burst`; or no events",
        );
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
