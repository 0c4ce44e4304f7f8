//! How a log disk is ([`Figures`]): for people, and for programs as JSON.
//!
//! Not here: what cannot be said without reading it all; see `lowtide_logdisk::check`.

use lowtide_host::live::Usage;
use lowtide_logdisk::{BLOCK, Disk, Medium};
use serde::{Deserialize, Serialize};

/// A log disk at an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes that are offered.
    pub offered_bytes: u64,
    /// Bytes that are live: data, and pages of the map.
    pub live_bytes: u64,
    /// The share of what is offered that holds data.
    pub fill: f64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// How many there are.
    pub segments: u32,
    /// How many are free.
    pub free_segments: usize,
    /// Bytes of memory that the map takes now.
    pub map_bytes_in_memory: usize,
    /// Bytes that it takes when all of it is in memory.
    pub map_bytes_whole: usize,
    /// Whether it was closed in order before it was opened.
    pub closed_in_order: bool,
    /// Slots that were read forward when it was opened.
    pub replayed_slots: u64,
    /// Slots after the end of the log that were dropped.
    pub dropped_slots: u64,
    /// Slots of the log that could not be read.
    pub spoiled_slots: u64,
    /// Blocks of the flushed end of the log that could not be read then.
    pub damaged_blocks: u64,
    /// What happened since, while it is served.
    #[serde(flatten)]
    pub served: Option<Served>,
}

/// What happened to a log disk while it is served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// What clients call it.
    pub name: String,
    /// Seconds since it was opened.
    pub open_s: f64,
    /// Blocks that were written.
    pub blocks_written: u64,
    /// Blocks that the cleaner moved.
    pub blocks_moved: u64,
    /// Pages of the map that were written.
    pub map_pages_written: u64,
    /// Marks of what was flushed that were written.
    pub marks_written: u64,
    /// Bytes that went to the medium for each that was written; 0 while nothing was.
    pub write_amplification: f64,
    /// Segments that the cleaner emptied.
    pub segments_cleaned: u64,
    /// Blocks that could not be read.
    pub blocks_unreadable: u64,
    /// Clients that use it.
    pub clients: u64,
    /// Those that are not read from until they take replies.
    pub clients_waiting: u64,
    /// Bytes that requests and replies of clients hold.
    pub buffers_used_bytes: u64,
    /// Bytes that they may hold.
    pub buffers_bytes: u64,
}

impl Figures {
    /// Those of a disk that is open.
    pub fn of<M: Medium>(disk: &mut Disk<M>) -> Figures {
        let (geometry, recovery, live) = (*disk.geometry(), disk.recovery(), disk.live_slots());
        Figures {
            offered_bytes: geometry.capacity(),
            live_bytes: live * BLOCK as u64,
            fill: disk.live_blocks() as f64 / f64::from(geometry.blocks),
            segment_bytes: geometry.segment_bytes(),
            segments: geometry.segments,
            free_segments: disk.log().segments().free(),
            map_bytes_in_memory: disk.map_memory(),
            map_bytes_whole: geometry.pages() as usize * BLOCK,
            closed_in_order: recovery.clean,
            replayed_slots: recovery.replayed,
            dropped_slots: recovery.dropped,
            spoiled_slots: recovery.spoiled,
            damaged_blocks: recovery.damage().unwrap_or(0),
            served: None,
        }
    }

    /// The same, with what happened to it while it is served by a name, since `open_s` seconds, to such clients.
    pub fn of_served<M: Medium>(disk: &mut Disk<M>, name: &str, open_s: f64, usage: Usage) -> Figures {
        let counters = disk.counters();
        let host_bytes = counters.host_blocks as f64 * BLOCK as f64;
        let served = Served {
            name: name.to_owned(),
            open_s,
            blocks_written: counters.host_blocks,
            blocks_moved: counters.moved_blocks,
            map_pages_written: counters.map_pages,
            marks_written: counters.marks,
            write_amplification: if host_bytes > 0.0 {
                counters.written_bytes as f64 / host_bytes
            } else {
                0.0
            },
            segments_cleaned: counters.cleaned,
            blocks_unreadable: counters.bad_blocks,
            clients: usage.clients,
            clients_waiting: usage.waiting,
            buffers_used_bytes: usage.used,
            buffers_bytes: usage.bytes,
        };
        Figures { served: Some(served), ..Figures::of(disk) }
    }
}
