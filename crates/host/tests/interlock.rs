//! What keeps lowtide from overwriting a block device, on loop devices: each case is refused with its reason, and no
//! byte changes.

mod common;

use common::loopback::{Loop, run};
use common::skipped;
use lowtide_host::HostError;
use lowtide_host::block::{Claim, Consent, Disk, Objection, examine};
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 64;

/// Tries to take the device with everything that could be said for it, and gives the objections.
fn refused(disk: &Loop, serial: &str, force_signature: bool) -> Vec<Objection> {
    let before = disk.checksum();
    let found = Disk::find(&disk.node).expect("a device");
    let consent = Consent { serial: Some(serial), force_signature, planned: &found.identity };
    let objections = match Claim::take(&found, consent) {
        Err(HostError::Refused { objections, .. }) => objections,
        other => panic!("taken, or failed otherwise: {other:?}"),
    };
    assert_eq!(disk.checksum(), before, "a refused device is unchanged");
    objections
}

fn taken(disk: &Loop, force_signature: bool) -> Claim {
    let found = Disk::find(&disk.node).expect("a device");
    let consent = Consent { serial: Some(&disk.serial()), force_signature, planned: &found.identity };
    Claim::take(&found, consent).expect("nothing speaks against it")
}

/// A mount, undone when dropped.
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
    // The second time the first is in the way.
    assert_eq!(refused(&disk, &disk.serial(), true), [Objection::Busy]);
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
    assert!(objections.iter().any(|o| matches!(o, Objection::Swap { .. })), "{objections:?}");
    let objections = refused(&disk, &disk.serial(), false);
    assert!(
        matches!(&objections[..], [Objection::Signature { kind, .. }] if kind == "swap"),
        "{objections:?}"
    );
}

#[test]
fn a_partition_table_is_refused_unless_forced() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    // A master boot record with one partition of Linux, from sector 2048 on.
    let mut record = [0u8; 512];
    record[450] = 0x83;
    record[454..458].copy_from_slice(&2048u32.to_le_bytes());
    record[458..462].copy_from_slice(&4096u32.to_le_bytes());
    record[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(0, &record);
    let objections = refused(&disk, &disk.serial(), false);
    assert!(
        matches!(&objections[..], [Objection::PartitionTable { what }] if what == "dos"),
        "{objections:?}"
    );
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

/// A label of LVM2 in the second sector (its `lib/format_text/layout.h`): the checksum covers what follows it.
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
    let is_sleep = |o: &Objection| matches!(o, Objection::Open { by } if by.iter().any(|one| one.starts_with("sleep (process ")));
    assert!(objections.iter().any(is_sleep), "{objections:?}");
}

#[test]
fn a_device_below_a_loop_device_is_refused() {
    let Some(disk) = Loop::new(MIB, &[]) else { return };
    let node = disk.node.to_str().expect("plain");
    let above = run("losetup", &["--find", "--show", node]);
    let objections = refused(&disk, &disk.serial(), true);
    run("losetup", &["--detach", above.trim()]);
    let is_loop = |o: &Objection| matches!(o, Objection::LoopBacking { by } if by == above.trim());
    assert!(objections.iter().any(is_loop), "{objections:?}");
}

#[test]
fn a_device_that_became_another_since_it_was_planned_is_refused() {
    let Some(mut disk) = Loop::new(MIB, &[]) else { return };
    let planned = Disk::find(&disk.node).expect("a device");
    disk.swap_file(MIB);
    let consent = Consent { serial: Some(&disk.serial()), force_signature: true, planned: &planned.identity };
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
    // Examined only: nobody asks for this one to be overwritten, not even to see that it is refused.
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
    assert!(objections.contains(&Objection::Root { at: "/".to_owned() }), "{objections:?}");
}
