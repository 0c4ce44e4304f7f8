//! The verbs of a store, and their arguments. `report` and `compare` also read stores, but are top-level verbs.

use super::{CampaignArguments, Format, size};
use clap::{Args, Subcommand, ValueEnum};
use lowtide_core::Bytes;
use lowtide_lab::import::Kind;
use lowtide_studies::ask::quoted;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// List campaigns, or show the report of one
    Show(ShowArguments),
    /// Export the raw numbers of a campaign, or its load as a fio job
    Export(ExportArguments),
    /// Import measurements of fio or sysbench as a campaign
    Import(ImportArguments),
    /// Merge stores, and parts of a campaign into one campaign
    Merge(MergeArguments),
    /// Name campaigns as baselines for comparisons
    Baseline(BaselineArguments),
}

#[derive(Debug, Args)]
pub struct ShowArguments {
    #[command(flatten)]
    pub campaign: CampaignArguments,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct BaselineArguments {
    #[command(subcommand)]
    pub verb: BaselineVerb,
    /// The store of the names
    #[arg(long, default_value = "lowtide.db", value_name = "FILE", global = true)]
    pub store: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum BaselineVerb {
    /// Name a campaign as a baseline: `lowtide compare` accepts it as @NAME
    Set {
        /// The name, of letters, digits and the characters . - _
        name: String,
        /// The campaign: NUMBER or NAME in the store, FILE:NUMBER in another store, or FILE for the last campaign of
        /// another store
        campaign: String,
        /// Reassign the name if another campaign has it
        #[arg(long)]
        replace: bool,
    },
    /// List baselines
    List {
        /// Output format
        #[arg(long, default_value = "table")]
        format: Format,
    },
    /// Remove a name, but not its campaign
    Remove {
        /// The name
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    #[command(flatten)]
    pub campaign: CampaignArguments,
    /// Output format
    #[arg(long, default_value = "csv")]
    pub format: RawFormat,
    /// With --format fio: export the load of this experiment (a name or the path of a file) instead of a campaign's
    #[arg(long, value_name = "EXPERIMENT", conflicts_with = "campaign")]
    pub experiment: Option<String>,
    /// With --experiment: change one of its keys (may be given more than once)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "experiment")]
    pub set: Vec<String>,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RawFormat {
    /// CSV with one row per interval
    Csv,
    /// All data of the campaign
    Json,
    /// For databases: CSV with one row per interval and transaction type
    Transactions,
    /// The load as a fio job
    Fio,
}

#[derive(Debug, Args)]
#[command(
    after_help = "All files become one campaign. Accepted: output of fio --output-format=json or json+, \
    fio's logs (such as job_bw.1.log; the logs of one job become one series), and output of sysbench fileio. \
    A fio iolog is a load, not a measurement: see workload.trace."
)]
pub struct ImportArguments {
    /// Output files of fio or sysbench
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of all files: fio-json, fio-bw-log, fio-iops-log, fio-lat-log, fio-hist-log or sysbench
    /// [default: detected from the contents]
    #[arg(long, value_name = "KIND")]
    pub kind: Option<Kind>,
    /// The store of all raw numbers
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Name of the campaign [default: the name of the first file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Size of the data under test, if no file states it; writes without a known size have no steady state
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<Bytes>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Campaigns with the same experiment, device, seed and scale are merged unless a cell was \
    measured twice with different numbers; all other campaigns are copied. An existing output store keeps \
    its campaigns."
)]
pub struct MergeArguments {
    /// Stores with the campaigns
    #[arg(required = true, value_name = "STORE")]
    pub stores: Vec<PathBuf>,
    /// The store to write, created if missing
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

impl ImportArguments {
    /// The command line that repeats the import.
    pub fn command(&self) -> String {
        let mut words = vec!["lowtide store import".to_owned()];
        words.extend(self.files.iter().map(|file| quoted(&file.to_string_lossy())));
        let kind = self.kind.and_then(|kind| Kind::WORDS.into_iter().find(|(_, known)| *known == kind));
        words.extend(kind.map(|(word, _)| format!("--kind {word}")));
        words.extend(self.name.iter().map(|name| format!("--name {}", quoted(name))));
        words.extend(self.size.map(|size| format!("--size {size}")));
        words.join(" ")
    }
}
