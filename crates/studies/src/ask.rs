//! A user's request, the same for the command line and for Python: an experiment, changed by overrides, on a
//! target, at a scale, with a seed.
//!
//! Not here: how it is asked (a command line, a call in Python) and what is done with it.

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

/// Where the experiment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the catalogue by its name, or in a file by its path.
    Named(String),
    /// Here, in TOML; errors call it by the name.
    Text {
        /// What to call it.
        name: String,
        /// What a file would hold.
        text: String,
    },
}

/// What to run, and changed how.
#[derive(Clone)]
pub struct Asked {
    /// The experiment.
    pub source: Source,
    /// Another target, as [`target`] takes it.
    pub target: Option<String>,
    /// Overrides, `key=value`.
    pub set: Vec<String>,
    /// Sizes and durations are divided by this.
    pub scale: u64,
    /// The seed of every random choice.
    pub seed: u64,
}

impl fmt::Debug for Asked {
    /// As a command, which has no passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.command()).finish()
    }
}

impl Asked {
    /// What will be done.
    ///
    /// # Errors
    /// [`Failure`] where there is no such experiment, or something is wrong with it.
    pub fn plan(&self) -> Result<Plan, Failure> {
        Ok(Plan::new(self.experiment()?, Seed::new(self.seed), self.scale)?)
    }

    /// The experiment with its overrides, before its target is looked for.
    ///
    /// # Errors
    /// [`Failure`] where there is no such experiment, or something is wrong with it.
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

    /// The files that a plan of this is made of, and the one under test: no output of the same command goes onto them.
    pub fn files(&self, plan: &Plan) -> CommandFiles {
        let mut files = plan.files();
        if let Source::Named(name) = &self.source {
            files.add_named("the experiment", name);
        }
        files
    }

    /// The overrides, with the target as those it stands for.
    fn overrides(&self) -> Result<Vec<Override>, BadInput> {
        let target = self.target.iter().map(|target| match target.split_once(':') {
            Some(("device", name)) => format!("target.device={name}"),
            Some(("file", path)) => format!("target.file={path}"),
            Some(("dir", path)) => format!("target.directory={path}"),
            Some(("block", path)) => format!("target.block={path}"),
            // A bare name is a device, a bare path a file or a directory.
            _ if std::path::Path::new(target).is_dir() => format!("target.directory={target}"),
            _ if target.contains('/') && !names_device_files(target) => format!("target.file={target}"),
            _ => format!("target.device={target}"),
        });
        target.chain(self.set.iter().cloned()).map(|text| text.parse()).collect()
    }

    /// The command line that asks the same, without passwords.
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

/// A simulated device, so many times smaller; as an experiment's, its source is a name, a path or a text.
///
/// # Errors
/// [`Failure`] where there is no such device, or none can be so.
pub fn device(source: &Source, scale: u64) -> Result<Device, Failure> {
    Ok(match source {
        Source::Named(name) => open::scaled(device::find(name)?, name, scale)?,
        Source::Text { name, text } => {
            let failed = |reason| DeviceError::File { path: name.clone(), reason };
            open::scaled(device::parse(text).map_err(failed)?, name, scale)?
        }
    })
}

/// Raw numbers of a campaign in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {
    /// Every interval as CSV.
    Csv,
    /// Every record as JSON.
    Json,
    /// The transactions of databases as CSV.
    Transactions,
}

/// An export of a campaign that has what is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    campaign: &'a Campaign,
    format: Raw,
}

/// Every raw number of a campaign: the same bytes for the same experiment, device and seed.
///
/// # Errors
/// [`Failure`] where the campaign has no such numbers.
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
    /// Writes it, cell by cell: an export may be larger than the memory.
    ///
    /// # Errors
    /// Where `out` refuses to be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Raw::Csv => export_csv(self.campaign, out),
            Raw::Json => export_json(self.campaign, out),
            Raw::Transactions => export_transactions(self.campaign, out),
        }
    }

    /// All of it in memory.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("writing to memory does not fail");
        String::from_utf8(bytes).expect("exports are text")
    }
}

/// A scale: `1/8`, `8` or `1`.
///
/// # Errors
/// What is accepted.
pub fn scale(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1/").unwrap_or(text);
    match number.parse() {
        Ok(scale @ 1..) => Ok(scale),
        _ => Err("write a share such as `1/8`".to_owned()),
    }
}

/// A target: `KIND:WHERE`, or a device or path alone.
///
/// # Errors
/// What is accepted.
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

/// Whether a path, or each path in a name of a device, ends as a device file does.
fn names_device_files(target: &str) -> bool {
    DeviceName::new(target).paths().all(|path| path.extension().is_some_and(|ending| ending == "toml"))
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The report of a campaign of a store, with its published numbers.
///
/// # Errors
/// [`Failure`] where the experiment kept in the store no longer parses.
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
