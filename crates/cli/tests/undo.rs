//! What a campaign changes on a block device besides its data is undone: at the end, on Ctrl-C in every phase, and by
//! the next run after a kill. On loop devices.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::Lab;
use loopback::{Loop, run};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::{Duration, Instant};

const EXPERIMENT: &str = r#"name = "undo"
target.device = "intel-320-160gb"

[before-each-cell]
fill = "sequential"
scheduler = "mq-deadline"
layout = { filesystem = "ext4", mount-options = "noatime" }

[workload]
pattern = "random-write"
block = "4KiB"
file_size = "600MiB"
duration = "1s"
interval = "100ms"

[sweep]
threads = [1, 2]
"#;

/// What a campaign of [`EXPERIMENT`] is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    MakeFilesystem,
    Fill,
    Measure,
    SecondCell,
}

struct Bench {
    lab: Lab,
    disk: Loop,
}

impl Bench {
    fn new(text: &str) -> Option<Bench> {
        let disk = Loop::new(1024, &[])?;
        let lab = Lab::new();
        lab.write("undo.toml", text);
        Some(Bench { lab, disk })
    }

    fn name(&self) -> String {
        self.disk.node.file_name().expect("a node").to_string_lossy().into_owned()
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(format!("/run/lowtide/{}.undo", self.name())).unwrap_or_default()
    }

    fn is_mounted(&self) -> bool {
        std::fs::read_to_string("/proc/self/mountinfo")
            .expect("Linux")
            .contains(self.disk.node.to_str().expect("plain"))
    }

    fn scheduler(&self) -> String {
        std::fs::read_to_string(format!("/sys/block/{}/queue/scheduler", self.name())).expect("a scheduler")
    }

    fn signatures(&self) -> String {
        run("wipefs", &["--no-act", self.disk.node.to_str().expect("plain")])
    }

    /// Nothing is left of a campaign but the data.
    fn is_as_before(&self) {
        assert!(!self.is_mounted(), "still mounted");
        assert_eq!(self.journal(), "");
        assert!(!Path::new("/run/lowtide").join(self.name()).exists(), "the mount point is still there");
        assert!(self.scheduler().contains("[none]"), "{}", self.scheduler());
        assert_eq!(self.signatures(), "");
    }

    /// The rows in the store of a cell, while the campaign runs or afterwards.
    fn rows(&self, cell: u32) -> Vec<String> {
        let output = self.lab.run(&["store", "export", "--format", "csv"]);
        let text = String::from_utf8(output.stdout).expect("text");
        let head = text.lines().next().unwrap_or_default();
        let column = head.split(',').position(|name| name == "cell").unwrap_or(0);
        let of_cell = |line: &&str| line.split(',').nth(column) == Some(&cell.to_string());
        text.lines().skip(1).filter(of_cell).map(str::to_owned).collect()
    }

    fn reached(&self, phase: Phase) -> bool {
        match phase {
            Phase::MakeFilesystem => self.journal().contains("filesystem"),
            Phase::Fill => self.is_mounted(),
            Phase::Measure => !self.rows(0).is_empty(),
            Phase::SecondCell => !self.rows(1).is_empty(),
        }
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let target = format!("block:{}", self.disk.node.display());
        let serial = self.disk.serial();
        let own = ["run", "undo.toml", "--target", &target, "--destroy", &serial];
        own.iter().chain(more).map(|&word| word.to_owned()).collect()
    }

    /// Begins a campaign and breaks it in a phase; its exit code.
    fn breaks(&self, phase: Phase, signal: Signal) -> Option<i32> {
        let all = self.arguments(&[]);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut child = self.lab.command(&all).spawn().expect("started");
        let begin = Instant::now();
        while !self.reached(phase) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{phase:?} was never reached");
            assert!(child.try_wait().expect("waited").is_none(), "it ended before {phase:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&child), signal).expect("killed");
        child.wait().expect("waited").code()
    }

    /// The same, and resumes it to its end.
    fn breaks_and_resumes(&self, phase: Phase, signal: Signal) {
        let code = self.breaks(phase, signal);
        if signal != Signal::KILL {
            assert_eq!(code, Some(130), "{phase:?}");
            self.is_as_before();
        }
        let kept = (self.rows(0), self.rows(1));
        let all = self.arguments(&["--resume"]);
        self.lab.ok(&all.iter().map(String::as_str).collect::<Vec<_>>());
        self.is_as_before();
        assert_eq!((self.rows(0).len(), self.rows(1).len()), (10, 10), "{phase:?}");
        if phase == Phase::SecondCell {
            // The first cell was done: nothing of it is lost or measured again.
            assert_eq!(kept.0, self.rows(0));
        }
    }
}

#[test]
fn interrupted_in_every_phase_a_campaign_undoes_what_it_changed_and_resumes() {
    for phase in [Phase::MakeFilesystem, Phase::Fill, Phase::Measure, Phase::SecondCell] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        bench.breaks_and_resumes(phase, Signal::INT);
    }
}

#[test]
fn a_terminal_that_goes_away_undoes_everything_too() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks_and_resumes(Phase::Measure, Signal::HUP);
}

/// Symptom: these signals killed a campaign and left mounts, loop devices and settings behind. Cause: they were not
/// caught.
#[test]
fn every_other_signal_that_ends_a_program_undoes_everything_too() {
    for signal in [Signal::USR1, Signal::ALARM, Signal::XCPU] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        assert_eq!(bench.breaks(Phase::Measure, signal), Some(130), "{signal:?}");
        bench.is_as_before();
    }
}

#[test]
fn what_others_made_after_a_kill_is_theirs() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks(Phase::Measure, Signal::KILL);
    let node = bench.disk.node.to_str().expect("plain");
    // What the killed process had in flight may take a moment.
    let at = format!("/run/lowtide/{}", bench.name());
    let begin = Instant::now();
    while !std::process::Command::new("umount").arg(&at).status().is_ok_and(|status| status.success()) {
        assert!(begin.elapsed() < Duration::from_secs(10), "{at} stays mounted");
        std::thread::sleep(Duration::from_millis(50));
    }
    run("mkfs.xfs", &["-q", "-f", "-L", "precious", node]);
    let before = bench.disk.checksum();
    let all = bench.arguments(&[]);
    let (_, err) = bench.lab.ends(&all.iter().map(String::as_str).collect::<Vec<_>>(), 3);
    common::assert_says(&err, &["signature of xfs"]);
    assert_eq!(bench.disk.checksum(), before);
    assert!(bench.scheduler().contains("[none]"), "{}", bench.scheduler());
}

#[test]
fn what_a_kill_left_stays_while_others_use_it() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks(Phase::Measure, Signal::KILL);
    let at = format!("/run/lowtide/{}", bench.name());
    let begin = Instant::now();
    while !std::process::Command::new("umount").arg(&at).status().is_ok_and(|status| status.success()) {
        assert!(begin.elapsed() < Duration::from_secs(10), "{at} stays mounted");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The filesystem is still the one that lowtide made, and somebody looks at it through another loop device.
    let other = run("losetup", &["--find", "--show", bench.disk.file.to_str().expect("plain")]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("plain");
    run("mount", &["-o", "ro", other.trim(), at]);
    let before = bench.disk.checksum();
    let all = bench.arguments(&["--force-signature"]);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (code, _, error) = common::told(&bench.lab.run(&all));
    let after = bench.disk.checksum();
    run("umount", &[at]);
    run("losetup", &["--detach", other.trim()]);
    assert_eq!(code, Some(3), "{error}");
    common::assert_says(&error, &["which it lies on, backs"]);
    assert_eq!(after, before, "a byte changed");
    bench.lab.ok(&[&all[..], &["--set", "file_size=8MiB"]].concat());
    bench.is_as_before();
}

#[test]
fn a_journal_speaks_of_its_own_device_only() {
    let Some(bench) = Bench::new(&EXPERIMENT.replace("600MiB", "8MiB")) else { return };
    let elsewhere = tempfile::tempdir().expect("a directory");
    let at = elsewhere.path().to_str().expect("plain");
    run("mount", &["-t", "tmpfs", "none", at]);
    std::fs::create_dir_all("/run/lowtide").expect("made");
    run("chmod", &["700", "/run/lowtide"]);
    let lines = format!(
        "{{\"change\":{{\"changed\":\"mount\",\"at\":{at:?}}}}}\n{{\"change\":{{\"changed\":\"scheduler\",\
         \"disk\":\"../../x\",\"was\":\"none\"}}}}\n\u{fffd}\n"
    );
    std::fs::write(format!("/run/lowtide/{}.undo", bench.name()), lines).expect("written");
    let link = format!("/run/lowtide/{}", bench.name());
    std::os::unix::fs::symlink(elsewhere.path(), &link).expect("linked");
    let all = bench.arguments(&[]);
    let output = bench.lab.run(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let still = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux").contains(at);
    std::fs::remove_file(&link).expect("the link is left alone");
    run("umount", &[at]);
    let _ = std::fs::remove_file(format!("/run/lowtide/{}.undo", bench.name()));
    let _ = std::fs::remove_dir("/run/lowtide");
    assert!(still, "a mount elsewhere was undone");
    assert!(!output.status.success(), "nothing is mounted at a link");
}

#[test]
fn what_a_killed_campaign_left_is_undone_by_the_one_that_resumes_it() {
    for phase in [Phase::MakeFilesystem, Phase::Fill, Phase::Measure, Phase::SecondCell] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        bench.breaks_and_resumes(phase, Signal::KILL);
    }
}

#[test]
fn every_filesystem_is_made_used_and_gone() {
    for (filesystem, options, fill) in [
        ("xfs", "noatime", "sequential"),
        ("ext4", "noatime,nobarrier", "random"),
        ("btrfs", "nodatacow", "sequential"),
    ] {
        let text =
            EXPERIMENT.replace("[1, 2]", "[2]").replace("ext4", filesystem).replace("noatime", options);
        let text = text.replace("600MiB", "64MiB").replace("\"sequential\"", &format!("\"{fill}\""));
        let Some(bench) = Bench::new(&text) else { return };
        let all = bench.arguments(&[]);
        bench.lab.ok(&all.iter().map(String::as_str).collect::<Vec<_>>());
        bench.is_as_before();
        assert_eq!(bench.rows(0).len(), 10, "{filesystem}");
        let report = bench.lab.read("report.html");
        let first = options.split(',').next().expect("one");
        assert!(
            report.contains(first) && report.contains(filesystem),
            "{filesystem}: the report tells the options"
        );
    }
}

#[test]
fn another_device_under_the_same_name_does_not_resume() {
    let Some(mut bench) = Bench::new(&EXPERIMENT.replace("600MiB", "8MiB")) else { return };
    let all = bench.arguments(&[]);
    bench.lab.ok(&all.iter().map(String::as_str).collect::<Vec<_>>());
    bench.disk.swap_file(1024);
    let other = bench.disk.file.with_file_name("other.img");
    let target = format!("block:{}", bench.disk.node.display());
    let all =
        ["run", "undo.toml", "--target", &target, "--destroy", other.to_str().expect("plain"), "--resume"];
    let err = bench.lab.refuses(&all, 3);
    common::assert_says(&err, &["another device"]);
}

#[test]
fn a_device_that_is_only_read_needs_no_serial_and_stays_as_it_is() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    run("mkfs.ext4", &["-q", disk.node.to_str().expect("plain")]);
    let before = disk.checksum();
    let lab = Lab::new();
    lab.write(
        "read.toml",
        "name = \"read\"\ntarget.device = \"intel-320-160gb\"\n[workload]\npattern = \"random-read\"\nblock = \"4KiB\"\n\
         duration = \"500ms\"\ninterval = \"100ms\"\n",
    );
    let target = format!("block:{}", disk.node.display());
    let plan = lab.ok(&["plan", "read.toml", "--target", &target]);
    assert!(plan.contains("is only read"), "{plan}");
    lab.ok(&["run", "read.toml", "--target", &target]);
    assert_eq!(disk.checksum(), before);
    // A trace that reads and trims is no reading.
    lab.write(
        "trim.log",
        "fio version 3 iolog\n0 f add\n0 f open\n1 f read 0 4096\n2 f trim 0 65536\n3 f close\n",
    );
    lab.write(
        "trim.toml",
        "name = \"trim\"\ntarget.device = \"intel-320-160gb\"\n[workload]\ntrace = \"trim.log\"\n",
    );
    assert!(!lab.ok(&["plan", "trim.toml", "--target", &target]).contains("is only read"));
    lab.ends(&["run", "trim.toml", "--target", &target], 3);
    assert_eq!(disk.checksum(), before);
    // The same with a fill is a write.
    lab.ends(&["run", "read.toml", "--target", &target, "--set", "fill=sequential"], 3);
    assert_eq!(disk.checksum(), before);
}

#[test]
fn what_a_device_cannot_do_is_refused_before_anything_is_written() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    let before = bench.disk.checksum();
    for (set, words) in [
        ("purge=nvme-format", "no NVMe drive"),
        ("purge=ata-secure-erase", "no ATA drive"),
        ("purge=secure-erase", "several ways to erase"),
        ("scheduler=fastest", "has none, mq-deadline"),
        ("layout.mount-options=loop", "`loop` is not for measuring"),
        ("layout.mount-options=noatime,bind", "`bind` is not for measuring"),
        ("layout.mount-options=a b", "`a b` is not for measuring"),
    ] {
        let all = bench.arguments(&["--set", set]);
        let err = bench.lab.refuses(&all.iter().map(String::as_str).collect::<Vec<_>>(), 2);
        common::assert_says(&err, &[words]);
    }
    assert_eq!(bench.disk.checksum(), before);
}
