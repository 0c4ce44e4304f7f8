//! Writes the load of an experiment as a fio job file, with one section per cell, run in order (`stonewall`).
//!
//! Settings that fio cannot express become comments. A block device as the target also becomes a comment, because fio
//! would overwrite it without confirmation. Inserts and databases have no job file, because they are not a list of
//! requests. lowtide does not run the job.

use crate::experiment::{
    Fill, Length, Load, Pace, Preparation, Purge, Replay, ReplayPace, Sync, Target, Work,
};
use crate::plan::{Plan, PlannedCell};
use lowtide_core::workload::{Access, Blocks, Distribution};
use std::fmt::Write;

/// The error for a load that is not a list of requests, so that fio cannot run it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} no requests that fio could make")]
pub struct NotRequests(&'static str);

/// The job file of a plan.
///
/// # Errors
/// [`NotRequests`] if the load consists of inserts or transactions.
pub fn fio_job(plan: &Plan) -> Result<String, NotRequests> {
    let experiment = &plan.experiment;
    match experiment.load.work {
        Work::Inserts(_) => return Err(NotRequests("rows inserted into an index are")),
        Work::Transactions(_) => return Err(NotRequests("transactions of a database are")),
        Work::Requests | Work::Trace(_) => {}
    }
    let mut job = Job::default();
    job.comment(&format!("{} of lowtide {}, as a job of fio", experiment.name, env!("CARGO_PKG_VERSION")));
    job.line("[global]");
    job.line("ioengine=io_uring");
    job.line("direct=1");
    job.line("thread");
    job.line("group_reporting");
    job.target(&experiment.target);
    if !experiment.load.events.is_empty() {
        job.comment("events (`[[event]]`) are left out: they only happen to models");
    }
    job.comment("lowtide may draw a block more than once, and writes random bytes:");
    job.line("norandommap");
    job.line("refill_buffers");
    for cell in &plan.cells {
        job.cell(cell);
    }
    Ok(job.0)
}

/// The text of a job file.
#[derive(Default)]
struct Job(String);

impl Job {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn option(&mut self, name: &str, value: impl std::fmt::Display) {
        writeln!(self.0, "{name}={value}").expect("writing to memory does not fail");
    }

    fn comment(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(&format!("; {line}")));
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::File(path) => self.option("filename", escaped(&path.to_string_lossy())),
            Target::Directory(path) => {
                self.option("directory", escaped(&path.to_string_lossy()));
                self.option("filename", "lowtide-fio.dat");
            }
            Target::Block(path) => {
                self.comment(
                    "the next line would overwrite the device without confirmation; the job uses a file instead:",
                );
                self.comment(&format!("filename={}", escaped(&path.to_string_lossy())));
                self.option("filename", "lowtide-fio.dat");
            }
            Target::Device(name) => {
                self.comment(&format!("the target was the model {name}; name your own file or device:"));
                self.option("filename", "lowtide-fio.dat");
            }
        }
    }

    fn cell(&mut self, cell: &PlannedCell) {
        let load = &cell.settings.load;
        self.line("");
        self.line(&format!("[cell-{}]", cell.index));
        self.comment(&cell.label());
        self.line("stonewall");
        self.preparation(cell.purge_before, &cell.settings.preparation);
        self.option("size", cell.data.get());
        match load.work.trace() {
            Some(replay) => self.replay(replay, load),
            None => self.requests(load),
        }
        match load.length {
            Length::For(time) => self.time(time.as_secs_f64()),
            Length::UntilSteady { max, precision } => {
                self.comment(&format!(
                    "until = \"steady\", precision {precision}: fio's `steadystate` is a different rule; this is the \
                     longest duration"
                ));
                self.time(max.as_secs_f64());
            }
            Length::Requests(_) if load.work.trace().is_some() => {}
            Length::Requests(number) => {
                // fio counts requests per job.
                let each = number.div_ceil(u64::from(load.threads.max(1)));
                self.option("number_ios", each);
                self.option("io_size", each.saturating_mul(load.block.get()));
            }
        }
    }

    fn preparation(&mut self, purge_before: Purge, preparation: &Preparation) {
        for (key, purge) in [("purge-before", purge_before), ("purge", preparation.purge)] {
            if purge != Purge::None {
                self.comment(&format!("{key} = \"{purge}\": fio cannot do this"));
            }
        }
        if preparation.layout != crate::experiment::Layout::default() {
            self.comment("layout: fio uses the existing filesystem, partition and reserve");
        }
        match preparation.fill {
            Fill::None => {}
            fill => self.comment(&format!(
                "fill = \"{fill}\": fio only writes a missing file once, and never a device"
            )),
        }
        if preparation.idle.get() > 0 {
            self.comment(&format!("idle = \"{}\": in fio, before each section", preparation.idle));
            self.option("startdelay", preparation.idle.as_secs_f64().ceil() as u64);
        }
    }

    fn requests(&mut self, load: &Load) {
        let workload = load.workload();
        let (random, share) = (workload.access == Access::Random, workload.read_share);
        let direction = match (random, share) {
            (true, 1.0) => "randread",
            (true, 0.0) => "randwrite",
            (true, _) => "randrw",
            (false, 1.0) => "read",
            (false, 0.0) => "write",
            (false, _) => "rw",
        };
        self.option("rw", direction);
        if direction.ends_with("rw") {
            self.rounded("rwmixread", share * 100.0, "mix");
        }
        match &workload.blocks {
            None => self.option("bs", load.block.get()),
            Some(blocks) => self.sizes(blocks),
        }
        self.option("iodepth", load.depth);
        self.option("numjobs", load.threads);
        match workload.distribution {
            Distribution::Uniform => {}
            Distribution::Zipf { exponent } => self.option("random_distribution", format!("zipf:{exponent}")),
            Distribution::Zones(zones) => {
                let access = self.percents("access of the zones", zones.iter().map(|zone| zone.access));
                let data = self.percents("data of the zones", zones.iter().map(|zone| zone.data));
                let zones = access.iter().zip(&data).map(|(access, data)| format!("{access}/{data}"));
                let zones = zones.collect::<Vec<_>>().join(":");
                self.option("random_distribution", format!("zoned:{zones}"));
            }
        }
        match load.sync {
            Sync::None => {}
            // With O_DIRECT, this is equivalent to RWF_DSYNC for each write.
            Sync::Fua => self.option("sync", "dsync"),
            Sync::Flush => self.option("fdatasync", 1),
        }
        if !random && load.streams > 1 {
            self.comment(&format!("streams = {}: in fio, each job reads or writes one stream", load.streams));
        }
        if !random && load.threads > 1 {
            self.comment(
                "in lowtide, threads share a stream; in fio, each has its own from the beginning of the file",
            );
        }
        if load.pace != Pace::Closed {
            self.rounded("rate_iops", load.rate / f64::from(load.threads.max(1)), "rate, for each job");
            if load.pace == Pace::Poisson {
                self.option("rate_process", "poisson");
            }
            self.comment("lowtide measures latency from the intended start; fio from the actual start");
        }
    }

    fn sizes(&mut self, blocks: &Blocks) {
        let percents = self.percents("share of the blocks", blocks.iter().map(|block| block.share));
        let sizes =
            blocks.iter().zip(percents).map(|(block, percent)| format!("{}/{percent}", block.size.get()));
        let sizes = sizes.collect::<Vec<_>>().join(":");
        self.option("bssplit", sizes);
        self.comment("lowtide aligns each request to its own size; fio to the smallest size:");
        self.option("blockalign", blocks.granule().get());
    }

    fn replay(&mut self, replay: &Replay, load: &Load) {
        self.comment(
            "fio reads only its own iologs, with the files that they name, and binary files of blktrace",
        );
        self.option("read_iolog", escaped(&replay.path.to_string_lossy()));
        if replay.pace == ReplayPace::AsFastAsPossible {
            self.option("replay_no_stall", 1);
            self.option("iodepth", load.depth);
        }
        if replay.wrap {
            self.comment("wrap = true: fio cannot do this");
        }
    }

    /// Writes an option that fio accepts only as a whole number. If `value` is not whole, it is rounded, and a
    /// comment names it `label` and gives the exact value.
    fn rounded(&mut self, name: &str, value: f64, label: &str) {
        let whole = value.round().max(1.0);
        if (whole - value).abs() > 1e-9 {
            self.comment(&format!("{label} is {value}: fio accepts only whole numbers"));
        }
        self.option(name, whole as u64);
    }

    /// Rounds shares to whole percents that sum to 100. If rounding changed a share, a comment names the shares
    /// `label` and gives the exact values.
    fn percents(&mut self, label: &str, shares: impl Iterator<Item = f64>) -> Vec<u64> {
        let exact: Vec<f64> = shares.map(|share| share * 100.0).collect();
        let mut percents: Vec<u64> = exact.iter().map(|percent| percent.round() as u64).collect();
        if percents.iter().zip(&exact).any(|(whole, exact)| (*whole as f64 - exact).abs() > 1e-9) {
            let exact: Vec<String> = exact.iter().map(|percent| format!("{:.4}", percent)).collect();
            self.comment(&format!("{label}: {} %; fio accepts only whole numbers", exact.join(", ")));
        }
        // The largest percentage absorbs the rounding error.
        let sum: u64 = percents.iter().sum();
        if let Some(largest) = percents.iter_mut().max() {
            *largest = (*largest + 100).saturating_sub(sum);
        }
        percents
    }

    fn time(&mut self, seconds: f64) {
        self.line("time_based");
        self.option("runtime", format!("{}ms", (seconds * 1000.0).ceil().max(1.0) as u64));
    }
}

/// Escapes colons, because fio ends a file name at a colon.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}
