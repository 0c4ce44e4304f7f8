//! The negotiation of NBD, byte by byte: options, metadata contexts, limits, TLS, listening, and random sessions; and
//! what the server does with requests: memory, pieces, parts of blocks.
//!
//! The client here is written from the text of the protocol and shares only its numbers with the server. Not here: real
//! clients, which `crates/cli/tests/nbd` runs.

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
