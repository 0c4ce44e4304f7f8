//! The memory that all clients of a server share ([`Buffers`], [`Budget`]).
//!
//! ```text
//!   bytes = clients * OWN  +  shared, of which one of n clients takes at most the (n + 1)-th part
//! ```
//!
//! Each client has [`OWN`] bytes that nobody else can take, which is enough for any one request: one that
//! does not fit is carried out in pieces ([`super::long`]). What it holds beyond that, for speed, comes from
//! the shared part. A client whose next request does not fit is not read from until it has taken replies. So
//! clients that take no replies hold what they have, and no more, and keep nobody else from being served.
//!
//! Counted are the buffers for input and for replies, the data of requests in flight, an allowance for each
//! request in flight, and what TLS keeps. Not counted: what a drive holds for itself (contents, model, map,
//! the undo of a volatile cache), socket buffers of the kernel, and negotiations, whose number is limited.

use super::buffer::CHUNK;
use crate::error::HostError;
use lowtide_core::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that each client has for itself.
pub(super) const OWN: u64 = 512 << 10;

/// Bytes that a request in flight takes besides its data.
pub(super) const REQUEST: u64 = 192;

/// Bytes that TLS keeps for a client.
pub(super) const TLS: u64 = 128 << 10;

/// A client keeps a buffer of this many bytes if its share is at least [`KEPT_OF_SHARE`] times as much.
const LONG_KEPT: u64 = 1 << 20;
const KEPT_OF_SHARE: u64 = 8;

/// The memory for the requests and replies of all clients of a server, and how many clients there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    bytes: u64,
    clients: u64,
}

impl Buffers {
    /// The memory of a server with few clients.
    pub const USUAL: Bytes = Bytes::mib(256);

    /// The minimum: the largest request twice, as it arrives and as the drive holds it.
    pub const LEAST: Bytes = Bytes::mib(64);

    /// Memory for so many clients. Without `bytes` it is [`Buffers::USUAL`], or twice what the clients have
    /// for themselves if that is more.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if it is too little for so many clients.
    pub fn new(bytes: Option<Bytes>, clients: u16) -> Result<Buffers, HostError> {
        let clients = u64::from(clients);
        let least = Buffers::LEAST.get().max(clients * OWN);
        let bytes = bytes.map_or(Buffers::USUAL.get().max(2 * clients * OWN), Bytes::get);
        if bytes < least {
            return Err(HostError::Invalid {
                what: "the memory for requests and replies of clients",
                value: Bytes::new(bytes).to_string(),
                accepted: format!(
                    "{} is the least for {clients} clients ({} for each, and {} in all); fewer clients \
                     (`--max-clients`) need less",
                    Bytes::new(least),
                    Bytes::new(OWN),
                    Buffers::LEAST
                ),
            });
        }
        Ok(Buffers { bytes, clients })
    }
}

impl Default for Buffers {
    /// For 128 clients.
    fn default() -> Buffers {
        Buffers { bytes: Buffers::USUAL.get(), clients: 128 }
    }
}

/// Use of the memory, while the loop runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Clients that chose an export and have not left.
    pub clients: u64,
    /// Clients that are not read from until they take replies.
    pub waiting: u64,
    /// Bytes that all clients hold.
    pub used: u64,
    /// Bytes that all clients may hold.
    pub bytes: u64,
}

/// [`Usage`], as other threads see it.
#[derive(Debug, Default)]
pub(super) struct SharedUsage {
    clients: AtomicU64,
    waiting: AtomicU64,
    used: AtomicU64,
    bytes: AtomicU64,
}

impl SharedUsage {
    pub(super) fn set(&self, usage: Usage) {
        let Usage { clients, waiting, used, bytes } = usage;
        self.clients.store(clients, Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.used.store(used, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Usage {
        Usage {
            clients: self.clients.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            used: self.used.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// The part of the memory that is taken.
#[derive(Debug)]
pub(super) struct Budget {
    buffers: Buffers,
    /// Clients that are connected.
    connected: u64,
    /// Bytes that clients hold beyond their own, and bytes in flight of clients that have left.
    taken: u64,
}

impl Budget {
    pub(super) fn new(buffers: Buffers) -> Budget {
        Budget { buffers, connected: 0, taken: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buffers.bytes
    }

    /// Counts anew: the bytes that each client holds, and the bytes in flight of those that have left.
    pub(super) fn count(&mut self, held: impl Iterator<Item = u64>, left: u64) {
        (self.connected, self.taken) = (0, left);
        for held in held {
            self.connected += 1;
            self.taken += held.saturating_sub(OWN);
        }
    }

    /// Bytes of a buffer that a client keeps from one request to the next: more where there are few clients.
    pub(super) fn kept(&self) -> usize {
        if self.share() >= KEPT_OF_SHARE * LONG_KEPT { LONG_KEPT as usize } else { CHUNK }
    }

    /// The shared bytes.
    fn shared(&self) -> u64 {
        self.buffers.bytes.saturating_sub(self.buffers.clients.max(self.connected) * OWN)
    }

    /// Most shared bytes that one client takes.
    fn share(&self) -> u64 {
        self.shared() / (self.connected + 1)
    }

    /// Whether a client that holds so much may take `needs` bytes more.
    pub(super) fn has_room(&self, held: u64, needs: u64) -> bool {
        let (before, after) = (held.saturating_sub(OWN), (held + needs).saturating_sub(OWN));
        after == 0 || after <= self.share() && self.taken + (after - before) <= self.shared()
    }

    /// Takes the bytes for the client, if it may have them.
    pub(super) fn take(&mut self, held: u64, needs: u64) -> bool {
        let room = self.has_room(held, needs);
        if room {
            self.taken += (held + needs).saturating_sub(OWN) - held.saturating_sub(OWN);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_core::rng::below;

    #[test]
    fn whatever_clients_take_the_sum_stays_within_the_budget_and_each_has_its_own() {
        for seed in 0..20 {
            let mut rng = Seed::new(seed).stream();
            let clients = 1 + below(&mut rng, 200) as u16;
            let buffers =
                Buffers::new(Some(Bytes::mib(100 + below(&mut rng, 400))), clients).expect("enough");
            let mut budget = Budget::new(buffers);
            let mut held = vec![0; usize::from(clients)];
            for _ in 0..2000 {
                let (one, needs) =
                    (below(&mut rng, held.len() as u64) as usize, 1 + below(&mut rng, 32 << 20));
                if below(&mut rng, 4) == 0 {
                    held[one] = below(&mut rng, held[one] + 1);
                    budget.count(held.iter().copied(), 0);
                } else if budget.take(held[one], needs) {
                    held[one] += needs;
                }
                let sum: u64 = held.iter().sum();
                assert!(sum <= buffers.bytes, "seed {seed}: {sum} of {} bytes", buffers.bytes);
                assert!(held[one] >= OWN || budget.has_room(held[one], OWN - held[one]), "seed {seed}");
            }
        }
    }

    #[test]
    fn one_client_may_have_the_largest_request_as_a_whole_and_leaves_others_as_much() {
        let mut budget = Budget::new(Buffers::default());
        budget.count([0].into_iter(), 0);
        assert!(budget.take(0, 2 * (32 << 20) + OWN), "as it comes, and as the drive has it");
        assert!(!budget.has_room(64 << 20, 64 << 20), "others may come");
        budget.count([96 << 20, 0].into_iter(), 0);
        assert!(budget.has_room(0, 32 << 20));
    }

    #[test]
    fn too_little_is_refused_with_what_is_enough() {
        for (bytes, clients, wanted) in
            [(63, 1, "64MiB is the least"), (300, 1000, "500MiB is the least for 1000")]
        {
            let refused = Buffers::new(Some(Bytes::mib(bytes)), clients).expect_err("too little").to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
        assert_eq!(Buffers::new(None, 128).expect("usual"), Buffers::default());
        assert_eq!(Buffers::new(None, 1000).expect("more").bytes, 1000 << 20);
    }
}
