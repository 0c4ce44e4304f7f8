//! Tests attached simulated drives through the library: formatting, writes with and without delays, remounting,
//! keeping the drive's history, power cuts, and cleanup after processes are killed.
//!
//! Each test starts this program again as the server (see [`server_process`]).

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use loopback::{run, skipped};
use lowtide_core::{BlockDevice, Bytes, Filesystem, Nanos, Request, Seed, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_device::power::Tear;
use lowtide_host::attach::{self, State};
use lowtide_live::attached::{self, AttachOptions, Attached, AttachedError, ServeOptions};
use lowtide_live::{Data, Offer, ResolvedOffer};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

const SERVER: &str = "LOWTIDE_TEST_SERVER";
const OWNER: &str = "LOWTIDE_TEST_OWNER";
/// 2 GB of flash behind a controller, at the tests' scale.
const DEVICE: &str = "intel-x25-e-32gb";

static NEVER: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

// The server.

/// Runs the server if a test below started this program with a name; otherwise does nothing.
#[test]
fn server_process() {
    let Ok(name) = std::env::var(SERVER) else { return };
    let given = |what: &str| std::env::var(format!("{SERVER}_{what}")).expect("given");
    let data = match given("DATA").as_str() {
        "" => Data::Memory,
        path => Data::File(path.into()),
    };
    let offer = Offer {
        name: Some(name),
        scale: given("SCALE").parse().expect("a number"),
        block: given("BLOCK").parse().expect("a number"),
        state: Some(given("STATE").into()),
        data,
        ..Offer::of(&given("DEVICE"))
    };
    let known = offer.look_up().expect("known");
    let how = ServeOptions { at_once_first: true, real_time: true, ..ServeOptions::default() };
    let served = attached::serve(&known, how, |text| println!("{text}")).expect("served").expect("wanted");
    served.ended.expect("in order");
    served.drives.into_iter().for_each(|drive| known.close(drive).expect("closed"));
}

fn server(offer: &Offer) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["server_process", "--exact", "--nocapture"]);
    let mut give = |what: &str, value: String| {
        command.env(format!("{SERVER}{what}"), value);
    };
    give("", offer.name.clone().expect("a name"));
    give("_DEVICE", offer.device.clone());
    give("_SCALE", offer.scale.to_string());
    give("_BLOCK", offer.block.to_string());
    give("_STATE", offer.state.clone().expect("a state").display().to_string());
    give(
        "_DATA",
        if let Data::File(path) = &offer.data { path.display().to_string() } else { String::new() },
    );
    Ok(command)
}

// Helpers.

/// Returns whether drives can be attached on this machine.
fn possible() -> bool {
    for node in ["/dev/fuse", "/dev/loop-control"] {
        if OpenOptions::new().read(true).write(true).open(node).is_err() {
            skipped(&format!("{node} cannot be opened"));
            return false;
        }
    }
    if !rustix::process::geteuid().is_root() {
        skipped("mounting needs root");
        return false;
    }
    true
}

fn offer(name: &str) -> Offer {
    Offer { name: Some(name.to_owned()), scale: 16, seed: Seed::new(3), ..Offer::of(DEVICE) }
}

fn wanted(offer: Offer) -> AttachOptions<'static> {
    AttachOptions {
        offer,
        history: None,
        filesystem: Filesystem::Xfs,
        size: None,
        trims: false,
        options: "noatime",
        server,
        interrupt: &NEVER,
    }
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    // Marsaglia's xorshift64.
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = File::create(path).expect("made");
    file.write_all(bytes).and_then(|()| file.sync_all()).expect("written");
}

/// Checks that nothing is left of a drive.
fn is_gone(name: &str) {
    for ending in ["", ".journal", ".log", ".control", ".state", ".state.open", ".state.part", ".mounted"] {
        let path = PathBuf::from(format!("/run/lowtide/attached/{name}{ending}"));
        assert!(!path.exists(), "{} is there", path.display());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    assert!(!mounts.contains(name), "{mounts}");
    let loops = run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
    assert!(!loops.contains(name), "{loops}");
}

/// The filesystem and mount options at a path, as the kernel lists them.
fn mounted(at: &Path) -> String {
    let all = fs::read_to_string("/proc/self/mounts").expect("Linux");
    let line = all.lines().find(|line| line.split(' ').nth(1) == at.to_str());
    line.expect("mounted").split(' ').skip(2).take(2).collect::<Vec<_>>().join(" ")
}

fn model(known: &ResolvedOffer) -> (AnyDevice, VirtualTime) {
    known.model().expect("builds")
}

// Tests.

#[test]
fn what_is_written_is_there_after_mounting_again_whatever_the_pace() {
    if !possible() {
        return;
    }
    for (kind, options, shown) in [
        (Filesystem::Xfs, "noatime", "xfs rw,noatime"),
        (Filesystem::Ext4, "nodiratime,data=writeback", "ext4 rw,nodiratime,relatime,data=writeback"),
        (Filesystem::Btrfs, "", "btrfs rw,"),
    ] {
        let mut drive = Attached::new(AttachOptions { filesystem: kind, options, ..wanted(offer("again")) })
            .expect("attached");
        let (name, at) = (drive.name().to_owned(), drive.path().to_owned());
        let found = mounted(&at);
        assert!(found.starts_with(shown.split(',').next().expect("a word")), "{found}");
        assert!(options.split(',').all(|option| found.contains(option)), "{found}, asked for {options}");
        assert!(fs::metadata(&at).expect("there").permissions().mode() & 0o005 == 0o005, "others may go in");
        // Without delays: a drive of this kind would take seconds for these writes.
        let first = bytes(1, 24 << 20);
        write(&at.join("at-once"), &first);
        let before = drive.stat().expect("counted");
        assert_eq!(before.lateness, None, "it answers at once");
        assert!(before.writes.bytes >= first.len() as u64 && before.writes.latency.count > 0);
        assert!(before.since_new.host_written_bytes >= first.len() as u64);
        // With delays: each answer has a due time.
        drive.at_its_pace().expect("in time");
        let second = bytes(2, 2 << 20);
        write(&at.join("in-time"), &second);
        let after = drive.stat().expect("counted");
        assert!(after.lateness.is_some_and(|late| late.count > 0), "{after:?}");
        assert!(after.writes.bytes >= before.writes.bytes + second.len() as u64);
        drive.at_once().expect("at once");
        let third = bytes(3, 2 << 20);
        write(&at.join("at-once-again"), &third);
        assert_eq!(drive.stat().expect("counted").lateness, None);
        // Remounting empties the page cache, so the reads below come from the drive.
        let before = drive.stat().expect("counted").reads.bytes;
        drive.remount().expect("mounted again");
        assert_eq!((drive.path(), mounted(&at)), (at.as_path(), found));
        for (file, wanted) in [("at-once", first), ("in-time", second), ("at-once-again", third)] {
            assert!(fs::read(at.join(file)).expect("read") == wanted, "{kind:?}: {file}");
        }
        let read = drive.stat().expect("counted").reads.bytes - before;
        assert!(read >= 28 << 20, "{kind:?}: only {read} bytes came from the drive");
        // An open file prevents remounting.
        let user = File::open(at.join("in-time")).expect("opened");
        let error = drive.remount().expect_err("it is in use").to_string();
        assert!(error.contains("in use"), "{error}");
        drop(user);
        drive.detach().expect("detached");
        is_gone(&name);
    }
}

#[test]
fn history_goes_in_and_comes_back() {
    if !possible() {
        return;
    }
    let known = offer("history").look_up().expect("known");
    let (mut before, mut now) = model(&known);
    for n in 0..2000 {
        now = before.submit(now, &Request::write(n % 500 * 65536, 65536)).at;
    }
    let counted = before.counters();
    let data = tempfile::tempdir().expect("a folder");
    let first = Offer { data: Data::File(data.path().to_owned()), ..offer("history") };
    let size = Some(Bytes::mib(700));
    let drive = Attached::new(AttachOptions { history: Some((&before, now)), size, ..wanted(first) })
        .expect("attached");
    let name = drive.name().to_owned();
    assert!(fs::read_dir(data.path()).expect("there").next().is_none(), "the file has no name");
    let stat = drive.stat().expect("counted");
    assert!(stat.since_new.host_written_bytes > counted.host_written_bytes, "the filesystem came after it");
    assert!(stat.model_s >= now.as_nanos() as f64 / 1e9, "the model goes on where it was");
    let told = rustix::fs::statvfs(drive.path()).expect("told");
    let size = told.f_blocks * told.f_frsize;
    assert!((600 << 20..=700 << 20).contains(&size), "{size} bytes of filesystem");
    write(&drive.path().join("file"), &bytes(5, 8 << 20));
    let last = drive.stat().expect("counted");
    let returned = drive.detach().expect("detached");
    is_gone(&name);
    let after = returned.model.counters();
    assert!(after.host_written_bytes >= last.since_new.host_written_bytes);
    assert!(after.erases >= counted.erases && returned.now > now);
    // The returned model works like any other device, and can be the history of the next drive.
    let mut device = returned.model;
    let read = device.submit(returned.now + Nanos::from_secs(1), &Request::read(0, 4096));
    assert_eq!(read.status, Ok(()));
    let next =
        Attached::new(AttachOptions { history: Some((&device, read.at)), ..wanted(offer("history-again")) })
            .expect("again");
    let goes_on = next.stat().expect("counted").since_new;
    assert!(goes_on.host_written_bytes > after.host_written_bytes && goes_on.erases >= after.erases);
}

#[test]
fn two_at_once_know_nothing_of_each_other() {
    if !possible() {
        return;
    }
    let drives = ["data", "log"].map(|name| Attached::new(wanted(offer(name))).expect("attached"));
    assert_ne!(drives[0].path(), drives[1].path());
    std::thread::scope(|scope| {
        for (number, drive) in drives.iter().enumerate() {
            scope.spawn(move || {
                drive.at_its_pace().expect("in time");
                (0..10).for_each(|n| {
                    write(&drive.path().join(format!("{n}")), &bytes(number as u64 * 100 + n, 1 << 18))
                });
            });
        }
    });
    let [first, second] = drives;
    let names = [first.name().to_owned(), second.name().to_owned()];
    let before = second.stat().expect("counted").writes.bytes;
    write(&first.path().join("more"), &bytes(1, 1 << 20));
    assert_eq!(second.stat().expect("counted").writes.bytes, before, "the other has none of it");
    first.detach().expect("detached");
    is_gone(&names[0]);
    let read = fs::read(second.path().join("7")).expect("read");
    assert!(read == bytes(107, 1 << 18));
    // Drops a drive with an open file and unwritten data.
    let mut file = File::create(second.path().join("unfinished")).expect("made");
    file.write_all(&bytes(9, 1 << 20)).expect("taken");
    drop(second);
    assert!(file.sync_all().is_err(), "it is cut off");
    drop(file);
    is_gone(&names[1]);
}

#[test]
fn what_cannot_be_leaves_nothing() {
    if !possible() {
        return;
    }
    let fails = |wanted: AttachOptions<'_>| Attached::new(wanted).map(drop).expect_err("it cannot be");
    let error = fails(wanted(Offer { device: "intel-x25".to_owned(), ..offer("nothing") }));
    assert!(matches!(error, AttachedError::Open(_)) && error.to_string().contains("intel-x25-e"), "{error}");
    let error = fails(AttachOptions { options: "no-such-option", ..wanted(offer("nothing")) });
    assert!(matches!(error, AttachedError::Host(_)), "{error}");
    let error =
        fails(AttachOptions { server: |_| Ok(Command::new("/bin/false")), ..wanted(offer("nothing")) });
    assert!(error.to_string().contains("ended"), "{error}");
    // The history of another drive is refused.
    let other = Offer { scale: 32, ..offer("other") }.look_up().expect("known");
    let (other, now) = model(&other);
    let interrupted = Arc::new(AtomicBool::new(true));
    let error = fails(AttachOptions { interrupt: &interrupted, ..wanted(offer("nothing")) });
    assert!(error.to_string().contains("interrupt"), "{error}");
    let drive = Attached::new(AttachOptions { history: Some((&other, now)), ..wanted(offer("nothing")) });
    assert!(drive.is_err(), "its history is of another drive");
    let left = attach::list()
        .into_iter()
        .filter(|it| it.name.starts_with(&format!("nothing-{}", std::process::id())));
    assert_eq!(left.count(), 0);
}

/// Attaches a drive and waits to be killed, if the test below started this program.
#[test]
fn owner_process() {
    let Ok(name) = std::env::var(OWNER) else { return };
    let drive = Attached::new(wanted(offer(&name))).expect("attached");
    drive.at_its_pace().expect("in time");
    println!("attached {}", drive.name());
    let mut file = File::create(drive.path().join("file")).expect("made");
    loop {
        file.write_all(&[7; 65536]).and_then(|()| file.sync_data()).expect("written");
        io::Seek::rewind(&mut file).expect("back");
    }
}

#[test]
fn what_a_killed_campaign_leaves_the_next_one_cleans() {
    if !possible() {
        return;
    }
    let mut owner: Child = Command::new(std::env::current_exe().expect("this program"))
        .args(["owner_process", "--exact", "--nocapture"])
        .env(OWNER, "killed")
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = String::new();
    let mut out = owner.stdout.take().expect("piped");
    while !said.contains("attached ") || !said.ends_with('\n') {
        let mut some = [0; 256];
        let read = out.read(&mut some).expect("it says something");
        assert!(read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    let name =
        said.lines().find_map(|line| line.split("attached ").nth(1)).expect("a name").trim().to_owned();
    let state = || attach::list().into_iter().find(|it| it.name == name).map(|it| it.state);
    assert_eq!(state(), Some(State::Served));
    assert!(!attached::clean().expect("cleaned").contains(&name), "its owner lives");
    owner.kill().and_then(|()| owner.wait()).expect("killed");
    assert_eq!(state(), Some(State::OwnerGone));
    assert!(attached::clean().expect("cleaned").contains(&name));
    is_gone(&name);
    assert!(!attached::clean().expect("cleaned").contains(&name));
}

/// Symptom: after one of several hundred power cuts, XFS could not be mounted. Cause: power cuts tore the block
/// device's logical blocks of 4096 bytes into sectors, which no real drive does. XFS takes a torn journal block for a
/// new one if its beginning is new. Fix: a tear is never smaller than a logical block.
#[test]
fn a_power_cut_does_not_tear_logical_blocks() {
    if !possible() {
        return;
    }
    let mut drive = Attached::new(wanted(offer("whole"))).expect("attached");
    fs::write(drive.path().join("file"), b"bytes").expect("written");
    let error = drive.power_cut(Tear::Sector).expect_err("its blocks have 4096 bytes").to_string();
    assert!(error.contains("4096 bytes") && error.contains("never tears"), "{error}");
    drive.power_cut(Tear::Page).expect("pieces of a block");
    drive.power_on().expect("on");
    drive.mount_after_power_cut().expect("mounted");
    drive.detach().expect("detached");
}
