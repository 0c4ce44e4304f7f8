//! Byte-level tests of NBD. Negotiation: options, metadata contexts, limits, TLS, listening, and random sessions.
//! Transmission: memory, split requests, and unaligned requests.
//!
//! The client is written from the text of the protocol, and shares only numeric constants with the server. Real
//! clients are tested in `crates/cli/tests/nbd`.

mod allocations;
mod client;
mod limits;
mod listen;
mod memory;
mod meta_context;
mod options;
mod random;
mod served;
mod tls;
