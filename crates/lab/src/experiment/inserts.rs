//! `[inserts]`: many connections insert into one growing index, instead of `[workload]`.
//!
//! Not here: the engine (`lowtide_engines::inserts`), and the check that the data fits on the device (`plan`).

use super::error::Problems;
use super::length::Length;
use super::load::{Load, Pattern};
use super::read::Table;
use super::schema;
use super::words::words;
use super::work::Work;
use lowtide_core::{Bytes, Nanos};
use lowtide_engines::inserts::{self, EXTENT, PAGE};
use serde::{Deserialize, Serialize};

/// The maximum duration of a measurement.
const LONGEST: Nanos = Nanos::from_secs(24 * 3600);

words! {
    /// The position of the data files.
    Placement, "place";
    /// At the beginning of the device.
    Start = "start",
    /// At a random position, drawn again when the number of files changes, as if they were deleted and created again.
    Drawn = "drawn",
}

/// Inserts, with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inserts {
    /// The rows and the engine.
    pub engine: inserts::Inserts,
    /// The position of the data files.
    pub place: Placement,
}

impl Inserts {
    /// Bytes for data files on a device of `capacity` whose first part is `first_part`. The log is at the end.
    pub fn room(&self, first_part: Bytes, capacity: Bytes) -> Bytes {
        let before_log = capacity.saturating_sub(self.engine.log.size);
        first_part.min(before_log).align_down(Bytes::new(EXTENT))
    }
}

/// Reads `[inserts]`.
pub(super) fn read(table: &Table<'_>, problems: &mut Problems<'_>) -> Load {
    table.only(&schema::INSERTS, problems);
    let mut keys = Keys { table, problems };
    let connections = keys.count("connections", 16);
    let data = keys.size("data-per-connection", Bytes::gib(1), PAGE);
    let engine = inserts::Inserts {
        connections,
        rows: data.get() / PAGE,
        commit: u64::from(keys.count("rows-per-transaction", 1)),
        data_files: keys.count("data_files", 1),
        database: keys.size("database", data * u64::from(connections) * 2, EXTENT),
        row: inserts::RowCost {
            insert: keys.time("insert", Nanos::from_micros(50)),
            hand_off: keys.time("hand-off", Nanos::ZERO),
            connection: keys.time("connection", Nanos::ZERO),
            log: keys.size("log-record", Bytes::new(PAGE), 1),
        },
        log: inserts::Log {
            size: keys.size("log-size", Bytes::gib(1), 512),
            align: keys.size("log-block", Bytes::kib(4), 512),
            write: keys.size("log-write", Bytes::mib(1), 512),
            outstanding: keys.count("log-outstanding", 32),
        },
        checkpoint: inserts::Checkpoint {
            after: keys.size("checkpoint-after", Bytes::mib(256), EXTENT),
            memory: keys.size("memory", Bytes::gib(1), EXTENT),
            gather: keys.size("gather", Bytes::kib(256), PAGE),
            outstanding: keys.count("checkpoint-outstanding", 32),
        },
    };
    let interval = keys.time("every", Nanos::from_secs(10));
    check(table, &engine, problems);
    let place = table.get("place").and_then(|entry| entry.word(problems)).unwrap_or(Placement::Start);
    Load {
        pattern: Pattern::SequentialWrite,
        block: Bytes::new(PAGE),
        threads: engine.connections,
        length: Length::For(LONGEST),
        interval: interval.max(Nanos::new(1)),
        work: Work::Inserts(Inserts { engine, place }),
        ..Load::default()
    }
}

/// Records contradictions between keys.
fn check(table: &Table<'_>, engine: &inserts::Inserts, problems: &mut Problems<'_>) {
    let mut refuse = |key: &str, fault: &str, help: &str| {
        let span = table.get(key).map_or(table.span.clone(), |entry| entry.span);
        problems.add(span, format!("`{key}`: {fault}"), "here", help);
    };
    let inserts::Inserts { log, checkpoint, .. } = engine;
    if engine.database < engine.data() {
        let fault = format!("{} of rows do not fit into {}", engine.data(), engine.database);
        refuse("database", &fault, "a database that holds `data-per-connection` of every connection");
    }
    if log.write < log.align {
        refuse("log-write", "smaller than a block of the log", &format!("at least {}", log.align));
    }
    if log.size < log.write {
        refuse("log-size", "smaller than a write of the log", &format!("at least {}", log.write));
    }
    if checkpoint.memory < checkpoint.after {
        let help = format!("at least `checkpoint-after`, {}", checkpoint.after);
        refuse("memory", "full before a checkpoint begins", &help);
    }
}

/// Readers of keys with defaults.
struct Keys<'t, 'p, 'd> {
    table: &'t Table<'t>,
    problems: &'p mut Problems<'d>,
}

impl Keys<'_, '_, '_> {
    fn count(&mut self, key: &str, default: u32) -> u32 {
        self.table.get(key).and_then(|entry| entry.count(self.problems)).unwrap_or(default)
    }

    fn time(&mut self, key: &str, default: Nanos) -> Nanos {
        self.table.get(key).and_then(|entry| entry.nanos(self.problems)).unwrap_or(default)
    }

    /// A size, rounded down to a multiple of `unit`, and at least one `unit`.
    fn size(&mut self, key: &str, default: Bytes, unit: u64) -> Bytes {
        let Some(entry) = self.table.get(key) else { return default };
        let Some(size) = entry.bytes(self.problems) else { return default };
        if size.get() < unit {
            let least = Bytes::new(unit);
            entry.refuse::<()>(format!("{size} is too small"), format!("at least {least}"), self.problems);
            return default;
        }
        size.align_down(Bytes::new(unit))
    }
}
