//! Entry points for untrusted files, without the command line: one function for each kind of input.
//!
//! Each function accepts the input or refuses it with a message. The tests here and the fuzzers in `fuzz/` call the
//! same functions. `fuzz/` also has inputs over networks.

// Each fuzzer uses one of the functions.
#![allow(dead_code)]

use lowtide_core::{BlockDevice, Bytes, Request, Seed, VirtualTime};
use lowtide_device::DeviceSpec;
use lowtide_files::{passwords, trace};
use lowtide_lab::fio_job::fio_job;
use lowtide_lab::import;
use lowtide_lab::store::{self, Store};
use lowtide_report::cost::Prices;
use lowtide_studies::ask::{self, Asked, Raw, Source};
use lowtide_studies::failure::Failure;
use lowtide_studies::fit::{self, Fixed, Like, Question};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The outcome for an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    /// Refused with a message.
    Refused,
}

use Outcome::{Accepted, Refused};

/// Maximum number of map entries of a device that is built.
const MOST_ENTRIES: u64 = 2 << 20;

/// Checks that a refusal has a message.
fn refused(error: impl Into<Failure>) -> Outcome {
    assert!(!error.into().text().trim().is_empty(), "a refusal without a message");
    Refused
}

/// Checks that a refusal that is no [`Failure`] has a message.
fn refused_by(error: impl std::fmt::Display) -> Outcome {
    assert!(!error.to_string().is_empty(), "a refusal without a message");
    Refused
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Plans an experiment with overrides, and formats it.
pub fn experiment(bytes: &[u8], set: &[String]) -> Outcome {
    let Some(text) = text(bytes) else { return Refused };
    let source = Source::Text { name: "fuzz".to_owned(), text: text.to_owned() };
    let asked = Asked { source, target: None, set: set.to_vec(), scale: 64, seed: 1 };
    let _ = (asked.command(), passwords::without(text));
    match asked.plan() {
        Ok(plan) => {
            let _ = (plan.identity(), plan.ignored(), plan.prepared_bytes(), fio_job(&plan));
            let _ = format!("{:?}", plan.experiment);
            Accepted
        }
        Err(failure) => refused(failure),
    }
}

/// Checks and scales a device file and, if the device is small enough, builds it and sends it requests.
pub fn device(bytes: &[u8]) -> Outcome {
    let Some(text) = text(bytes) else { return Refused };
    let source = Source::Text { name: "fuzz".to_owned(), text: text.to_owned() };
    let device = match ask::device(&source, 1) {
        Ok(device) => device,
        Err(failure) => return refused(failure),
    };
    let _ = (device.spec.host_memory(), device.spec.is_rotational(), device.spec.first_part());
    for scale in [256, 4096, u64::MAX] {
        let Ok(small) = ask::device(&source, scale) else { continue };
        if entries(&small.spec) <= MOST_ENTRIES {
            serve(&small.spec);
            break;
        }
    }
    Accepted
}

/// Approximate number of entries in the maps of a device.
fn entries(spec: &DeviceSpec) -> u64 {
    match spec {
        DeviceSpec::Flash(flash) => flash.nand.raw.get() / flash.map.unit.get().max(1),
        DeviceSpec::Array(array) => array.members.iter().map(entries).fold(0, u64::saturating_add),
        DeviceSpec::Cache(cache) => {
            let lines = cache.flash.capacity().get() / 4096;
            entries(&cache.flash).saturating_add(entries(&cache.backing)).saturating_add(lines)
        }
        DeviceSpec::Log(log) => entries(&log.over).saturating_add(log.over.capacity().get() / 4096),
        DeviceSpec::Disk(disk) => disk.capacity.get() / (64 << 10),
        DeviceSpec::Volume(_) => 0,
    }
}

fn serve(spec: &DeviceSpec) {
    let Ok(mut device) = spec.build(Seed::new(1)) else { return };
    let block = device.logical_block().get().max(4096);
    let blocks = device.capacity().get() / block;
    let mut now = VirtualTime::START;
    for n in 0..500u64 {
        let Some(at) = (n * 7919).checked_rem(blocks) else { return };
        let request = match n % 8 {
            0 => Request::read(at * block, block),
            1 if n % 64 == 1 => Request::flush(),
            _ => Request::write(at * block, block),
        };
        now = device.submit(now, &request).at;
    }
    let _ = device.counters();
}

/// Fits a table of levels with the options of `fit`.
pub fn fitted(bytes: &[u8], options: &Options) -> Outcome {
    let Some(text) = text(bytes) else { return Refused };
    let size = |text: &Option<String>| text.as_ref().map(|text| text.parse::<Bytes>()).transpose();
    let (Ok(capacity), Ok(block), Ok(data)) =
        (size(&options.capacity), size(&options.block), size(&options.data))
    else {
        return Refused;
    };
    let predict: Result<Vec<Bytes>, _> = options.predict.iter().map(|text| text.parse()).collect();
    let Ok(predict) = predict else { return Refused };
    let fit = || -> Result<_, Failure> {
        let question = Question {
            name: "fuzz".to_owned(),
            like: options.like.as_deref().map(Like::read).transpose()?,
            capacity,
            block,
            threads: options.threads,
            fixed: Fixed::parse(&options.fix)?,
            predict,
            seed: Seed::new(1),
            budget: options.budget,
        };
        let measured = fit::of_csv(Path::new("fuzz.csv"), text, &question, data)?;
        let fitted = fit::fit(&measured, &question, &AtomicBool::new(false));
        assert!(!matches!(fitted, Err(fit::FitError::Interrupted)), "an interruption without a signal");
        Ok(fitted?)
    };
    match fit() {
        Ok(fitted) => {
            let _ = (fit::table(&fitted, 100), fit::json(&fitted));
            let device = lowtide_files::device::parse(&fitted.device);
            device
                .unwrap_or_else(|error| panic!("the device file cannot be read: {error}\n{}", fitted.device));
            Accepted
        }
        Err(failure) => refused(failure),
    }
}

/// The options of `fit` of the same names, as they are typed.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub capacity: Option<String>,
    pub block: Option<String>,
    pub data: Option<String>,
    pub like: Option<String>,
    pub threads: Option<u32>,
    pub predict: Vec<String>,
    pub fix: Vec<String>,
    pub budget: u64,
}

/// Parses a list of prices, in CSV or TOML.
pub fn prices(bytes: &[u8], is_toml: bool) -> Outcome {
    let Some(text) = text(bytes) else { return Refused };
    match Prices::parse(if is_toml { "p.toml" } else { "p.csv" }, text) {
        Ok(prices) => {
            let price = prices.of("intel-320-160gb");
            assert!(price.is_none_or(|price| price.is_finite() && price > 0.0), "{price:?} is no price");
            let _ = prices.nearest("intel-320-160gb");
            Accepted
        }
        Err(error) => refused_by(error),
    }
}

/// Imports the output of fio as a campaign of a new store.
pub fn imported(path: &Path, into: &Path) -> Outcome {
    let options =
        import::Options { command: "lowtide store import".to_owned(), ..import::Options::default() };
    let import = || -> Result<_, Failure> {
        let imported = import::import(&[path.to_owned()], &options)?;
        Ok(Store::open(into)?.add(imported)?)
    };
    match import() {
        Ok(_) => stored(into),
        Err(failure) => refused(failure),
    }
}

/// Parses a trace.
pub fn traced(bytes: &[u8]) -> Outcome {
    match trace::parse(bytes) {
        Ok(trace) => {
            let _ = (trace.length(), trace.read_share(), trace.granule(), trace.changes_data());
            let _ = trace.on(Bytes::mib(64), true);
            Accepted
        }
        Err(error) => refused_by(error),
    }
}

/// Makes every report and export of every campaign of a store.
pub fn stored(path: &Path) -> Outcome {
    let opened = Store::open_existing(path).and_then(|store| Ok((store.campaigns()?, store)));
    let (listed, store) = match opened {
        Ok(opened) => opened,
        Err(error) => return refused(error),
    };
    let mut outcome = Accepted;
    for campaign in &listed {
        let loaded = match store.load(campaign.id) {
            Ok(loaded) => loaded,
            Err(error) => {
                outcome = refused(error);
                continue;
            }
        };
        for raw in [Raw::Csv, Raw::Json, Raw::Transactions] {
            if let Err(failure) = ask::export(&loaded, raw) {
                refused(failure);
            }
        }
        match ask::report(&store, campaign.id, &loaded) {
            Ok(report) => {
                let _ = (report.html(), report.terminal(100), report.markdown(), report.csv(), report.json());
            }
            Err(failure) => outcome = refused(failure),
        }
    }
    outcome
}

/// Merges parts of a campaign.
pub fn merged(parts: &[PathBuf], into: &Path) -> Outcome {
    match store::merge(parts, into) {
        Ok(_) => stored(into),
        Err(error) => refused(error),
    }
}
