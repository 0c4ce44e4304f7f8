//! A small HTTP server for a few pages that people watch during a measurement ([`Server`]), with limits that keep its
//! clients from disturbing the measurement.
//!
//! ```text
//!                    one thread, poll(2)                      another thread
//! TcpListener ─► Connection: read ─► wait ─► write       PageCache ─► Site::render
//!                                     └──── page ────────────┘
//! ```
//!
//! # Limits
//!
//! | what | limit |
//! |---|---|
//! | connections | [`CONNECTIONS`], and none while the process uses half of its descriptors; others wait in the
//! kernel's queue | | request line and headers | 16 KiB and 64 headers; more is answered with 431 |
//! | body | none: 413, or 405 for other methods than GET and HEAD |
//! | time | 5 s for a head, 10 s for rendering, 30 s for an answer, 15 s between requests; 5 minutes and 100 requests
//! a connection | | memory | 32 MiB of pages that are being sent; 16 KiB of input and 256 KiB in the kernel for each
//! connection | | processor time | 50 passes a second, which write 1 MiB each; a twentieth of a core for rendering |
//!
//! At the limit of connections, a new connection replaces the one that has been idle or stuck longest, so clients
//! that send or read nothing do not keep other clients out. Requests for hosts that are not in [`Hosts`] are answered
//! with 403.
//!
//! # Not supported
//! TLS, passwords, bodies, ranges, compression and pipelining. A second request that arrives with the first closes
//! the connection after the first answer.

mod cache;
mod connection;
pub mod head;
mod hosts;
mod server;
#[cfg(test)]
mod tests;

pub use cache::{Page, Rendering, Site};
pub use hosts::{BadHost, Hosts};
pub use server::{CONNECTIONS, Server};
