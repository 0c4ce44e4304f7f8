//! Candidate devices: capacity, price, wear, and the scale at which they are simulated.
//!
//! Trials of the candidates are in `trial`.

use super::AdviseError;
use super::question::{Asked, Question};
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use lowtide_device::{DeviceSpec, Wear};
use lowtide_files::device::{self, Device, DeviceError, Listed};
use lowtide_report::lifetime::Endurance;

/// Minimum capacity of a scaled-down drive, in requests, …
const LEAST_REQUESTS: u64 = 400_000;
/// … and bounds for that minimum, in bytes.
const LEAST_BYTES: Bytes = Bytes::new(2_000_000_000);
const MOST_BYTES: Bytes = Bytes::new(10_000_000_000);
/// Maximum terminals per warehouse of a scaled-down database. The benchmark itself has ten.
pub(super) const TERMINALS_PER_WAREHOUSE: u32 = 4;
/// Limit on the divisor.
const MOST_SCALE: u64 = 1 << 16;

/// A candidate device.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Target of its experiments: a device name, or the path of a device file.
    pub target: String,
    /// Contents of its device file.
    pub device: Device,
    /// Its price in US dollars, if known.
    pub price_usd: Option<f64>,
    /// Whether the user gave the price.
    pub own_price: bool,
    /// Its wear by writing.
    pub wearing: Wearing,
    /// The divisor for the device and the data in simulations.
    pub scale: u64,
}

/// The wear of a device by writing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wearing {
    /// NAND with rated cycles.
    Rated(Endurance),
    /// No wear.
    Never,
    /// The device wears, but its endurance is unknown, for this reason.
    Unknown(&'static str),
}

/// An error in the choice of candidates.
#[derive(Debug, thiserror::Error)]
pub enum CandidateError {
    /// The device does not exist, or its file is invalid.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device description is inconsistent.
    #[error("the device {path} cannot be used: {reason}")]
    File {
        /// The device file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A price is given for a device that is not a candidate.
    #[error("a price for `{name}`, which is no candidate{}", near.as_ref().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    Price {
        /// The name in the price.
        name: String,
        /// The candidate with the most similar name.
        near: Option<String>,
    },
}

/// Returns the candidate devices: the named ones, or else every drive, disk and array of the catalogue.
///
/// # Errors
/// [`AdviseError`] if the question contradicts itself or a name is unknown.
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

/// Whether a device can be bought and holds all data in one place. Rented volumes are excluded. So are devices that
/// concatenate several drives for data and log, as some studies do.
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

/// The largest power of two by which device and data can be divided. A small model of flash is overwritten many times
/// within seconds. Devices without NAND do not need this and run at full size; databases are always scaled down.
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
            // With fewer warehouses, conflicts between terminals would slow the transactions down.
            let warehouses = super::question::warehouses(question.data);
            let fewest = u64::from(load.terminals / TERMINALS_PER_WAREHOUSE).max(4);
            (Box::new(move |scale| u64::from(warehouses) / scale >= fewest), question.data)
        }
    };
    let fits = |scale: u64| {
        let smaller = spec.scaled(scale);
        // Rounding can leave a scaled-down drive slightly less capacity than its share.
        smaller.validate().is_ok() && (data / scale <= smaller.capacity() || data > spec.capacity())
    };
    let mut scale = 1;
    while scale < MOST_SCALE && enough(2 * scale) && fits(2 * scale) {
        scale *= 2;
    }
    scale
}

impl Candidate {
    /// Bytes that the host can address.
    pub fn capacity(&self) -> Bytes {
        self.device.spec.capacity()
    }

    /// `data` as a share of the capacity.
    pub fn fill(&self, data: Bytes) -> f64 {
        data.get() as f64 / self.capacity().get() as f64
    }
}
