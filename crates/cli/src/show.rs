//! What is shown while a campaign runs: progress or the live view on the terminal, and a page for a browser.
//!
//! Not here: how each is drawn; `progress`, `watch`, `serve`.

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::output;
use crate::progress::Shown;
use crate::serve::Server;
use crate::watch::Watch;
use lowtide_host::http::Hosts;
use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Everything that shows how a run goes.
pub struct Show {
    display: Box<dyn Display>,
    server: Option<Server>,
}

/// A terminal display that is removed at the end of the run.
trait Display: Progress {
    fn end(&self);
}

impl Display for Shown {
    fn end(&self) {
        self.finish();
    }
}

impl Display for Watch {
    fn end(&self) {
        self.finish();
    }
}

impl Show {
    /// Begins to show a run of so many cells. If a port was requested, it is opened before anything is
    /// printed.
    pub fn begin(
        arguments: &RunArguments,
        title: &str,
        cells: usize,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Show, Failure> {
        let hosts = || Hosts::new(&arguments.accept_host, "--accept-host");
        let serve = |address| Server::start(address, hosts(), &arguments.store);
        let server = arguments.serve.map(serve).transpose()?;
        if let Some(server) = &server {
            output::say(format_args!("live report at {}", server.url()));
        }
        let watch = if arguments.watch { Watch::begin(title, cells, Arc::clone(interrupt)) } else { None };
        let watched = watch.is_some();
        let display: Box<dyn Display> = match watch {
            Some(watch) => Box::new(watch),
            None => Box::new(Shown::new(cells)),
        };
        if arguments.watch && !watched {
            display
                .note("--watch needs a terminal of at least 80 columns and 24 lines; showing plain progress");
        }
        Ok(Show { display, server })
    }

    /// The campaign's progress listener.
    pub fn progress(&self) -> &dyn Progress {
        self
    }

    /// Takes everything off the screen, and closes the port.
    pub fn end(self) {
        self.display.end();
        drop(self.server);
    }
}

impl Progress for Show {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        self.display.cell(cell, stage, share, last);
    }
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        self.display.ended(cell, failure);
    }
    fn spared(&self, cells: usize) {
        self.display.spared(cells);
    }
    fn note(&self, text: &str) {
        self.display.note(text);
    }
    fn begun(&self, campaign: i64) {
        if let Some(server) = &self.server {
            server.add(campaign);
        }
    }
    fn so_far(&self, cell: &PlannedCell, judge: &dyn Fn() -> Verdict) {
        self.display.so_far(cell, judge);
    }
    fn judged(&self, cell: &PlannedCell, verdict: &Verdict) {
        self.display.judged(cell, verdict);
    }
}
