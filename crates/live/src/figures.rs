//! The status of a log disk ([`Figures`]), as text for people and as JSON for programs.
//!
//! `lowtide_logdisk::check` has the checks that read an entire log disk.

use lowtide_host::live::Usage;
use lowtide_logdisk::{BLOCK, Disk, Medium};
use serde::{Deserialize, Serialize};

/// The status of a log disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Capacity in bytes.
    pub offered_bytes: u64,
    /// Bytes of live data and live pages of the map.
    pub live_bytes: u64,
    /// Data as a share of the capacity.
    pub fill: f64,
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// Number of segments.
    pub segments: u32,
    /// Number of free segments.
    pub free_segments: usize,
    /// Bytes of the map that are in memory.
    pub map_bytes_in_memory: usize,
    /// Total bytes of the map.
    pub map_bytes_whole: usize,
    /// Whether the previous use ended with a clean close.
    pub closed_in_order: bool,
    /// Number of slots replayed when it was opened.
    pub replayed_slots: u64,
    /// Number of slots after the end of the log that were dropped when it was opened.
    pub dropped_slots: u64,
    /// Number of slots in the log that were unreadable when it was opened.
    pub spoiled_slots: u64,
    /// Number of flushed blocks at the end of the log that were unreadable when it was opened.
    pub damaged_blocks: u64,
    /// Activity since it was opened, if it is served.
    #[serde(flatten)]
    pub served: Option<Served>,
}

/// The activity of a served log disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The export's name.
    pub name: String,
    /// Seconds since it was opened.
    pub open_s: f64,
    /// Blocks written by clients.
    pub blocks_written: u64,
    /// Blocks moved by cleaning.
    pub blocks_moved: u64,
    /// Pages of the map written.
    pub map_pages_written: u64,
    /// Flush marks written.
    pub marks_written: u64,
    /// Bytes written to the medium per byte that clients wrote; 0 before the first write.
    pub write_amplification: f64,
    /// Segments emptied by cleaning.
    pub segments_cleaned: u64,
    /// Blocks that could not be read.
    pub blocks_unreadable: u64,
    /// Connected clients.
    pub clients: u64,
    /// Number of clients that the server does not read from until they take their replies.
    pub clients_waiting: u64,
    /// Bytes of buffers in use for requests and replies.
    pub buffers_used_bytes: u64,
    /// Maximum bytes of buffers for requests and replies.
    pub buffers_bytes: u64,
}

impl Figures {
    /// The status of an open log disk.
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

    /// The status of a log disk that is served as `name` and was opened `open_s` seconds ago.
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
            clients: usage.connected,
            clients_waiting: usage.waiting,
            buffers_used_bytes: usage.buffers_used_bytes,
            buffers_bytes: usage.buffers_bytes,
        };
        Figures { served: Some(served), ..Figures::of(disk) }
    }
}
