//! Attaching: [`attach`], [`again`], [`detach`], [`list`].
//!
//! Not here: the steps of taking apart; see [`super::detach`].

use super::detach::{Detached, Dismantling, is_of};
use super::journal::{self, Facts, Journal, MountPoint};
use super::loop_device::LoopDevice;
use super::place::Place;
use super::process::Process;
use super::server::GO;
use super::watch::Watch;
use super::{Force, Way};
use crate::block::{Mkfs, new_uuid, tool};
use crate::error::{HostError, Operation};
use crate::mountinfo;
use lowtide_core::{Bytes, Filesystem};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a loop device that somebody else took first is exchanged for another.
const ATTEMPTS: usize = 32;
/// Lines of a server that ended which are told.
const LAST_LINES: usize = 12;

/// What is to be attached.
#[derive(Clone)]
pub struct Wish<'a> {
    /// What it is called: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// What it is, as the user named it.
    pub device: &'a str,
    /// Bytes of a logical block of the block device, 512 or 4096, where those of the drive are not larger.
    pub block: u32,
    /// The filesystem to make on it.
    pub filesystem: Option<Filesystem>,
    /// Bytes of the filesystem, from the first of the device on; the whole device where absent.
    pub size: Option<Bytes>,
    /// Whether making the filesystem discards the device first.
    pub trims: bool,
    /// Where to mount it; a folder that is not there is made.
    pub mount: Option<&'a Path>,
    /// Mount options, as `mount -o` takes them; none where empty.
    pub options: &'a str,
    /// Writes the history that the server begins with, to be found at [`state_of`].
    pub history: Option<History<'a>>,
    /// Whether it is made for this process, and is taken apart when that is gone; see [`clean`].
    pub owned: bool,
}

/// Writes the history of a drive.
pub type History<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

impl<'a> Wish<'a> {
    /// A block device, for whoever wants it, without a filesystem.
    pub fn of(name: &'a str, device: &'a str) -> Wish<'a> {
        Wish {
            name,
            device,
            block: 4096,
            filesystem: None,
            size: None,
            trims: true,
            mount: None,
            options: "",
            history: None,
            owned: false,
        }
    }
}

/// How a drive that was attached fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is served.
    Served,
    /// It was begun, and is not done, or was not ended.
    Unfinished,
    /// Its server is gone: requests fail.
    ServerGone,
    /// It was made for a process that is gone.
    OwnerGone,
}

/// An attached drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// What it is called.
    pub name: String,
    /// What it is, as the user named it.
    pub device: String,
    /// How it is a block device.
    pub way: Way,
    /// How it fares.
    pub state: State,
    /// The block device: `/dev/loop0`.
    pub node: Option<PathBuf>,
    /// Its size; none where it is no block device.
    pub size: Bytes,
    /// Where it is mounted.
    pub mounted: Vec<PathBuf>,
    /// The drive as a file.
    pub file: PathBuf,
    /// The socket that takes commands.
    pub control: PathBuf,
    /// What the server said.
    pub log: PathBuf,
    /// The server's process.
    pub process: Option<u32>,
}

/// Attaches a drive: starts `server`, which has to call [`super::Server::begin`] with the same name and to serve, and makes
/// its file a block device, with a filesystem where one is wished for. Where that fails, or `interrupt` is set, all of it is
/// undone.
///
/// # Errors
/// [`HostError::NoBlockDevice`]; [`HostError::AlreadyAttached`]; [`HostError::ServerEnded`] with what the server said;
/// [`HostError::Interrupted`]; [`HostError`] where the kernel or a program refuses.
pub fn attach(
    wish: &Wish<'_>,
    server: Command,
    interrupt: &Arc<AtomicBool>,
) -> Result<Attachment, HostError> {
    let place = Place::new(wish.name)?;
    Way::FuseAndLoop.check()?;
    let mount = match wish.mount {
        Some(at) if at == place.mounted() => {
            Some(MountPoint { at: at.to_owned(), options: wish.options.to_owned(), made: true })
        }
        at => at.map(|at| mount_point(at, wish.options)).transpose()?,
    };
    let facts = Facts {
        device: wish.device.to_owned(),
        way: Way::FuseAndLoop,
        server: None,
        loop_device: None,
        queue: None,
        block: wish.block,
        mount,
        owner: wish.owned.then(|| Process::find(std::process::id())).flatten(),
    };
    let mut journal = Journal::create(&place, facts)?;
    let made = Making { place: &place, journal: &mut journal, interrupt }.all(wish, server);
    match made {
        Ok(()) => Ok(look(&place, &journal.facts)),
        Err(error) => {
            let facts = journal.facts.clone();
            // Nobody else knows of it yet: whoever looks at the new device lets go of it.
            let undone = Dismantling::new(&place, &facts, Force::Lazily).all(journal, |_| ());
            Err(undone.err().map_or(error, |source| HostError::NotDetached {
                name: wish.name.to_owned(),
                source: Box::new(source),
            }))
        }
    }
}

/// Takes an attached drive apart, however far it was attached and whatever became of it, and removes what was made for it.
///
/// # Errors
/// [`HostError::NotAttached`]; [`HostError::InUse`] while somebody else attaches or detaches it; [`HostError::Busy`] where
/// something uses it, unless by force. After an error it can be called again.
pub fn detach(name: &str, force: Force) -> Result<Detached, HostError> {
    detach_with(name, force, |_| ())
}

/// As [`detach`]; `last` is called when the server has ended, and before what it left, its state among it, is removed.
///
/// # Errors
/// As [`detach`].
pub fn detach_with(name: &str, force: Force, last: impl FnOnce(&Path)) -> Result<Detached, HostError> {
    let place = Place::new(name)?;
    let journal = Journal::open(&place)?;
    let facts = journal.facts.clone();
    Dismantling::new(&place, &facts, force).all(journal, last)
}

/// Takes every drive apart whose owner is gone, whoever uses it still; the names of those that are gone.
///
/// # Errors
/// As [`detach`], of the first that does not go. One that another process takes apart is left to it.
pub fn clean() -> Result<Vec<String>, HostError> {
    let mut gone = Vec::new();
    for place in Place::all() {
        if !journal::read(&place).is_some_and(|facts| is_left(&facts)) {
            continue;
        }
        match detach(place.name(), Force::Lazily) {
            Ok(_) => gone.push(place.name().to_owned()),
            Err(HostError::InUse { .. } | HostError::NotAttached { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}

fn is_left(facts: &Facts) -> bool {
    facts.owner.is_some_and(|owner| !owner.runs())
}

/// Takes the filesystem and the loop device off a drive and puts them on again, as they were: after a power cut, what
/// was opened before it is dead. The server goes on.
///
/// # Errors
/// As [`detach`], and [`HostError`] where the filesystem cannot be mounted any more: then the block device is there, and
/// calling this again tries again.
pub fn again(name: &str, force: Force, interrupt: &Arc<AtomicBool>) -> Result<Attachment, HostError> {
    let place = Place::new(name)?;
    let mut journal = Journal::open(&place)?;
    if !journal.facts.server.is_some_and(Process::runs) {
        let said = "it is gone; `lowtide drive detach` removes what is left".to_owned();
        return Err(HostError::ServerEnded { name: name.to_owned(), said });
    }
    let facts = journal.facts.clone();
    Dismantling::new(&place, &facts, force).sparing_the_server().block_device()?;
    let mut making = Making { place: &place, journal: &mut journal, interrupt };
    let device = making.loop_device()?;
    if let Some(mount) = &facts.mount {
        making.mount(device, mount, None)?;
    }
    Ok(look(&place, &journal.facts))
}

/// All drives that are attached, or were and are not detached, by name.
pub fn list() -> Vec<Attachment> {
    Place::all().iter().filter_map(|place| Some(look(place, &journal::read(place)?))).collect()
}

/// The name of the attached drive that a user means: by its name, its block device, or where it is mounted.
///
/// # Errors
/// [`HostError::NotAttached`] with those that are.
pub fn name_of(text: &str) -> Result<String, HostError> {
    // Nothing is looked up on the drive: it may not answer.
    let path = std::path::absolute(text).unwrap_or_default();
    let above = path.parent().and_then(|above| above.canonicalize().ok());
    let canonical = above.and_then(|above| Some(above.join(path.file_name()?)));
    let is_meant = |it: &Path| it == path || Some(it) == canonical.as_deref();
    let found = Place::all().into_iter().find(|place| {
        let facts = journal::read(place);
        let known = facts.as_ref().map(|facts| look(place, facts));
        let wished = facts.and_then(|facts| Some(facts.mount?.at));
        place.name() == text
            || wished.as_deref().is_some_and(is_meant)
            || known.is_some_and(|it| it.node.iter().chain(&it.mounted).any(|path| is_meant(path)))
    });
    found.map(|place| place.name().to_owned()).ok_or_else(|| super::not_attached(text))
}

/// Where the attached drive that a user means takes orders.
///
/// # Errors
/// [`HostError::NotAttached`] with those that are.
pub fn control_of(text: &str) -> Result<PathBuf, HostError> {
    Ok(Place::new(&name_of(text)?)?.control())
}

/// Where the history of a drive of that name is handed over.
///
/// # Errors
/// [`HostError::Invalid`] where it is no name.
pub fn state_of(name: &str) -> Result<PathBuf, HostError> {
    Ok(Place::new(name)?.state())
}

/// Where the filesystem of a drive of that name can be mounted without a folder of one's own.
///
/// # Errors
/// [`HostError::Invalid`] where it is no name.
pub fn mount_of(name: &str) -> Result<PathBuf, HostError> {
    Ok(Place::new(name)?.mounted())
}

/// What is to be seen of a drive, without asking it.
fn look(place: &Place, facts: &Facts) -> Attachment {
    let device = super::loop_device::over(&place.file()).first().copied();
    let mounts = mountinfo::of("self");
    let mounted = mounts.iter().filter(|mount| device.is_some_and(|device| is_of(mount, device)));
    let state = match facts.server {
        _ if is_left(facts) => State::OwnerGone,
        None => State::Unfinished,
        Some(server) if !server.runs() => State::ServerGone,
        Some(_) if device.is_none() => State::Unfinished,
        Some(_) => State::Served,
    };
    Attachment {
        name: place.name().to_owned(),
        device: facts.device.clone(),
        way: facts.way,
        state,
        node: device.map(LoopDevice::node),
        size: device.map_or(Bytes::ZERO, LoopDevice::size),
        mounted: mounted.map(|mount| PathBuf::from(&mount.point)).collect(),
        file: place.file(),
        control: place.control(),
        log: place.log(),
        process: facts.server.map(|server| server.number),
    }
}

/// Where to mount, so that the kernel names it the same way.
fn mount_point(at: &Path, options: &str) -> Result<MountPoint, HostError> {
    let fail = |source: std::io::Error| HostError::io(Operation::Inspect, at)(source);
    let (at, made) = match at.canonicalize() {
        Ok(path) if path.is_dir() => (path, false),
        Ok(_) => {
            let (found, wanted) = ("no folder", "a folder to mount at");
            return Err(HostError::WrongKind { path: at.to_owned(), found, wanted });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let path = std::path::absolute(at).map_err(fail)?;
            let above = path.parent().unwrap_or(Path::new("/")).canonicalize().map_err(fail)?;
            (above.join(path.file_name().unwrap_or_default()), true)
        }
        Err(error) => return Err(fail(error)),
    };
    if mountinfo::of("self").iter().any(|mount| Path::new(&mount.point) == at) {
        return Err(HostError::Invalid {
            what: "the folder to mount at",
            value: at.display().to_string(),
            accepted: "something is mounted there already: name another".to_owned(),
        });
    }
    Ok(MountPoint { at, options: options.to_owned(), made })
}

/// Attaches step by step, and writes each down before.
struct Making<'a> {
    place: &'a Place,
    journal: &'a mut Journal,
    interrupt: &'a Arc<AtomicBool>,
}

impl Making<'_> {
    fn all(&mut self, wish: &Wish<'_>, server: Command) -> Result<(), HostError> {
        if let Some(history) = wish.history {
            self.history(history)?;
        }
        self.server(server)?;
        let device = self.loop_device()?;
        if let Some(kind) = wish.filesystem {
            self.filesystem(device, kind, wish)?;
        }
        if let Some(mount) = self.journal.facts.mount.clone() {
            self.mount(device, &mount, wish.filesystem)?;
        }
        Ok(())
    }

    fn history(&self, history: History<'_>) -> Result<(), HostError> {
        let path = self.place.state();
        let fail = |source: io::Error| HostError::io(Operation::Write, &path)(source);
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path);
        let mut file = BufWriter::with_capacity(1 << 20, file.map_err(fail)?);
        history(&mut file).and_then(|()| file.flush()).map_err(fail)
    }

    /// Starts the server and waits until it has mounted its file.
    fn server(&mut self, mut command: Command) -> Result<(), HostError> {
        let path = self.place.log();
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(HostError::io(Operation::Create, &path))?;
        let twin = log.try_clone().map_err(HostError::io(Operation::Create, &path))?;
        let at = self.place.mount_point();
        fs::create_dir(&at).map_err(HostError::io(Operation::Create, &at))?;
        command.stdin(Stdio::piped()).stdout(log).stderr(twin);
        let program = PathBuf::from(command.get_program());
        let mut child = command.spawn().map_err(HostError::io(Operation::Start, &program))?;
        // Whoever undoes this ends it; one that is not written down gets no word, and ends by itself.
        self.begin(&mut child)?;
        self.wait_for(&mut child)
    }

    fn begin(&mut self, child: &mut Child) -> Result<(), HostError> {
        let process = Process::find(child.id());
        self.journal.will(|facts| facts.server = process)?;
        let mut input = child.stdin.take().expect("it was asked for");
        // One that has ended already is told below.
        let _ = input.write_all(GO);
        Ok(())
    }

    fn wait_for(&self, child: &mut Child) -> Result<(), HostError> {
        // What the server may measure before is mounted at the same place.
        let (at, source) = (self.place.mount_point(), self.place.source());
        let is_it = |mount: &mountinfo::Mount| Path::new(&mount.point) == at && mount.source == source;
        while !mountinfo::of("self").iter().any(is_it) {
            self.check_interrupt()?;
            let ended = child.try_wait().map_err(HostError::io(Operation::Start, &self.place.log()))?;
            if let Some(status) = ended {
                return Err(HostError::ServerEnded {
                    name: self.name(),
                    said: self.last_words(&status.to_string()),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn last_words(&self, otherwise: &str) -> String {
        let text = fs::read_to_string(self.place.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(LAST_LINES)..] {
            [] => otherwise.to_owned(),
            last => last.join("\n"),
        }
    }

    /// Puts a loop device over the file.
    fn loop_device(&mut self) -> Result<LoopDevice, HostError> {
        let (place, facts) = (self.place.clone(), self.journal.facts.clone());
        let mut watch = Watch::new(&place, facts.server, Vec::new(), Force::No.patience());
        let file = self.place.file();
        let block = watch.call("opening", move || {
            File::open(&file).and_then(|file| file.metadata()).map_err(HostError::io(Operation::Open, &file))
        })??;
        let block = facts.block.max(block.blksize() as u32);
        // The same one as before, if there was one.
        let mut device = facts.loop_device.map(LoopDevice::new);
        for _ in 0..ATTEMPTS {
            self.check_interrupt()?;
            let next = match device.take() {
                Some(device) if device.file().is_none() => device,
                _ => LoopDevice::free()?,
            };
            self.journal.will(|facts| {
                // One that is put on again has been given what it has.
                if facts.loop_device.replace(next.number()) != Some(next.number()) {
                    facts.queue = Some(next.queue());
                }
            })?;
            let file = self.place.file();
            if watch.call("setting up the loop device", move || next.configure(&file, block))?? {
                return Ok(next);
            }
        }
        Err(HostError::Invalid {
            what: "a free loop device",
            value: "never found".to_owned(),
            accepted: "others took each one first: try again".to_owned(),
        })
    }

    fn filesystem(&self, device: LoopDevice, kind: Filesystem, wish: &Wish<'_>) -> Result<(), HostError> {
        let (size, trims) = (wish.size, wish.trims);
        let (node, uuid, interrupt) = (device.node(), new_uuid()?, Arc::clone(self.interrupt));
        let mut watch = self.watch(device, Force::No);
        watch.call("making the filesystem", move || {
            let filesystem = Mkfs { kind, size, trims, options: "" };
            filesystem.write_to(&node, &uuid, &node, &interrupt)
        })?
    }

    fn mount(
        &self,
        device: LoopDevice,
        mount: &MountPoint,
        kind: Option<Filesystem>,
    ) -> Result<(), HostError> {
        if mount.made {
            match fs::create_dir(&mount.at) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(HostError::io(Operation::Create, &mount.at)(error));
                }
                _ => {}
            }
        }
        self.check_interrupt()?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut words: Vec<String> = Vec::new();
        if let Some(kind) = kind {
            words.extend(["-t".to_owned(), kind.name().to_owned()]);
        }
        if !mount.options.is_empty() {
            words.extend(["-o".to_owned(), mount.options.clone()]);
        }
        words.extend([text(&device.node()), text(&mount.at)]);
        let (node, interrupt) = (device.node(), Arc::clone(self.interrupt));
        self.watch(device, Force::No).call("mounting", move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            tool::run_until(("mount", "of util-linux"), &words, &node, &interrupt)
        })??;
        let is_here = |it: &mountinfo::Mount| Path::new(&it.point) == mount.at && is_of(it, device);
        if mountinfo::of("self").iter().any(is_here) {
            return Ok(());
        }
        Err(HostError::Invalid {
            what: "the mount options",
            value: format!("`{}`", mount.options),
            accepted: format!(
                "with these the mount is not that of {}: leave them out",
                device.node().display()
            ),
        })
    }

    fn watch(&self, device: LoopDevice, force: Force) -> Watch {
        Watch::new(self.place, self.journal.facts.server, vec![device], force.patience())
    }

    fn check_interrupt(&self) -> Result<(), HostError> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted { path: self.place.file() });
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.place.name().to_owned()
    }
}
