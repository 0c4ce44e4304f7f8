//! Safety interlocks of block devices, tested on loop devices: each case is refused with its reason, and no byte
//! changes. The list of ways to use a device is in `common/ways.rs`.
#![allow(clippy::print_stdout)]

mod common;

use common::loopback::{Loop, run};
use common::{skipped, ways};
use lowtide_host::HostError;
use lowtide_host::block::{Claim, Consent, Disk, Objection, check_file, examine, keep};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 64;

fn consent(serial: &str, force_signature: bool, planned: &Disk) -> Consent {
    Consent { serial: Some(serial.to_owned()), force_signature, planned: planned.identity.clone() }
}

/// Tries to take the device with full consent, and returns the objections.
fn refused(disk: &Loop, serial: &str, force_signature: bool) -> Vec<Objection> {
    let before = disk.checksum();
    let found = Disk::find(&disk.node).expect("a device");
    let objections = match Claim::take(&found, consent(serial, force_signature, &found)) {
        Err(HostError::Refused { objections, .. }) => objections,
        other => panic!("taken, or failed otherwise: {other:?}"),
    };
    assert_eq!(disk.checksum(), before, "a refused device is unchanged");
    objections
}

fn taken(disk: &Loop, force_signature: bool) -> Claim {
    let found = Disk::find(&disk.node).expect("a device");
    Claim::take(&found, consent(&disk.serial(), force_signature, &found)).expect("no objection")
}

/// A mount, unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn an_unused_device_is_taken_once() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let claim = taken(&disk, false);
    assert_eq!(claim.disk().identity.serial, disk.serial());
    assert_eq!(claim.disk().identity.size.get(), MIB << 20);
    // The first claim prevents a second one.
    let objections = refused(&disk, &disk.serial(), true);
    assert!(objections.contains(&Objection::Busy), "{objections:?}");
    drop(claim);
    drop(taken(&disk, false));
}

#[test]
fn the_serial_must_be_typed() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let objections = refused(&disk, "another", true);
    assert!(matches!(objections.as_slice(), [Objection::WrongSerial { .. }]), "{objections:?}");
    assert!(objections[0].to_string().contains(&disk.serial()), "{}", objections[0]);
}

#[test]
fn a_mounted_device_is_refused_whatever_is_forced() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    run("mkfs.ext4", &["-q", disk.node.to_str().expect("plain")]);
    let directory = tempfile::tempdir().expect("a directory");
    run(
        "mount",
        &["-o", "ro", disk.node.to_str().expect("plain"), directory.path().to_str().expect("plain")],
    );
    let mounted = Mounted(directory.path());
    let objections = refused(&disk, &disk.serial(), true);
    let at = directory.path().to_str().expect("plain");
    let is_mount = |o: &Objection| matches!(o, Objection::Mounted { at: there, .. } if there == at);
    assert!(objections.iter().any(is_mount), "{objections:?}");
    drop(mounted);
    drop(taken(&disk, true));
}

#[test]
fn swap_is_refused() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let node = disk.node.to_str().expect("plain");
    run("mkswap", &[node]);
    if !Command::new("swapon").arg(node).status().is_ok_and(|status| status.success()) {
        skipped("swap on a loop device is not permitted here");
        return;
    }
    let objections = {
        let found = Disk::find(&disk.node).expect("a device");
        examine(&found).expect("examined")
    };
    run("swapoff", &[node]);
    assert!(objections.iter().any(|o| matches!(o, Objection::Swap(_))), "{objections:?}");
    let objections = refused(&disk, &disk.serial(), false);
    assert!(
        matches!(&objections[..], [Objection::Signature { kind, .. }] if kind == "swap"),
        "{objections:?}"
    );
}

#[test]
fn a_partition_table_is_refused_unless_forced() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    // A master boot record with one Linux partition, from sector 2048.
    let mut record = [0u8; 512];
    record[450] = 0x83;
    record[454..458].copy_from_slice(&2048u32.to_le_bytes());
    record[458..462].copy_from_slice(&4096u32.to_le_bytes());
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(0, &record);
    let objections = refused(&disk, &disk.serial(), false);
    assert!(matches!(&objections[..], [Objection::PartitionTable(what)] if what == "dos"), "{objections:?}");
    drop(taken(&disk, true));
}

#[test]
fn a_filesystem_is_refused_unless_forced() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    run("mkfs.ext4", &["-q", disk.node.to_str().expect("plain")]);
    let objections = refused(&disk, &disk.serial(), false);
    assert!(
        matches!(&objections[..], [Objection::Signature { kind, .. }] if kind == "ext4"),
        "{objections:?}"
    );
    drop(taken(&disk, true));
}

#[test]
fn labels_of_raid_lvm_and_luks_are_refused() {
    for (kind, offset, label) in [
        ("crypto_LUKS", 0, b"LUKS\xba\xbe\x00\x01".to_vec()),
        ("linux_raid_member", 4096, raid_label()),
        ("LVM2_member", 512, lvm_label()),
    ] {
        let Some(disk) = Loop::new(MIB, &[]) else { return };
        disk.put(offset, &label);
        let objections = refused(&disk, &disk.serial(), false);
        let found =
            objections.iter().any(|o| matches!(o, Objection::Signature { kind: is, .. } if is == kind));
        assert!(found, "{kind}: {objections:?}");
    }
}

/// A superblock of Linux RAID, version 1.2 (`struct mdp_superblock_1` of the kernel).
fn raid_label() -> Vec<u8> {
    let mut block = vec![0u8; 256];
    block[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    block[4..8].copy_from_slice(&1u32.to_le_bytes());
    block[128 + 16..128 + 24].copy_from_slice(&8u64.to_le_bytes());
    let words = block.chunks(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().expect("four"))));
    let sum: u64 = words.sum();
    let sum = ((sum & 0xffff_ffff) + (sum >> 32)) as u32;
    block[216..220].copy_from_slice(&sum.to_le_bytes());
    block
}

/// A label of LVM2 in the second sector (its `lib/format_text/layout.h`). The checksum covers the bytes after it.
fn lvm_label() -> Vec<u8> {
    let mut sector = vec![0u8; 512];
    sector[..8].copy_from_slice(b"LABELONE");
    sector[8..16].copy_from_slice(&1u64.to_le_bytes());
    sector[20..24].copy_from_slice(&32u32.to_le_bytes());
    sector[24..32].copy_from_slice(b"LVM2 001");
    sector[32..64].copy_from_slice(b"abcdefghijklmnopqrstuvwxyz012345");
    let mut crc = 0xf597_a6cf_u32;
    for byte in &sector[20..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    sector[16..20].copy_from_slice(&crc.to_le_bytes());
    sector
}

#[test]
fn a_device_that_a_program_has_open_is_refused() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let file = std::fs::File::open(&disk.node).expect("opened");
    let mut program = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn().expect("started");
    let objections = refused(&disk, &disk.serial(), true);
    program.kill().and_then(|()| program.wait()).expect("ended");
    let is_sleep = |o: &Objection| matches!(o, Objection::Open(by) if by.iter().any(|one| one.starts_with("sleep (process ")));
    assert!(objections.iter().any(is_sleep), "{objections:?}");
}

#[test]
fn a_device_below_a_loop_device_is_refused() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let node = disk.node.to_str().expect("plain");
    let above = run("losetup", &["--find", "--show", node]);
    let objections = refused(&disk, &disk.serial(), true);
    run("losetup", &["--detach", above.trim()]);
    let is_loop = |o: &Objection| matches!(o, Objection::LoopBacking(by) if by == above.trim());
    assert!(objections.iter().any(is_loop), "{objections:?}");
}

#[test]
fn a_device_that_became_another_since_it_was_planned_is_refused() {
    let Some(mut disk) = Loop::new(MIB, &[]) else { return };
    let planned = Disk::find(&disk.node).expect("a device");
    disk.swap_file(MIB);
    let consent = consent(&disk.serial(), true, &planned);
    let Err(HostError::Refused { objections, .. }) = Claim::take(&planned, consent) else {
        panic!("it must be refused")
    };
    assert!(
        matches!(objections[..], [Objection::WrongSerial { .. }, Objection::Changed { .. }]),
        "{objections:?}"
    );
}

#[test]
fn a_read_only_device_is_refused() {
    let Some(disk) = Loop::new(MIB, &["--read-only"]) else { return };
    assert_eq!(refused(&disk, &disk.serial(), true), [Objection::ReadOnly]);
}

#[test]
fn the_device_of_the_system_is_refused() {
    // Only examined: no test asks to overwrite the system's device, even if the request should be refused.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    let number = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields.get(4) == Some(&"/")).then(|| fields[2].to_owned())
    });
    let node = number.and_then(|number| std::fs::canonicalize(format!("/sys/dev/block/{number}")).ok());
    let Some(name) = node.as_deref().and_then(Path::file_name) else {
        skipped("the root directory lies on no block device");
        return;
    };
    let disk = Disk::find(&Path::new("/dev").join(name)).expect("a device");
    let objections = examine(&disk).expect("examined");
    assert!(objections.contains(&Objection::Root("/".to_owned())), "{objections:?}");
}

#[test]
fn every_way_to_use_a_device_is_an_objection() {
    let mut missed = Vec::new();
    let checked = ways::each(|way, target, disk| {
        let before = ways::checksum(disk);
        let found = Disk::find(target).expect("a device");
        let mut against = examine(&found).expect("examined");
        against.retain(|objection| !objection.is_data());
        println!("{}: {}", way.name, against.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        let unknown = against.iter().any(|it| matches!(it, Objection::Unknown(_)));
        if against.is_empty() || unknown || ways::checksum(disk) != before {
            missed.push(format!("{}: {against:?}", way.name));
        }
    });
    println!("{checked} of {} ways begun", ways::all().count());
    assert!(missed.is_empty(), "not seen, or not as what they are:\n{}", missed.join("\n"));
}

/// The objections to a device that do not disappear within two seconds.
fn lasting(node: &Path) -> Vec<Objection> {
    let found = Disk::find(node).expect("a device");
    let begin = std::time::Instant::now();
    loop {
        let objections = examine(&found).expect("examined");
        if objections.is_empty() || begin.elapsed().as_secs() > 2 {
            return objections;
        }
    }
}

/// Returns whether another program could lock the file by the call `how`.
fn can_lock(file: &Path, how: &str) -> bool {
    let script = format!(
        "import fcntl, os, struct, sys\nf = os.open(sys.argv[1], os.O_RDWR)\n\
         try: {how}\nexcept OSError: sys.exit(1)"
    );
    Command::new("python3").args(["-c", &script]).arg(file).status().expect("python3 starts").success()
}

#[test]
fn the_file_of_a_loop_device_is_locked_while_the_device_is_held() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let ways = [
        "fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.fcntl(f, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 100, 1, 0))",
    ];
    let locks = || ways.map(|how| can_lock(&disk.file, how));
    assert_eq!(locks(), [true; 3]);
    let claim = taken(&disk, false);
    assert_eq!(locks(), [false; 3], "held");
    let (file, guard) = claim.into_file().expect("open");
    assert_eq!(locks(), [false; 3], "handed over");
    drop(file);
    drop(guard);
    assert_eq!(locks(), [true; 3], "given up");
    let found = Disk::find(&disk.node).expect("a device");
    let kept = keep(&found, false).expect("nothing uses it");
    assert_eq!(locks(), [false; 3], "kept");
    drop(kept);
    assert_eq!(locks(), [true; 3], "given up");
}

#[test]
fn a_device_below_is_held_too() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    run("mkfs.ext4", &["-q", disk.node.to_str().expect("plain")]);
    let node = disk.node.to_str().expect("plain");
    let above = run("losetup", &["--find", "--show", node]).trim().to_owned();
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().to_str().expect("plain");
    let can_mount = || {
        let mounted = Command::new("mount").args(["-o", "ro", node, at]).output();
        let mounted = mounted.expect("mount starts").status.success();
        drop(Mounted(directory.path()));
        mounted
    };
    let found = Disk::find(Path::new(&above)).expect("a device");
    let consent = consent(node, true, &found);
    let claim = Claim::take(&found, consent);
    let while_held = can_mount();
    let taken = claim.map(drop);
    let afterwards = can_mount();
    run("losetup", &["--detach", &above]);
    taken.expect("nothing speaks against it");
    assert_eq!((while_held, afterwards), (false, true));
}

#[test]
fn a_device_that_is_looked_at_for_a_moment_is_taken() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    // udev and blkid open a new device, and the file below it, in the same way.
    for path in [&disk.node, &disk.file] {
        let script = "import os, sys, time\nf = os.open(sys.argv[1], os.O_RDONLY)\nprint('ready', flush=True)\ntime.sleep(0.2)";
        let mut program = Command::new("python3");
        program.args(["-c", script]).arg(path).stdout(Stdio::piped());
        let mut program = program.spawn().expect("python3 starts");
        let mut line = String::new();
        let out = program.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("read");
        assert_eq!(line, "ready\n");
        drop(taken(&disk, false));
        program.wait().expect("ended");
    }
}

#[test]
fn what_others_do_with_other_files_is_no_objection() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("plain").to_owned();
    // Two tmpfs filesystems use the same inode numbers.
    for name in ["one", "other"] {
        std::fs::create_dir(folder.path().join(name)).expect("made");
        run("mount", &["-t", "tmpfs", "none", &at(name)]);
        std::fs::File::create(folder.path().join(name).join("disk.img"))
            .and_then(|file| file.set_len(MIB << 20))
            .expect("a sparse file");
    }
    let inode = |name: &str| std::fs::metadata(format!("{}/disk.img", at(name))).expect("there").ino();
    assert_eq!(inode("one"), inode("other"));
    let one = run("losetup", &["--find", "--show", &format!("{}/disk.img", at("one"))]).trim().to_owned();
    let other = run("losetup", &["--find", "--show", &format!("{}/disk.img", at("other"))]).trim().to_owned();
    let hold = format!("exec 3<{other} 4<{}/disk.img; flock 4; exec sleep 60", at("other"));
    let mut program = Command::new("sh").args(["-c", &hold]).spawn().expect("started");
    while !std::fs::read_link(format!("/proc/{}/exe", program.id()))
        .is_ok_and(|program| program.ends_with("sleep") || program.ends_with("coreutils"))
    {
        std::thread::yield_now();
    }
    let objections = lasting(Path::new(&one));
    program.kill().and_then(|()| program.wait()).expect("ended");
    run("losetup", &["--detach", &one]);
    run("losetup", &["--detach", &other]);
    drop((Mounted(&folder.path().join("one")), Mounted(&folder.path().join("other"))));
    assert_eq!(objections, []);
    drop(taken(&disk, false));
}

#[test]
fn what_containers_do_with_other_files_is_no_objection() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("m");
    let script = "cd $0 && mkdir l u w m && mount -i -t overlay o -o lowerdir=l,upperdir=u,workdir=w m";
    run("sh", &["-c", script, folder.path().to_str().expect("plain")]);
    let _mounted = Mounted(&at);
    // Files that are created in the same clock tick have the same creation time, so wait.
    std::thread::sleep(std::time::Duration::from_millis(50));
    // A file of the same name and size.
    let image = at.join("disk.img");
    std::fs::File::create(&image).and_then(|file| file.set_len(MIB << 20)).expect("a sparse file");
    let above = run("losetup", &["--find", "--show", image.to_str().expect("plain")]).trim().to_owned();
    let open = std::fs::File::open(&image).expect("opened");
    let mut program = Command::new("sleep").arg("60").stdin(Stdio::from(open)).spawn().expect("started");
    let objections = lasting(&disk.node);
    program.kill().and_then(|()| program.wait()).expect("ended");
    run("losetup", &["--detach", &above]);
    assert_eq!(objections, []);
    drop(taken(&disk, false));
    // Two files of one overlay filesystem with the same creation time.
    let made = |name: &str| {
        let file = std::fs::File::create(at.join(name)).expect("made");
        file.set_len(MIB << 20).expect("a sparse file");
        (at.join(name), file.metadata().and_then(|it| it.created()).expect("a time"), file)
    };
    let mut pairs = (0..200).map(|number| (made(&format!("{number}.a")), made(&format!("{number}.b"))));
    let (one, other) = pairs.find(|(one, other)| one.1 == other.1).expect("two in the same tick");
    let above = run("losetup", &["--find", "--show", one.0.to_str().expect("plain")]).trim().to_owned();
    drop(one);
    let mut program = Command::new("sleep").arg("60").stdin(Stdio::from(other.2)).spawn().expect("started");
    let objections = lasting(Path::new(&above));
    program.kill().and_then(|()| program.wait()).expect("ended");
    run("losetup", &["--detach", &above]);
    assert_eq!(objections, []);
}

#[test]
fn a_mounted_file_takes_no_data() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (at, copy) = (folder.path().join("m"), folder.path().join("other.img"));
    std::fs::create_dir(&at).expect("made");
    if !ways::mount_file(&disk, &at) {
        return;
    }
    let mounted = Mounted(&at);
    run("losetup", &["--detach", disk.node.to_str().expect("plain")]);
    let open = || std::fs::File::options().read(true).write(true).open(&disk.file).expect("opened");
    let text = check_file(&open(), &disk.file).expect_err("it is mounted").to_string();
    assert!(text.contains("is mounted at"), "{text}");
    std::fs::copy(&disk.file, &copy).expect("copied");
    let other = std::fs::File::options().read(true).write(true).open(&copy).expect("opened");
    check_file(&other, &copy).expect("another file");
    drop(mounted);
    check_file(&open(), &disk.file).expect("mounted no more");
}

/// Runs `test` in another process of this program, as a child of the command `below`, and returns its output.
fn again(test: &str, below: &[&str], disk: &Loop) -> String {
    let this = std::env::current_exe().expect("a program");
    let mut command = Command::new(below[0]);
    command.args(&below[1..]).arg(this).args([test, "--exact", "--nocapture", "--include-ignored"]);
    let output = command.env("LOWTIDE_SEEN_FROM", &disk.node).output().expect("started");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
#[ignore = "run by the test below it"]
fn seen_from_elsewhere() {
    let Some(node) = std::env::var_os("LOWTIDE_SEEN_FROM") else { return };
    let found = Disk::find(Path::new(&node)).expect("a device");
    match Claim::take(&found, consent(&found.identity.serial, true, &found)) {
        Ok(_) => println!("taken"),
        Err(error) => println!("refused: {error}"),
    }
}

#[test]
fn who_does_not_see_all_processes_is_refused() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let before = disk.checksum();
    let text = again("seen_from_elsewhere", &["env"], &disk);
    assert!(text.contains("taken"), "{text}");
    let without =
        ["setpriv", "--bounding-set", "-sys_ptrace,-sys_admin", "--inh-caps", "-sys_ptrace,-sys_admin"];
    let hidden = "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"";
    let own = ["unshare", "-p", "-m", "--fork", "--mount-proc", "--kill-child"];
    for (below, words) in [
        (own.to_vec(), "PID namespace"),
        ([&["unshare", "-p", "--fork", "--kill-child"][..]].concat(), "cannot be determined"),
        (without.to_vec(), "start lowtide as root"),
        ([&["unshare", "-m", "sh", "-c", hidden, "sh"][..], &without].concat(), "cannot be determined"),
    ] {
        let text = again("seen_from_elsewhere", &below, &disk);
        assert!(text.contains("refused: ") && text.contains(words), "{below:?}: {text}");
        assert_eq!(disk.checksum(), before);
    }
}

#[test]
fn hundreds_of_processes_are_looked_at_in_a_moment() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let found = Disk::find(&disk.node).expect("a device");
    let mut programs: Vec<std::process::Child> =
        (0..300).map(|_| Command::new("sleep").arg("60").spawn().expect("started")).collect();
    let before = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let begin = std::time::Instant::now();
    let objections = examine(&found);
    // Printed, not asserted, because other tests run at the same time.
    let processor = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let used = (processor.tv_sec - before.tv_sec) * 1000 + (processor.tv_nsec - before.tv_nsec) / 1_000_000;
    println!("examined beside 300 processes in {:?}, {used} ms of processor time", begin.elapsed());
    for program in &mut programs {
        program.kill().and_then(|()| program.wait()).expect("ended");
    }
    objections.expect("examined");
    assert_eq!(lasting(&disk.node), []);
}
