//! Attached drives from the outside: a power cut under a mounted filesystem, and nothing left behind when attaching is
//! interrupted or killed half way, whoever is killed.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, Running, assert_says, wait_until};
use loopback::{run, skipped};
use rustix::process::Signal;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A device of 512 MiB that takes a tenth of a millisecond.
const DEVICE: &str = "name = \"volume\"\ntitle = \"A volume\"\n[volume]\ncapacity = \"512MiB\"\niops = 100_000\n\
                      throughput = \"1GiB\"\nio-size = \"256KiB\"\nlatency = \"100us\"\nlatency-spread = \"0us\"\n";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A drive with a name of its own, which begins no other; detached when this is dropped.
struct Drive {
    lab: Lab,
    name: String,
}

impl Drive {
    /// `None`, with a message, where drives cannot be attached.
    fn new() -> Option<Drive> {
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
        let lab = Lab::new();
        lab.write("volume.toml", DEVICE);
        let name = format!("cli-{}-{}-drive", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Some(Drive { lab, name })
    }

    fn at(&self) -> PathBuf {
        self.lab.path("mnt")
    }

    /// The arguments that attach it.
    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["drive", "attach", "volume.toml", "--name", &self.name], more].concat()
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

    /// The server that was written down.
    fn server(&self) -> Option<u32> {
        let line = self.journal().lines().rfind(|line| line.contains("\"server\":{"))?.to_owned();
        let facts: serde_json::Value = serde_json::from_str(&line).ok()?;
        facts["server"]["number"].as_u64().map(|number| number as u32)
    }

    /// Nothing of it is left; `server` was its process.
    fn is_gone(&self, what: &str, server: Option<u32>) {
        for ending in ["", ".journal", ".log", ".control"] {
            assert!(!self.path(ending).exists(), "{what}: {} is there", self.path(ending).display());
        }
        assert_eq!(self.mounts(), "", "{what}");
        assert!(!self.at().exists(), "{what}: the folder to mount at is there");
        let loops = run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
        assert!(!loops.contains(&self.name), "{what}: {loops}");
        let stat = server.and_then(|it| fs::read_to_string(format!("/proc/{it}/stat")).ok());
        // Where nobody asks after orphans, one that has ended stays listed.
        assert!(stat.is_none_or(|stat| stat.contains(") Z ")), "{what}: the server runs");
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _ = self.lab.run(&["drive", "detach", &self.name, "--force"]);
    }
}

/// How far attaching has come.
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

/// Attaches and sends a signal in a phase; the exit code.
fn broken(drive: &Drive, phase: Phase, signal: Signal) -> (Option<i32>, Option<u32>) {
    let at = drive.at();
    let arguments = drive.arguments(&["--mkfs", "xfs", "--mount", at.to_str().expect("plain")]);
    let mut child = Running(drive.lab.command(&arguments).spawn().expect("started"));
    let reached = wait_until(&mut child, || phase.is_reached(drive));
    let server = drive.server();
    if reached && !child.ended() {
        child.signal(signal);
    }
    let code = child.wait();
    let mut said = String::new();
    child.0.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(matches!(code, None | Some(0 | 130)), "{phase:?}: {code:?}: {said}");
    (code, server)
}

#[test]
fn what_was_synced_survives_a_power_cut_under_a_mounted_filesystem() {
    for filesystem in ["xfs", "ext4"] {
        let Some(drive) = Drive::new() else { return };
        let at = drive.at();
        let at = at.to_str().expect("plain");
        // A drive with a volatile cache, 625 MB of it.
        let device = ["drive", "attach", "intel-320-160gb", "--scale", "1/256", "--name", &drive.name];
        let more =
            ["--cache", "volatile", "--no-delay", "--mkfs", filesystem, "--mount", at, "-o", "noatime"];
        let told = drive.lab.ok(&[&device[..], &more].concat());
        assert_says(&told, &[at, "/dev/loop", &format!("lowtide drive detach {}", drive.name)]);
        let kept = vec![7; 3 << 20];
        let mut file = File::create(drive.at().join("kept")).expect("made");
        file.write_all(&kept).and_then(|()| file.sync_all()).expect("synced");
        fs::write(drive.at().join("lost"), &kept).expect("written");
        drop(file);
        assert_says(&drive.lab.ok(&["drive", "powercut", &drive.name]), &["power cut number 1"]);
        let file = File::create(drive.at().join("late"));
        assert!(file.and_then(|file| file.sync_all()).is_err(), "{filesystem}: the old life is over");
        assert_says(&drive.lab.ok(&["drive", "attach", "--again", at]), &[at]);
        assert!(fs::read(drive.at().join("kept")).expect("read") == kept, "{filesystem}");
        // What lies there is a whole filesystem.
        let list = drive.lab.ok(&["drive", "attach", "--list", "--format", "json"]);
        let ours = list.lines().find(|line| line.contains(&drive.name)).expect("listed");
        let ours: serde_json::Value = serde_json::from_str(ours).expect("JSON");
        assert_eq!((&ours["state"], &ours["mounted"][0]), (&"served".into(), &at.into()));
        let node = ours["node"].as_str().expect("a node");
        run("umount", &[at]);
        match filesystem {
            "xfs" => run("xfs_repair", &["-n", node]),
            _ => run("e2fsck", &["-f", "-n", node]),
        };
        let server = drive.server();
        drive.lab.ok(&["drive", "detach", node]);
        drive.is_gone(filesystem, server);
    }
}

#[test]
fn attaching_that_is_interrupted_leaves_nothing() {
    for phase in Phase::ALL {
        let Some(drive) = Drive::new() else { return };
        let (code, server) = broken(&drive, phase, Signal::INT);
        // One that was done already was not interrupted.
        if code != Some(0) {
            assert_eq!(code, Some(130), "{phase:?}");
            drive.is_gone(&format!("{phase:?}"), server);
        }
    }
}

#[test]
fn attaching_that_is_killed_is_detached() {
    for phase in Phase::ALL {
        let Some(drive) = Drive::new() else { return };
        let (_, server) = broken(&drive, phase, Signal::KILL);
        let (out, err) = drive.lab.ends(&["drive", "detach", &drive.name], 0);
        assert!(out.is_empty() && err.contains("is detached"), "{phase:?}: {err}");
        drive.is_gone(&format!("{phase:?}"), server);
    }
}

#[test]
fn a_server_that_is_killed_under_xfs_leaves_nothing() {
    let Some(drive) = Drive::new() else { return };
    let at = drive.at();
    let at = at.to_str().expect("plain");
    drive.lab.ok(&drive.arguments(&["--mkfs", "xfs", "--mount", at]));
    let target = format!("--filename={at}/data");
    let mut fio = Command::new("fio");
    fio.args(["--name=writes", "--rw=randwrite", "--bs=16k", "--size=64m", "--iodepth=16", "--direct=1"]);
    fio.args(["--ioengine=libaio", "--time_based", "--runtime=60", &target]);
    fio.stdout(Stdio::null()).stderr(Stdio::null());
    let mut writer = Running(fio.spawn().expect("fio starts"));
    let stat = || drive.lab.ok(&["drive", "stat", &drive.name, "--format", "json"]);
    let written = |text: &str| {
        let stat: serde_json::Value = serde_json::from_str(text).expect("JSON");
        stat["since_open"]["host_written_bytes"].as_u64().expect("a count")
    };
    assert!(wait_until(&mut writer, || written(&stat()) > 80 << 20), "fio writes");
    let server = drive.server();
    let process = server.and_then(|it| rustix::process::Pid::from_raw(it.cast_signed())).expect("a server");
    rustix::process::kill_process(process, Signal::KILL).expect("killed");
    assert_ne!(writer.wait(), Some(0), "fio gets an error");
    drive.lab.ok(&["drive", "detach", at]);
    drive.is_gone("killed", server);
}

#[test]
fn what_is_in_use_or_not_there_is_told() {
    let Some(drive) = Drive::new() else { return };
    let at = drive.at();
    let at = at.to_str().expect("plain");
    let err = drive.lab.refuses(&["drive", "attach", "volum.toml"], 2);
    assert_says(&err, &["volum.toml"]);
    let err = drive.lab.refuses(&["drive", "attach", "volume.toml", "--name", "a/b"], 2);
    assert_says(&err, &["letters, digits, - and _"]);
    let err = drive.lab.refuses(&["drive", "detach", &drive.name], 2);
    assert_says(&err, &["is not attached"]);
    let err = drive.lab.refuses(&drive.arguments(&["--mount", "no/such/folder"]), 2);
    assert_says(&err, &["no/such/folder"]);
    // No filesystem is there to be mounted.
    let err = drive.lab.refuses(&drive.arguments(&["--mount", at]), 1);
    assert_says(&err, &["mount (of util-linux) failed"]);
    drive.is_gone("a failed mount", None);
    drive.lab.ok(&drive.arguments(&["--mkfs", "ext4", "--mount", at]));
    let err = drive.lab.refuses(&drive.arguments(&[]), 3);
    assert_says(&err, &["is attached already"]);
    let file = File::create(drive.at().join("open")).expect("made");
    let err = drive.lab.refuses(&["drive", "detach", at], 3);
    assert_says(&err, &["is in use by", &format!("process {}", std::process::id())]);
    let server = drive.server();
    let (_, err) = drive.lab.ends(&["drive", "detach", at, "--force"], 0);
    assert_says(&err, &["is detached", "cut off"]);
    assert!(file.sync_all().is_err());
    drop(file);
    drive.is_gone("by force", server);
}
