//! The memory that all clients of a server share ([`Buffers`], [`Budget`]).
//!
//! ```text
//!   bytes = clients * OWN  +  shared; one of n clients takes at most shared / (n + 1)
//! ```
//!
//! Each client has [`OWN`] reserved bytes. They suffice for any request, because a request that does not fit is
//! carried out in pieces ([`super::long`]). Memory beyond them comes from the shared part. The server stops reading
//! from a client whose next request does not fit until the client has taken replies. A client that takes no replies
//! therefore never blocks another one.
//!
//! The budget covers input and reply buffers, the data of requests in flight, an allowance per request, and the
//! state of TLS.
//!
//! # Not counted
//! Memory of the drives (contents, model, map, undo data), socket buffers of the kernel, and negotiations, whose
//! number is limited.

use super::buffer::CHUNK;
use crate::error::HostError;
use lowtide_core::Bytes;
use serde::{Deserialize, Serialize};

/// Bytes reserved for each client.
pub(super) const OWN: u64 = 512 << 10;

/// Bytes for a request in flight, without its data.
pub(super) const REQUEST: u64 = 192;

/// Bytes of the TLS state of a client.
pub(super) const TLS: u64 = 128 << 10;

/// Size of the buffer that an idle client keeps, if its share is at least [`KEPT_OF_SHARE`] times this size.
const LONG_KEPT: u64 = 1 << 20;
const KEPT_OF_SHARE: u64 = 8;

/// The memory for requests and replies of all clients of a server, and the maximum number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    bytes: u64,
    clients: u64,
}

impl Buffers {
    /// The default for few clients.
    pub const USUAL: Bytes = Bytes::mib(256);

    /// The minimum: twice the largest request, for the input buffer and for the drive.
    pub const LEAST: Bytes = Bytes::mib(64);

    /// Memory for `clients` clients. The default for `bytes` is [`Buffers::USUAL`], or twice the memory reserved for
    /// the clients if that is more.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if `bytes` is too little for `clients`.
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
    /// The memory for 128 clients.
    fn default() -> Buffers {
        Buffers { bytes: Buffers::USUAL.get(), clients: 128 }
    }
}

/// The clients of a server and the memory of their requests and replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Clients that chose an export and have not left.
    pub connected: u64,
    /// Clients from which the server does not read until they take replies.
    pub waiting: u64,
    /// Bytes that all clients hold.
    pub buffers_used_bytes: u64,
    /// Bytes that all clients may hold.
    pub buffers_bytes: u64,
}

/// The memory in use.
#[derive(Debug)]
pub(super) struct Budget {
    buffers: Buffers,
    /// Clients that are connected.
    connected: u64,
    /// Bytes that clients hold beyond their reserved ones, and bytes in flight of clients that have left.
    taken: u64,
}

impl Budget {
    pub(super) fn new(buffers: Buffers) -> Budget {
        Budget { buffers, connected: 0, taken: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.buffers.bytes
    }

    /// Recounts from the bytes that each client holds, and the bytes in flight of clients that have left.
    pub(super) fn count(&mut self, held: impl Iterator<Item = u64>, left: u64) {
        (self.connected, self.taken) = (0, left);
        for held in held {
            self.connected += 1;
            self.taken += held.saturating_sub(OWN);
        }
    }

    /// The size of the buffer that a client keeps between requests: larger if there are few clients.
    pub(super) fn kept(&self) -> usize {
        if self.share() >= KEPT_OF_SHARE * LONG_KEPT { LONG_KEPT as usize } else { CHUNK }
    }

    fn shared(&self) -> u64 {
        self.buffers.bytes.saturating_sub(self.buffers.clients.max(self.connected) * OWN)
    }

    /// The most shared bytes for one client.
    fn share(&self) -> u64 {
        self.shared() / (self.connected + 1)
    }

    /// Returns whether a client that holds `held` bytes may take `needs` more.
    pub(super) fn has_room(&self, held: u64, needs: u64) -> bool {
        let (before, after) = (held.saturating_sub(OWN), (held + needs).saturating_sub(OWN));
        after == 0 || after <= self.share() && self.taken + (after - before) <= self.shared()
    }

    /// Takes the bytes if there is room ([`Budget::has_room`]), and returns whether there was.
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
    fn clients_never_exceed_the_budget_and_each_has_its_reserved_bytes() {
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
    fn one_client_may_hold_the_largest_request_and_leaves_as_much_for_others() {
        let mut budget = Budget::new(Buffers::default());
        budget.count([0].into_iter(), 0);
        assert!(budget.take(0, 2 * (32 << 20) + OWN), "the input buffer and the drive");
        assert!(!budget.has_room(64 << 20, 64 << 20), "the shared part is divided");
        budget.count([96 << 20, 0].into_iter(), 0);
        assert!(budget.has_room(0, 32 << 20));
    }

    #[test]
    fn too_little_memory_is_refused_with_the_minimum() {
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
