//! The displays of a running campaign: progress bars (`progress`) or the live view (`watch`) on the terminal, and a
//! page for a browser (`serve`).

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::output;
use crate::progress::Bars;
use crate::serve::Server;
use crate::watch::Watch;
use lowtide_host::http::Hosts;
use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The displays of a run. Dropping it clears the terminal and closes the port.
pub struct Show {
    display: Box<dyn Progress>,
    server: Option<Server>,
}

impl Show {
    /// Begins to show a run of `cells` cells. The port of `--serve` is opened before anything is printed.
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
        let display: Box<dyn Progress> = match watch {
            Some(watch) => Box::new(watch),
            None => {
                let bars = Bars::new(cells);
                if arguments.watch {
                    bars.note(
                        "--watch needs a terminal of at least 80 columns and 24 lines; showing plain progress",
                    );
                }
                Box::new(bars)
            }
        };
        Ok(Show { display, server })
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
