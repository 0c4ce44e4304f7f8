//! Opening a simulated device to be served live ([`Offer`]): device file, contents, state, cache, clock.
//!
//! Not here: who is served.

use super::drive::{Closed, LiveDrive, Parts};
use super::state::{Kept, STATE};
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

/// What is written.
const DATA: Role = Role::new("the data", "--data FILE");

/// The smallest drive that is served.
const SMALLEST: Bytes = Bytes::mib(1);

/// The longest name, in bytes: the protocol recommends no more, and every error that says it fits into a string.
const MOST_NAME: usize = 256;

/// Where the bytes of a drive lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// In memory, gone with the server.
    Memory,
    /// In a sparse file; in a folder, one without a name, gone with the server.
    File(PathBuf),
}

/// A drive to serve.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What clients call it; the device's name where none is given.
    pub name: Option<String>,
    /// The device, as [`device::find`] takes it.
    pub device: String,
    /// Where its bytes lie.
    pub data: Data,
    /// Where map, wear and history are kept.
    pub state: Option<PathBuf>,
    /// The share of the capacity that is left unused, from 0 to below 1.
    pub reserve: f64,
    /// So many times smaller.
    pub scale: u64,
    /// Another kind of cache than the device file says.
    pub cache: Option<CacheKind>,
    /// Bytes of a logical block, as the kernel is told where the drive is attached: a power cut leaves each whole.
    pub block: u32,
    /// Nothing may be changed.
    pub read_only: bool,
    /// The seed of every random choice.
    pub seed: Seed,
}

impl Offer {
    /// A device as its file says, in memory.
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

/// Why a drive cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such device, or its file cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No device can be so.
    #[error("the device `{device}` cannot be so: {reason}")]
    Spec {
        /// The device.
        device: String,
        /// What does not fit.
        reason: SpecError,
    },
    /// Too little is left of it.
    #[error(
        "{left} of `{device}` is less than {SMALLEST}: take a larger device, a smaller `--scale` or `--reserve`"
    )]
    TooSmall {
        /// The device.
        device: String,
        /// What the host would see.
        left: Bytes,
    },
    /// Clients could not say its name.
    #[error("the name of an export has {bytes} bytes, and at most {MOST_NAME}: give it another, NAME=DEVICE")]
    Name {
        /// Its length.
        bytes: usize,
    },
    /// Its state cannot be used, or not be kept there.
    #[error("the state {}: {reason}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: StateError,
    },
    /// Something would be lost.
    #[error(transparent)]
    Output(Box<OutputError>),
    /// Its bytes cannot lie there.
    #[error(transparent)]
    Data(#[from] SparseFileError),
    /// There is no memory for its bytes.
    #[error("no memory for {bytes} of data: {source}; `--data FILE` takes a sparse file")]
    Memory {
        /// The bytes.
        bytes: Bytes,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl From<OutputError> for OpenError {
    fn from(error: OutputError) -> Self {
        OpenError::Output(Box::new(error))
    }
}

/// A device that was looked up and checked: nothing of it exists yet.
#[derive(Debug, Clone)]
pub struct Known {
    /// What clients call it.
    pub name: String,
    /// The device file's title.
    pub title: String,
    offer: Offer,
    spec: DeviceSpec,
    /// Device files that its own refers to.
    files: Vec<PathBuf>,
}

/// A device scaled down by `scale`; `called` is its name in errors.
///
/// # Errors
/// [`OpenError`] where the device is invalid, before or after scaling.
pub fn scaled(device: Device, called: &str, scale: u64) -> Result<Device, OpenError> {
    let failed = |reason| OpenError::Spec { device: called.to_owned(), reason };
    device.spec.validate().map_err(failed)?;
    let spec = if scale > 1 { device.spec.scaled(scale) } else { device.spec };
    spec.validate().map_err(failed)?;
    Ok(Device { spec, ..device })
}

impl Offer {
    /// Looks the device up.
    ///
    /// # Errors
    /// [`OpenError`] where there is none, or it cannot be as it is wanted.
    pub fn look_up(self) -> Result<Known, OpenError> {
        let Device { name, title, spec, files, .. } =
            scaled(device::find(&self.device)?, &self.device, self.scale)?;
        let failed = |reason| OpenError::Spec { device: self.device.clone(), reason };
        let spec = match self.cache {
            Some(kind) => spec.with_cache(kind).map_err(failed)?,
            None => spec,
        };
        spec.validate().map_err(failed)?;
        let known = Known { name: self.name.clone().unwrap_or(name), title, offer: self, spec, files };
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

impl Known {
    /// Bytes the host sees.
    pub fn usable(&self) -> Bytes {
        let capacity = self.spec.capacity();
        let kept = (capacity.get() as f64 * (1.0 - self.offer.reserve.clamp(0.0, 1.0))) as u64;
        Bytes::new(kept.min(capacity.get())).align_down(Bytes::kib(4))
    }

    /// What it keeps acknowledged writes in.
    pub fn cache(&self) -> Cache {
        self.spec.cache()
    }

    /// What clients are told of it.
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

    /// Its cache in words.
    pub fn describe_cache(&self) -> String {
        match self.cache() {
            Cache::Protected => "nothing acknowledged is lost with the power".to_owned(),
            Cache::Volatile { size, honours_flush: true } => format!("{size} of volatile cache"),
            Cache::Volatile { size, honours_flush: false } => {
                format!("{size} of volatile cache that ignores flushes")
            }
        }
    }

    /// Where its bytes lie.
    pub fn keep_data(&mut self, data: Data) {
        self.offer.data = data;
    }

    /// Where map, wear and history are kept.
    pub fn keep_state(&mut self, path: PathBuf) {
        self.offer.state = Some(path);
    }

    fn kept(&self) -> Option<Kept> {
        self.offer.state.clone().map(Kept::at)
    }

    fn seed(&self) -> Seed {
        self.offer.seed.part("drive", 0)
    }

    /// Writes the state of a model of this device, as its state's file holds it.
    ///
    /// # Errors
    /// [`StateError`] where it cannot be written.
    pub(super) fn write_state(
        &self,
        out: &mut dyn io::Write,
        model: &AnyDevice,
        now: VirtualTime,
    ) -> Result<(), StateError> {
        state::save(out, &self.spec, self.seed(), now, model as &dyn BlockDevice)
    }

    /// The state that a server which ended in order left; `None` where none did.
    ///
    /// # Errors
    /// [`StateError`] where it is of another device, or damaged.
    pub(super) fn state_left(&self) -> Result<Option<Restored>, StateError> {
        match self.kept().filter(|kept| !kept.is_open()) {
            Some(kept) => kept.restore(&self.spec),
            None => Ok(None),
        }
    }

    /// Takes a drive that was served: what is to be kept of it is written.
    ///
    /// # Errors
    /// In words, where it cannot be written.
    pub fn close(&self, drive: LiveDrive) -> Result<(), String> {
        let Closed { model, now, mark } = drive.close().map_err(|error| error.to_string())?;
        if let Some(kept) = self.kept() {
            kept.save(&self.spec, self.seed(), now, &model)
                .map_err(|error| format!("{}: {error}", kept.path().display()))?;
        }
        if let Some(mut mark) = mark {
            mark.kept();
        }
        Ok(())
    }

    /// Makes the model, as new or as it was kept, and says at which instant it goes on.
    ///
    /// # Errors
    /// [`OpenError`] where no device can be so.
    pub fn model(&self) -> Result<(AnyDevice, VirtualTime), OpenError> {
        let kept = match self.kept() {
            Some(kept) => kept
                .restore(&self.spec)
                .map_err(|reason| OpenError::State { path: kept.path().to_owned(), reason })?,
            None => None,
        };
        let (device, now) = match kept {
            Some(Restored { device, now, .. }) => (device, now),
            None => {
                let failed = |reason| OpenError::Spec { device: self.offer.device.clone(), reason };
                (self.spec.build(self.seed()).map_err(failed)?, VirtualTime::START)
            }
        };
        let part = Partition::new(device, Bytes::ZERO, self.usable());
        Ok((Box::new(part.expect("a part from the start on fits")), now))
    }

    /// Refuses places for its bytes and its state where something would be lost: files that it is described by, `files`
    /// of others, stores. Adds its own to those.
    ///
    /// # Errors
    /// [`OutputError`].
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

    /// Makes the drive, as new or as it was kept.
    ///
    /// # Errors
    /// [`OpenError`] where there is no place for its bytes, or its state cannot be used.
    pub fn open(&self, pace: Pace) -> Result<LiveDrive, OpenError> {
        self.check_outputs(&mut CommandFiles::default())?;
        let size = self.usable();
        let contents = match &self.offer.data {
            Data::Memory => Contents::Memory(
                Memory::new(size.get()).map_err(|source| OpenError::Memory { bytes: size, source })?,
            ),
            Data::File(path) => Contents::File(SparseFile::open(path, size.get(), self.offer.read_only)?),
        };
        let mark = match self.kept() {
            Some(kept) => {
                let failed = |error: std::io::Error| OpenError::State {
                    path: kept.path().to_owned(),
                    reason: error.into(),
                };
                Some(kept.begin().map_err(failed)?)
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
            mark,
        }))
    }
}
