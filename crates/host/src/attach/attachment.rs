//! Attaching ([`attach`], [`reattach`]), listing ([`list`]), and the entry points of detaching ([`detach`]). The
//! steps of detaching are in [`super::detach`].

use super::detach::{Detached, Detaching};
use super::journal::{self, Journal, MountPoint, Record};
use super::loop_device::LoopDevice;
use super::paths::Paths;
use super::process::Process;
use super::server::GO;
use super::watch::Watch;
use super::{Force, check_support};
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

/// Maximum number of attempts to take a free loop device before another process does.
const ATTEMPTS: usize = 32;
/// Lines of the log that are reported when a server has ended.
const LAST_LINES: usize = 12;

/// A drive to attach.
#[derive(Clone)]
pub struct AttachRequest<'a> {
    /// The name: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The device, as the user named it.
    pub device: &'a str,
    /// Bytes of a logical block of the block device, 512 or 4096, unless the block of the drive is larger.
    pub block: u32,
    /// The filesystem to make.
    pub filesystem: Option<Filesystem>,
    /// The size of the filesystem, from the first byte of the device; the whole device if absent.
    pub size: Option<Bytes>,
    /// Whether `mkfs` discards the device first.
    pub trims: bool,
    /// The mount point, made if it does not exist.
    pub mount: Option<&'a Path>,
    /// Mount options for `mount -o`; may be empty.
    pub options: &'a str,
    /// The function that writes the drive's initial state to [`state_of`].
    pub history: Option<History<'a>>,
    /// Whether the drive belongs to this process. Once this process has ended, any process may detach the drive; see
    /// [`detach_orphans`].
    pub owned: bool,
}

/// A function that writes the state of a drive.
pub type History<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

impl<'a> AttachRequest<'a> {
    /// A request for a block device without a filesystem or an owner.
    pub fn new(name: &'a str, device: &'a str) -> AttachRequest<'a> {
        AttachRequest {
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

/// The state of an attached drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The drive is served.
    Served,
    /// Attaching or detaching has not finished.
    Unfinished,
    /// The server has ended, so requests fail.
    ServerGone,
    /// The process that owns the drive has ended.
    OwnerGone,
}

/// An attached drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name.
    pub name: String,
    /// The device, as the user named it.
    pub device: String,
    /// The state.
    pub state: State,
    /// The block device: `/dev/loop0`.
    pub node: Option<PathBuf>,
    /// The size of the block device; zero if there is none.
    pub size: Bytes,
    /// The mount points.
    pub mounted: Vec<PathBuf>,
    /// The drive as a file.
    pub file: PathBuf,
    /// The socket that takes commands.
    pub control: PathBuf,
    /// The log of the server.
    pub log: PathBuf,
    /// The server's process.
    pub process: Option<u32>,
}

/// Attaches a drive: starts `server`, sets up a block device over its file, and makes and mounts a filesystem if
/// requested. `server` has to call [`super::Server::begin`] with the same name, and then serve. If a step fails, or
/// `interrupt` is set, all steps are undone.
///
/// # Errors
/// [`HostError::NoBlockDevice`]; [`HostError::AlreadyAttached`]; [`HostError::ServerEnded`] with the end of its log;
/// [`HostError::Interrupted`]; [`HostError`] if a system call or a program fails.
pub fn attach(
    request: &AttachRequest<'_>,
    server: Command,
    interrupt: &Arc<AtomicBool>,
) -> Result<Attachment, HostError> {
    let paths = Paths::new(request.name)?;
    check_support()?;
    let mount = match request.mount {
        Some(at) if at == paths.mounted() => {
            Some(MountPoint { at: at.to_owned(), options: request.options.to_owned(), made: true })
        }
        at => at.map(|at| mount_point(at, request.options)).transpose()?,
    };
    let record = Record {
        device: request.device.to_owned(),
        server: None,
        loop_device: None,
        queue: None,
        block: request.block,
        mount,
        owner: request.owned.then(|| Process::find(std::process::id())).flatten(),
    };
    let mut journal = Journal::create(&paths, record)?;
    let made = Attaching { paths: &paths, journal: &mut journal, interrupt }.all(request, server);
    match made {
        Ok(()) => Ok(describe(&paths, &journal.record)),
        Err(error) => {
            let record = journal.record.clone();
            // So far only programs such as udev use the device, and only briefly.
            let undone = Detaching::new(&paths, &record, Force::Lazily).all(journal, |_| ());
            Err(undone.err().map_or(error, |source| HostError::NotDetached {
                name: request.name.to_owned(),
                source: Box::new(source),
            }))
        }
    }
}

/// Detaches a drive in any state, and removes its files.
///
/// # Errors
/// [`HostError::NotAttached`]; [`HostError::InUse`] while another process attaches or detaches it;
/// [`HostError::Busy`] if a program uses it and `force` is [`Force::No`]. A second call continues where the first one
/// failed.
pub fn detach(name: &str, force: Force) -> Result<Detached, HostError> {
    detach_with(name, force, |_| ())
}

/// As [`detach`]. After the server has ended, `take_state` is called with the path of the state file that the server
/// wrote. The file is removed afterwards.
///
/// # Errors
/// As [`detach`].
pub fn detach_with(name: &str, force: Force, take_state: impl FnOnce(&Path)) -> Result<Detached, HostError> {
    let paths = Paths::new(name)?;
    let journal = Journal::open(&paths)?;
    let record = journal.record.clone();
    Detaching::new(&paths, &record, force).all(journal, take_state)
}

/// Detaches by force every drive whose owner has ended, and returns their names. Skips drives that another process is
/// detaching.
///
/// # Errors
/// As [`detach`], for the first drive that cannot be detached.
pub fn detach_orphans() -> Result<Vec<String>, HostError> {
    let mut detached = Vec::new();
    for paths in Paths::all() {
        if !journal::read(&paths).is_some_and(|record| is_orphan(&record)) {
            continue;
        }
        match detach(paths.name(), Force::Lazily) {
            Ok(_) => detached.push(paths.name().to_owned()),
            Err(HostError::InUse(_) | HostError::NotAttached { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(detached)
}

fn is_orphan(record: &Record) -> bool {
    record.owner.is_some_and(|owner| !owner.runs())
}

/// Detaches the filesystem and the loop device of a drive and attaches them again with the same settings, because a
/// power cut invalidates all open handles. The server keeps running.
///
/// # Errors
/// As [`detach`], and [`HostError`] if the filesystem cannot be mounted again. The block device is then attached, and
/// another call retries the mount.
pub fn reattach(name: &str, force: Force, interrupt: &Arc<AtomicBool>) -> Result<Attachment, HostError> {
    let paths = Paths::new(name)?;
    let mut journal = Journal::open(&paths)?;
    if !journal.record.server.is_some_and(Process::runs) {
        let output = "`lowtide drive detach` removes the rest of the drive".to_owned();
        return Err(HostError::ServerEnded { name: name.to_owned(), output });
    }
    let record = journal.record.clone();
    Detaching::new(&paths, &record, force).keeping_server().block_device()?;
    let mut attaching = Attaching { paths: &paths, journal: &mut journal, interrupt };
    let device = attaching.loop_device()?;
    if let Some(mount) = &record.mount {
        attaching.mount(device, mount, None)?;
    }
    Ok(describe(&paths, &journal.record))
}

/// All attached and partly attached drives, by name.
pub fn list() -> Vec<Attachment> {
    Paths::all().iter().filter_map(|paths| Some(describe(paths, &journal::read(paths)?))).collect()
}

/// Finds an attached drive by its name, block device or mount point, and returns its name.
///
/// # Errors
/// [`HostError::NotAttached`] with the names of the attached drives.
pub fn name_of(text: &str) -> Result<String, HostError> {
    // The drive itself is not accessed, because it may not answer.
    let path = std::path::absolute(text).unwrap_or_default();
    let above = path.parent().and_then(|above| above.canonicalize().ok());
    let canonical = above.and_then(|above| Some(above.join(path.file_name()?)));
    let is_meant = |it: &Path| it == path || Some(it) == canonical.as_deref();
    let found = Paths::all().into_iter().find(|paths| {
        let record = journal::read(paths);
        let attached = record.as_ref().map(|record| describe(paths, record));
        let requested = record.and_then(|record| Some(record.mount?.at));
        paths.name() == text
            || requested.as_deref().is_some_and(is_meant)
            || attached.is_some_and(|it| it.node.iter().chain(&it.mounted).any(|path| is_meant(path)))
    });
    found.map(|paths| paths.name().to_owned()).ok_or_else(|| super::not_attached(text))
}

/// The socket for commands to an attached drive, named as in [`name_of`].
///
/// # Errors
/// As [`name_of`].
pub fn control_of(text: &str) -> Result<PathBuf, HostError> {
    Ok(Paths::new(&name_of(text)?)?.control())
}

/// Path of the file with the drive's initial state, and later its final state.
///
/// # Errors
/// [`HostError::Invalid`] if `name` is not a valid name.
pub fn state_of(name: &str) -> Result<PathBuf, HostError> {
    Ok(Paths::new(name)?.state())
}

/// The default mount point for the filesystem of a drive.
///
/// # Errors
/// [`HostError::Invalid`] if `name` is not a valid name.
pub fn mount_of(name: &str) -> Result<PathBuf, HostError> {
    Ok(Paths::new(name)?.mounted())
}

/// Describes an attached drive without accessing it.
fn describe(paths: &Paths, record: &Record) -> Attachment {
    let device = paths.loop_devices().first().copied();
    let mounts = mountinfo::of("self");
    let mounted = mounts.iter().filter(|mount| device.is_some_and(|device| device.is_mounted_at(mount)));
    let state = match record.server {
        _ if is_orphan(record) => State::OwnerGone,
        None => State::Unfinished,
        Some(server) if !server.runs() => State::ServerGone,
        Some(_) if device.is_none() => State::Unfinished,
        Some(_) => State::Served,
    };
    Attachment {
        name: paths.name().to_owned(),
        device: record.device.clone(),
        state,
        node: device.map(LoopDevice::node),
        size: device.map_or(Bytes::ZERO, LoopDevice::size),
        mounted: mounted.map(|mount| PathBuf::from(&mount.point)).collect(),
        file: paths.file(),
        control: paths.control(),
        log: paths.log(),
        process: record.server.map(|server| server.number),
    }
}

/// Resolves a mount point to the path by which the kernel will name it.
fn mount_point(at: &Path, options: &str) -> Result<MountPoint, HostError> {
    let fail = |source: std::io::Error| HostError::io(Operation::Inspect, at)(source);
    let (at, made) = match at.canonicalize() {
        Ok(path) if path.is_dir() => (path, false),
        Ok(_) => {
            let (found, wanted) = ("not a folder", "a folder to mount at");
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
        let accepted = "a filesystem is mounted there already: name another folder";
        return Err(HostError::invalid("the folder to mount at", at.display(), accepted));
    }
    Ok(MountPoint { at, options: options.to_owned(), made })
}

/// The steps of attaching. Each is recorded before it is made.
struct Attaching<'a> {
    paths: &'a Paths,
    journal: &'a mut Journal,
    interrupt: &'a Arc<AtomicBool>,
}

impl Attaching<'_> {
    fn all(&mut self, request: &AttachRequest<'_>, server: Command) -> Result<(), HostError> {
        if let Some(history) = request.history {
            self.history(history)?;
        }
        self.server(server)?;
        let device = self.loop_device()?;
        if let Some(kind) = request.filesystem {
            self.filesystem(device, kind, request)?;
        }
        if let Some(mount) = self.journal.record.mount.clone() {
            self.mount(device, &mount, request.filesystem)?;
        }
        Ok(())
    }

    fn history(&self, history: History<'_>) -> Result<(), HostError> {
        let path = self.paths.state();
        let fail = |source: io::Error| HostError::io(Operation::Write, &path)(source);
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path);
        let mut file = BufWriter::with_capacity(1 << 20, file.map_err(fail)?);
        history(&mut file).and_then(|()| file.flush()).map_err(fail)
    }

    /// Starts the server and waits until it has mounted its filesystem.
    fn server(&mut self, mut command: Command) -> Result<(), HostError> {
        let path = self.paths.log();
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let log = log.map_err(HostError::io(Operation::Create, &path))?;
        let errors = log.try_clone().map_err(HostError::io(Operation::Create, &path))?;
        let at = self.paths.mount_point();
        fs::create_dir(&at).map_err(HostError::io(Operation::Create, &at))?;
        command.stdin(Stdio::piped()).stdout(log).stderr(errors);
        let program = PathBuf::from(command.get_program());
        let mut child = command.spawn().map_err(HostError::io(Operation::Start, &program))?;
        // Detaching ends a recorded server. An unrecorded server gets no start message, and ends by itself.
        self.begin(&mut child)?;
        self.wait_for(&mut child)
    }

    fn begin(&mut self, child: &mut Child) -> Result<(), HostError> {
        let process = Process::find(child.id());
        self.journal.will(|record| record.server = process)?;
        let mut input = child.stdin.take().expect("standard input is piped");
        // Fails if the server has ended, which `wait_for` reports.
        let _ = input.write_all(GO);
        Ok(())
    }

    fn wait_for(&self, child: &mut Child) -> Result<(), HostError> {
        // For a measurement, the server may first mount another filesystem at the same path.
        let (at, source) = (self.paths.mount_point(), self.paths.source());
        let is_it = |mount: &mountinfo::Mount| Path::new(&mount.point) == at && mount.source == source;
        while !mountinfo::of("self").iter().any(is_it) {
            self.check_interrupt()?;
            let ended = child.try_wait().map_err(HostError::io(Operation::Start, &self.paths.log()))?;
            if let Some(status) = ended {
                let output = self.end_of_log(&status.to_string());
                return Err(HostError::ServerEnded { name: self.paths.name().to_owned(), output });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn end_of_log(&self, otherwise: &str) -> String {
        let text = fs::read_to_string(self.paths.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(LAST_LINES)..] {
            [] => otherwise.to_owned(),
            last => last.join("\n"),
        }
    }

    /// Puts a loop device over the file.
    fn loop_device(&mut self) -> Result<LoopDevice, HostError> {
        let (paths, record) = (self.paths.clone(), self.journal.record.clone());
        let mut watch = Watch::new(&paths, record.server, Vec::new(), Force::No.patience());
        let file = self.paths.file();
        let block = watch.call("opening", move || {
            File::open(&file).and_then(|file| file.metadata()).map_err(HostError::io(Operation::Open, &file))
        })??;
        let block = record.block.max(block.blksize() as u32);
        // Reattaching uses the same device as before, if it is free.
        let mut device = record.loop_device.map(LoopDevice::new);
        for _ in 0..ATTEMPTS {
            self.check_interrupt()?;
            let next = match device.take() {
                Some(device) if device.file().is_none() => device,
                _ => LoopDevice::free()?,
            };
            self.journal.will(|record| {
                // When reattaching, the current settings are lowtide's own, so the recorded ones are kept.
                if record.loop_device.replace(next.number()) != Some(next.number()) {
                    record.queue = Some(next.queue());
                }
            })?;
            let file = self.paths.file();
            if watch.call("setting up the loop device", move || next.configure(&file, block))?? {
                return Ok(next);
            }
        }
        Err(HostError::invalid("a free loop device", "never found", "others took each one first: try again"))
    }

    fn filesystem(
        &self,
        device: LoopDevice,
        kind: Filesystem,
        request: &AttachRequest<'_>,
    ) -> Result<(), HostError> {
        let (size, trims) = (request.size, request.trims);
        let (node, uuid, interrupt) = (device.node(), new_uuid()?, Arc::clone(self.interrupt));
        let mut watch = self.watch(device);
        watch.call("attaching the filesystem", move || {
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
        self.watch(device).call("mounting", move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            tool::run_until(tool::MOUNT, &words, &node, &interrupt)
        })??;
        let is_here = |it: &mountinfo::Mount| Path::new(&it.point) == mount.at && device.is_mounted_at(it);
        if mountinfo::of("self").iter().any(is_here) {
            return Ok(());
        }
        let accepted =
            format!("with these the mount is not that of {}: leave them out", device.node().display());
        Err(HostError::invalid("the mount options", format_args!("`{}`", mount.options), accepted))
    }

    fn watch(&self, device: LoopDevice) -> Watch {
        Watch::new(self.paths, self.journal.record.server, vec![device], Force::No.patience())
    }

    fn check_interrupt(&self) -> Result<(), HostError> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted(self.paths.file()));
        }
        Ok(())
    }
}
