//! Where the files of a database lie on a device: data files in its first part, the log at its end.
//!
//! Not here: the filesystem; files lie in one piece.

use crate::experiment::{Inserts, Placement};
use lowtide_core::rng::below;
use lowtide_core::{Bytes, Seed};
use lowtide_engines::inserts::{self, EXTENT};

/// Where a place that is drawn begins: at a multiple of this.
const STEP: Bytes = Bytes::mib(64);

/// A database that rows are inserted into.
#[derive(Debug, Clone, PartialEq)]
pub struct Database {
    /// What is inserted, with data files as large as the device allows.
    pub engine: inserts::Inserts,
    /// Where the data files begin.
    pub data: u64,
    /// Where the log begins.
    pub log: u64,
    /// Bytes that data files may lie in, from the beginning of the device.
    pub room: Bytes,
}

/// Places the files on a device of `capacity` with `room` for data files; `before` is how many there were and where.
/// As many files as before are the same files, emptied.
pub(super) fn place(
    inserts: &Inserts,
    room: Bytes,
    capacity: Bytes,
    seed: Seed,
    before: Option<(u32, u64)>,
) -> Database {
    let engine = inserts.engine.with_database_in(room).expect("the plan checked that the rows fit");
    let spare = room.saturating_sub(engine.database).get() / STEP.get();
    let data = match inserts.place {
        Placement::Start => 0,
        Placement::Drawn if before.is_some_and(|(files, _)| files == engine.data_files) => {
            before.map_or(0, |(_, data)| data)
        }
        Placement::Drawn => below(&mut seed.stream(), spare + 1) * STEP.get(),
    };
    let log = capacity.saturating_sub(engine.log.size).align_down(Bytes::new(EXTENT)).get();
    Database { engine, data, log, room }
}
