//! `[inserts]`, an alternative to `[workload]`: many connections insert into one growing index.
//!
//! The engine is in `lowtide_engines::inserts`. Module `plan` checks that the data fits on the device.

use super::length::Length;
use super::load::{Load, Pattern};
use super::read::{Entry, Table};
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
    /// At a random position, drawn again when the number of files changes, as if the files were deleted and created
    /// again.
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
pub(super) fn read(table: &Table<'_>) -> Load {
    table.only(&schema::INSERTS);
    let count = |key: &str, default| table.value_or(key, default, Entry::count).unwrap_or(default);
    let time = |key: &str, default| table.value_or(key, default, Entry::nanos).unwrap_or(default);
    let size =
        |key: &str, default, unit| table.value_or(key, default, |entry| size(entry, unit)).unwrap_or(default);
    let connections = count("connections", 16);
    let data = size("data-per-connection", Bytes::gib(1), PAGE);
    let engine = inserts::Inserts {
        connections,
        rows: data.get() / PAGE,
        commit: u64::from(count("rows-per-transaction", 1)),
        data_files: count("data_files", 1),
        database: size("database", data * u64::from(connections) * 2, EXTENT),
        row: inserts::RowCost {
            insert: time("insert", Nanos::from_micros(50)),
            hand_off: time("hand-off", Nanos::ZERO),
            connection: time("connection", Nanos::ZERO),
            log: size("log-record", Bytes::new(PAGE), 1),
        },
        log: inserts::Log {
            size: size("log-size", Bytes::gib(1), 512),
            align: size("log-block", Bytes::kib(4), 512),
            write: size("log-write", Bytes::mib(1), 512),
            outstanding: count("log-outstanding", 32),
        },
        checkpoint: inserts::Checkpoint {
            after: size("checkpoint-after", Bytes::mib(256), EXTENT),
            memory: size("memory", Bytes::gib(1), EXTENT),
            gather: size("gather", Bytes::kib(256), PAGE),
            outstanding: count("checkpoint-outstanding", 32),
        },
    };
    let interval = time("every", Nanos::from_secs(10));
    check(table, &engine);
    let place = table.get("place").and_then(|entry| entry.word()).unwrap_or(Placement::Start);
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

/// Records contradictions between the settings of the database, the log and the checkpoints.
fn check(table: &Table<'_>, engine: &inserts::Inserts) {
    let refuse = |key: &str, fault: &str, help: &str| {
        let span = table.get(key).map_or(table.span.clone(), |entry| entry.span);
        table.problems.add(span, format!("`{key}`: {fault}"), "here", help);
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

/// Reads a size of at least one `unit`, rounded down to a multiple of `unit`.
fn size(entry: &Entry<'_>, unit: u64) -> Option<Bytes> {
    let size = entry.bytes()?;
    if size.get() < unit {
        let least = Bytes::new(unit);
        return entry.refuse(format!("{size} is too small"), format!("at least {least}"));
    }
    Some(size.align_down(Bytes::new(unit)))
}
