//! `[workload]`: the requests to the target, the length of the measurement, and the rule for steady state.
//!
//! A pattern is an access (`random`, `sequential`) and a direction: `read`, `write`, or `mixed`, whose share of
//! reads is `mix`. `random` and `sequential` alone mean the mixed patterns. `crate::load` runs the load.
//! Databases are in module `oltp`.

use super::event::Event;
use super::length::{self, Length};
use super::level::{FactorName, Level};
use super::read::{Entry, Table};
use super::replay::{self, ReplayPace};
use super::schema::{self, Keys};
use super::shares;
use super::words::words;
use super::work::Work;
use lowtide_core::trace::Pacing;
use lowtide_core::workload::{self, Access, Arrival, Blocks, Distribution};
use lowtide_core::{Bytes, Nanos, Workload};
use serde::{Deserialize, Serialize};

words! {
    /// The access and the direction of requests.
    Pattern, "pattern";
    /// Reads at consecutive addresses.
    SequentialRead = "sequential-read",
    /// Writes at consecutive addresses.
    SequentialWrite = "sequential-write",
    /// Reads at random addresses.
    RandomRead = "random-read",
    /// Writes at random addresses.
    RandomWrite = "random-write",
    /// Reads and writes at consecutive addresses.
    SequentialMixed = "sequential-mixed" | "sequential",
    /// Reads and writes at random addresses.
    RandomMixed = "random-mixed" | "random",
}

impl Pattern {
    /// Sequential or random.
    pub fn access(self) -> Access {
        match self {
            Pattern::SequentialRead | Pattern::SequentialWrite | Pattern::SequentialMixed => {
                Access::Sequential
            }
            Pattern::RandomRead | Pattern::RandomWrite | Pattern::RandomMixed => Access::Random,
        }
    }
    /// Returns whether the share of reads comes from `mix`.
    pub fn is_mixed(self) -> bool {
        matches!(self, Pattern::SequentialMixed | Pattern::RandomMixed)
    }
}

words! {
    /// When requests are issued.
    Pace, "arrival";
    /// When an earlier request completes.
    Closed = "closed",
    /// At even intervals.
    Fixed = "fixed",
    /// At exponentially distributed intervals.
    Poisson = "poisson",
}

words! {
    /// When a write counts as complete.
    Sync, "sync";
    /// When the device acknowledges it.
    None = "none",
    /// When it is durable, by forced unit access.
    Fua = "fua",
    /// When a flush after it completes.
    Flush = "flush",
}

words! {
    /// The rule that finds the steady window.
    SteadyRule, "steady rule";
    /// The rule of lowtide, which allows for the honeymoon of a fresh drive.
    Lowtide = "lowtide",
    /// The SNIA Performance Test Specification's: five rounds, excursion ≤ 20 %, slope × span ≤ 10 %.
    Snia = "snia",
}

/// A load, with every default filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The access pattern.
    pub pattern: Pattern,
    /// The share of reads of a mixed pattern; other patterns ignore it.
    pub mix: f64,
    /// Bytes of each request; if there are several sizes, bytes of the largest request.
    pub block: Bytes,
    /// The sizes of requests with the share of each size, if there are several.
    pub blocks: Option<Blocks>,
    /// Bytes of data under test; if absent, `utilisation` determines them.
    pub file_size: Option<Bytes>,
    /// The data as a share of the target's space for data, in (0, 1]. Without `file_size` and `utilisation`, 1.
    pub utilisation: Option<f64>,
    /// Threads that issue requests.
    pub threads: u32,
    /// Requests that each thread keeps in flight.
    pub depth: u32,
    /// Streams of a sequential pattern.
    pub streams: u32,
    /// The distribution of the addresses of a random pattern.
    pub distribution: Distribution,
    /// When a write counts as complete.
    pub sync: Sync,
    /// When requests are issued.
    pub pace: Pace,
    /// Requests per second of an open loop; a closed loop ignores it.
    pub rate: f64,
    /// Length of the load before each pause; only with a duration.
    pub burst: Option<Nanos>,
    /// Idle time of the target after each burst.
    pub pause: Nanos,
    /// When the measurement ends.
    pub length: Length,
    /// The length of one row of the time series.
    pub interval: Nanos,
    /// The rule that finds the steady window.
    pub steady: SteadyRule,
    /// The work: requests of the pattern, or an alternative.
    #[serde(flatten)]
    pub work: Work,
    /// Events of the device during the load, in order of time.
    #[serde(skip)]
    pub events: Vec<Event>,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            pattern: Pattern::RandomWrite,
            mix: 0.5,
            block: Bytes::kib(4),
            blocks: None,
            file_size: None,
            utilisation: None,
            threads: 1,
            depth: 1,
            streams: 1,
            distribution: Distribution::Uniform,
            sync: Sync::None,
            pace: Pace::Closed,
            rate: 1.0,
            burst: None,
            pause: Nanos::ZERO,
            length: Length::For(Nanos::from_secs(60)),
            interval: Nanos::from_secs(10),
            steady: SteadyRule::Lowtide,
            work: Work::Requests,
            events: Vec::new(),
        }
    }
}

impl Load {
    /// The workload that generates the requests.
    pub fn workload(&self) -> Workload {
        let access = self.pattern.access();
        Workload {
            access,
            read_share: match self.pattern {
                Pattern::SequentialRead | Pattern::RandomRead => 1.0,
                Pattern::SequentialWrite | Pattern::RandomWrite => 0.0,
                Pattern::SequentialMixed | Pattern::RandomMixed => self.mix,
            },
            distribution: match access {
                Access::Random => self.distribution.clone(),
                Access::Sequential => Distribution::Uniform,
            },
            block: self.block,
            blocks: self.blocks.clone(),
            threads: self.threads,
            depth: self.depth,
            streams: self.streams,
            arrival: match self.pace {
                Pace::Closed => Arrival::Closed,
                Pace::Fixed => Arrival::Fixed { per_second: self.rate },
                Pace::Poisson => Arrival::Poisson { per_second: self.rate },
            },
            sync: match self.sync {
                Sync::None => workload::Sync::None,
                Sync::Fua => workload::Sync::Fua,
                Sync::Flush => workload::Sync::Flush,
            },
        }
    }

    /// When the requests of its trace are issued; `None` without a trace.
    pub fn pacing(&self) -> Option<Pacing> {
        self.work.trace().map(|replay| match replay.pace {
            ReplayPace::Recorded => Pacing::Recorded,
            ReplayPace::AsFastAsPossible => Pacing::AsFastAsPossible { depth: self.depth },
        })
    }

    /// The length of a burst and of the pause after it, if the load has pauses.
    pub fn bursts(&self) -> Option<(Nanos, Nanos)> {
        self.burst.map(|burst| (burst, self.pause)).filter(|(_, pause)| *pause > Nanos::ZERO)
    }

    /// The maximum duration of a measurement, including pauses; `None` if it ends after a number of requests.
    pub fn longest(&self) -> Option<Nanos> {
        let longest = self.length.longest()?;
        let paused = self.bursts().map_or(0, |(burst, pause)| {
            (longest.get().div_ceil(burst.get().max(1)) - 1).saturating_mul(pause.get())
        });
        Some(Nanos::new(longest.get().saturating_add(paused)))
    }

    /// Applies a factor's level, if it is a setting of the load.
    pub(super) fn set(&mut self, level: &Level) {
        match level {
            Level::FileSize(size) => (self.file_size, self.utilisation) = (Some(*size), None),
            Level::Utilisation(share) => (self.file_size, self.utilisation) = (None, Some(*share)),
            Level::Threads(threads) | Level::Terminals(threads) => self.threads = *threads,
            Level::Depth(depth) => self.depth = *depth,
            Level::Block(block) => self.block = *block,
            Level::Pause(pause) => self.pause = *pause,
            Level::Pattern(pattern) => self.pattern = *pattern,
            Level::Mix(mix) => self.mix = *mix,
            Level::Zipf(exponent) => self.distribution = Distribution::Zipf { exponent: *exponent },
            Level::Streams(streams) => self.streams = *streams,
            Level::Sync(sync) => self.sync = *sync,
            Level::Rate(rate) => {
                self.rate = *rate;
                if self.pace == Pace::Closed {
                    self.pace = Pace::Fixed;
                }
            }
            level => match &mut self.work {
                Work::Inserts(inserts) => {
                    if let Level::DataFiles(files) = level {
                        inserts.engine.data_files = *files;
                    }
                }
                Work::Transactions(oltp) => oltp.set(level),
                Work::Requests | Work::Trace(_) => {}
            },
        }
    }

    /// Applies every key of `table` that is a factor and in `keys`.
    pub(super) fn set_factors(&mut self, table: &Table<'_>, keys: &Keys) {
        for entry in table.in_order() {
            let factor = FactorName::from_name(&entry.name).filter(|_| keys.contains(&entry.name));
            if let Some(level) = factor.and_then(|factor| factor.read(&entry)) {
                self.set(&level);
            }
        }
    }

    /// Reads the end of the measurement and the interval.
    pub(super) fn set_length(&mut self, table: &Table<'_>) {
        if let Some(length) = length::read(table) {
            self.length = length;
            self.interval = length::interval(table, length).unwrap_or(self.interval);
        }
    }
}

/// Reads `[workload]`, except for checks that need the sweep.
pub(super) fn read(table: &Table<'_>) -> Load {
    table.only(&schema::WORKLOAD);
    let mut load = Load::default();
    table.update("arrival", &mut load.pace, Entry::word);
    load.set_factors(table, &schema::WORKLOAD);
    if let (Some(_), Some(second)) = (table.get("file_size"), table.get("utilisation")) {
        let message = "two sizes of the data: `file_size` and `utilisation`";
        table.problems.add(second.key_span, message, "or `file_size`, not both", "remove one of them");
    }
    if let Some(blocks) = shares::blocks(table) {
        load.block = blocks.largest();
        load.blocks = Some(blocks);
    }
    if let Some(distribution) = shares::distribution(table) {
        load.distribution = distribution;
    }
    table.update("steady", &mut load.steady, Entry::word);
    load.burst = table.get("burst").and_then(|entry| entry.some_time());
    if let Some(replay) = replay::read(table) {
        load.work = Work::Trace(replay);
    }
    if table.get("trace").is_some() && table.get("requests").is_none() {
        load.length = Length::ENTIRE_TRACE;
        load.interval = length::interval(table, load.length).unwrap_or(load.interval);
    } else {
        load.set_length(table);
    }
    load
}
