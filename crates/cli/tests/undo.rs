//! Changes of a campaign to a block device other than its data (mounts, schedulers, signatures) are undone: at the
//! end, on Ctrl-C in every phase, and by the next run after a kill. The devices are loop devices.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, Words, assert_says, decoded, plain};
use loopback::{Loop, run};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").expect("Linux")
}

const EXPERIMENT: &str = include_str!("data/undo.toml");

/// A stage of a campaign of [`EXPERIMENT`].
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
        Some(Bench { lab: Lab::with(&[("undo.toml", text)]), disk })
    }

    fn name(&self) -> String {
        self.disk.node.file_name().expect("a node").to_string_lossy().into_owned()
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(format!("/run/lowtide/{}.undo", self.name())).unwrap_or_default()
    }

    fn is_mounted(&self) -> bool {
        mounts().contains(plain(&self.disk.node))
    }

    fn scheduler(&self) -> String {
        std::fs::read_to_string(format!("/sys/block/{}/queue/scheduler", self.name())).expect("a scheduler")
    }

    fn signatures(&self) -> String {
        run("wipefs", &["--no-act", plain(&self.disk.node)])
    }

    /// Asserts that nothing of a campaign remains except its data.
    fn assert_undone(&self) {
        assert!(!self.is_mounted(), "still mounted");
        assert_eq!(self.journal(), "");
        assert!(!Path::new("/run/lowtide").join(self.name()).exists(), "the mount point still exists");
        assert!(self.scheduler().contains("[none]"), "{}", self.scheduler());
        assert_eq!(self.signatures(), "");
    }

    /// The stored rows of a cell, during or after the campaign.
    fn rows(&self, cell: u32) -> Vec<BTreeMap<String, String>> {
        let (_, csv, _) = decoded(&self.lab.run("store export --format csv"));
        common::rows(&csv).into_iter().filter(|row| row["cell"] == cell.to_string()).collect()
    }

    fn reached(&self, phase: Phase) -> bool {
        match phase {
            Phase::MakeFilesystem => self.journal().contains("filesystem"),
            Phase::Fill => self.is_mounted(),
            Phase::Measure => !self.rows(0).is_empty(),
            Phase::SecondCell => !self.rows(1).is_empty(),
        }
    }

    /// The command line of the campaign.
    fn command(&self, more: &str) -> String {
        let (node, serial) = (self.disk.node.display(), self.disk.serial());
        format!("run undo.toml --target block:{node} --destroy {serial} {more}")
    }

    /// Starts a campaign and sends a signal in a phase; returns its exit code.
    fn breaks(&self, phase: Phase, signal: Signal) -> Option<i32> {
        let mut child = self.lab.start(&self.command(""));
        child.reaches(&format!("{phase:?}"), || self.reached(phase));
        child.signal(signal);
        child.wait()
    }

    /// Unmounts the filesystem that a killed campaign left.
    fn unmount(&self) {
        let at = format!("/run/lowtide/{}", self.name());
        let begin = Instant::now();
        // Requests in flight at the kill may keep the filesystem busy briefly.
        while !std::process::Command::new("umount").arg(&at).status().is_ok_and(|status| status.success()) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{at} stays mounted");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends a signal to a campaign in a phase, and resumes it to its end.
    fn breaks_and_resumes(&self, phase: Phase, signal: Signal) {
        let code = self.breaks(phase, signal);
        if signal != Signal::KILL {
            assert_eq!(code, Some(130), "{phase:?}");
            self.assert_undone();
        }
        let kept = self.rows(0);
        self.lab.ok(&self.command("--resume"));
        self.assert_undone();
        assert_eq!((self.rows(0).len(), self.rows(1).len()), (10, 10), "{phase:?}");
        if phase == Phase::SecondCell {
            assert_eq!(kept, self.rows(0), "the first cell was done and is kept");
        }
    }
}

#[test]
fn interrupted_in_every_phase_a_campaign_undoes_its_changes_and_resumes() {
    for phase in [Phase::MakeFilesystem, Phase::Fill, Phase::Measure, Phase::SecondCell] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        bench.breaks_and_resumes(phase, Signal::INT);
    }
}

#[test]
fn on_a_hangup_a_campaign_undoes_its_changes() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks_and_resumes(Phase::Measure, Signal::HUP);
}

/// Symptom: after these signals, mounts, loop devices and settings of a campaign remained. Cause: the signals were
/// not caught.
#[test]
fn on_other_signals_that_end_a_program_a_campaign_undoes_its_changes() {
    for signal in [Signal::USR1, Signal::ALARM, Signal::XCPU] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        assert_eq!(bench.breaks(Phase::Measure, signal), Some(130), "{signal:?}");
        bench.assert_undone();
    }
}

#[test]
fn a_filesystem_that_the_user_made_after_a_kill_is_kept() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks(Phase::Measure, Signal::KILL);
    bench.unmount();
    run("mkfs.xfs", &["-q", "-f", "-L", "precious", plain(&bench.disk.node)]);
    let before = bench.disk.checksum();
    let (_, err) = bench.lab.ends(&bench.command(""), 3);
    assert_says(&err, &["signature of xfs"]);
    assert_eq!(bench.disk.checksum(), before);
    assert!(bench.scheduler().contains("[none]"), "{}", bench.scheduler());
}

#[test]
fn a_filesystem_that_a_kill_left_is_kept_while_it_is_in_use() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    bench.breaks(Phase::Measure, Signal::KILL);
    bench.unmount();
    // lowtide's filesystem is mounted through another loop device.
    let other = run("losetup", &["--find", "--show", plain(&bench.disk.file)]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = plain(folder.path());
    run("mount", &["-o", "ro", other.trim(), at]);
    let before = bench.disk.checksum();
    let force = bench.command("--force-signature");
    let (code, _, error) = decoded(&bench.lab.run(&force));
    let after = bench.disk.checksum();
    run("umount", &[at]);
    run("losetup", &["--detach", other.trim()]);
    assert_eq!(code, Some(3), "{error}");
    assert_says(&error, &["which it lies on, backs"]);
    assert_eq!(after, before, "a byte changed");
    bench.lab.ok(&format!("{force} --set file_size=8MiB"));
    bench.assert_undone();
}

#[test]
fn a_journal_undoes_changes_of_its_own_device_only() {
    let Some(bench) = Bench::new(&EXPERIMENT.replace("600MiB", "8MiB")) else { return };
    let elsewhere = tempfile::tempdir().expect("a directory");
    let at = plain(elsewhere.path());
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
    let output = bench.lab.run(&bench.command(""));
    let is_mounted = mounts().contains(at);
    std::fs::remove_file(&link).expect("the link is kept");
    run("umount", &[at]);
    let _ = std::fs::remove_file(format!("/run/lowtide/{}.undo", bench.name()));
    let _ = std::fs::remove_dir("/run/lowtide");
    assert!(is_mounted, "a mount elsewhere was undone");
    assert!(!output.status.success(), "nothing is mounted at a link");
}

#[test]
fn changes_of_a_killed_campaign_are_undone_by_its_resume() {
    for phase in [Phase::MakeFilesystem, Phase::Fill, Phase::Measure, Phase::SecondCell] {
        let Some(bench) = Bench::new(EXPERIMENT) else { return };
        bench.breaks_and_resumes(phase, Signal::KILL);
    }
}

#[test]
fn every_filesystem_is_made_used_and_removed() {
    for (filesystem, options, fill) in [
        ("xfs", "noatime", "sequential"),
        ("ext4", "noatime,nobarrier", "random"),
        ("btrfs", "nodatacow", "sequential"),
    ] {
        let text =
            EXPERIMENT.replace("[1, 2]", "[2]").replace("ext4", filesystem).replace("noatime", options);
        let text = text.replace("600MiB", "64MiB").replace("\"sequential\"", &format!("\"{fill}\""));
        let Some(bench) = Bench::new(&text) else { return };
        bench.lab.ok(&bench.command(""));
        bench.assert_undone();
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
    bench.lab.ok(&bench.command(""));
    bench.disk.swap_file(1024);
    let other = bench.disk.file.with_file_name("other.img");
    let (node, serial) = (bench.disk.node.display(), other.display());
    let resume = format!("run undo.toml --target block:{node} --destroy {serial} --resume");
    bench.lab.refuses(&resume, 3, &["another device"]);
}

#[test]
fn a_device_that_is_only_read_needs_no_serial_and_is_not_changed() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    run("mkfs.ext4", &["-q", plain(&disk.node)]);
    let before = disk.checksum();
    let lab = Lab::new();
    lab.write(
        "read.toml",
        "name = \"read\"\ntarget.device = \"intel-320-160gb\"\n[workload]\npattern = \"random-read\"\nblock = \"4KiB\"\n\
         duration = \"500ms\"\ninterval = \"100ms\"\n",
    );
    let target = format!("block:{}", disk.node.display());
    let plan = lab.ok(&format!("plan read.toml --target {target}"));
    assert!(plan.contains("is only read"), "{plan}");
    lab.ok(&format!("run read.toml --target {target}"));
    assert_eq!(disk.checksum(), before);
    // A trace with a trim changes the device.
    lab.write(
        "trim.log",
        "fio version 3 iolog\n0 f add\n0 f open\n1 f read 0 4096\n2 f trim 0 65536\n3 f close\n",
    );
    lab.write(
        "trim.toml",
        "name = \"trim\"\ntarget.device = \"intel-320-160gb\"\n[workload]\ntrace = \"trim.log\"\n",
    );
    assert!(!lab.ok(&format!("plan trim.toml --target {target}")).contains("is only read"));
    lab.ends(&format!("run trim.toml --target {target}"), 3);
    assert_eq!(disk.checksum(), before);
    // A fill changes the device, too.
    lab.ends(&format!("run read.toml --target {target} --set fill=sequential"), 3);
    assert_eq!(disk.checksum(), before);
}

#[test]
fn unsupported_steps_are_refused_before_anything_is_written() {
    let Some(bench) = Bench::new(EXPERIMENT) else { return };
    let before = bench.disk.checksum();
    for (set, words) in [
        ("purge=nvme-format", "not an NVMe drive"),
        ("purge=ata-secure-erase", "not an ATA drive"),
        ("purge=secure-erase", "several ways to erase"),
        ("scheduler=fastest", "has none, mq-deadline"),
        ("layout.mount-options=loop", "`loop` is not for measuring"),
        ("layout.mount-options=noatime,bind", "`bind` is not for measuring"),
        ("layout.mount-options=a b", "`a b` is not for measuring"),
    ] {
        let run = bench.command("");
        let arguments = [&run.words()[..], &["--set", set]].concat();
        bench.lab.refuses(&arguments, 2, &[words]);
    }
    assert_eq!(bench.disk.checksum(), before);
}
