//! Attached drives, tested through the command: a power cut under a mounted filesystem; nothing remains after
//! attaching was interrupted, or after the command or its server was killed.

#[path = "common/attached.rs"]
mod attached;
mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::can_attach;
use common::{Lab, Running, VOLUME, assert_says, json, wait_until};
use loopback::run;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A drive with a unique name that is no prefix of another name; detached when dropped.
struct Drive {
    lab: Lab,
    name: String,
}

impl Drive {
    /// `None`, with a message, if drives cannot be attached here.
    fn new() -> Option<Drive> {
        if !can_attach() {
            return None;
        }
        let lab = Lab::with(&[("volume.toml", VOLUME)]);
        let name = format!("cli-{}-{}-drive", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Some(Drive { lab, name })
    }

    fn at(&self) -> PathBuf {
        self.lab.path("mnt")
    }

    /// The command line that attaches and mounts the drive.
    fn attach(&self, more: &str) -> String {
        format!("drive attach volume.toml --name {} --mount {} {more}", self.name, self.lab.argument("mnt"))
    }

    fn path(&self, ending: &str) -> PathBuf {
        PathBuf::from(format!("/run/lowtide/attached/{}{ending}", self.name))
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.path(".journal")).unwrap_or_default()
    }

    fn mounts(&self) -> String {
        let all = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
        let at = self.at();
        let ours = |line: &&str| line.contains(&self.name) || line.contains(at.to_str().expect("plain"));
        all.lines().filter(ours).map(|line| format!("{line}\n")).collect()
    }

    /// The process number of the server in the journal.
    fn server(&self) -> Option<u32> {
        let line = self.journal().lines().rfind(|line| line.contains("\"server\":{"))?.to_owned();
        json(&line)["server"]["number"].as_u64().map(|number| number as u32)
    }

    /// Asserts that no file, mount, loop device or server process of the drive remains.
    fn assert_gone(&self, what: &str, server: Option<u32>) {
        for ending in ["", ".journal", ".log", ".control"] {
            assert!(!self.path(ending).exists(), "{what}: {} is there", self.path(ending).display());
        }
        assert_eq!(self.mounts(), "", "{what}");
        assert!(!self.at().exists(), "{what}: the folder to mount at is there");
        let loops = run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
        assert!(!loops.contains(&self.name), "{what}: {loops}");
        let stat = server.and_then(|it| fs::read_to_string(format!("/proc/{it}/stat")).ok());
        // Without an init process that reaps orphans, an ended server stays as a zombie.
        assert!(stat.is_none_or(|stat| stat.contains(") Z ")), "{what}: the server runs");
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = self.lab.run(&format!("drive detach {} --force", self.name));
    }
}

/// A stage of attaching.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Begun,
    Started,
    Measuring,
    LoopDevice,
    Mounting,
}

impl Phase {
    const ALL: [Phase; 5] =
        [Phase::Begun, Phase::Started, Phase::Measuring, Phase::LoopDevice, Phase::Mounting];

    fn is_reached(self, drive: &Drive) -> bool {
        match self {
            Phase::Begun => drive.journal().contains("\"device\""),
            Phase::Started => drive.server().is_some(),
            Phase::Measuring => drive.mounts().contains("lowtide:measure"),
            Phase::LoopDevice => drive
                .journal()
                .lines()
                .any(|line| line.contains("\"loop-device\":") && !line.contains("\"loop-device\":null")),
            Phase::Mounting => drive.at().exists(),
        }
    }
}

/// Attaches and sends a signal in a phase; returns the exit code and the server's process number.
fn broken(drive: &Drive, phase: Phase, signal: Signal) -> (Option<i32>, Option<u32>) {
    let mut child = drive.lab.start(&drive.attach("--mkfs xfs"));
    let reached = wait_until(&mut child, || phase.is_reached(drive));
    let server = drive.server();
    if reached && !child.has_ended() {
        child.signal(signal);
    }
    let code = child.wait();
    assert!(matches!(code, None | Some(0 | 130)), "{phase:?}: {code:?}: {}", child.error());
    (code, server)
}

#[test]
fn synced_files_survive_a_power_cut_under_a_mounted_filesystem() {
    for filesystem in ["xfs", "ext4"] {
        let Some(drive) = Drive::new() else { return };
        let at = &drive.lab.argument("mnt");
        // The volatile cache has 625 MB.
        let attach = format!(
            "drive attach intel-320-160gb --scale 1/256 --name {} --cache volatile --no-delay \
             --mkfs {filesystem} --mount {at} -o noatime",
            drive.name
        );
        drive.lab.prints(&attach, &[at, "/dev/loop", &format!("lowtide drive detach {}", drive.name)]);
        let kept = vec![7; 3 << 20];
        let mut file = File::create(drive.at().join("kept")).expect("made");
        file.write_all(&kept).and_then(|()| file.sync_all()).expect("synced");
        fs::write(drive.at().join("lost"), &kept).expect("written");
        drop(file);
        drive.lab.prints(&format!("drive powercut {}", drive.name), &["power cut number 1"]);
        let file = File::create(drive.at().join("late"));
        assert!(file.and_then(|file| file.sync_all()).is_err(), "{filesystem}: the old mount still works");
        drive.lab.prints(&format!("drive attach --again {at}"), &[at]);
        assert!(fs::read(drive.at().join("kept")).expect("read") == kept, "{filesystem}");
        let list = drive.lab.ok("drive attach --list --format json");
        let ours = json(list.lines().find(|line| line.contains(&drive.name)).expect("listed"));
        assert_eq!((&ours["state"], &ours["mounted"][0]), (&"served".into(), &at.as_str().into()));
        let node = ours["node"].as_str().expect("a node");
        run("umount", &[at]);
        match filesystem {
            "xfs" => run("xfs_repair", &["-n", node]),
            _ => run("e2fsck", &["-f", "-n", node]),
        };
        let server = drive.server();
        drive.lab.ok(&format!("drive detach {node}"));
        drive.assert_gone(filesystem, server);
    }
}

#[test]
fn attaching_that_is_interrupted_leaves_nothing() {
    for phase in Phase::ALL {
        let Some(drive) = Drive::new() else { return };
        let (code, server) = broken(&drive, phase, Signal::INT);
        // Attaching may have finished before the signal.
        if code != Some(0) {
            assert_eq!(code, Some(130), "{phase:?}");
            drive.assert_gone(&format!("{phase:?}"), server);
        }
    }
}

#[test]
fn attaching_that_is_killed_is_detached() {
    for phase in Phase::ALL {
        let Some(drive) = Drive::new() else { return };
        let (_, server) = broken(&drive, phase, Signal::KILL);
        let (out, err) = drive.lab.ends(&format!("drive detach {}", drive.name), 0);
        assert!(out.is_empty() && err.contains("is detached"), "{phase:?}: {err}");
        drive.assert_gone(&format!("{phase:?}"), server);
    }
}

#[test]
fn a_server_that_is_killed_under_xfs_leaves_nothing() {
    let Some(drive) = Drive::new() else { return };
    let at = &drive.lab.argument("mnt");
    drive.lab.ok(&drive.attach("--mkfs xfs"));
    let target = format!("--filename={at}/data");
    let mut fio = Command::new("fio");
    fio.args(["--name=writes", "--rw=randwrite", "--bs=16k", "--size=64m", "--iodepth=16", "--direct=1"]);
    fio.args(["--ioengine=libaio", "--time_based", "--runtime=60", &target]);
    fio.stdout(Stdio::null()).stderr(Stdio::null());
    let mut writer = Running::start(&mut fio);
    let stat = || drive.lab.json(&format!("drive stat {}", drive.name));
    let written = || stat()["since_open"]["host_written_bytes"].as_u64().expect("a count");
    writer.reaches("80 MiB written", || written() > 80 << 20);
    let server = drive.server();
    let process = server.and_then(|it| rustix::process::Pid::from_raw(it.cast_signed())).expect("a server");
    rustix::process::kill_process(process, Signal::KILL).expect("killed");
    assert_ne!(writer.wait(), Some(0), "fio gets an error");
    drive.lab.ok(&format!("drive detach {at}"));
    drive.assert_gone("killed", server);
}

#[test]
fn a_drive_that_is_in_use_or_does_not_exist_is_refused() {
    let Some(drive) = Drive::new() else { return };
    let (lab, name, at) = (&drive.lab, &drive.name, &drive.lab.argument("mnt"));
    lab.refuses("drive attach volum.toml", 2, &["volum.toml"]);
    lab.refuses("drive attach volume.toml --name a/b", 2, &["letters, digits, - and _"]);
    lab.refuses(&format!("drive detach {name}"), 2, &["is not attached"]);
    let elsewhere = format!("drive attach volume.toml --name {name} --mount no/such/folder");
    lab.refuses(&elsewhere, 2, &["no/such/folder"]);
    // The drive has no filesystem to mount.
    lab.refuses(&drive.attach(""), 1, &["mount (of util-linux) failed"]);
    drive.assert_gone("a failed mount", None);
    lab.ok(&drive.attach("--mkfs ext4"));
    lab.refuses(&format!("drive attach volume.toml --name {name}"), 3, &["is attached already"]);
    let file = File::create(drive.at().join("open")).expect("made");
    let user = format!("process {}", std::process::id());
    lab.refuses(&format!("drive detach {at}"), 3, &["is in use by", &user]);
    let server = drive.server();
    let (_, err) = lab.ends(&format!("drive detach {at} --force"), 0);
    assert_says(&err, &["is detached", "cut off"]);
    assert!(file.sync_all().is_err());
    drop(file);
    drive.assert_gone("by force", server);
}
