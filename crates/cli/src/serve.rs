//! The growing report of `run --serve`, read from the store.
//!
//! ```text
//! GET /             the current report, as a page that updates itself every few seconds
//! GET /report.json  the current report as JSON
//! ```
//!
//! The report is rendered on request, and only if the campaign has changed. `lowtide_host::http` has the server and
//! its limits.
//!
//! # Not handled
//! TLS and passwords: every client that reaches the address by one of its host names can read the report.

use crate::failure::Failure;
use lowtide_host::http::{self, Hosts, Page, Rendering, Site};
use lowtide_lab::store::Store;
use lowtide_report::Report;
use lowtide_report::compare::Question;
use lowtide_studies::ask;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Script that updates the page during the run.
const FOLLOW: &str = include_str!("follow.html");
const PAGES: [Page; 2] = [
    Page { path: "/", kind: "text/html; charset=utf-8" },
    Page { path: "/report.json", kind: "application/json" },
];

/// A server of the report that runs until it is dropped.
pub struct Server {
    http: http::Server,
    campaigns: Arc<Mutex<Vec<i64>>>,
}

impl Server {
    /// Listens at `address`, and serves the report of the added campaigns.
    pub fn start(address: SocketAddr, hosts: Hosts, store: &Path) -> Result<Server, Failure> {
        let campaigns = Arc::<Mutex<Vec<i64>>>::default();
        let growing = Growing {
            store: store.to_owned(),
            campaigns: Arc::clone(&campaigns),
            report: None,
            sent: BTreeMap::new(),
        };
        let http =
            TcpListener::bind(address).and_then(|listener| http::Server::start(listener, hosts, growing));
        let http = http.map_err(|error| {
            Failure::usage(
                format_args!("cannot listen at {address}: {error}"),
                "name another port with `--serve PORT`; 0 takes any free port",
            )
        })?;
        Ok(Server { http, campaigns })
    }

    /// The address for a browser.
    pub fn url(&self) -> String {
        format!("http://{}/", self.http.address())
    }

    /// Adds a campaign to the report.
    pub fn add(&self, campaign: i64) {
        self.campaigns.lock().expect(UNPOISONED).push(campaign);
    }
}

const UNPOISONED: &str = "no thread panics while holding it";

/// Inserts the script into a page.
fn following(page: &str) -> String {
    page.replacen("</head>", &format!("{FOLLOW}</head>"), 1)
}

/// Progress of a campaign: its number, and its numbers of done, failed and predicted cells.
type Progress = (i64, [u32; 3]);

/// The growing report.
struct Growing {
    store: PathBuf,
    campaigns: Arc<Mutex<Vec<i64>>>,
    /// The last report, with the progress it shows.
    report: Option<(Vec<Progress>, Report)>,
    /// The progress that each page showed last.
    sent: BTreeMap<&'static str, Vec<Progress>>,
}

impl Site for Growing {
    fn pages(&self) -> &'static [Page] {
        &PAGES
    }

    fn render(&mut self, page: &Page) -> Result<Rendering, String> {
        let wanted = self.campaigns.lock().expect(UNPOISONED).clone();
        if wanted.is_empty() {
            return Err("the campaign has not begun yet".to_owned());
        }
        let store = Store::open_existing(&self.store).map_err(|error| error.to_string())?;
        let listed = store.campaigns().map_err(|error| error.to_string())?;
        let shown = listed.iter().filter(|it| wanted.contains(&it.id));
        let now: Vec<Progress> = shown.map(|it| (it.id, [it.done, it.failed, it.spared])).collect();
        if self.sent.get(page.path) == Some(&now) {
            return Ok(Rendering::Unchanged);
        }
        let report = match self.report.take() {
            Some((of, report)) if of == now => report,
            _ => make(&store, &wanted)?,
        };
        let bytes = if page.path == "/" { following(&report.html()) } else { report.json() };
        self.report = Some((now.clone(), report));
        self.sent.insert(page.path, now);
        Ok(Rendering::New(bytes.into_bytes()))
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
    fn the_script_is_inserted_once() {
        let page = following("<html><head></head><body></head></body>");
        assert_eq!(page.matches("<script>").count(), 1);
    }
}
