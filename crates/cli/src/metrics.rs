//! Counters of live drives for Prometheus. `lowtide_host::http` has the server and its limits.
//!
//! # Not handled
//! TLS and passwords: every client that reaches the address by one of its host names can read the counters.

use crate::failure::Failure;
use lowtide_host::http::{Hosts, Page, Rendering, Server, Site};
use lowtide_host::live::Handle;
use lowtide_live::{LiveDrive, prometheus};
use std::net::{SocketAddr, TcpListener};

const PAGES: [Page; 1] = [Page { path: "/metrics", kind: "text/plain; version=0.0.4; charset=utf-8" }];

/// Serves the counters at `address` until the server is dropped.
pub fn serve(address: SocketAddr, hosts: Hosts, handle: Handle<LiveDrive>) -> Result<Server, Failure> {
    let server =
        TcpListener::bind(address).and_then(|listener| Server::start(listener, hosts, Counters { handle }));
    server.map_err(|error| {
        let message = format!("cannot serve counters at {address}: {error}");
        Failure::usage(message, "name another port with `--metrics PORT`; 0 takes any free port")
    })
}

struct Counters {
    handle: Handle<LiveDrive>,
}

impl Site for Counters {
    fn pages(&self) -> &'static [Page] {
        &PAGES
    }

    fn render(&mut self, _: &Page) -> Result<Rendering, String> {
        let stats = self
            .handle
            .call(|drives, now_ns| drives.iter().map(|drive| drive.stat(now_ns)).collect::<Vec<_>>());
        let mut stats = stats.ok_or("the server is shutting down")?;
        let clients = self.handle.usage();
        stats.iter_mut().for_each(|stat| stat.clients = Some(clients));
        Ok(Rendering::New(prometheus(&stats).into_bytes()))
    }
}
