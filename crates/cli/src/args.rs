//! The command line: verbs and their arguments. `command` implements the verbs.

mod advise;
mod attach;
mod bench;
mod drive;
mod fit;
pub mod live;
mod logdisk;
mod oltp;
mod powercut;
mod run;
mod spelling;
mod store;

pub use advise::AdviseArguments;
pub use attach::{AttachArguments, DetachArguments};
pub use bench::{BenchArguments, BenchVerb};
pub use drive::DriveVerb;
pub use fit::FitArguments;
pub use live::{
    CutArguments, DriveArguments, FailArguments, RecordVerb, ServeArguments, ServerArguments, StatArguments,
    TlsUse,
};
pub use logdisk::{LogdiskArguments, LogdiskAttachArguments, LogdiskFormatArguments, LogdiskVerb};
pub use oltp::OltpBenchArguments;
pub use powercut::{OnOff, PowercutOltpArguments, PowercutVerb, RowsFormat};
pub use run::RunArguments;
pub use spelling::{parse, words};
pub use store::{
    BaselineArguments, BaselineVerb, ExportArguments, ImportArguments, MergeArguments, RawFormat,
    ShowArguments, StoreVerb,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use lowtide_core::{Bytes, UnitError};
use lowtide_device::flash::spec::Cycles;
use lowtide_report::cost::Floor;
use lowtide_report::lifetime::{RateError, WriteRate};
use lowtide_studies::ask::{Asked, Source, scale, target};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Measure storage at low tide: the sustained performance of drives and databases.
#[derive(Debug, Parser)]
#[command(name = "lowtide", version, arg_required_else_help = true, max_term_width = 80)]
#[command(help_template = TOP, after_help = ENDING)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

/// The help of the program itself, which fits a terminal of 24 lines.
const TOP: &str = "\
{about}

{usage-heading} {usage}

Begin with `lowtide run intel-320-random-write`. Commands:
{subcommands}{after-help}";

const ENDING: &str = "\
Also: bench (performance of lowtide), completions (for a shell), --version
Exit codes: 0 ok, 1 failed, 2 bad input, 3 refused, 4 not steady, 5 regression";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run an experiment and report the results
    Run(RunArguments),
    /// Show what `run` would do, without doing it
    Plan(PlanArguments),
    /// Rewrite the report of a campaign
    Report(ReportArguments),
    /// Compare campaigns, or the values of a factor inside one
    Compare(CompareArguments),
    /// List experiments, or print the file of one
    Experiments(CatalogueArguments),
    /// List simulated devices, or print the file of one
    Devices(CatalogueArguments),
    /// Show, export, import and merge campaigns; name baselines
    #[command(subcommand)]
    Store(StoreVerb),
    /// Compare the models with published measurements
    Validate(ValidateArguments),
    /// Choose a device for a load, its fill level and its memory size
    Advise(Box<AdviseArguments>),
    /// Estimate drive lifetime at a write rate
    Lifetime(LifetimeArguments),
    /// Compute the cost of capacity and throughput
    Cost(CostArguments),
    /// Fit a device file to measurements
    Fit(FitArguments),
    /// Count the transactions that databases lose in power cuts
    #[command(subcommand, after_help = "To cut the power of a live drive: lowtide drive powercut SOCKET")]
    Powercut(PowercutVerb),
    /// Serve or attach a simulated drive; cut its power, inject faults
    #[command(subcommand)]
    Drive(DriveVerb),
    /// Make random writes sequential with a log-structured layer
    Logdisk(LogdiskArguments),
    /// Measure lowtide itself
    #[command(hide = true)]
    Bench(BenchArguments),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// The experiment, with the changes of the command line.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// The experiment: a name (see `lowtide experiments`) or the path of a file
    pub experiment: String,
    /// Replace the experiment's target: device:NAME, file:PATH, dir:PATH or block:PATH
    #[arg(long, value_name = "TARGET", value_parser = target)]
    pub target: Option<String>,
    /// Change a key of the experiment, such as threads=4 (may be given more than once)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Scale sizes and durations down, such as 1/8
    #[arg(long, default_value = "1", value_parser = scale)]
    pub scale: u64,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

/// A campaign and its store.
#[derive(Debug, Args)]
pub struct CampaignArguments {
    /// The number or name of a campaign [default: the last one]
    pub campaign: Option<String>,
    /// The store
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
}

#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    pub campaign: CampaignArguments,
    /// Where to write the HTML report
    #[arg(long, short, default_value = "report.html", value_name = "FILE")]
    pub output: PathBuf,
    /// Also write every figure as SVG into this directory
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Campaigns: NUMBER or NAME in the store, FILE:NUMBER in another store, FILE for the last campaign of another
    /// store, or @NAME for a baseline; the others are compared with the first
    #[arg(required = true)]
    pub campaigns: Vec<String>,
    /// Compare the values of this factor in one campaign
    #[arg(long)]
    pub factor: Option<String>,
    /// The store
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
    /// Also write the comparison as HTML
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Exit with code 5 if the 95 % interval of a ratio to the first campaign is beyond this limit, such as
    /// "throughput < 0.95" or "latency_p99 > 110% overall" (may be given more than once)
    #[arg(long, value_name = "LIMIT")]
    pub fail_if: Vec<String>,
    /// Short for --fail-if "throughput < 1 - PERCENT", such as 5%; for databases, of new_orders
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_below: Option<f64>,
    /// Also compare cells without a steady state, by the last quarter of their measurement
    #[arg(long)]
    pub unsettled: bool,
}

#[derive(Debug, Args)]
pub struct CatalogueArguments {
    /// The verb; `None` lists.
    #[command(subcommand)]
    pub verb: Option<CatalogueVerb>,
}

#[derive(Debug, Subcommand)]
pub enum CatalogueVerb {
    /// List names and titles (the default)
    List,
    /// Print the file of a device or an experiment
    Show {
        /// The name, or the path of a file
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "TBW = raw NAND × rated cycles ÷ (write amplification × wear levelling).\n\
    For a real drive: smartctl --json -a /dev/sdX > now.json, then --smart now.json")]
pub struct LifetimeArguments {
    /// A device (a name or the path of a file), or a campaign of a store
    #[arg(value_name = "DEVICE|RUN", required_unless_present = "smart", conflicts_with = "smart")]
    pub what: Option<String>,
    /// Write rate of the host, such as 40MiB/s, 5TB/day or 0.5DWPD
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present = "smart")]
    pub writes: Option<WriteRate>,
    /// Counters of a real drive: JSON output of smartctl or nvme-cli (may be given more than once, for logs of one
    /// drive)
    #[arg(long, value_name = "FILE")]
    pub smart: Vec<PathBuf>,
    /// Earlier counters of the same drive; the report covers the time since then
    #[arg(long, value_name = "FILE", requires = "smart")]
    pub since: Vec<PathBuf>,
    /// Data as a share of the capacity in use
    #[arg(long, default_value = "0.8", value_parser = share)]
    pub fill: f64,
    /// Share of the capacity that is never written
    #[arg(long, default_value = "0", value_parser = share)]
    pub reserve: f64,
    /// Size of a write
    #[arg(long, default_value = "16KiB", value_parser = size)]
    pub block: Bytes,
    /// Rated erase cycles, such as 3000 or 5000..10000 [default: as the device file says]
    #[arg(long, value_parser = cycles)]
    pub cycles: Option<Cycles>,
    /// Raw NAND of the real drive [default: its capacity]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "smart", conflicts_with = "what")]
    pub raw: Option<Bytes>,
    /// Wear of the most worn blocks relative to the mean [default: as simulated]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub wear_levelling: Option<f64>,
    /// Warranty period for drive writes per day
    #[arg(long, default_value = "5", value_name = "YEARS", value_parser = years)]
    pub warranty: f64,
    /// Simulate a smaller drive, such as 1/16; write amplification does not depend on size
    #[arg(long, default_value = "1/16", value_parser = scale)]
    pub scale: u64,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The store of the campaign [default: lowtide.db]
    #[arg(long, value_name = "FILE", conflicts_with = "smart")]
    pub store: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct CostArguments {
    /// Campaigns: NUMBER or NAME in the store, or FILE:NUMBER in another store
    #[arg(value_name = "RUN", required_unless_present = "published", conflicts_with = "published")]
    pub campaigns: Vec<String>,
    /// The store
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Prices of devices in US dollars: lines NAME,USD (.csv) or NAME = USD (.toml) [default: as the device files say]
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// The required level, such as 100MiB/s; for databases, new orders per minute, such as 5000NOTPM
    #[arg(long, value_name = "RATE", value_parser = Floor::from_str)]
    pub floor: Option<Floor>,
    /// Recompute a published table (`e10`) instead of the cost of campaigns
    #[arg(long, value_name = "STUDY")]
    pub published: Option<String>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// Studies, such as e06, or experiments with published numbers
    /// [default: all experiments without real servers]
    #[arg(value_name = "STUDY")]
    pub studies: Vec<String>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Scale sizes and durations down, such as 1/8; only results at full size are valid
    #[arg(long, default_value = "1", value_parser = scale)]
    pub scale: u64,
    /// Write a report that shows the published points on the models' curves
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Keep the raw numbers, in a store for each experiment in this directory
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Also run the experiments on real database servers, which take hours
    #[arg(long)]
    pub real_servers: bool,
    /// Exit with code 5 if a claim fails without an explanation in the documentation
    #[arg(long)]
    pub require: bool,
    /// Output format; json prints one object per line, the summary last
    #[arg(long, default_value = "table")]
    pub format: Format,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for a terminal
    Table,
    /// One JSON object
    Json,
    /// The table of cells as CSV
    Csv,
    /// GitHub-flavoured Markdown
    Markdown,
}

/// Format of facts and figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// Text for a terminal
    Table,
    /// One JSON object per line
    Json,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("write a share such as `5%`".to_owned()),
    }
}

/// `8080`, `127.0.0.1:8080` or `[::1]:8080`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let address = text.parse().ok().or_else(port);
    address.ok_or_else(|| {
        "write a port such as `8080`, or an address and a port such as `127.0.0.1:8080`".to_owned()
    })
}

fn rate(text: &str) -> Result<WriteRate, String> {
    text.parse().map_err(|error: RateError| format!("{}; write {}", error.reason, RateError::ACCEPTED))
}

fn cycles(text: &str) -> Result<Cycles, String> {
    text.parse().map_err(|_| "write a number such as `3000`, or a range such as `5000..10000`".to_owned())
}

/// `0.8` or `80%`.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share such as `0.8`".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1.0..=1000.0).contains(factor));
    factor.ok_or_else(|| "write a factor from 1 such as `1.2`".to_owned())
}

fn years(text: &str) -> Result<f64, String> {
    let years = text.parse().ok().filter(|years| *years > 0.0 && *years <= 1000.0);
    years.ok_or_else(|| "write a number of years such as `5`".to_owned())
}

/// A size or a time.
fn unit<T: FromStr<Err = UnitError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

fn size(text: &str) -> Result<Bytes, String> {
    unit(text)
}

impl ExperimentArguments {
    /// The experiment that the arguments ask for.
    pub fn asked(&self) -> Asked {
        Asked {
            source: Source::Named(self.experiment.clone()),
            target: self.target.clone(),
            set: self.set.clone(),
            scale: self.scale,
            seed: self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn addresses_are_loopback_unless_named() {
        assert_eq!(address("8080").map(|it| it.to_string()), Ok("127.0.0.1:8080".to_owned()));
        assert_eq!(address("0.0.0.0:0").map(|it| it.to_string()), Ok("0.0.0.0:0".to_owned()));
        assert_eq!(address("[::1]:80").map(|it| it.to_string()), Ok("[::1]:80".to_owned()));
        assert!(address("localhost").is_err() && address("70000").is_err() && address("1.2.3.4").is_err());
    }

    #[test]
    fn an_interleaved_command_line_can_be_repeated() {
        let parsed =
            Arguments::try_parse_from(["lowtide", "run", "--interleave", "a", "b b", "c"]).expect("parses");
        let Verb::Run(run) = parsed.verb else { panic!("it runs") };
        assert_eq!(run.command(), "lowtide run a --seed 1 --interleave 'b b' c");
        let again =
            Arguments::try_parse_from(["lowtide", "run", "a", "--seed", "1", "--interleave", "b b", "c"]);
        let Verb::Run(again) = again.expect("parses").verb else { panic!("it runs") };
        assert_eq!((again.experiment.experiment, again.others), ("a".to_owned(), run.others));
        for wrong in [&["run", "a", "b"][..], &["run", "--interleave", "a"]] {
            assert!(Arguments::try_parse_from(["lowtide"].iter().chain(wrong)).is_err(), "{wrong:?}");
        }
    }
}
