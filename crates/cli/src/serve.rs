//! The growing report for a browser: a small HTTP server on a thread of its own, which reads the store.
//!
//! ```text
//! GET /             the report as of now; the page asks again every few seconds and stays where it is
//! GET /report.json  the same as JSON
//! ```
//!
//! HEAD works like GET; other methods are 405, other paths 404. On a loopback address only requests that name one are
//! answered, so that no web page elsewhere reads the report through a name of its own. Leaves out TLS and passwords:
//! whoever reaches the address reads the report.

use crate::failure::Failure;
use lowtide_lab::ask;
use lowtide_lab::compare::Question;
use lowtide_lab::report::Report;
use lowtide_lab::store::Store;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tiny_http::{Header, Method, Request, Response};

/// What makes the page follow the run.
const FOLLOW: &str = include_str!("follow.html");

/// A server that runs.
pub struct Server {
    http: Arc<tiny_http::Server>,
    address: SocketAddr,
    campaigns: Arc<Mutex<Vec<i64>>>,
}

impl Server {
    /// Listens at `address`, and serves what there is in the store of the campaigns that are added.
    pub fn start(address: SocketAddr, store: &Path) -> Result<Server, Failure> {
        let fail = |error: &dyn std::fmt::Display| {
            Failure::usage(
                format_args!("nothing can be served at {address}: {error}"),
                "name another port with `--serve PORT`; 0 takes any that is free",
            )
        };
        let listener = TcpListener::bind(address).map_err(|error| fail(&error))?;
        let address = listener.local_addr().map_err(|error| fail(&error))?;
        let http = tiny_http::Server::from_listener(listener, None).map_err(|error| fail(&error))?;
        let server = Server { http: Arc::new(http), address, campaigns: Arc::default() };
        let (http, campaigns) = (Arc::clone(&server.http), Arc::clone(&server.campaigns));
        let mut pages = Pages { store: store.to_owned(), campaigns, made: None };
        std::thread::spawn(move || {
            // Ends when the server is stopped.
            while let Ok(request) = http.recv() {
                answer(request, &mut pages, address.ip());
            }
        });
        Ok(server)
    }

    /// Where a browser finds it.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// A campaign to be shown.
    pub fn add(&self, campaign: i64) {
        self.campaigns.lock().expect("nobody panics while holding it").push(campaign);
    }

    /// Stops listening.
    pub fn stop(self) {
        self.http.unblock();
    }
}

fn answer(request: Request, pages: &mut Pages, own: IpAddr) {
    let path = request.url().split(['?', '#']).next().unwrap_or_default().to_owned();
    let known = ["/", "/report.json"].contains(&path.as_str());
    let reads = matches!(request.method(), Method::Get | Method::Head);
    let (code, kind, text) = match () {
        () if own.is_loopback() && !names_loopback(&request) => {
            (403, PLAIN, "this report is only for this machine\n".to_owned())
        }
        () if !known => (404, PLAIN, "there is / and /report.json\n".to_owned()),
        () if !reads => (405, PLAIN, "only GET and HEAD\n".to_owned()),
        () => match pages.now() {
            Err(reason) => (503, PLAIN, format!("{reason}\n")),
            Ok(report) if path == "/" => (200, "text/html; charset=utf-8", following(&report.html())),
            Ok(report) => (200, "application/json", report.json()),
        },
    };
    // The length is known, so that simple clients need not put pieces together.
    let whole = Response::from_string(text).with_chunked_threshold(usize::MAX);
    let mut response = whole.with_status_code(code);
    let mut headers =
        vec![("Content-Type", kind), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];
    if code == 405 {
        headers.push(("Allow", "GET, HEAD"));
    }
    for (name, value) in headers {
        response.add_header(Header::from_bytes(name, value).expect("headers are plain ASCII"));
    }
    // A browser that went away needs no answer.
    let _ = request.respond(response);
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// Whether the address that was typed is one of this machine: a number, or `localhost`.
fn names_loopback(request: &Request) -> bool {
    let host = request.headers().iter().find(|header| header.field.equiv("Host"));
    host.is_none_or(|header| is_loopback(header.value.as_str()))
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// The page with what makes it follow the run.
fn following(page: &str) -> String {
    page.replacen("</head>", &format!("{FOLLOW}</head>"), 1)
}

/// The report, made again when there is something new.
struct Pages {
    store: PathBuf,
    campaigns: Arc<Mutex<Vec<i64>>>,
    /// The last one, and of how many cells.
    made: Option<(Vec<(i64, u32)>, Report)>,
}

impl Pages {
    /// The report as of now, or why there is none.
    fn now(&mut self) -> Result<&Report, String> {
        let wanted = self.campaigns.lock().expect("nobody panics while holding it").clone();
        if wanted.is_empty() {
            return Err("the campaign has not begun yet".to_owned());
        }
        let store = Store::open_existing(&self.store).map_err(|error| error.to_string())?;
        let listed = store.campaigns().map_err(|error| error.to_string())?;
        let state: Vec<(i64, u32)> =
            listed.iter().filter(|it| wanted.contains(&it.id)).map(|it| (it.id, it.done)).collect();
        if self.made.as_ref().is_none_or(|(known, _)| *known != state) {
            self.made = Some((state, make(&store, &wanted)?));
        }
        self.made.as_ref().map(|(_, report)| report).ok_or_else(String::new)
    }
}

fn make(store: &Store, campaigns: &[i64]) -> Result<Report, String> {
    let load = |number: &i64| store.load(*number).map_err(|error| error.to_string());
    let loaded = campaigns.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    match (campaigns, loaded.as_slice()) {
        ([number], [campaign]) => {
            ask::report(store, *number, campaign).map_err(|_| "the report cannot be made yet".to_owned())
        }
        _ => Ok(Report::compare(&loaded.iter().collect::<Vec<_>>(), &Question::default()).0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:80", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "10.0.0.1:80", "", "localhost.evil.example"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn the_page_follows_once() {
        let page = following("<html><head></head><body></head></body>");
        assert_eq!(page.matches("<script>").count(), 1);
    }
}
