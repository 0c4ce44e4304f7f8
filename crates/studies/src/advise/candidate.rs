//! The devices that come into question: what they hold and cost, what of them wears, and at which size they are simulated.
//!
//! Not here: what they do (`trial`).

use super::AdviseError;
use super::question::{Asked, Question};
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use lowtide_device::{DeviceSpec, Wear};
use lowtide_files::device::{self, Device, DeviceError, Listed};
use lowtide_report::lifetime::Endurance;

/// Requests that fill the drive that is simulated in place of a larger one, at least.
const LEAST_REQUESTS: u64 = 400_000;
/// Bytes of that drive, at least and at most where the bytes of requests ask for more or less.
const LEAST_BYTES: Bytes = Bytes::new(2_000_000_000);
const MOST_BYTES: Bytes = Bytes::new(10_000_000_000);
/// Terminals that a warehouse of a smaller database has at most; the benchmark itself has ten.
pub(super) const TERMINALS_PER_WAREHOUSE: u32 = 4;
/// The largest divisor that is tried.
const MOST_SCALE: u64 = 1 << 16;

/// A device that comes into question.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What an experiment calls it: a name, or the path of a file.
    pub target: String,
    /// What its file says.
    pub device: Device,
    /// What it costs, in US dollars, and who says so.
    pub price_usd: Option<f64>,
    /// Whether that was said by the user.
    pub own_price: bool,
    /// What of it wears.
    pub wearing: Wearing,
    /// How many times smaller it is simulated.
    pub scale: u64,
}

/// What of a device wears by writing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wearing {
    /// NAND with rated cycles.
    Rated(Endurance),
    /// Nothing does.
    Never,
    /// Something does, but for how long is not known, and why.
    Unknown(&'static str),
}

/// Why a device cannot be a candidate.
#[derive(Debug, thiserror::Error)]
pub enum CandidateError {
    /// There is no such device, or its file cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Its parts do not fit together.
    #[error("the device {path} cannot be used: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A price for something else.
    #[error("a price for `{name}`, which is no candidate{}", near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    Price {
        /// The name.
        name: String,
        /// The nearest candidate.
        near: Option<String>,
    },
}

/// The devices that come into question: those that are named, or else every drive, disk and array of the catalogue.
///
/// # Errors
/// [`AdviseError`] for a question that contradicts itself, or an unknown name.
pub fn candidates(question: &Question) -> Result<Vec<Candidate>, AdviseError> {
    question.check()?;
    let mut all = Vec::new();
    if question.devices.is_empty() {
        let sold = device::catalogue().iter().filter(|listed| sold(&listed.device.spec));
        all.extend(sold.map(|Listed { device, .. }| (device.name.clone(), device.clone())));
    }
    for name in &question.devices {
        let device = device::find(name).map_err(CandidateError::from)?;
        device
            .spec
            .validate()
            .map_err(|error| CandidateError::File { path: name.clone(), reason: error.to_string() })?;
        if !all.iter().any(|(known, _)| known == name) {
            all.push((name.clone(), device));
        }
    }
    let names: Vec<String> = all.iter().map(|(_, device)| device.name.clone()).collect();
    if let Some(name) = question.prices.keys().find(|name| !names.contains(name)) {
        let near = nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        return Err(CandidateError::Price { name: name.clone(), near }.into());
    }
    Ok(all.into_iter().map(|(target, device)| candidate(question, target, device)).collect())
}

fn candidate(question: &Question, target: String, device: Device) -> Candidate {
    let own = question.prices.get(&device.name).copied();
    Candidate {
        target,
        price_usd: own.or(device.price_usd),
        own_price: own.is_some(),
        wearing: wearing(&device.spec),
        scale: question.scale.unwrap_or_else(|| scale(question, &device.spec)),
        device,
    }
}

/// Whether somebody buys it as one place for data: no volume that is rented, and not several devices that follow one another, as
/// studies have them for data and log.
fn sold(spec: &DeviceSpec) -> bool {
    !matches!(spec, DeviceSpec::Volume(_)) && spec.first_part() == spec.capacity()
}

fn wearing(spec: &DeviceSpec) -> Wearing {
    match spec.wear() {
        Wear::Rated { raw, cycles } => Wearing::Rated(Endurance { raw, cycles }),
        Wear::Never => Wearing::Never,
        Wear::Unknown(why) => Wearing::Unknown(why),
    }
}

/// The largest power of two by which device and data may be divided: a model of flash is then small enough to be overwritten many
/// times in seconds. What has no NAND needs no such thing, and is simulated as it is; a database is always made smaller.
fn scale(question: &Question, spec: &DeviceSpec) -> u64 {
    let (enough, data): (Box<dyn Fn(u64) -> bool>, Bytes) = match &question.asked {
        Asked::Block(_) if wearing(spec) == Wearing::Never => return 1,
        Asked::Block(load) => {
            let least = (load.block * LEAST_REQUESTS).clamp(LEAST_BYTES, MOST_BYTES);
            let (capacity, block) = (spec.capacity(), load.block);
            let fewest = block * 4096;
            let data = question.data;
            (Box::new(move |scale| capacity / scale >= least && data / scale >= fewest), data)
        }
        Asked::Tpcc(load) => {
            // With fewer warehouses terminals would get in each other's way more than they do.
            let warehouses = super::question::warehouses(question.data);
            let fewest = u64::from(load.terminals / TERMINALS_PER_WAREHOUSE).max(4);
            (Box::new(move |scale| u64::from(warehouses) / scale >= fewest), question.data)
        }
    };
    let fits = |scale: u64| {
        let smaller = spec.scaled(scale);
        // A smaller drive may have a little less room than its share.
        smaller.validate().is_ok() && (data / scale <= smaller.capacity() || data > spec.capacity())
    };
    let mut scale = 1;
    while scale < MOST_SCALE && enough(2 * scale) && fits(2 * scale) {
        scale *= 2;
    }
    scale
}

impl Candidate {
    /// What the host may address.
    pub fn capacity(&self) -> Bytes {
        self.device.spec.capacity()
    }

    /// Data as a share of the capacity.
    pub fn fill(&self, data: Bytes) -> f64 {
        data.get() as f64 / self.capacity().get() as f64
    }
}
