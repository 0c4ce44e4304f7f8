//! Ways to use a block device, which an interlock must detect. Each way is started and ended separately.
//!
//! All uses are real: loop devices, mounts, namespaces, programs. A way that this machine does not support is
//! reported as skipped. The programs are short Python scripts, because each way is a single system call.
#![allow(dead_code, clippy::print_stdout)]

#[path = "ways/scripts.rs"]
mod scripts;

use super::loopback::{Loop, run, skipped};
use scripts::{CONTAINER, EROFS, LOCKED, MAPPED, MAPPED_TO_WRITE, PRELUDE, REGISTERED, SENT};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A way to use a device.
pub struct Way {
    /// Description of the use: `a program has it open for reading`.
    pub name: &'static str,
    /// Size of the device in MiB.
    mib: u64,
    begin: fn(&Bench<'_>, &mut Use) -> Result<(), String>,
}

/// A device, and a folder for helper files.
pub struct Bench<'a> {
    disk: &'a Loop,
    folder: &'a Path,
}

/// A use in progress. Dropping it undoes its steps, latest first.
#[derive(Default)]
pub struct Use {
    /// The device that must be refused, if it is not the bench's own.
    target: Option<PathBuf>,
    undo: Vec<Undo>,
}

enum Undo {
    /// A program and its standard input.
    Program(Child, Option<ChildStdin>),
    Command(Vec<String>),
}

impl Drop for Use {
    fn drop(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Program(mut child, input) => {
                    // Closing its input ends the program and its children.
                    drop(input);
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_secs(5) && matches!(child.try_wait(), Ok(None)) {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    let _ = child.kill();
                    let _ = child.wait();
                }
                Undo::Command(words) => {
                    let _ = Command::new(&words[0]).args(&words[1..]).stderr(Stdio::null()).status();
                }
            }
        }
    }
}

/// Starts each way in turn and calls `check` with the way, the device that must be refused, and the bench's device.
/// Returns the number of ways that were checked.
pub fn each(mut check: impl FnMut(&Way, &Path, &Loop)) -> usize {
    let mut checked = 0;
    let only = std::env::var("LOWTIDE_WAY").unwrap_or_default();
    for way in all().filter(|way| way.name.contains(&only)) {
        let Some(disk) = Loop::new(way.mib, &[]) else { return checked };
        let folder = tempfile::tempdir().expect("a folder");
        let mut begun = Use::default();
        if let Err(why) = (way.begin)(&Bench { disk: &disk, folder: folder.path() }, &mut begun) {
            skipped(&format!("{}: {why}", way.name));
            continue;
        }
        run("sync", &[text(&disk.node)]);
        check(way, begun.target.as_deref().unwrap_or(&disk.node), &disk);
        checked += 1;
    }
    checked
}

/// All ways.
pub fn all() -> impl Iterator<Item = &'static Way> {
    WAYS.iter().chain(hidden::WAYS)
}

/// Makes an erofs on the device and mounts its file at `at` without a loop device. Returns false if that is not
/// possible.
pub fn mount_file(disk: &Loop, at: &Path) -> bool {
    let arguments = [&disk.node, Path::new("/"), &disk.file, at];
    let mounted = Use::default().python(&[], EROFS, &arguments);
    mounted.inspect_err(|why| skipped(why)).is_ok()
}

/// Checksum of the device.
pub fn checksum(disk: &Loop) -> String {
    run("cksum", &[text(&disk.node)])
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}

impl Use {
    /// Runs a command, to be undone by `undone_by`. Returns its output.
    fn command(&mut self, command: &[&str], undone_by: &[&str]) -> Result<String, String> {
        let output =
            Command::new(command[0]).args(&command[1..]).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        if !undone_by.is_empty() {
            self.undo.push(Undo::Command(undone_by.iter().map(|&word| word.to_owned()).collect()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Starts a program, waits until it prints `ready`, and returns its process number.
    fn program(&mut self, words: &[&str]) -> Result<u32, String> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", words[0]))?;
        let (process, input) = (child.id(), child.stdin.take());
        let mut line = String::new();
        let _ = BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line);
        if line.trim() == "ready" {
            self.undo.push(Undo::Program(child, input));
            return Ok(process);
        }
        drop(input);
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(error.lines().last().unwrap_or("it ended").to_owned())
    }

    /// Starts a Python script, as a child of the command `below` unless that is empty.
    fn python(&mut self, below: &[&str], script: &str, arguments: &[&Path]) -> Result<u32, String> {
        let script = format!("{PRELUDE}{script}\nwait()\n");
        let mut words = below.to_vec();
        words.extend(["python3", "-c", &script]);
        words.extend(arguments.iter().map(|path| text(path)));
        self.program(&words)
    }

    /// Attaches another loop device to a file, and returns its node.
    fn over(&mut self, file: &Path, options: &[&str]) -> Result<PathBuf, String> {
        let mut words = vec!["losetup"];
        words.extend(options);
        words.extend(["--find", "--show", text(file)]);
        let node = self.command(&words, &[])?;
        self.undo.push(Undo::Command(vec!["losetup".to_owned(), "--detach".to_owned(), node.clone()]));
        Ok(PathBuf::from(node))
    }

    /// Mounts a device, and returns the mount point.
    fn mount(&mut self, bench: &Bench<'_>, node: &Path, options: &str) -> Result<PathBuf, String> {
        let at = bench.folder.join(format!("mnt{}", self.undo.len()));
        fs::create_dir(&at).expect("made");
        self.command(&["mount", "-o", options, text(node), text(&at)], &["umount", text(&at)])?;
        self.command(&["sync", "--file-system", text(&at)], &[])?;
        Ok(at)
    }
}

impl Bench<'_> {
    fn node(&self) -> &Path {
        &self.disk.node
    }

    fn file(&self) -> &Path {
        &self.disk.file
    }

    /// Makes an ext4 that does not write in the background.
    fn ext4(&self) {
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-E", lazy, text(self.node())]);
        run("sync", &[text(self.node())]);
    }

    /// Makes another loop device over a new file.
    fn other(&self, mib: u64, begun: &mut Use) -> Result<PathBuf, String> {
        let file = self.folder.join("other.img");
        fs::File::create(&file).and_then(|file| file.set_len(mib << 20)).expect("a sparse file");
        begun.over(&file, &[])
    }

    /// Partitions the device, and returns the node of its only partition.
    fn partition(&self, begun: &mut Use) -> Result<PathBuf, String> {
        // A master boot record with one Linux partition of 8 MiB, at 1 MiB.
        let mut record = [0u8; 512];
        record[450] = 0x83;
        record[454..458].copy_from_slice(&2048u32.to_le_bytes());
        record[458..462].copy_from_slice(&16384u32.to_le_bytes());
        record[510..].copy_from_slice(&[0x55, 0xaa]);
        self.disk.put(0, &record);
        let node = text(self.node());
        run("blockdev", &["--flushbufs", node]);
        begun.command(&["partx", "--add", node], &["partx", "--delete", node])?;
        let partition = PathBuf::from(format!("{node}p1"));
        if partition.exists() { Ok(partition) } else { Err("there are no partitions".to_owned()) }
    }
}

/// A way in which a program holds the device.
macro_rules! device {
    ($name:literal, $script:expr) => {
        device!($name, &[], $script)
    };
    ($name:literal, $below:expr, $script:expr) => {
        Way {
            name: $name,
            mib: 16,
            begin: |bench, begun| {
                begun.python($below, $script, &[bench.node(), &bench.folder.join("x")]).map(drop)
            },
        }
    };
}

/// A way in which a program holds the device's file.
macro_rules! file {
    ($name:literal, $script:expr) => {
        Way {
            name: $name,
            mib: 16,
            begin: |bench, begun| {
                begun.python(&[], $script, &[bench.file(), &bench.folder.join("x")]).map(drop)
            },
        }
    };
}

macro_rules! way {
    ($name:literal, $begin:expr) => {
        way!($name, 16, $begin)
    };
    ($name:literal, $mib:literal, $begin:expr) => {
        Way { name: $name, mib: $mib, begin: $begin }
    };
}

/// A way in which the device under test is a loop device over the bench's device.
macro_rules! above {
    ($name:literal, $begin:expr) => {
        Way {
            name: $name,
            mib: 16,
            begin: |bench, begun| {
                let begin: fn(&Bench<'_>, &mut Use) -> Result<(), String> = $begin;
                begin(bench, begun)?;
                begun.target = Some(begun.over(bench.node(), &[])?);
                Ok(())
            },
        }
    };
}

// Declared below the macros, because it uses them.
#[path = "ways/hidden.rs"]
mod hidden;

/// Ways that are visible in a path of the device or of its file.
const WAYS: &[Way] = &[
    // Mounted.
    way!("it is mounted", |bench, begun| {
        bench.ext4();
        begun.mount(bench, bench.node(), "rw").map(drop)
    }),
    way!("it is mounted read-only", |bench, begun| {
        bench.ext4();
        begun.mount(bench, bench.node(), "ro").map(drop)
    }),
    way!("it is mounted by a bind mount, and no more where it was", |bench, begun| {
        bench.ext4();
        let (at, bound) = (bench.folder.join("a"), bench.folder.join("b"));
        fs::create_dir(&at).and_then(|()| fs::create_dir(&bound)).expect("made");
        begun.command(&["mount", "-o", "ro", text(bench.node()), text(&at)], &[])?;
        begun.command(&["mount", "--bind", text(&at), text(&bound)], &["umount", text(&bound)])?;
        begun.command(&["umount", text(&at)], &[]).map(drop)
    }),
    way!("it is unmounted lazily, with a file of it open", |bench, begun| {
        bench.ext4();
        let at = bench.folder.join("a");
        fs::create_dir(&at).expect("made");
        begun.command(&["mount", "-o", "ro", text(bench.node()), text(&at)], &[])?;
        let held = begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[&at]);
        begun.command(&["umount", "--lazy", text(&at)], &[])?;
        held.map(drop)
    }),
    way!("it is mounted in another mount namespace", |bench, begun| {
        bench.ext4();
        let mount = "mount -o ro $0 $1 && echo ready && read x";
        let words = ["unshare", "-m", "sh", "-c", mount, text(bench.node()), text(bench.folder)];
        begun.program(&words).map(drop)
    }),
    way!("it is mounted in another mount and network namespace", |bench, begun| {
        bench.ext4();
        let mount = "mount -o ro $0 $1 && echo ready && read x";
        let words = ["unshare", "-m", "-n", "sh", "-c", mount, text(bench.node()), text(bench.folder)];
        begun.program(&words).map(drop)
    }),
    way!("it is mounted in a container", |bench, begun| {
        bench.ext4();
        let mount = "mount -o ro $0 $1 && echo ready && read x";
        let inside = ["--mount-proc", "sh", "-c", mount, text(bench.node()), text(bench.folder)];
        begun.program(&[CONTAINER, &inside].concat()).map(drop)
    }),
    way!("it is mounted in a mount namespace that no process is in", |bench, begun| {
        bench.ext4();
        let mount = "mount -o ro $0 $1 && echo ready && read x";
        let mut inside = Use::default();
        let words = ["unshare", "-m", "sh", "-c", mount, text(bench.node()), text(bench.folder)];
        let process = inside.program(&words)?;
        let namespace = PathBuf::from(format!("/proc/{process}/ns/mnt"));
        begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[&namespace]).map(drop)
    }),
    way!("an XFS on it is mounted", 320, |bench, begun| {
        begun.command(&["mkfs.xfs", "-q", text(bench.node())], &[])?;
        begun.mount(bench, bench.node(), "ro").map(drop)
    }),
    way!("a Btrfs on it is mounted", 128, |bench, begun| {
        begun.command(&["mkfs.btrfs", "-q", text(bench.node())], &[])?;
        begun.mount(bench, bench.node(), "ro").map(drop)
    }),
    way!("it is the second device of a mounted Btrfs", 128, |bench, begun| {
        let other = bench.other(128, begun)?;
        begun.command(&["mkfs.btrfs", "-q", "-d", "single", text(&other), text(bench.node())], &[])?;
        let options = format!("ro,device={}", bench.node().display());
        begun.mount(bench, &other, &options).map(drop)
    }),
    way!("it is the journal of a mounted ext4", |bench, begun| {
        let other = bench.other(16, begun)?;
        begun.command(&["mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", text(bench.node())], &[])?;
        let journal = format!("device={}", bench.node().display());
        begun.command(&["mkfs.ext4", "-q", "-F", "-b", "4096", "-J", &journal, text(&other)], &[])?;
        begun.mount(bench, &other, "ro").map(drop)
    }),
    way!("it is the log of a mounted XFS", 80, |bench, begun| {
        let other = bench.other(320, begun)?;
        let log = format!("logdev={}", bench.node().display());
        begun.command(&["mkfs.xfs", "-q", "-l", &log, text(&other)], &[])?;
        begun.mount(bench, &other, &log).map(drop)
    }),
    way!("the system swaps to it", |bench, begun| {
        run("mkswap", &[text(bench.node())]);
        begun.command(&["swapon", text(bench.node())], &["swapoff", text(bench.node())]).map(drop)
    }),
    // Partitioned.
    way!("a partition of it is mounted", |bench, begun| {
        let partition = bench.partition(begun)?;
        run("mkfs.ext4", &["-q", "-F", text(&partition)]);
        begun.mount(bench, &partition, "ro").map(drop)
    }),
    way!("a partition of it is open", |bench, begun| {
        let partition = bench.partition(begun)?;
        begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[&partition]).map(drop)
    }),
    way!("a partition of it is the file of a loop device", |bench, begun| {
        let partition = bench.partition(begun)?;
        begun.over(&partition, &[]).map(drop)
    }),
    way!("it is a partition, and the disk is open", |bench, begun| {
        begun.target = Some(bench.partition(begun)?);
        begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[bench.node()]).map(drop)
    }),
    way!("it is a partition of a loop device whose file is open", |bench, begun| {
        begun.target = Some(bench.partition(begun)?);
        begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[bench.file()]).map(drop)
    }),
    // Open, mapped, in transit.
    device!("it is open for reading", "f = os.open(a[0], os.O_RDONLY)"),
    device!("it is open for writing", "f = os.open(a[0], os.O_RDWR)"),
    device!("it is open exclusively", "f = os.open(a[0], os.O_RDWR | os.O_EXCL)"),
    device!("it is open through a node elsewhere", "f = os.open(node(a[1]), os.O_RDWR)"),
    device!(
        "it is open through a node that was removed since",
        "f = os.open(node(a[1]), os.O_RDWR); os.unlink(a[1])"
    ),
    device!(
        "it is open in another root",
        "os.mkdir(a[1]); os.mkdir(a[1] + '/dev'); node(a[1] + '/dev/xvdb'); os.chroot(a[1]); f = os.open('/dev/xvdb', os.O_RDWR)"
    ),
    device!(
        "it is open in another mount namespace, through a node of there",
        &["unshare", "-m"],
        "os.mkdir(a[1]); made(libc.mount(b'none', a[1].encode(), b'tmpfs', 0, None)); f = os.open(node(a[1] + '/sdb'), os.O_RDWR)"
    ),
    device!("it is open in a container", CONTAINER, "f = os.open(a[0], os.O_RDWR)"),
    device!(
        "it is open in a thread with descriptors of its own",
        "
def own():
    made(libc.unshare(0x400))
    f = os.open(a[0], os.O_RDWR)
    wait()
t = threading.Thread(target=own); t.start(); t.join()"
    ),
    device!(
        "it is open in a process whose first thread has ended",
        "
f = os.open(a[0], os.O_RDWR)
main = os.getpid()
def other():
    while open(f'/proc/{main}/stat').read().rsplit(')')[1].split()[0] != 'Z': pass
    wait()
    os._exit(0)
threading.Thread(target=other).start()
libc.syscall(60, 0)"
    ),
    device!("it is mapped into memory, and closed", MAPPED),
    device!("it is mapped to be written, and closed", MAPPED_TO_WRITE),
    device!(
        "it is mapped through a node that was removed since, and closed",
        "mapped(os.open(node(a[1]), os.O_RDWR), mmap.PROT_READ); os.unlink(a[1])"
    ),
    device!("it is registered with an io_uring, and closed", REGISTERED),
    device!("it was sent through a socket, not received yet, and closed", SENT),
    device!("it is locked with flock", "f = os.open(a[0], os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_EX)"),
    // Loop devices over it.
    way!("it is the file of a loop device", |bench, begun| begun.over(bench.node(), &[]).map(drop)),
    way!("it is the file of a read-only loop device", |bench, begun| {
        begun.over(bench.node(), &["--read-only"]).map(drop)
    }),
    way!("a part of it is the file of a loop device", |bench, begun| {
        begun.over(bench.node(), &["--offset", "4194304", "--sizelimit", "4194304"]).map(drop)
    }),
    way!("it is the file of a loop device, by a node elsewhere that was removed since", |bench, begun| {
        let node = bench.folder.join("node");
        let minor = text(bench.node()).trim_start_matches("/dev/loop");
        run("mknod", &[text(&node), "b", "7", minor]);
        let made = begun.over(&node, &[]);
        fs::remove_file(&node).expect("removed");
        made.map(drop)
    }),
    way!("it is the file of a loop device that is mounted", |bench, begun| {
        bench.ext4();
        let above = begun.over(bench.node(), &[])?;
        begun.mount(bench, &above, "ro").map(drop)
    }),
    way!("it is the file of a loop device that is open", |bench, begun| {
        let above = begun.over(bench.node(), &[])?;
        begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[&above]).map(drop)
    }),
    way!("it is the file of a loop device that goes when it is closed", |bench, begun| {
        let above = begun.over(bench.node(), &[])?;
        let held = begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[&above]);
        begun.command(&["losetup", "--detach", text(&above)], &[])?;
        held.map(drop)
    }),
    way!("it is the file of a loop device that is the file of another", |bench, begun| {
        let above = begun.over(bench.node(), &[])?;
        begun.over(&above, &[]).map(drop)
    }),
    // The same file in another loop device or program.
    way!("another loop device has the same file", |bench, begun| begun.over(bench.file(), &[]).map(drop)),
    way!("another loop device has the same file, read-only", |bench, begun| {
        begun.over(bench.file(), &["--read-only"]).map(drop)
    }),
    way!("another loop device has another part of the same file", |bench, begun| {
        begun.over(bench.file(), &["--offset", "8388608", "--sizelimit", "1048576"]).map(drop)
    }),
    way!("another loop device has the same file, and is mounted", |bench, begun| {
        bench.ext4();
        let other = begun.over(bench.file(), &[])?;
        begun.mount(bench, &other, "ro").map(drop)
    }),
    way!("the same file is mounted by mount -o loop", |bench, begun| {
        bench.ext4();
        begun.mount(bench, bench.file(), "loop,ro").map(drop)
    }),
    way!("the same file is mounted by mount -o loop, and unmounted lazily", |bench, begun| {
        bench.ext4();
        let at = begun.mount(bench, bench.file(), "loop,ro")?;
        begun.undo.pop();
        let held = begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[&at]);
        begun.command(&["umount", "--lazy", text(&at)], &[])?;
        held.map(drop)
    }),
    way!("another loop device has the same file, and is open", |bench, begun| {
        let other = begun.over(bench.file(), &[])?;
        begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[&other]).map(drop)
    }),
    way!("another loop device has the same file, and goes when it is closed", |bench, begun| {
        let other = begun.over(bench.file(), &[])?;
        let held = begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[&other]);
        begun.command(&["losetup", "--detach", text(&other)], &[])?;
        held.map(drop)
    }),
    way!("another loop device has the same file, by another name of it", |bench, begun| {
        let link = bench.file().with_file_name("link.img");
        fs::hard_link(bench.file(), &link).expect("linked");
        begun.over(&link, &[]).map(drop)
    }),
    way!("another loop device has the same file, through a bind mount", |bench, begun| {
        let (below, at) = (bench.file().parent().expect("a folder"), bench.folder.join("bound"));
        fs::create_dir(&at).expect("made");
        begun.command(&["mount", "--bind", text(below), text(&at)], &["umount", text(&at)])?;
        begun.over(&at.join(bench.file().file_name().expect("a name")), &[]).map(drop)
    }),
    way!("another loop device has the same file, which was removed since", |bench, begun| {
        let made = begun.over(bench.file(), &[]);
        fs::remove_file(bench.file()).expect("removed");
        made.map(drop)
    }),
    way!("a loop device over another loop device has the same file", |bench, begun| {
        let other = begun.over(bench.file(), &[])?;
        begun.over(&other, &[]).map(drop)
    }),
    file!("its file is open for reading", "f = os.open(a[0], os.O_RDONLY)"),
    file!("its file is open for writing", "f = os.open(a[0], os.O_RDWR)"),
    file!("its file is open, and was removed since", "f = os.open(a[0], os.O_RDWR); os.unlink(a[0])"),
    file!(
        "its file is open by another name",
        "os.link(a[0], a[0] + '.link'); f = os.open(a[0] + '.link', os.O_RDONLY)"
    ),
    file!("its file is mapped into memory, and closed", MAPPED),
    file!("its file is mapped to be written, and closed", MAPPED_TO_WRITE),
    file!("its file is registered with an io_uring, and closed", REGISTERED),
    file!("its file was sent through a socket, not received yet, and closed", SENT),
    file!("its file is locked with flock", "f = os.open(a[0], os.O_RDONLY); fcntl.flock(f, fcntl.LOCK_SH)"),
    file!("its file is locked with fcntl", "f = os.open(a[0], os.O_RDWR); fcntl.lockf(f, fcntl.LOCK_EX)"),
    file!("its file is locked with fcntl, as virtual machines do", LOCKED),
    way!("its file is served by qemu-nbd", |bench, begun| {
        let socket = bench.folder.join("socket");
        let script = "qemu-nbd -f raw -t -k $1 $0 & while ! [ -S $1 ]; do sleep 0.05; kill -0 $! || exit 1; done; \
                      echo ready; read x; kill $!; wait";
        begun.program(&["sh", "-c", script, text(bench.file()), text(&socket)]).map(drop)
    }),
    way!("its file is served by nbdkit to a client", |bench, begun| {
        let socket = bench.folder.join("socket");
        // nbdkit opens the file only for a client, so qemu-nbd connects to it.
        let script = "wait_for() { while ! [ -S $1 ]; do sleep 0.05; kill -0 $2 || exit 1; done; }
            nbdkit -f -U $1 file $0 & n=$!; wait_for $1 $n
            qemu-nbd -f raw -t -k $1.client nbd:unix:$1 & q=$!; wait_for $1.client $q
            echo ready; read x; kill $q; kill $n; wait";
        begun.program(&["sh", "-c", script, text(bench.file()), text(&socket)]).map(drop)
    }),
    // A loop device over a loop device.
    above!("the loop device below it is mounted", |bench, begun| {
        bench.ext4();
        begun.mount(bench, bench.node(), "ro").map(drop)
    }),
    above!("the loop device below it is mounted in a container", |bench, begun| {
        bench.ext4();
        let mount = "mount -o ro $0 $1 && echo ready && read x";
        let inside = ["sh", "-c", mount, text(bench.node()), text(bench.folder)];
        begun.program(&[CONTAINER, &inside].concat()).map(drop)
    }),
    above!("the loop device below it is unmounted lazily, with a file of it open", |bench, begun| {
        bench.ext4();
        let at = begun.mount(bench, bench.node(), "ro")?;
        begun.undo.pop();
        let held = begun.python(&[], "f = os.open(a[0], os.O_RDONLY)", &[&at]);
        begun.command(&["umount", "--lazy", text(&at)], &[])?;
        held.map(drop)
    }),
    above!("the loop device below it is open", |bench, begun| {
        begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[bench.node()]).map(drop)
    }),
    above!("the loop device below it is mapped, and closed", |bench, begun| {
        begun.python(&[], MAPPED, &[bench.node()]).map(drop)
    }),
    above!("the loop device below it is the file of another", |bench, begun| {
        begun.over(bench.node(), &["--offset", "1048576"]).map(drop)
    }),
    above!("the file below the loop device below it is open", |bench, begun| {
        begun.python(&[], "f = os.open(a[0], os.O_RDWR)", &[bench.file()]).map(drop)
    }),
    above!("the file below the loop device below it is locked", |bench, begun| {
        begun.python(&[], LOCKED, &[bench.file()]).map(drop)
    }),
    above!("the file below the loop device below it is that of another, which is mounted", |bench, begun| {
        bench.ext4();
        let other = begun.over(bench.file(), &[])?;
        begun.mount(bench, &other, "ro").map(drop)
    }),
    way!("three loop devices below it, the file is mapped", |bench, begun| {
        begun.python(&[], MAPPED_TO_WRITE, &[bench.file()])?;
        let mut node = bench.node().to_owned();
        for _ in 0..3 {
            node = begun.over(&node, &[])?;
        }
        begun.target = Some(node);
        Ok(())
    }),
];
