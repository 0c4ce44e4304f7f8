//! A simulated drive that is formatted and mounted for a database ([`Attached`]): a live drive behind a block device
//! of this machine.
//!
//! ```text
//!   PreparedDrive ─► history ─► server, a process of its own ─► /dev/loopN ─► xfs | ext4 | btrfs ─► path()
//!                ◄─ history ◄─            ▲ at_once, at_its_pace, stat
//! ```
//!
//! The server is a separate process, so that it does not use the filesystem that it serves. In the database's own
//! process, a thread that holds a lock or faults in a mapped file could block the server, and a process that waits
//! for itself cannot be killed. `PR_SET_IO_FLUSHER` lets the server allocate memory while the kernel writes back
//! dirty pages.
//!
//! If the drive answers at once, the model has a clock of its own. It advances by the time that requests would have
//! taken; the host's time between requests does not count. When the drive returns to the model's pace, the model
//! first completes all acknowledged requests on its own clock; from then on both clocks run together.
//!
//! A byte that was never written through the block device reads as zero, even if the model's history has written it.
//!
//! The database is in other crates; the server's command line is in the program `lowtide`.

use super::control::{self, AskError, Order, Question, Report};
use super::drive::LiveDrive;
use super::open::{Data, Offer, OpenError, ResolvedOffer};
use super::stat::Stat;
use super::time::Pace;
use super::{ControlSocket, Service};
use lowtide_core::{Bytes, Filesystem, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_device::power::{Loss, Tear};
use lowtide_device::state::Restored;
use lowtide_host::HostError;
use lowtide_host::attach::{self, AttachRequest, Force, Server};
use lowtide_host::live::{Buffers, Clock};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// The maximum length of a name before its suffix, in characters.
const LONGEST: usize = 40;

/// Size of a logical block in bytes.
const BLOCK: u32 = 4096;

/// The options of an attached drive.
pub struct AttachOptions<'a> {
    /// The device. If `data` is a directory, an unnamed file in it is used. The name need not be unique, because a
    /// number is appended. `state` is ignored.
    pub offer: Offer,
    /// A model of the same device with its history, and the time of its clock. Default: a new drive.
    pub history: Option<(&'a AnyDevice, VirtualTime)>,
    /// The filesystem to make.
    pub filesystem: Filesystem,
    /// The size of the filesystem. Default: the size of the drive.
    pub size: Option<Bytes>,
    /// Whether `mkfs` trims the drive first.
    pub trims: bool,
    /// Mount options for `mount -o`, or an empty string.
    pub options: &'a str,
    /// Creates the command that starts the server, which must call [`serve`].
    pub server: ServerOf,
    /// Set by another thread to cancel.
    pub interrupt: &'a Arc<AtomicBool>,
}

/// An error of an attached drive.
#[derive(Debug, thiserror::Error)]
pub enum AttachedError {
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A system call or an external program failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The server did not answer, or could not carry out an order.
    #[error("the attached drive {name}: {source}")]
    Ask {
        /// The drive's name.
        name: String,
        /// The reason.
        source: AskError,
    },
    /// The server cannot be started.
    #[error("the server of the attached drive {name} cannot be started: {source}")]
    Start {
        /// The drive's name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The drive's history cannot be recovered.
    #[error("the history of the attached drive {name} is lost: {why}")]
    Lost {
        /// The drive's name.
        name: String,
        /// The reason.
        why: String,
    },
}

/// A drive that is attached, formatted and mounted. Dropping it detaches it, even if it is in use.
#[derive(Debug)]
pub struct Attached {
    name: String,
    known: ResolvedOffer,
    path: PathBuf,
    control: PathBuf,
    interrupt: Arc<AtomicBool>,
    detached: bool,
}

/// The model of a detached drive.
pub struct Returned {
    /// The model with its history.
    pub model: AnyDevice,
    /// The time of the model's clock.
    pub now: VirtualTime,
}

impl std::fmt::Debug for Returned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a model at {:?}", self.now)
    }
}

impl Attached {
    /// Attaches a drive, makes a filesystem on it, and mounts it. The drive answers at once until
    /// [`Attached::at_its_pace`].
    ///
    /// # Errors
    /// [`AttachedError`]; nothing stays attached. [`HostError::NoBlockDevice`] without root privileges, FUSE or loop
    /// devices.
    pub fn new(wanted: AttachOptions<'_>) -> Result<Attached, AttachedError> {
        let name = name(wanted.offer.name.as_deref().unwrap_or(&wanted.offer.device));
        let state = attach::state_of(&name)?;
        let offer = Offer { name: Some(name.clone()), state: Some(state), block: BLOCK, ..wanted.offer };
        let command = (wanted.server)(&offer);
        let command = command.map_err(|source| AttachedError::Start { name: name.clone(), source })?;
        let known = offer.look_up()?;
        let path = attach::mount_of(&name)?;
        // A new model is passed to the server too, so that it is built with the offer's seed.
        let new;
        let (model, now) = match wanted.history {
            Some(history) => history,
            None => {
                new = known.model()?;
                (&new.0, new.1)
            }
        };
        let write = |out: &mut dyn io::Write| known.write_state(out, model, now).map_err(io::Error::other);
        let request = AttachRequest {
            filesystem: Some(wanted.filesystem),
            size: wanted.size,
            trims: wanted.trims,
            mount: Some(&path),
            options: wanted.options,
            history: Some(&write),
            owned: true,
            block: BLOCK,
            ..AttachRequest::new(&name, &known.title)
        };
        let control = attach::attach(&request, command, wanted.interrupt)?.control;
        let interrupt = Arc::clone(wanted.interrupt);
        Ok(Attached { name, known, path, control, interrupt, detached: false })
    }

    /// The mount point. Root owns its top folder, and other users may enter it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The drive's name, for `lowtide drive stat NAME` and other subcommands.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Switches to answers without delay, also for waiting requests. Used to load or copy data.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone.
    pub fn at_once(&self) -> Result<(), AttachedError> {
        self.ask(Order::AtOnce).map(drop)
    }

    /// Switches to answers at the model's pace, after the model has completed all work on its own clock. The caller
    /// must sync the host's dirty pages first: pages that are still dirty are written at the drive's pace.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone.
    pub fn at_its_pace(&self) -> Result<(), AttachedError> {
        self.ask(Order::AtItsPace).map(drop)
    }

    /// Statistics of the drive and its model. `reads`, `writes`, `flushes` and `trims` count since the drive was
    /// attached; `since_new` includes the model's history.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone.
    pub fn stat(&self) -> Result<Stat, AttachedError> {
        self.ask(Order::Stat)
    }

    /// Cuts the power. Writes that are not durable are kept, dropped, or torn into pieces of `tear`, and all requests
    /// fail until [`Attached::power_on`]. Returns the losses.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone, or if `tear` is smaller than a logical block (4096 bytes). No
    /// drive tears a logical block, and filesystems rely on that.
    pub fn power_cut(&self, tear: Tear) -> Result<Loss, AttachedError> {
        let order = Order::PowerCut { tear: tear.granule() as u32, stay_off: true };
        let report = self.order(order)?;
        Ok(report.losses.into_iter().next().unwrap_or_default())
    }

    /// Starts a log of all events, with checksums of the data; see [`super::request_log`].
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone.
    pub fn log_requests(&self) -> Result<(), AttachedError> {
        self.order(Order::LogRequests).map(drop)
    }

    /// Writes the log to a new file, and starts a new log.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone, there is no log, or the file cannot be created.
    pub fn take_log(&self, path: &Path) -> Result<(), AttachedError> {
        self.order(Order::TakeLog { path: path.to_owned() }).map(drop)
    }

    /// Restores the power. The mounted filesystem remains unusable until [`Attached::mount_after_power_cut`].
    ///
    /// # Errors
    /// [`AttachedError::Ask`] if the server is gone.
    pub fn power_on(&self) -> Result<(), AttachedError> {
        self.order(Order::PowerOn).map(drop)
    }

    /// Unmounts the unusable filesystem, even if it is in use, and mounts it again.
    ///
    /// # Errors
    /// [`HostError`] if the filesystem cannot be mounted.
    pub fn mount_after_power_cut(&mut self) -> Result<(), AttachedError> {
        attach::reattach(&self.name, Force::Lazily, &self.interrupt)?;
        Ok(())
    }

    /// Unmounts and remounts the filesystem, which drops its pages from the kernel's page cache.
    ///
    /// # Errors
    /// [`HostError::Busy`] if the filesystem is in use.
    pub fn remount(&mut self) -> Result<(), AttachedError> {
        attach::reattach(&self.name, Force::No, &self.interrupt)?;
        Ok(())
    }

    /// Detaches the drive and returns its model. The history of the model includes the write-back of all dirty pages.
    ///
    /// # Errors
    /// [`HostError::Busy`] if the drive is in use. [`AttachedError::Lost`] if the server did not shut down cleanly;
    /// the drive is detached nevertheless.
    pub fn detach(mut self) -> Result<Returned, AttachedError> {
        let (mut state, mut log) = (None, String::new());
        // The pace stays as it is, because write-back of dirty pages is part of the history.
        let detached = attach::detach_with(&self.name, Force::No, |path| {
            state = Some(self.known.state_left());
            let text = std::fs::read_to_string(path.with_extension("log")).unwrap_or_default();
            log = text.lines().rfind(|line| line.starts_with("error")).unwrap_or_default().to_owned();
        })?;
        self.detached = true;
        let lost = |why: String| AttachedError::Lost { name: self.name.clone(), why };
        if detached.cut_off {
            return Err(lost("its server did not answer and was disconnected".to_owned()));
        }
        match state {
            Some(Ok(Some(Restored { device, now, .. }))) => Ok(Returned { model: device, now }),
            Some(Err(error)) => Err(lost(error.to_string())),
            Some(Ok(None)) | None => {
                Err(lost(format!("its server did not shut down cleanly; its log says: `{log}`")))
            }
        }
    }

    fn ask(&self, order: Order) -> Result<Stat, AttachedError> {
        let nothing = || AskError::Refused("the answer is empty".to_owned());
        let stat = self.order(order)?.stats.into_iter().next();
        stat.ok_or_else(|| AttachedError::Ask { name: self.name.clone(), source: nothing() })
    }

    fn order(&self, order: Order) -> Result<Report, AttachedError> {
        let failed = |source| AttachedError::Ask { name: self.name.clone(), source };
        control::ask(&self.control, &Question { drive: None, order }).map_err(failed)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.detached {
            // The next campaign cleans up a drive that stays attached.
            let _ = attach::detach(&self.name, Force::Lazily);
        }
    }
}

/// Creates the command that starts this program as the server of a drive; see [`AttachOptions::server`].
pub type ServerOf = fn(&Offer) -> io::Result<Command>;

/// The command that starts `lowtide` at the path `program` as the server of an offer.
pub fn server_command(program: &Path, offer: &Offer) -> Command {
    let mut command = Command::new(program);
    command.args(["drive", "attach", &offer.device, "--at-once-first", "--rt", "--server"]);
    command.arg(offer.name.as_deref().unwrap_or(&offer.device));
    command.arg("--scale").arg(format!("1/{}", offer.scale));
    command.arg("--reserve").arg(offer.reserve.to_string());
    command.arg("--block").arg(offer.block.to_string());
    command.arg("--seed").arg(offer.seed.get().to_string());
    if let Some(cache) = offer.cache {
        command.arg("--cache").arg(cache.to_string());
    }
    if let Some(state) = &offer.state {
        command.arg("--state").arg(state);
    }
    if let Data::File(path) = &offer.data {
        command.arg("--data").arg(path);
    }
    command
}

static SERVER_OF: OnceLock<ServerOf> = OnceLock::new();

/// Sets the server command for campaigns. Only the first call has an effect.
pub fn set_server(server: ServerOf) {
    let _ = SERVER_OF.set(server);
}

/// The server command set by [`set_server`]. Without it, no drive can be attached.
pub fn server() -> ServerOf {
    let none: ServerOf = |_| Err(io::Error::other("this program does not serve drives"));
    SERVER_OF.get().copied().unwrap_or(none)
}

/// Detaches all drives whose process has ended, such as those of a killed campaign, and returns their names.
///
/// # Errors
/// [`HostError`] if a drive cannot be detached.
pub fn clean() -> Result<Vec<String>, HostError> {
    attach::detach_orphans()
}

/// The timing and priority of the server of an attached drive.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServeOptions {
    /// Always answers at once.
    pub no_delay: bool,
    /// Answers at once until an order changes that. The transport time is measured nevertheless.
    pub at_once_first: bool,
    /// Runs with real-time priority. Without it, programs on the same processors, such as the database, delay the
    /// drive's answers.
    pub real_time: bool,
}

/// A drive after serving.
pub struct Served {
    /// The drive, which the caller must close.
    pub drives: Vec<LiveDrive>,
    /// The result of detaching the drive from the kernel.
    pub ended: Result<(), HostError>,
}

/// Serves a drive in this process, which [`attach::attach`] started, until the drive is detached. `say` prints
/// warnings. Returns `None` if the parent process has ended. The process must have only one thread.
///
/// # Errors
/// [`AttachedError`] if the drive cannot be opened, or the server or its socket cannot be created.
pub fn serve(
    known: &ResolvedOffer,
    how: ServeOptions,
    say: impl Fn(std::fmt::Arguments<'_>),
) -> Result<Option<Served>, AttachedError> {
    let Some(server) = Server::begin(&known.name)? else { return Ok(None) };
    let failed = |source| AttachedError::Start { name: known.name.clone(), source };
    // Later threads inherit the priority. It is set before wake-up delay and transport time are measured.
    if how.real_time
        && let Err(error) = lowtide_host::live::real_time()
    {
        say(format_args!("warning: cannot enable real-time scheduling (--rt): {error}"));
    }
    let clock = Clock::new();
    let pace = match how.no_delay {
        true => Pace::NoDelay,
        false => Pace::RealTime { transport_ns: server.transport_ns(clock)? },
    };
    let mut drive = known.open(pace)?;
    if how.at_once_first {
        drive.at_once(0);
    }
    if let Some(warning) = drive.warning() {
        say(format_args!("warning: {warning}"));
    }
    let exported = known.export();
    let mut service = Service::start(vec![drive], clock, false, Buffers::default()).map_err(failed)?;
    service.obey(ControlSocket::at(&server.control()).map_err(|error| failed(io::Error::other(error)))?);
    let ended = server.serve(service.port(0, exported.minimum_block));
    service.handle().stop();
    Ok(Some(Served { drives: service.wait(), ended }))
}

/// A unique name: letters, digits, `-` and `_` of `wanted`, then the process id and a counter.
fn name(wanted: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let last = Path::new(wanted).file_stem().unwrap_or_default().to_string_lossy();
    let plain = last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_');
    let plain: String = plain.skip_while(|c| *c == '-').take(LONGEST).collect();
    let plain = if plain.is_empty() { "drive" } else { &plain };
    format!("{plain}-{}-{number}", std::process::id())
}
