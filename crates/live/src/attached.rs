//! A simulated drive as the home of a database ([`Attached`]): served live, a block device of this machine, formatted and
//! mounted, for as long as this lives.
//!
//! ```text
//!   PreparedDrive ─► history ─► server, a process of its own ─► /dev/loopN ─► xfs | ext4 | btrfs ─► path()
//!                ◄─ history ◄─            ▲ at_once, at_its_pace, stat
//! ```
//!
//! The server is a process of its own, which uses nothing of the filesystem it serves: whatever this process does there, with
//! whichever lock in its hands or page fault of its memory, the server goes on. That a thread of the same process faults in
//! a file that is mapped from there, and so keeps the memory of all threads from changing, would be enough to stop a server
//! in it; and a process that waits for itself cannot be killed. Memory that the server needs while the kernel writes dirty
//! pages back is not waited for (`PR_SET_IO_FLUSHER`).
//!
//! While the drive answers at once, the time of the model is its own: it takes for every request what it would have taken,
//! and what the host spends between requests does not exist for it. When it answers at its pace again, the model first
//! completes what it has acknowledged, so that nobody waits for that; from then on a second of the host is one of the model.
//! Bytes that were never written through the block device read as zeroes, whatever the history of the model says.
//!
//! Not here: what is stored there, and how the program is told that it is to be a server.

use super::control::{self, AskError, Order, Question, Report};
use super::drive::LiveDrive;
use super::open::{Data, Known, Offer, OpenError};
use super::stat::Stat;
use super::time::Pace;
use super::{Orders, Service};
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

/// The longest name that another part is put behind.
const LONGEST: usize = 40;

/// Bytes of a logical block.
const BLOCK: u32 = 4096;

/// What is to be attached.
pub struct Wanted<'a> {
    /// The device, as it was looked up; in `data`, a folder stands for a file in it that nobody else sees. Names need
    /// not differ from those of other drives: a number is put behind them. What it says of its state is not used.
    pub offer: Offer,
    /// Its history, and the instant at which it goes on; as new where absent. The model is one of the same description.
    pub history: Option<(&'a AnyDevice, VirtualTime)>,
    /// The filesystem that is made.
    pub filesystem: Filesystem,
    /// Its size, from the first byte of the drive; the whole drive where absent.
    pub size: Option<Bytes>,
    /// Whether making it trims the drive first.
    pub trims: bool,
    /// Mount options, as `mount -o` takes them; none where empty.
    pub options: &'a str,
    /// This program once more, as the server of an offer with a name and a state: the command has to end in [`serve`].
    pub server: ServerOf,
    /// Set where nobody wants to wait any more.
    pub interrupt: &'a Arc<AtomicBool>,
}

/// Why a drive cannot be attached, asked or given back.
#[derive(Debug, thiserror::Error)]
pub enum AttachedError {
    /// There is no such device.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The machine, or a program of it, refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The server does not answer, or does not do what it is told.
    #[error("the attached drive {name}: {source}")]
    Ask {
        /// Its name.
        name: String,
        /// What came instead.
        source: AskError,
    },
    /// The program cannot be started once more.
    #[error("the server of the attached drive {name} cannot be started: {source}")]
    Start {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// Its history is not to be had back.
    #[error("the history of the attached drive {name} is lost: {why}")]
    Lost {
        /// Its name.
        name: String,
        /// How.
        why: String,
    },
}

/// A drive that is attached, formatted and mounted. Dropping it takes it apart, whoever still uses it.
#[derive(Debug)]
pub struct Attached {
    name: String,
    known: Known,
    path: PathBuf,
    control: PathBuf,
    interrupt: Arc<AtomicBool>,
    /// It was taken apart.
    gone: bool,
}

/// The model of a drive that was detached.
pub struct Returned {
    /// The model, with all that was asked of it.
    pub model: AnyDevice,
    /// The instant on its clock.
    pub now: VirtualTime,
}

impl std::fmt::Debug for Returned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a model at {:?}", self.now)
    }
}

impl Attached {
    /// Attaches a drive, makes a filesystem on it, and mounts that. It answers at once until it is told otherwise.
    ///
    /// # Errors
    /// [`AttachedError`]; nothing is left, then. Without root, FUSE or loop devices it is [`HostError::NoBlockDevice`].
    pub fn new(wanted: Wanted<'_>) -> Result<Attached, AttachedError> {
        let name = name(wanted.offer.name.as_deref().unwrap_or(&wanted.offer.device));
        let state = attach::state_of(&name)?;
        let offer = Offer { name: Some(name.clone()), state: Some(state), block: BLOCK, ..wanted.offer };
        let command = (wanted.server)(&offer);
        let command = command.map_err(|source| AttachedError::Start { name: name.clone(), source })?;
        let known = offer.look_up()?;
        let path = attach::mount_of(&name)?;
        // A drive as new is handed over, too: its seed is that of the offer.
        let fresh;
        let (model, now) = match wanted.history {
            Some(history) => history,
            None => {
                fresh = known.model()?;
                (&fresh.0, fresh.1)
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
        Ok(Attached { name, known, path, control, interrupt, gone: false })
    }

    /// Where its filesystem is mounted. Its root belongs to root; others may go there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is called: `lowtide drive stat NAME` and the other verbs find it by that.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Answers at once from now on, also what is waited for: while data is loaded, or copied.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone.
    pub fn at_once(&self) -> Result<(), AttachedError> {
        self.ask(Order::AtOnce).map(drop)
    }

    /// Answers when the model says so from now on. The model rests first, in its own time: see this file's beginning. Dirty
    /// pages of the host are the caller's: what is not synced by now is written at the drive's pace.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone.
    pub fn at_its_pace(&self) -> Result<(), AttachedError> {
        self.ask(Order::AtItsPace).map(drop)
    }

    /// What the drive and its model have counted. `reads`, `writes`, `flushes` and `trims` are of this drive since it was
    /// attached; `since_new` is of the model with its history.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone.
    pub fn stat(&self) -> Result<Stat, AttachedError> {
        self.ask(Order::Stat)
    }

    /// Cuts its power: what was not durable is kept, dropped or torn in pieces of `tear`, and every request fails until
    /// [`Attached::power_on`]. What that took.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone, or pieces would be smaller than the logical blocks that the kernel
    /// was told of, which are 4096 bytes: no drive tears these, and filesystems count on it.
    pub fn power_cut(&self, tear: Tear) -> Result<Loss, AttachedError> {
        let order = Order::PowerCut { tear: tear.granule() as u32, stay_off: true };
        let report = self.order(order)?;
        Ok(report.losses.into_iter().next().unwrap_or_default())
    }

    /// Logs what happens to it from now on, with checksums of all data; see [`super::request_log`].
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone.
    pub fn log_requests(&self) -> Result<(), AttachedError> {
        self.order(Order::LogRequests).map(drop)
    }

    /// Writes the log until now into a new file; a new one begins.
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone, logs nothing, or the file cannot be made.
    pub fn take_log(&self, path: &Path) -> Result<(), AttachedError> {
        self.order(Order::TakeLog { path: path.to_owned() }).map(drop)
    }

    /// Gives it its power back; what was opened before stays dead until [`Attached::again`].
    ///
    /// # Errors
    /// [`AttachedError::Ask`] where the server is gone.
    pub fn power_on(&self) -> Result<(), AttachedError> {
        self.order(Order::PowerOn).map(drop)
    }

    /// Takes the dead filesystem off, whoever uses it, and mounts what is on the drive.
    ///
    /// # Errors
    /// [`HostError`] where the filesystem cannot be mounted.
    pub fn again(&mut self) -> Result<(), AttachedError> {
        attach::reattach(&self.name, Force::Lazily, &self.interrupt)?;
        Ok(())
    }

    /// Unmounts and mounts again: nothing of what lies there is left in the memory of the kernel. Nobody may use it.
    ///
    /// # Errors
    /// [`HostError::Busy`] where somebody does.
    pub fn remount(&mut self) -> Result<(), AttachedError> {
        attach::reattach(&self.name, Force::No, &self.interrupt)?;
        Ok(())
    }

    /// Takes it apart, and gives the model back as the host left it: everything that was written is acknowledged, and is in
    /// its history.
    ///
    /// # Errors
    /// [`HostError::Busy`] where somebody uses it, [`AttachedError::Lost`] where the server did not end in order: it is
    /// taken apart all the same.
    pub fn detach(mut self) -> Result<Returned, AttachedError> {
        let (mut left, mut said) = (None, String::new());
        // It is unmounted at the pace it has: what is dirty is part of its history.
        let detached = attach::detach_with(&self.name, Force::No, |state| {
            left = Some(self.known.state_left());
            let log = std::fs::read_to_string(state.with_extension("log")).unwrap_or_default();
            said = log.lines().rfind(|line| line.starts_with("error")).unwrap_or_default().to_owned();
        })?;
        self.gone = true;
        let lost = |why: String| AttachedError::Lost { name: self.name.clone(), why };
        if detached.cut_off {
            return Err(lost("it did not answer, and was cut off".to_owned()));
        }
        match left {
            Some(Ok(Some(Restored { device, now, .. }))) => Ok(Returned { model: device, now }),
            Some(Err(error)) => Err(lost(error.to_string())),
            Some(Ok(None)) | None => Err(lost(format!("its server did not end in order; it said: `{said}`"))),
        }
    }

    fn ask(&self, order: Order) -> Result<Stat, AttachedError> {
        let nothing = || AskError::Refused("it says nothing".to_owned());
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
        if !self.gone {
            // What does not go now is found by the next campaign; whoever wants to know calls `detach`.
            let _ = attach::detach(&self.name, Force::Lazily);
        }
    }
}

/// How this program is started once more as the server of a drive; see [`Wanted::server`].
pub type ServerOf = fn(&Offer) -> io::Result<Command>;

/// The command that makes the program `lowtide` at that path the server of an offer.
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

/// Says how servers of drives are started for campaigns; the first call counts.
pub fn set_server(server: ServerOf) {
    let _ = SERVER_OF.set(server);
}

/// What was said to [`set_server`]; where nothing was, no drive can be attached.
pub fn server() -> ServerOf {
    let none: ServerOf = |_| Err(io::Error::other("this program does not serve drives"));
    SERVER_OF.get().copied().unwrap_or(none)
}

/// Takes every attached drive apart whose process is gone: what a killed campaign left. Their names.
///
/// # Errors
/// [`HostError`] where one does not go.
pub fn clean() -> Result<Vec<String>, HostError> {
    attach::detach_orphans()
}

/// When a server of an attached drive answers, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Serving {
    /// At once, for good.
    pub no_delay: bool,
    /// At once until it is told otherwise; what requests take on their way is measured all the same.
    pub at_once_first: bool,
    /// Before all ordinary threads: what shares the processors with the drive, as a database does, makes it late otherwise.
    pub real_time: bool,
}

/// A drive that was served until it was detached.
pub struct Served {
    /// The drive, to be closed.
    pub drives: Vec<LiveDrive>,
    /// Whether the kernel ended it in order.
    pub ended: Result<(), HostError>,
}

/// Serves a drive in this process, which [`attach::attach`] started, until it is detached; `say` tells people. `None` where
/// whoever started the process is gone. Call it with one thread running.
///
/// # Errors
/// [`AttachedError`] where the drive, the server or its socket cannot be made.
pub fn serve(
    known: &Known,
    how: Serving,
    say: impl Fn(std::fmt::Arguments<'_>),
) -> Result<Option<Served>, AttachedError> {
    let Some(server) = Server::begin(&known.name)? else { return Ok(None) };
    let failed = |source| AttachedError::Start { name: known.name.clone(), source };
    // Threads that begin later have it from this one; how late they wake, and what the way takes, is measured with it.
    if how.real_time
        && let Err(error) = lowtide_host::live::real_time()
    {
        say(format_args!("warning: --rt is not to be had: {error}"));
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
    let mut service = Service::start(vec![drive], clock, false, Buffers::default()).map_err(failed)?;
    service.obey(Orders::at(&server.control()).map_err(|error| failed(io::Error::other(error)))?);
    let ended = server.serve(service.port(0));
    service.handle().stop();
    Ok(Some(Served { drives: service.wait(), ended }))
}

/// A name that no other drive has: of letters, digits, - and _, with the number of this process and another behind it.
fn name(wanted: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let last = Path::new(wanted).file_stem().unwrap_or_default().to_string_lossy();
    let plain = last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_');
    let plain: String = plain.skip_while(|c| *c == '-').take(LONGEST).collect();
    let plain = if plain.is_empty() { "drive" } else { &plain };
    format!("{plain}-{}-{number}", std::process::id())
}
