//! The positions of the files of a database on a device: data files in its first part, the log at its end.
//!
//! # Not modelled
//! The filesystem: each file is contiguous.

use crate::experiment::{Inserts, Placement};
use lowtide_core::rng::below;
use lowtide_core::{Bytes, Seed};
use lowtide_engines::inserts::{self, EXTENT};

/// The alignment of a random position.
const STEP: Bytes = Bytes::mib(64);

/// A database that rows are inserted into.
#[derive(Debug, Clone, PartialEq)]
pub struct Database {
    /// The rows and the engine, with data files as large as the device allows.
    pub engine: inserts::Inserts,
    /// The offset of the data files.
    pub data: u64,
    /// The offset of the log.
    pub log: u64,
    /// Bytes available for data files, from the beginning of the device.
    pub room: Bytes,
}

/// Places the files on a device of `capacity` with `room` bytes for data files. `before` is the number and the offset
/// of the previous data files. If the number has not changed, the files keep their offset, as if they were emptied.
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
        Placement::Drawn => match before {
            Some((files, data)) if files == engine.data_files => data,
            _ => below(&mut seed.stream(), spare + 1) * STEP.get(),
        },
    };
    let log = capacity.saturating_sub(engine.log.size).align_down(Bytes::new(EXTENT)).get();
    Database { engine, data, log, room }
}
