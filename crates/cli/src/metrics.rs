//! Counters of live drives for Prometheus: a small HTTP server on a thread of its own.
//!
//! Leaves out TLS and passwords: whoever reaches the address reads the counters.

use crate::failure::Failure;
use lowtide_host::live::Handle;
use lowtide_lab::live::{LiveDrive, prometheus};
use std::net::SocketAddr;
use tiny_http::{Header, Method, Response};

/// Serves them at an address; where it listens.
pub fn serve(address: SocketAddr, handle: Handle<LiveDrive>) -> Result<SocketAddr, Failure> {
    let fail = |error: &dyn std::fmt::Display| {
        let message = format!("no counters can be served at {address}: {error}");
        Failure::usage(message, "name another port with `--metrics PORT`; 0 takes any that is free")
    };
    let http = tiny_http::Server::http(address).map_err(|error| fail(&error))?;
    let address = http.server_addr().to_ip().unwrap_or(address);
    std::thread::spawn(move || {
        for request in http.incoming_requests() {
            let (code, text) = match (request.method(), request.url()) {
                (Method::Get | Method::Head, "/metrics") => {
                    let stats = handle.call(|drives, now_ns| {
                        drives.iter().map(|drive| drive.stat(now_ns)).collect::<Vec<_>>()
                    });
                    stats.map_or((503, "the server is going away\n".to_owned()), |stats| {
                        (200, prometheus(&stats))
                    })
                }
                (_, "/metrics") => (405, "only GET and HEAD\n".to_owned()),
                _ => (404, "there is /metrics\n".to_owned()),
            };
            let kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8";
            let response = Response::from_string(text).with_status_code(code);
            // A client that went away is no failure.
            let _ = request.respond(response.with_header(kind.parse::<Header>().expect("a header")));
        }
    });
    Ok(address)
}
