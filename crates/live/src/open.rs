//! Opens a simulated device for live serving ([`Offer`]): its device file, contents, state, cache and clock.
//!
//! Clients are in `service` and `lowtide_host`.

use super::drive::{LiveDrive, Parts};
use super::state::{STATE, StateFile};
use super::time::Pace;
use lowtide_core::{BlockDevice, Bytes, Seed, StateError, VirtualTime};
use lowtide_device::fault::Fault;
use lowtide_device::power::{Cache, CacheKind};
use lowtide_device::state::{self, Restored};
use lowtide_device::{AnyDevice, DeviceSpec, Partition, SpecError};
use lowtide_files::device::{self, Device, DeviceError};
use lowtide_files::output::{self, CommandFiles, Output, OutputError, Role};
use lowtide_host::live::Contents;
use lowtide_host::live::contents::{Memory, SparseFile, SparseFileError};
use lowtide_host::nbd::Export;
use std::io;
use std::path::PathBuf;

const DATA: Role = Role::new("the data", "--data FILE");

/// The minimum size of a live drive.
const SMALLEST: Bytes = Bytes::mib(1);

/// The maximum length of a name, in bytes: the protocol's recommendation, which also leaves room for error texts.
const MOST_NAME: usize = 256;

/// The storage for the bytes of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Memory; lost when the server ends.
    Memory,
    /// A sparse file. If the path is a directory, an unnamed temporary file in it, which is lost when the server
    /// ends.
    File(PathBuf),
}

/// The options of a live drive.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The export's name. Default: the device's name.
    pub name: Option<String>,
    /// The device, by a name that [`device::find`] accepts.
    pub device: String,
    /// The storage for the drive's bytes.
    pub data: Data,
    /// The file for the model's map, wear and history.
    pub state: Option<PathBuf>,
    /// The unused share of the capacity, at least 0 and less than 1.
    pub reserve: f64,
    /// The divisor by which the device is scaled down.
    pub scale: u64,
    /// Overrides the cache in the device file.
    pub cache: Option<CacheKind>,
    /// Size of a logical block in bytes. A power cut never tears one.
    pub block: u32,
    /// Whether clients may only read.
    pub read_only: bool,
    /// The seed of every random choice.
    pub seed: Seed,
}

impl Offer {
    /// A device with default options, in memory.
    pub fn of(device: &str) -> Offer {
        Offer {
            name: None,
            device: device.to_owned(),
            data: Data::Memory,
            state: None,
            reserve: 0.0,
            scale: 1,
            cache: None,
            block: 512,
            read_only: false,
            seed: Seed::new(1),
        }
    }
}

/// The reason why a drive cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The device is unknown, or its file is invalid.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The options do not fit the device.
    #[error("the device `{device}` is invalid with these options: {reason}")]
    Spec {
        /// The device's name.
        device: String,
        /// The invalid parameter.
        reason: SpecError,
    },
    /// The drive is too small.
    #[error(
        "{left} of `{device}` is less than {SMALLEST}: take a larger device, a smaller `--scale` or `--reserve`"
    )]
    TooSmall {
        /// The device's name.
        device: String,
        /// Size of the drive that clients would see.
        left: Bytes,
    },
    /// The name is too long.
    #[error(
        "the name of an export has {bytes} bytes, but may have {MOST_NAME}: choose another one with NAME=DEVICE"
    )]
    Name {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The state cannot be read or written.
    #[error("the state {}: {reason}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: StateError,
    },
    /// An output would overwrite another file.
    #[error(transparent)]
    Output(Box<OutputError>),
    /// The file cannot store the drive's bytes.
    #[error(transparent)]
    Data(#[from] SparseFileError),
    /// The memory for the drive's bytes cannot be reserved.
    #[error("cannot reserve {bytes} of memory for the data: {source}; `--data FILE` uses a sparse file")]
    Memory {
        /// The size of the drive.
        bytes: Bytes,
        /// The system's error.
        source: io::Error,
    },
}

impl From<OutputError> for OpenError {
    fn from(error: OutputError) -> Self {
        OpenError::Output(Box::new(error))
    }
}

/// An [`Offer`] whose device is loaded and checked. Nothing is opened or created yet.
#[derive(Debug, Clone)]
pub struct ResolvedOffer {
    /// The export's name.
    pub name: String,
    /// The title of the device file.
    pub title: String,
    offer: Offer,
    spec: DeviceSpec,
    /// Device files that the device file refers to.
    files: Vec<PathBuf>,
}

/// Scales a device down by `scale`; `called` is its name in errors.
///
/// # Errors
/// [`OpenError`] if the device is invalid, before or after scaling.
pub fn scaled(device: Device, called: &str, scale: u64) -> Result<Device, OpenError> {
    let failed = |reason| OpenError::Spec { device: called.to_owned(), reason };
    device.spec.validate().map_err(failed)?;
    let spec = if scale > 1 { device.spec.scaled(scale) } else { device.spec };
    spec.validate().map_err(failed)?;
    Ok(Device { spec, ..device })
}

impl Offer {
    /// Loads and checks the device.
    ///
    /// # Errors
    /// [`OpenError`] if there is no such device, or the options do not fit it.
    pub fn look_up(self) -> Result<ResolvedOffer, OpenError> {
        let Device { name, title, spec, files, .. } =
            scaled(device::find(&self.device)?, &self.device, self.scale)?;
        let failed = |reason| OpenError::Spec { device: self.device.clone(), reason };
        let spec = match self.cache {
            Some(kind) => spec.with_cache(kind).map_err(failed)?,
            None => spec,
        };
        spec.validate().map_err(failed)?;
        let known =
            ResolvedOffer { name: self.name.clone().unwrap_or(name), title, offer: self, spec, files };
        if known.name.len() > MOST_NAME {
            return Err(OpenError::Name { bytes: known.name.len() });
        }
        let left = known.usable();
        if left < SMALLEST {
            return Err(OpenError::TooSmall { device: known.offer.device, left });
        }
        Ok(known)
    }
}

impl ResolvedOffer {
    /// Size of the drive that clients see.
    pub fn usable(&self) -> Bytes {
        let capacity = self.spec.capacity();
        let kept = (capacity.get() as f64 * (1.0 - self.offer.reserve.clamp(0.0, 1.0))) as u64;
        Bytes::new(kept.min(capacity.get())).align_down(Bytes::kib(4))
    }

    /// The drive's write cache.
    pub fn cache(&self) -> Cache {
        self.spec.cache()
    }

    /// The export that clients see.
    pub fn export(&self) -> Export {
        Export {
            name: self.name.clone(),
            description: self.title.clone(),
            size: self.usable().get(),
            minimum_block: 512,
            preferred_block: 4096,
            read_only: self.offer.read_only,
            rotational: self.spec.is_rotational(),
        }
    }

    /// A description of the cache.
    pub fn describe_cache(&self) -> String {
        match self.cache() {
            Cache::Protected => "acknowledged writes survive a power cut".to_owned(),
            Cache::Volatile { size, honours_flush: true } => format!("{size} of volatile cache"),
            Cache::Volatile { size, honours_flush: false } => {
                format!("{size} of volatile cache that ignores flushes")
            }
        }
    }

    /// Replaces the storage for the drive's bytes.
    pub fn keep_data(&mut self, data: Data) {
        self.offer.data = data;
    }

    /// Sets the state file.
    pub fn keep_state(&mut self, path: PathBuf) {
        self.offer.state = Some(path);
    }

    fn state_file(&self) -> Option<StateFile> {
        self.offer.state.clone().map(StateFile::at)
    }

    fn seed(&self) -> Seed {
        self.offer.seed.part("drive", 0)
    }

    /// Writes the state of a model of this device, in the format of the state file.
    ///
    /// # Errors
    /// [`StateError`] if it cannot be written.
    pub(super) fn write_state(
        &self,
        out: &mut dyn io::Write,
        model: &AnyDevice,
        now: VirtualTime,
    ) -> Result<(), StateError> {
        state::save(out, &self.spec, self.seed(), now, model as &dyn BlockDevice)
    }

    /// Reads the state that the last server saved when it shut down cleanly; `None` if there is none.
    ///
    /// # Errors
    /// [`StateError`] if it belongs to another device, or is damaged.
    pub(super) fn state_left(&self) -> Result<Option<Restored>, StateError> {
        match self.state_file().filter(|file| !file.is_open()) {
            Some(file) => file.restore(&self.spec),
            None => Ok(None),
        }
    }

    /// Closes a drive after serving, and saves its state.
    ///
    /// # Errors
    /// A message for the user, if the data or the state cannot be written.
    pub fn close(&self, drive: LiveDrive) -> Result<(), String> {
        let (model, now, marker) = drive.close().map_err(|error| error.to_string())?;
        if let Some(file) = self.state_file() {
            file.save(&self.spec, self.seed(), now, &model)
                .map_err(|error| format!("{}: {error}", file.path().display()))?;
        }
        if let Some(mut marker) = marker {
            marker.state_saved();
        }
        Ok(())
    }

    /// Builds the model, new or from the saved state. Returns it with the instant of its clock.
    ///
    /// # Errors
    /// [`OpenError`] if the state cannot be used.
    pub fn model(&self) -> Result<(AnyDevice, VirtualTime), OpenError> {
        let restored = match self.state_file() {
            Some(file) => file
                .restore(&self.spec)
                .map_err(|reason| OpenError::State { path: file.path().to_owned(), reason })?,
            None => None,
        };
        let (device, now) = match restored {
            Some(Restored { device, now, .. }) => (device, now),
            None => {
                let failed = |reason| OpenError::Spec { device: self.offer.device.clone(), reason };
                (self.spec.build(self.seed()).map_err(failed)?, VirtualTime::START)
            }
        };
        let usable = Partition::new(device, Bytes::ZERO, self.usable());
        Ok((Box::new(usable.expect("the usable part is not larger than the device")), now))
    }

    /// Checks that the files for data and state do not overwrite device files, stores, or `files`, the files of other
    /// drives. Then adds them to `files`.
    pub fn check_outputs(&self, files: &mut CommandFiles) -> Result<(), OutputError> {
        files.add_device(&self.offer.device, &self.files);
        if let Data::File(path) = &self.offer.data
            && !path.is_dir()
        {
            if !self.offer.read_only {
                output::in_place(DATA, path, files)?;
            }
            files.add("the data", path);
        }
        if let Some(path) = &self.offer.state {
            Output::file(STATE, path, files)?;
            files.add("the state", path);
        }
        Ok(())
    }

    /// Opens the drive, new or from its saved state.
    ///
    /// # Errors
    /// [`OpenError`] if its bytes cannot be stored, or its state cannot be used.
    pub fn open(&self, pace: Pace) -> Result<LiveDrive, OpenError> {
        self.check_outputs(&mut CommandFiles::default())?;
        let size = self.usable();
        let contents = match &self.offer.data {
            Data::Memory => Contents::Memory(
                Memory::new(size.get()).map_err(|source| OpenError::Memory { bytes: size, source })?,
            ),
            Data::File(path) => Contents::File(SparseFile::open(path, size.get(), self.offer.read_only)?),
        };
        let marker = match self.state_file() {
            Some(file) => {
                let failed = |error: io::Error| OpenError::State {
                    path: file.path().to_owned(),
                    reason: error.into(),
                };
                Some(file.begin().map_err(failed)?)
            }
            None => None,
        };
        let (model, began) = self.model()?;
        Ok(LiveDrive::new(Parts {
            export: self.export(),
            model: Fault::new(model, self.offer.seed.part("faults", 0)),
            began,
            cache: self.cache(),
            block: self.offer.block,
            contents,
            pace,
            seed: self.offer.seed,
            marker,
        }))
    }
}
