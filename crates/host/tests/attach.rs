//! Drives attached as block devices of the kernel, with a drive in memory as the model.
//!
//! The tests check that operations on `/dev/loopN` arrive as the right requests, that filesystems and fio read back
//! what they wrote, and that detaching removes everything whatever happened to the server.
//!
//! The server is this program, started a second time (see [`server_process`]). Its drive logs flushes, trims and
//! durable writes, and obeys the commands in the file NAME.control.

mod common;

use common::loopback::run;
use common::skipped;
use lowtide_core::{Filesystem, Op, Request};
use lowtide_host::HostError;
use lowtide_host::attach::{self, AttachRequest, Attachment, Force, Server, State};
use lowtide_host::live::{OnComplete, Port};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// XFS needs at least 300 MiB.
const SIZE: usize = 512 << 20;
const NAME: &str = "LOWTIDE_TEST_NAME";
const BLOCK: &str = "LOWTIDE_TEST_BLOCK";

// The server.

/// A drive in memory.
struct Memory {
    bytes: Mutex<Vec<u8>>,
    block: u32,
    control: PathBuf,
    /// Completions of requests that are never answered.
    kept: Mutex<Vec<OnComplete>>,
}

impl Memory {
    fn command(&self) -> String {
        fs::read_to_string(&self.control).unwrap_or_default()
    }

    fn work(&self, life: u64, request: Request, data: &[u8]) -> Result<Vec<u8>, i32> {
        if life != self.life() {
            return Err(libc::EIO);
        }
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let range = request.offset as usize..(request.offset + request.length) as usize;
        match request.op {
            Op::Read => return Ok(bytes[range].to_vec()),
            Op::Write { fua } => {
                bytes[range].copy_from_slice(data);
                if fua {
                    eprintln!("durable {} {}", request.offset, request.length);
                }
            }
            Op::Trim => {
                bytes[range].fill(0);
                eprintln!("trim {} {}", request.offset, request.length);
            }
            Op::WriteZeroes => {
                bytes[range].fill(0);
                eprintln!("zeroes {} {}", request.offset, request.length);
            }
            Op::Flush => eprintln!("flush"),
        }
        Ok(Vec::new())
    }
}

impl Port for Memory {
    fn size(&self) -> u64 {
        SIZE as u64
    }

    fn block(&self) -> u32 {
        self.block
    }

    fn life(&self) -> u64 {
        self.command().trim().strip_prefix("life ").map_or(1, |life| life.parse().expect("a number"))
    }

    fn submit(&self, life: u64, request: Request, data: Vec<u8>, done: OnComplete) {
        if self.command().trim() == "silence" {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        } else {
            done(self.work(life, request, &data));
        }
    }
}

/// Serves a drive if a test below starts this program with a name. Does nothing otherwise.
#[test]
fn server_process() {
    let Ok(name) = std::env::var(NAME) else { return };
    let server = Server::begin(&name).expect("set up").expect("wanted");
    let block = std::env::var(BLOCK).expect("given").parse().expect("a number");
    let control = server.control();
    let drive = Memory { bytes: Mutex::new(vec![0; SIZE]), block, control, kept: Mutex::default() };
    server.serve(Arc::new(drive)).expect("served");
}

fn server(name: &str, block: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["server_process", "--exact", "--nocapture"]).env(NAME, name).env(BLOCK, block.to_string());
    command
}

// An attached drive.

static ONE: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The name of a drive, which is detached when this is dropped.
struct Drive {
    name: String,
    block: u32,
    folder: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Drive {
    /// Returns `None`, with a message, if drives cannot be attached.
    fn new(block: u32) -> Option<Drive> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        for node in ["/dev/fuse", "/dev/loop-control"] {
            if OpenOptions::new().read(true).write(true).open(node).is_err() {
                skipped(&format!("{node} cannot be opened"));
                return None;
            }
        }
        if !rustix::process::geteuid().is_root() {
            skipped("mounting needs root");
            return None;
        }
        let name = format!("test-{}-{}-drive", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Some(Drive { name, block, folder: tempfile::tempdir().expect("a folder"), _one: one })
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    fn wish<'a>(&'a self, filesystem: Option<Filesystem>, mount: Option<&'a Path>) -> AttachRequest<'a> {
        AttachRequest { block: 512, filesystem, mount, ..AttachRequest::new(&self.name, "memory") }
    }

    fn attach(&self) -> Attachment {
        attach::attach(&self.wish(None, None), server(&self.name, self.block), &never()).expect("attached")
    }

    fn mounted(&self, filesystem: Filesystem) -> Attachment {
        let at = self.at();
        let wish = AttachRequest { options: "noatime", ..self.wish(Some(filesystem), Some(&at)) };
        attach::attach(&wish, server(&self.name, self.block), &never()).expect("attached and mounted")
    }

    fn path(&self, ending: &str) -> PathBuf {
        PathBuf::from(format!("/run/lowtide/attached/{}{ending}", self.name))
    }

    /// The lines that the drive logged.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path(".log")).expect("a log");
        text.lines().map(str::to_owned).collect()
    }

    fn says(&self, what: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(what)).count()
    }

    fn command(&self, text: &str) {
        fs::write(self.path(".control"), text).expect("written");
    }

    /// Asserts that the drive has left nothing behind.
    fn is_gone(&self) {
        for ending in ["", ".journal", ".log", ".control"] {
            assert!(!self.path(ending).exists(), "{} is there", self.path(ending).display());
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
        assert!(!mounts.contains(&self.name), "{mounts}");
        assert!(!mounts.contains(self.folder.path().to_str().expect("plain")), "{mounts}");
        let loops = run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
        assert!(!loops.contains(&self.name), "{loops}");
        assert!(!self.at().exists(), "the folder that was made to mount at is there");
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = attach::detach(&self.name, Force::Lazily);
    }
}

fn never() -> Arc<AtomicBool> {
    Arc::default()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}

fn node(attached: &Attachment) -> &Path {
    attached.node.as_deref().expect("a node")
}

fn end(attached: &Attachment, signal: Signal) {
    let process = attached.process.and_then(|it| Pid::from_raw(it.cast_signed())).expect("a server");
    kill_process(process, signal).expect("signalled");
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    // xorshift64, of Marsaglia.
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

// The tests.

#[test]
fn a_loop_device_has_the_blocks_and_the_contents_of_the_drive() {
    for block in [512, 4096] {
        let Some(drive) = Drive::new(block) else { return };
        let attached = drive.attach();
        assert_eq!((attached.state, attached.size.get()), (State::Served, SIZE as u64));
        let queue = Path::new("/sys/block").join(node(&attached).file_name().expect("a name")).join("queue");
        let told = |what: &str| fs::read_to_string(queue.join(what)).expect(what).trim().to_owned();
        assert_eq!(told("logical_block_size"), block.to_string());
        assert_eq!(told("discard_granularity"), block.to_string());
        // Data written to the device is read from the file, at both ends and in the middle.
        let device = OpenOptions::new().read(true).write(true).open(node(&attached)).expect("opened");
        let file = OpenOptions::new().read(true).write(true).open(&attached.file).expect("opened");
        for (at, length) in [(0, 4096), (1 << 20, 3 << 20), (SIZE - 65536, 65536)] {
            let ours = bytes(at as u64 + 1, length);
            device.write_all_at(&ours, at as u64).and_then(|()| device.sync_all()).expect("written");
            let mut theirs = vec![0; length];
            file.read_exact_at(&mut theirs, at as u64).expect("read");
            assert!(ours == theirs, "{length} bytes at {at}, blocks of {block}");
        }
        // In the other direction, with direct I/O past the page cache of the device.
        let ours = bytes(7, 8192);
        file.write_all_at(&ours, 8 << 20).expect("written");
        let mut theirs = vec![0; 8192];
        device.read_exact_at(&mut theirs, 8 << 20).expect("read");
        assert!(ours == theirs);
        // Into unaligned memory.
        let mut theirs = vec![0; (4 << 20) + 1];
        file.read_exact_at(&mut theirs[1..], 1 << 20).expect("read");
        assert!(theirs[1..=3 << 20] == bytes((1 << 20) + 1, 3 << 20));
        file.read_exact_at(&mut theirs[..100], (1 << 20) + 1000).expect("read");
        assert!(theirs[..100] == bytes((1 << 20) + 1, 3 << 20)[1000..1100]);
        // The file ends at the end of the drive, and consists of whole blocks.
        assert_eq!(file.read_at(&mut theirs[..8192], SIZE as u64).expect("the end"), 0);
        let errno = |result: std::io::Result<usize>| result.unwrap_err().raw_os_error();
        assert_eq!(errno(file.write_at(&ours, SIZE as u64 - 4096)), Some(libc::ENOSPC));
        assert_eq!(errno(file.write_at(&ours[..100], 0)), Some(libc::EINVAL));
        drop((device, file));
        assert_eq!(attach::detach(&drive.name, Force::No).expect("detached"), attach::Detached::default());
        drive.is_gone();
    }
}

/// Symptom: the next user of a loop device got the scheduler and queue settings of an attached drive. Cause: the
/// kernel keeps them when the file is detached. Fix: the settings are recorded before attaching and restored before
/// detaching.
#[test]
fn a_loop_device_gets_the_queue_back_that_it_had() {
    let Some(drive) = Drive::new(4096) else { return };
    let queue = |number: &str| {
        let told = |what: &str| fs::read_to_string(format!("/sys/block/{number}/queue/{what}")).expect(what);
        ["scheduler", "nr_requests", "max_sectors_kb", "rotational"].map(|what| told(what).trim().to_owned())
    };
    let name =
        |attached: &Attachment| node(attached).file_name().expect("a name").to_string_lossy().into_owned();
    // The next free device, unless another process takes it first; the test then checks less.
    let free = run("losetup", &["--find"]);
    let free = free.trim().trim_start_matches("/dev/").to_owned();
    let mut before = queue(&free);
    let attached = drive.attach();
    let device = name(&attached);
    if device != free {
        // Attaching has already changed `max_sectors_kb`, which is not compared in this case.
        before = queue(&device);
    }
    let disk = lowtide_host::block::Disk::find(node(&attached)).expect("a disk");
    let (choices, largest) = (before[0].clone(), before[2].clone());
    let other = choices.split(' ').find(|it| !it.starts_with('[') && *it != "none").map(str::to_owned);
    let Some(other) = other else {
        skipped("this kernel has no scheduler to choose");
        return;
    };
    disk.queue(&other, 32).expect("set");
    assert_ne!(queue(&device)[0], choices, "the scheduler was set");
    let turns = before[3] == "0";
    disk.set_rotational(turns).expect("set");
    assert_ne!(queue(&device)[3], before[3], "taken for a disk");
    // Reattaching keeps the current settings.
    attach::reattach(&drive.name, Force::No, &never()).expect("again");
    assert!(queue(&device)[0].contains(&format!("[{other}]")), "{:?}", queue(&device));
    assert_eq!(attach::detach(&drive.name, Force::No).expect("detached"), attach::Detached::default());
    let after = queue(&device);
    assert_eq!((&after[..2], &after[3]), (&before[..2], &before[3]), "{device}");
    if device == free {
        assert_eq!(after[2], largest, "{device}");
    }
    drive.is_gone();
}

#[test]
fn flushes_trims_and_durable_writes_arrive_as_what_they_are() {
    let Some(drive) = Drive::new(4096) else { return };
    let attached = drive.attach();
    let device = text(node(&attached));
    let before = drive.says("flush");
    run("dd", &["if=/dev/zero", &format!("of={device}"), "bs=4096", "count=1", "conv=fsync", "oflag=direct"]);
    assert_eq!(drive.says("flush"), before + 1, "fsync of the device");
    run("blkdiscard", &["--offset", "1048576", "--length", "8388608", device]);
    assert_eq!(drive.says("trim 1048576 8388608"), 1, "{:?}", drive.log());
    run("blkdiscard", &["--zeroout", "--offset", "0", "--length", "65536", device]);
    assert_eq!(drive.says("zeroes 0 65536") + drive.says("trim 0 65536"), 1, "{:?}", drive.log());
    // A loop device has no forced unit access; the kernel sends a flush instead.
    assert_eq!(drive.says("durable"), 0);
    let before = drive.says("flush");
    run("dd", &["if=/dev/zero", &format!("of={device}"), "bs=4096", "count=1", "oflag=direct,dsync"]);
    assert_eq!(drive.says("durable"), 0);
    assert!(drive.says("flush") > before);
    // The file itself has forced unit access.
    let before = drive.says("flush");
    for (flag, offset) in [(libc::O_DSYNC, 0), (libc::O_SYNC, 4096)] {
        let file = OpenOptions::new().write(true).custom_flags(flag).open(&attached.file).expect("opened");
        file.write_all_at(&[1; 4096], offset).expect("written");
        assert_eq!(drive.says(&format!("durable {offset} 4096")), 1);
    }
    let file = OpenOptions::new().write(true).open(&attached.file).expect("opened");
    file.write_all_at(&[1; 4096], 8192).expect("written");
    assert_eq!(drive.says("durable"), 2, "an ordinary write");
    assert_eq!(drive.says("flush"), before, "closing a handle flushes nothing");
    file.sync_data().expect("synced");
    assert_eq!(drive.says("flush"), before + 1);
    let zero = rustix::fs::FallocateFlags::ZERO_RANGE;
    rustix::fs::fallocate(&file, zero, 16384, 4096).expect("zeroed");
    assert_eq!(drive.says("zeroes 16384 4096"), 1);
    let error = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4096).unwrap_err();
    assert_eq!(error, rustix::io::Errno::OPNOTSUPP);
}

#[test]
fn filesystems_find_what_was_written_and_are_clean() {
    for (kind, check) in [
        (Filesystem::Ext4, &["e2fsck", "-f", "-n"][..]),
        (Filesystem::Xfs, &["xfs_repair", "-n"]),
        (Filesystem::Btrfs, &["btrfs", "check", "--readonly"]),
    ] {
        let Some(drive) = Drive::new(4096) else { return };
        let attached = drive.mounted(kind);
        let at = drive.at();
        assert_eq!(attached.mounted, std::slice::from_ref(&at), "{kind:?}");
        assert_eq!(attach::name_of(text(&at)).expect("found"), drive.name);
        assert_eq!(attach::name_of(text(node(&attached))).expect("found"), drive.name);
        for number in 0..20 {
            let file = at.join(format!("file-{number}"));
            File::create(&file)
                .and_then(|mut file| file.write_all(&bytes(number, 1 << 20)).and_then(|()| file.sync_all()))
                .expect("written");
        }
        for number in 0..10 {
            fs::remove_file(at.join(format!("file-{number}"))).expect("removed");
        }
        run("sync", &["-f", text(&at)]);
        let before = drive.says("trim");
        run("fstrim", &[text(&at)]);
        assert!(drive.says("trim") > before, "{kind:?}: fstrim trims");
        run("umount", &[text(&at)]);
        run(check[0], &[&check[1..], &[text(node(&attached))]].concat());
        // Unmounting has dropped the page cache.
        run("mount", &[text(node(&attached)), text(&at)]);
        for number in 10..20 {
            let read = fs::read(at.join(format!("file-{number}"))).expect("read");
            assert!(read == bytes(number, 1 << 20), "{kind:?}: file {number}");
        }
        let detached = attach::detach(&drive.name, Force::No).expect("detached");
        assert_eq!(detached, attach::Detached::default(), "{kind:?}");
        drive.is_gone();
    }
}

#[test]
fn fio_verifies_what_it_wrote() {
    for (block, job) in [
        (512, &["--rw=randwrite", "--bsrange=512-256k", "--size=128m", "--fsync=64"][..]),
        (4096, &["--rw=randrw", "--bs=4k", "--size=64m"]),
        // Large requests from contiguous memory that does not begin at a page boundary must arrive as whole blocks.
        (4096, &["--rw=write", "--bs=4m", "--size=256m", "--iomem_align=512"]),
    ] {
        let Some(drive) = Drive::new(block) else { return };
        let attached = drive.attach();
        let file = format!("--filename={}", node(&attached).display());
        let common = ["--name=verify", "--direct=1", "--ioengine=libaio", "--iodepth=64", "--verify=crc32c"];
        let mut fio = Command::new("fio");
        fio.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        let output =
            fio.args(common).args(job).args(["--randseed=20261121", &file]).output().expect("fio runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{job:?}: {said}");
    }
}

#[test]
fn a_server_that_is_killed_under_a_busy_filesystem_leaves_nothing() {
    for kind in [Filesystem::Xfs, Filesystem::Ext4] {
        let Some(drive) = Drive::new(4096) else { return };
        let attached = drive.mounted(kind);
        let at = drive.at();
        let target = at.join("data");
        let writes = move || {
            let Ok(mut file) = File::create(&target) else { return };
            let block = bytes(3, 1 << 20);
            while file.write_all(&block).is_ok() && file.sync_data().is_ok() {}
        };
        let writer = std::thread::spawn(writes);
        wait_until("it writes", || drive.says("flush") > 5);
        end(&attached, Signal::KILL);
        writer.join().expect("the writer gets an error");
        assert_eq!(state(&drive), State::ServerGone);
        let error = attach::reattach(&drive.name, Force::No, &never()).unwrap_err();
        assert!(matches!(error, HostError::ServerEnded { .. }), "{error}");
        let _ = attach::detach(&drive.name, Force::No).expect("detached");
        drive.is_gone();
        // A second detach reports that the drive is not attached.
        let error = attach::detach(&drive.name, Force::No).unwrap_err();
        assert!(matches!(error, HostError::NotAttached { .. }), "{error}");
    }
}

#[test]
fn a_drive_that_never_answers_is_detached() {
    // Detaching without force would take half a minute, so the test uses force.
    for mounted in [false, true] {
        let Some(drive) = Drive::new(4096) else { return };
        let attached = if mounted { drive.mounted(Filesystem::Xfs) } else { drive.attach() };
        let path = if mounted { drive.at().join("data") } else { node(&attached).to_owned() };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).expect("opened");
        file.write_all_at(&[1; 1 << 20], 0).expect("into the cache");
        drive.command("silence");
        let waits = std::thread::spawn(move || file.sync_all());
        let device = number(&attached);
        wait_until("it waits", || in_flight(device) > 0);
        let detached = attach::detach(&drive.name, Force::Lazily).expect("detached");
        assert!(detached.cut_off);
        assert!(waits.join().expect("joined").is_err(), "whoever waits gets an error");
        wait_until("the loop device is off", || {
            !Path::new(&format!("/sys/block/loop{device}/loop")).exists()
        });
        drive.is_gone();
    }
}

#[test]
fn handles_of_an_old_life_fail_and_the_drive_comes_again() {
    for kind in [Filesystem::Xfs, Filesystem::Ext4] {
        let Some(drive) = Drive::new(4096) else { return };
        let attached = drive.mounted(kind);
        let at = drive.at();
        fs::write(at.join("kept"), bytes(5, 1 << 20)).expect("written");
        run("sync", &["-f", text(&at)]);
        let old = OpenOptions::new().read(true).write(true).open(&attached.file).expect("opened");
        let mut block = [0; 4096];
        old.read_exact_at(&mut block, 0).expect("the old life");
        drive.command("life 2");
        let eio = Some(libc::EIO);
        assert_eq!(old.read_exact_at(&mut block, 0).unwrap_err().raw_os_error(), eio);
        assert_eq!(old.write_all_at(&block, 0).unwrap_err().raw_os_error(), eio);
        assert_eq!(old.sync_all().unwrap_err().raw_os_error(), eio);
        let new = File::open(&attached.file).expect("opened");
        new.read_exact_at(&mut block, 0).expect("the new life");
        drop((old, new));
        assert!(
            File::create(at.join("lost")).and_then(|file| file.sync_all()).is_err(),
            "mounted before the cut"
        );
        let again = attach::reattach(&drive.name, Force::No, &never()).expect("attached again");
        assert_eq!((again.state, &again.mounted[..]), (State::Served, std::slice::from_ref(&at)));
        assert_eq!(again.process, attached.process, "the same server");
        let read = fs::read(at.join("kept")).expect("read");
        assert!(read == bytes(5, 1 << 20), "{kind:?}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
        let line = mounts.lines().find(|line| line.contains(text(&at))).expect("mounted");
        assert!(line.contains("noatime"), "mounted as before: {line}");
        let _ = attach::detach(&drive.name, Force::No).expect("detached");
        drive.is_gone();
    }
}

#[test]
fn what_is_in_use_is_told_and_taken_away_by_force_only() {
    let Some(drive) = Drive::new(4096) else { return };
    drive.mounted(Filesystem::Ext4);
    let at = drive.at();
    fs::write(at.join("file"), "x").expect("written");
    let file = File::open(at.join("file")).expect("opened");
    let mut program = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn().expect("started");
    let error = attach::detach(&drive.name, Force::No).unwrap_err();
    let HostError::Busy { path, by } = &error else { panic!("{error}") };
    assert_eq!(path, &at);
    assert_eq!(by[..], [format!("sleep (process {})", program.id())]);
    assert_eq!(state(&drive), State::Served, "nothing was undone");
    fs::write(at.join("more"), "x").expect("it works as before");
    let detached = attach::detach(&drive.name, Force::Lazily).expect("detached");
    assert!(detached.cut_off && detached.left.iter().any(|left| left.contains("sleep")), "{detached:?}");
    program.kill().and_then(|()| program.wait()).expect("ended");
    wait_until("the loop device goes with its last user", || {
        !run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]).contains("/disk")
            || !run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]).contains(&drive.name)
    });
    drive.is_gone();
}

#[test]
fn what_cannot_be_attached_leaves_nothing_and_says_why() {
    let Some(drive) = Drive::new(4096) else { return };
    // The server fails.
    let mut command = Command::new("sh");
    command.args(["-c", "echo 'no such model' >&2; exit 3"]);
    let error = attach::attach(&drive.wish(None, None), command, &never()).unwrap_err();
    assert_eq!(error.to_string(), format!("the server of {} ended: no such model", drive.name));
    drive.is_gone();
    // The server program does not exist.
    let command = Command::new("/no/such/program");
    let error = attach::attach(&drive.wish(None, None), command, &never()).unwrap_err().to_string();
    assert!(error.contains("cannot start /no/such/program"), "{error}");
    drive.is_gone();
    // The user interrupts the wait.
    let command = server(&drive.name, 4096);
    let error =
        attach::attach(&drive.wish(None, None), command, &Arc::new(AtomicBool::new(true))).unwrap_err();
    assert!(matches!(error, HostError::Interrupted { .. }), "{error}");
    drive.is_gone();
    // There is no filesystem to mount.
    let at = drive.at();
    let command = server(&drive.name, 4096);
    let error = attach::attach(&drive.wish(None, Some(&at)), command, &never()).unwrap_err();
    assert!(matches!(error, HostError::Tool { program: "mount", .. }), "{error}");
    drive.is_gone();
    // The name is in use.
    drive.attach();
    let command = server(&drive.name, 4096);
    let error = attach::attach(&drive.wish(None, None), command, &never()).unwrap_err();
    assert!(matches!(error, HostError::AlreadyAttached { .. }), "{error}");
    let error = attach::name_of(&drive.name[..drive.name.len() - 1]).unwrap_err().to_string();
    assert!(error.contains(&format!("did you mean `{}`?", drive.name)), "{error}");
    let _ = attach::detach(&drive.name, Force::No).expect("detached");
    drive.is_gone();
}

fn state(drive: &Drive) -> State {
    attach::list().into_iter().find(|it| it.name == drive.name).expect("listed").state
}

fn number(attached: &Attachment) -> u32 {
    text(node(attached)).strip_prefix("/dev/loop").and_then(|it| it.parse().ok()).expect("a number")
}

fn in_flight(number: u32) -> u64 {
    let stat = fs::read_to_string(format!("/sys/block/loop{number}/stat")).expect("counters");
    stat.split_whitespace().nth(8).expect("in flight").parse().expect("a number")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
