//! `lowtide lifetime`: years until a drive's rated erase cycles are used up.

use super::campaign_named;
use crate::args::LifetimeArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_core::{Bytes, Seed};
use lowtide_files::catalogue::CatalogueError;
use lowtide_files::device::{self, Device, DeviceError};
use lowtide_lab::smart::{Reading, ReadingError};
use lowtide_lab::store::Store;
use lowtide_record::Campaign;
use lowtide_report::Report;
use lowtide_report::lifetime::{
    Case, Conditions, Endurance, Life, NoLifetime, Pattern, Question, SimulateError, WriteRate, of_cases,
    of_life, simulate,
};
use std::path::{Path, PathBuf};

/// The default of `--store`.
const DEFAULT_STORE: &str = "lowtide.db";

/// Prints the lifetime of a model, of the target of a campaign, or of a real drive.
pub fn run(arguments: &LifetimeArguments) -> Result<u8, Failure> {
    let report = match (&arguments.what, arguments.writes) {
        (Some(what), Some(rate)) => {
            let mut life = match target(arguments, what)? {
                Target::Device(device) => of_device(arguments, &device)?,
                Target::Campaign(campaign) => of_campaign(arguments, &campaign)?,
            };
            if let Some(levelling) = arguments.wear_levelling {
                life.cases.iter_mut().for_each(|case| case.wear.levelling = levelling);
            }
            let question = Question { rate, warranty_years: arguments.warranty };
            of_cases(format!("Life of {}", life.name), life.facts, &life.cases, question, &life.notes)
        }
        _ => of_drive(arguments)?,
    };
    output::print_report(&report, arguments.format)?;
    Ok(0)
}

/// The object whose lifetime is estimated.
enum Target {
    Device(Box<Device>),
    Campaign(Box<Campaign>),
}

/// A campaign if a store or a number is given; otherwise a device or, if there is none, a campaign of the default
/// store.
fn target(arguments: &LifetimeArguments, what: &str) -> Result<Target, Failure> {
    let campaign = |store: &Path| Ok(Target::Campaign(Box::new(campaign_named(store, what)?)));
    let default = Path::new(DEFAULT_STORE);
    if let Some(store) = &arguments.store {
        return campaign(store);
    }
    if what.parse::<i64>().is_ok() || what.contains(".db:") {
        return campaign(default);
    }
    match device::find(what) {
        Ok(device) => Ok(Target::Device(Box::new(device))),
        Err(unknown @ DeviceError::Catalogue(CatalogueError::Unknown { .. })) => {
            let known = default.exists().then(|| Store::open_existing(default)?.find(Some(what)));
            match known {
                Some(Ok(_)) => campaign(default),
                _ => Err(Failure::usage(
                    &unknown,
                    format!(
                        "{}; or a campaign of a store: `lowtide store show` lists them",
                        unknown.accepted()
                    ),
                )),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// The cases of a device or a campaign, and the facts for the report.
struct Cases {
    name: String,
    facts: Vec<(String, String)>,
    cases: Vec<Case>,
    notes: Vec<String>,
}

fn of_device(arguments: &LifetimeArguments, device: &Device) -> Result<Cases, Failure> {
    device.spec.validate().map_err(|error| {
        Failure::usage(format!("the device {}: {error}", device.name), "docs/formats.md lists the keys")
    })?;
    let endurance = Endurance::of(device, arguments.cycles).map_err(|error| refused(&error))?;
    let conditions = Conditions {
        fill: arguments.fill,
        reserve: arguments.reserve,
        block: arguments.block,
        scale: arguments.scale,
        seed: Seed::new(arguments.seed),
    };
    let mut cases = Vec::new();
    for pattern in [Pattern::Random, Pattern::Sequential] {
        let simulated = simulate(&device.spec, &conditions, pattern).map_err(|error| {
            let advice = match error {
                SimulateError::Spec { .. } | SimulateError::LittleData { .. } => {
                    "use a larger share, such as `--scale 1/8`, or more data with `--fill`"
                }
                SimulateError::Block { .. } => "use a block such as `--block 16KiB`",
                SimulateError::NotFlash | SimulateError::Device(_) => "name a flash drive",
            };
            Failure::usage(format!("{} cannot be simulated: {error}", device.name), advice)
        })?;
        cases.push(Case::simulated(&simulated, endurance, device.spec.capacity()));
    }
    let facts = vec![
        fact("device", &device.name),
        fact("fill", arguments.fill),
        fact("reserve", arguments.reserve),
        fact("block", arguments.block),
        fact("simulated at", format!("1/{} of its size", arguments.scale)),
        fact("seed", arguments.seed),
    ];
    Ok(Cases { name: device.name.clone(), facts, cases, notes: Vec::new() })
}

fn of_campaign(arguments: &LifetimeArguments, campaign: &Campaign) -> Result<Cases, Failure> {
    let cases = Case::measured(campaign, arguments.cycles).map_err(|error| refused(&error))?;
    let facts = vec![
        fact("campaign", &campaign.name),
        fact("target", &campaign.target),
        fact("scale", format!("1/{}", campaign.scale)),
    ];
    let even = "Wear is taken to be even, since a campaign is too short to show its spread; set it with `--wear-levelling`.";
    let notes = arguments.wear_levelling.is_none().then(|| even.to_owned()).into_iter().collect();
    Ok(Cases { name: campaign.name.clone(), facts, cases, notes })
}

fn of_drive(arguments: &LifetimeArguments) -> Result<Report, Failure> {
    let Some(now) = readings(&arguments.smart)? else { unreachable!("clap requires `--smart` or a target") };
    let since = readings(&arguments.since)?;
    let capacity = now.capacity.map(|capacity| Bytes::new(capacity as u64));
    let raw = arguments.raw.or(capacity);
    let endurance = match (arguments.cycles, raw) {
        (Some(_), None) => {
            return Err(Failure::usage(
                "the counters do not give the drive's capacity",
                "give its raw NAND, such as `--raw 256GiB`",
            ));
        }
        (Some(cycles), Some(raw)) => Some(Endurance { raw, cycles }),
        (None, _) => None,
    };
    if matches!((arguments.writes, capacity), (Some(WriteRate::Dwpd(_)), None)) {
        return Err(Failure::usage(
            "the counters do not give the drive's capacity, so drive writes per day are unknown",
            "give the rate in bytes, such as `--writes 40GB/day`",
        ));
    }
    let life = Life::new(&now, since.as_ref(), arguments.writes, endurance).map_err(|error| {
        Failure::usage(
            error,
            "`--smart` takes the later reading and `--since` the earlier reading of the same drive",
        )
    })?;
    Ok(of_life(&now, &life, arguments.writes))
}

/// Combines the readings of one time; `None` without a file.
fn readings(paths: &[PathBuf]) -> Result<Option<Reading>, Failure> {
    let read = |path: &PathBuf| {
        let name = path.display();
        let refused = |message| Failure::usage(message, ReadingError::ACCEPTED);
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| refused(format!("{name} cannot be read: {error}")))?;
        Reading::parse(&text).map_err(|error| refused(format!("{name}: {error}")))
    };
    let readings = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(readings.into_iter().reduce(Reading::with))
}

fn refused(error: &NoLifetime) -> Failure {
    Failure::usage(error, error.advice())
}

fn fact(name: &str, value: impl std::fmt::Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}
