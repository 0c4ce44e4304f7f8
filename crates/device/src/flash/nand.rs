//! Completion times of NAND operations on dies and channels.
//!
//! Each die and each channel is busy until an instant, and an operation waits for both. The channel is charged when the
//! operation is issued, even if the data is transferred later, so that a slow die does not delay the other dies on its
//! channel.
//!
//! # Not modelled
//! Suspension of programs and erases for reads, and cache reads.

use super::Geometry;
use serde::{Deserialize, Serialize};

/// The busy-until times of every die and channel, and the timings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NandArray {
    die_busy_ns: Vec<u64>,
    channel_busy_ns: Vec<u64>,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    transfer_unit_ns: u64,
    channel_of: Vec<u32>,
}

impl NandArray {
    pub(super) fn new(geometry: &Geometry) -> Self {
        NandArray {
            die_busy_ns: vec![0; geometry.dies as usize],
            channel_busy_ns: vec![0; geometry.channels as usize],
            read_ns: geometry.read_ns,
            program_ns: geometry.program_ns,
            erase_ns: geometry.erase_ns,
            transfer_unit_ns: geometry.transfer_unit_ns,
            channel_of: (0..geometry.dies).map(|die| die % geometry.channels).collect(),
        }
    }

    /// Sends `units` to a die and programs a page there. The operation is issued at `issued_ns` and begins at `earliest_ns`
    /// or later. Returns the instant at which the page is durable.
    #[inline]
    pub(super) fn program(&mut self, die: u32, issued_ns: u64, earliest_ns: u64, units: u32) -> u64 {
        self.program_for(die, issued_ns, earliest_ns, units, self.program_ns)
    }

    /// Like [`NandArray::program`], with a program time of `program_ns`.
    #[inline]
    pub(super) fn program_for(
        &mut self,
        die: u32,
        issued_ns: u64,
        earliest_ns: u64,
        units: u32,
        program_ns: u64,
    ) -> u64 {
        let channel = &mut self.channel_busy_ns[self.channel_of[die as usize] as usize];
        let transfer = self.transfer_unit_ns * u64::from(units);
        *channel = (*channel).max(issued_ns) + transfer;
        let sent = (*channel).max(earliest_ns + transfer);
        let busy = &mut self.die_busy_ns[die as usize];
        *busy = (*busy).max(sent) + program_ns;
        *busy
    }

    /// Reads `pages` pages of a die and sends `units` of their units to the controller. The operation is issued at
    /// `issued_ns` and begins at `earliest_ns` or later. Returns the instant at which the units arrive.
    #[inline]
    pub(super) fn read(&mut self, die: u32, issued_ns: u64, earliest_ns: u64, pages: u32, units: u32) -> u64 {
        self.read_for(die, issued_ns, earliest_ns, pages, units, self.read_ns)
    }

    /// Like [`NandArray::read`], with a read time of `read_ns` per page.
    #[inline]
    pub(super) fn read_for(
        &mut self,
        die: u32,
        issued_ns: u64,
        earliest_ns: u64,
        pages: u32,
        units: u32,
        read_ns: u64,
    ) -> u64 {
        let busy = &mut self.die_busy_ns[die as usize];
        let sensed = (*busy).max(earliest_ns) + read_ns * u64::from(pages);
        *busy = sensed;
        let channel = &mut self.channel_busy_ns[self.channel_of[die as usize] as usize];
        let transfer = self.transfer_unit_ns * u64::from(units);
        *channel = (*channel).max(issued_ns) + transfer;
        (*channel).max(sensed + transfer)
    }

    /// Copies a page within a die, without its channel. Returns the instant at which it is durable.
    pub(super) fn copy_back(&mut self, die: u32, earliest_ns: u64) -> u64 {
        let busy = &mut self.die_busy_ns[die as usize];
        *busy = (*busy).max(earliest_ns) + self.read_ns + self.program_ns;
        *busy
    }

    /// Erases a block of a die. Returns the instant at which it can be programmed.
    #[inline]
    pub(super) fn erase(&mut self, die: u32, earliest_ns: u64) -> u64 {
        let busy = &mut self.die_busy_ns[die as usize];
        *busy = (*busy).max(earliest_ns) + self.erase_ns;
        *busy
    }

    /// The instant at which the last operation ends.
    pub(super) fn busy_ns(&self) -> u64 {
        self.die_busy_ns.iter().chain(&self.channel_busy_ns).copied().max().unwrap_or(0)
    }

    /// Ends every operation in progress at `now_ns`, for a power cut.
    pub(super) fn interrupt(&mut self, now_ns: u64) {
        self.die_busy_ns
            .iter_mut()
            .chain(&mut self.channel_busy_ns)
            .for_each(|busy| *busy = (*busy).min(now_ns));
    }
}
