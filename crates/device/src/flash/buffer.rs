//! The write buffer: a ring of map units. A slot is free again when the page of its unit is durable.
//!
//! # Not modelled
//! Reads from the buffer (they go to the die), and rewrites that replace a unit in the buffer.

use serde::{Deserialize, Serialize};

/// The unit in a slot of the ring.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Slot {
    durable_at_ns: u64,
    physical: u32,
}

/// The instant of a unit whose page is not programmed yet.
const PENDING: u64 = u64::MAX;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WriteBuffer {
    slots: Vec<Slot>,
    next: usize,
    pending: usize,
    last_durable_ns: u64,
    pub(super) protected: bool,
}

impl WriteBuffer {
    pub(super) fn new(units: usize, protected: bool) -> Self {
        let empty = Slot { durable_at_ns: 0, physical: u32::MAX };
        WriteBuffer { slots: vec![empty; units], next: 0, pending: 0, last_durable_ns: 0, protected }
    }

    /// Adds a unit. Returns the instant at which there was room for it, `now_ns` at the earliest.
    #[inline]
    pub(super) fn admit(&mut self, now_ns: u64, physical: u32) -> u64 {
        let slot = &mut self.slots[self.next];
        debug_assert_ne!(slot.durable_at_ns, PENDING, "the buffer holds at least two pages");
        let admitted = now_ns.max(slot.durable_at_ns);
        *slot = Slot { durable_at_ns: PENDING, physical };
        self.next = if self.next + 1 == self.slots.len() { 0 } else { self.next + 1 };
        self.pending += 1;
        admitted
    }

    /// Makes the pending units a page that is durable at `durable_at_ns`.
    #[inline]
    pub(super) fn programmed(&mut self, durable_at_ns: u64) {
        let mut at = self.next;
        for _ in 0..self.pending {
            at = if at == 0 { self.slots.len() } else { at } - 1;
            self.slots[at].durable_at_ns = durable_at_ns;
        }
        self.pending = 0;
        self.last_durable_ns = self.last_durable_ns.max(durable_at_ns);
    }

    /// The number of units in a page that is not programmed yet.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// The instant at which all pages programmed so far are durable.
    pub(super) fn last_durable_ns(&self) -> u64 {
        self.last_durable_ns
    }

    /// Empties the buffer at a power cut. Returns the physical units that were not durable.
    pub(super) fn lose(&mut self, now_ns: u64) -> Vec<u32> {
        let lost = self
            .slots
            .iter()
            .filter(|slot| slot.physical != u32::MAX && slot.durable_at_ns > now_ns)
            .map(|slot| slot.physical)
            .collect();
        let units = self.slots.len();
        *self = WriteBuffer { last_durable_ns: 0, ..WriteBuffer::new(units, self.protected) };
        lost
    }
}
