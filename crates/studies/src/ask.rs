//! A user's request: an experiment with overrides, a target, a scale and a seed.
//!
//! The command line and the Python bindings share this module. Both parse their own arguments.

use crate::failure::Failure;
use crate::validate;
use lowtide_core::Seed;
use lowtide_files::catalogue;
use lowtide_files::device::{self, Device, DeviceError, DeviceName};
use lowtide_files::output::CommandFiles;
use lowtide_files::passwords;
use lowtide_lab::experiment::{BadInput, Experiment, Override};
use lowtide_lab::plan::Plan;
use lowtide_lab::store::Store;
use lowtide_live::open;
use lowtide_record::{Campaign, Quantity};
use lowtide_report::{Report, export_csv, export_json, export_transactions};
use std::fmt;
use std::io::{self, Write};

/// The source of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A name in the catalogue, or the path of a file.
    Named(String),
    /// TOML text, with a name for error messages.
    Text {
        /// Name for errors.
        name: String,
        /// The text, as in a file.
        text: String,
    },
}

/// A request to run an experiment with changes.
#[derive(Clone)]
pub struct Asked {
    /// The experiment.
    pub source: Source,
    /// Replacement for the target of the experiment, in the syntax that [`target`] accepts.
    pub target: Option<String>,
    /// Overrides in the form `key=value`.
    pub set: Vec<String>,
    /// The divisor for sizes and durations.
    pub scale: u64,
    /// The seed of every random choice.
    pub seed: u64,
}

impl fmt::Debug for Asked {
    /// Formats the request as a command line without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.command()).finish()
    }
}

impl Asked {
    /// Plans the experiment.
    ///
    /// # Errors
    /// [`Failure`] if the experiment does not exist or is invalid.
    pub fn plan(&self) -> Result<Plan, Failure> {
        Ok(Plan::new(self.experiment()?, Seed::new(self.seed), self.scale)?)
    }

    /// Parses the experiment with its overrides. Does not access the target.
    ///
    /// # Errors
    /// [`Failure`] if the experiment does not exist or is invalid.
    pub fn experiment(&self) -> Result<Experiment, Failure> {
        let overrides = self.overrides()?;
        Ok(match &self.source {
            Source::Named(name) => {
                let found = catalogue::experiment(name)?;
                Experiment::parse(&found.path, &found.text, &overrides)?
            }
            Source::Text { name, text } => Experiment::parse(name, text, &overrides)?,
        })
    }

    /// The files that the plan reads or tests. No output of the same command may overwrite them.
    pub fn files(&self, plan: &Plan) -> CommandFiles {
        let mut files = plan.files();
        if let Source::Named(name) = &self.source {
            files.add_named("the experiment", name);
        }
        files
    }

    /// All overrides, including one for the target.
    fn overrides(&self) -> Result<Vec<Override>, BadInput> {
        let target = self.target.iter().map(|target| match target.split_once(':') {
            Some(("device", name)) => format!("target.device={name}"),
            Some(("file", path)) => format!("target.file={path}"),
            Some(("dir", path)) => format!("target.directory={path}"),
            Some(("block", path)) => format!("target.block={path}"),
            // A plain name is a device; a plain path is a file or a directory.
            _ if std::path::Path::new(target).is_dir() => format!("target.directory={target}"),
            _ if target.contains('/') && !names_device_files(target) => format!("target.file={target}"),
            _ => format!("target.device={target}"),
        });
        target.chain(self.set.iter().cloned()).map(|text| text.parse()).collect()
    }

    /// The equivalent command line, without passwords.
    pub fn command(&self) -> String {
        let name = match &self.source {
            Source::Named(name) | Source::Text { name, .. } => name,
        };
        let mut words = vec!["lowtide".to_owned(), "run".to_owned(), quoted(name)];
        words.extend(self.target.iter().map(|target| format!("--target {}", quoted(target))));
        words.extend(self.set.iter().map(|set| format!("--set {}", quoted(&passwords::without(set)))));
        if self.scale > 1 {
            words.push(format!("--scale 1/{}", self.scale));
        }
        words.push(format!("--seed {}", self.seed));
        words.join(" ")
    }
}

/// Finds or parses a simulated device, and scales it down by `scale`.
///
/// # Errors
/// [`Failure`] if the device does not exist, is invalid, or cannot be scaled down that far.
pub fn device(source: &Source, scale: u64) -> Result<Device, Failure> {
    Ok(match source {
        Source::Named(name) => open::scaled(device::find(name)?, name, scale)?,
        Source::Text { name, text } => {
            let failed = |reason| DeviceError::File { path: name.clone(), reason };
            open::scaled(device::parse(text).map_err(failed)?, name, scale)?
        }
    })
}

/// A format for the raw numbers of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {
    /// All intervals as CSV.
    Csv,
    /// All records as JSON.
    Json,
    /// Database transactions as CSV.
    Transactions,
}

/// An export of a campaign in a format that the campaign supports.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    campaign: &'a Campaign,
    format: Raw,
}

/// Exports the raw numbers of a campaign. Simulations with the same experiment, device and seed give identical bytes.
///
/// # Errors
/// [`Failure`] if the campaign has no such numbers.
pub fn export(campaign: &Campaign, format: Raw) -> Result<Export<'_>, Failure> {
    if format == Raw::Transactions && campaign.quantity() != Quantity::NewOrders {
        return Err(Failure::usage(
            format!("{} asked no database: it has no transactions to export", campaign.name),
            "`--format csv` gives the intervals of any campaign",
        ));
    }
    Ok(Export { campaign, format })
}

impl Export<'_> {
    /// Writes the export cell by cell, since it may be larger than the memory.
    ///
    /// # Errors
    /// Any error that `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Raw::Csv => export_csv(self.campaign, out),
            Raw::Json => export_json(self.campaign, out),
            Raw::Transactions => export_transactions(self.campaign, out),
        }
    }

    /// Returns the whole export as a string.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("writing to memory does not fail");
        String::from_utf8(bytes).expect("exports are text")
    }
}

/// Parses a scale: `1/8`, `8` or `1`.
///
/// # Errors
/// A message with the accepted syntax.
pub fn scale(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1/").unwrap_or(text);
    match number.parse() {
        Ok(scale @ 1..) => Ok(scale),
        _ => Err("write a share such as `1/8`".to_owned()),
    }
}

/// Checks the syntax of a target: `KIND:WHERE`, or a device or path alone.
///
/// # Errors
/// A message with the accepted syntax.
pub fn target(text: &str) -> Result<String, String> {
    let known = match text.split_once(':') {
        Some((kind, rest)) => {
            ["device", "file", "dir", "block"].contains(&kind) && !rest.is_empty()
                || kind.contains('/')
                || device::is_known(text)
                    && DeviceName::new(text).parts().all(|part| !part.file.contains(':'))
        }
        None => !text.is_empty(),
    };
    if known {
        Ok(text.to_owned())
    } else {
        Err("write device:NAME, file:PATH, dir:PATH or block:PATH, or the NAME or NAME:MODE of a device"
            .to_owned())
    }
}

/// Whether a path, or every path in a device name, ends in `.toml`.
fn names_device_files(target: &str) -> bool {
    DeviceName::new(target).paths().all(|path| path.extension().is_some_and(|ending| ending == "toml"))
}

/// Quotes a word for a shell, if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Builds the report of a campaign in a store, with comparisons to published numbers.
///
/// # Errors
/// [`Failure`] if the experiment in the store cannot be parsed.
pub fn report(store: &Store, number: i64, campaign: &Campaign) -> Result<Report, Failure> {
    let latencies = |cell, from_ns, to_ns| store.latency(number, cell, from_ns, to_ns).ok();
    let comparisons = validate::comparisons(campaign, &latencies)?;
    let claims = validate::claims(campaign, &latencies)?;
    Ok(Report::new(campaign, &comparisons).with_claims(&claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_parse() {
        assert_eq!(scale("1/8"), Ok(8));
        assert_eq!(scale("1"), Ok(1));
        assert!(scale("0").is_err() && scale("1/0").is_err() && scale("x").is_err());
    }

    #[test]
    fn a_target_is_a_kind_and_a_place_or_a_device() {
        let becomes = |given: &str| {
            let target = Some(target(given).unwrap_or_else(|error| panic!("{given}: {error}")));
            let source = Source::Named("disk-quick".to_owned());
            let asked = Asked { source, target, set: Vec::new(), scale: 1, seed: 1 };
            asked.overrides().expect("one override")[0].to_string()
        };
        for (given, set) in [
            ("device:sas-15k-73gb:shallow", "target.device=sas-15k-73gb:shallow"),
            ("sas-15k-73gb:shallow", "target.device=sas-15k-73gb:shallow"),
            ("sas-15k-73gb:shallow+mtron-32gb", "target.device=sas-15k-73gb:shallow+mtron-32gb"),
            ("mine.toml:fast", "target.device=mine.toml:fast"),
            ("./mine.toml:fast", "target.device=./mine.toml:fast"),
            ("./mine.toml+sas-15k-73gb", "target.device=./mine.toml+sas-15k-73gb"),
            ("./data+more", "target.file=./data+more"),
            ("/data/a:b", "target.file=/data/a:b"),
        ] {
            assert_eq!(becomes(given), set);
        }
        for wrong in ["devcie:mtron-32gb", "disk:", "disk:/dev/sdx", "sas-15k-73g:shallow", ""] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
        assert_eq!(quoted("threads=4"), "threads=4");
    }

    #[test]
    fn a_text_is_planned_like_a_file_and_told_by_its_name() {
        let text = "name = 't'\ntarget.device = 'intel-320-160gb'\n[workload]\npattern = 'random-write'\n\
                    block = '4KiB'\nduration = '1min'\n";
        let asked = |text: &str, set: &[&str]| Asked {
            source: Source::Text { name: "mine".to_owned(), text: text.to_owned() },
            target: None,
            set: set.iter().map(|it| (*it).to_owned()).collect(),
            scale: 8,
            seed: 3,
        };
        let plan = asked(text, &["threads=2"]).plan().expect("plans");
        assert_eq!((plan.scale, plan.seed, plan.cells.len()), (8, Seed::new(3), 1));
        assert_eq!(
            asked(text, &["threads=2"]).command(),
            "lowtide run mine --set threads=2 --scale 1/8 --seed 3"
        );
        let failure = asked(&text.replace("4KiB", "4KB x"), &[]).plan().expect_err("no size");
        let told = failure.text();
        assert!(told.contains("mine:5") && told.contains("block = '4KB x'"), "{told}");
        assert_eq!(failure.kind(), crate::failure::Kind::BadInput);
    }
}
