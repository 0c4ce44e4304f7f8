//! The target of a plan: simulated devices by name, files of the host, or a block device of the host.
//!
//! Files and devices of the host are not opened here; they are checked again when the plan is carried out.

use crate::experiment::{BadInput, Experiment, Level, Target};
use lowtide_core::Bytes;
use lowtide_device::DeviceSpec;
use lowtide_files::device::{self, Device, DeviceError};
use lowtide_files::output::CommandFiles;
use lowtide_host::block::Disk;
use lowtide_host::target::TargetSpec;
use std::collections::BTreeMap;

/// The target of a plan.
#[derive(Debug, Clone)]
pub enum PlanTarget {
    /// Simulated devices, by their names in the experiment.
    Simulated(BTreeMap<String, PlannedDevice>),
    /// Files of this machine.
    Host(TargetSpec),
    /// A block device of this machine.
    Block(Box<PlannedBlock>),
    /// Simulated devices in wall time, as block devices of this machine, for databases.
    Attached(BTreeMap<String, PlannedDevice>),
}

/// A block device of a plan, and the user's consent to overwrite it.
#[derive(Debug, Clone)]
pub struct PlannedBlock {
    /// The device at the time of planning.
    pub disk: Disk,
    /// The serial number that the user typed.
    pub destroy: Option<String>,
    /// Whether the user accepts the loss of a recognised filesystem or partition table.
    pub force_signature: bool,
    /// Whether all cells only read from the device.
    pub only_read: bool,
}

/// A simulated device of a plan.
#[derive(Debug, Clone)]
pub struct PlannedDevice {
    /// The contents of its device file.
    pub device: Device,
    /// The description of the device, scaled.
    pub spec: DeviceSpec,
}

impl PlanTarget {
    pub(super) fn of(experiment: &Experiment, scale: u64) -> Result<PlanTarget, BadInput> {
        match &experiment.target {
            Target::File(path) => Ok(PlanTarget::Host(TargetSpec::File(path.clone()))),
            Target::Directory(path) => Ok(PlanTarget::Host(TargetSpec::Directory(path.clone()))),
            Target::Block(path) => {
                let disk = Disk::find(path).map_err(|error| {
                    let help = "a block device, such as `/dev/disk/by-id/…`";
                    experiment.blame("target.block", error.to_string(), help)
                })?;
                let block = PlannedBlock { disk, destroy: None, force_signature: false, only_read: false };
                Ok(PlanTarget::Block(Box::new(block)))
            }
            Target::Device(name) => {
                let (mut names, mut logs) = (Vec::new(), Vec::new());
                let factors = experiment.steps.iter().flat_map(|step| &step.sweep);
                for level in factors.flat_map(|factor| &factor.levels) {
                    match level {
                        Level::Device(name) => names.push(name),
                        Level::LogDevice(name) => logs.push(name),
                        _ => {}
                    }
                }
                if names.is_empty() {
                    names.push(name);
                }
                let oltp = experiment.load.work.transactions();
                logs.extend(oltp.and_then(|oltp| oltp.log_device.as_ref()));
                let mut devices = BTreeMap::new();
                for name in names.into_iter().chain(logs) {
                    devices.insert(name.clone(), load(experiment, name, scale)?);
                }
                Ok(match oltp {
                    Some(_) if !experiment.is_modelled() => PlanTarget::Attached(devices),
                    _ => PlanTarget::Simulated(devices),
                })
            }
        }
    }

    pub(super) fn environment(&self, scale: u64) -> Vec<(String, String)> {
        match self {
            PlanTarget::Simulated(devices) => {
                let engine = ("engine".to_owned(), "simulated, virtual time".to_owned());
                let memory = devices.iter().filter_map(|(name, device)| {
                    let memory = device.spec.host_memory() * scale;
                    (memory > Bytes::ZERO).then(|| ("host-memory".to_owned(), format!("{name}: {memory}")))
                });
                std::iter::once(engine).chain(memory).collect()
            }
            PlanTarget::Attached(_) => {
                let engine = ("engine".to_owned(), "simulated, wall time".to_owned());
                let machine = lowtide_host::environment::describe(&std::env::temp_dir());
                std::iter::once(engine).chain(machine).collect()
            }
            PlanTarget::Host(spec) => lowtide_host::environment::describe(spec.path()),
            PlanTarget::Block(block) => lowtide_host::environment::describe_device(&block.disk),
        }
    }

    /// Adds the device files, or the file under test.
    pub(super) fn add_files(&self, files: &mut CommandFiles) {
        match self {
            PlanTarget::Simulated(devices) | PlanTarget::Attached(devices) => {
                for (name, planned) in devices {
                    files.add_device(name, &planned.device.files);
                }
            }
            PlanTarget::Host(TargetSpec::File(path)) => files.add("the file under test", path),
            PlanTarget::Host(TargetSpec::Directory(_)) | PlanTarget::Block(_) => {}
        }
    }

    /// Returns whether the target is a model in virtual time.
    pub fn is_simulated(&self) -> bool {
        matches!(self, PlanTarget::Simulated(_))
    }

    /// The simulated devices.
    pub fn devices(&self) -> impl Iterator<Item = &PlannedDevice> {
        let devices = match self {
            PlanTarget::Simulated(devices) | PlanTarget::Attached(devices) => Some(devices),
            PlanTarget::Host(_) | PlanTarget::Block(_) => None,
        };
        devices.into_iter().flat_map(BTreeMap::values)
    }
}

fn load(experiment: &Experiment, name: &str, scale: u64) -> Result<PlannedDevice, BadInput> {
    let device = device::find(name).map_err(|error| {
        let (message, help) = match &error {
            DeviceError::File { path, reason } => (
                format!("{path} is not a device file: {reason}"),
                format!("correct {path}; `lowtide devices show intel-320-160gb` prints a device file"),
            ),
            error => (error.to_string(), error.accepted()),
        };
        experiment.blame("target.device", message, help)
    })?;
    let check = |spec: &DeviceSpec, help: &str| {
        spec.validate().map_err(|error| experiment.blame("target.device", format!("{name}: {error}"), help))
    };
    check(&device.spec, "correct the device file")?;
    let spec = device.spec.scaled(scale);
    check(&spec, "use a larger share, such as `--scale 1/8`")?;
    Ok(PlannedDevice { device, spec })
}
