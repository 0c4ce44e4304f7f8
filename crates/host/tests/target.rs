//! Targets: created, filled, reused and removed, and the files that are never touched.
mod common;

use common::loopback::{self, run};
use common::{GOES_ON, SEED, SmallFilesystem, skipped};
use lowtide_core::Bytes;
use lowtide_host::HostError;
use lowtide_host::target::{
    Layout, Order, Outlook, Preparation, Progress, Target, TargetSpec, examine, remove_left_over,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn layout(size: Bytes, files: u32) -> Layout {
    Layout::split(size, files, Bytes::kib(4)).expect("a valid layout")
}

fn prepare(spec: &TargetSpec, size: Bytes, files: u32, keep: bool) -> Result<Target, HostError> {
    let how = Preparation {
        spec,
        layout: layout(size, files),
        order: Order::Sequential,
        seed: SEED,
        keep,
        interrupt: &GOES_ON,
    };
    Target::prepare(&how, &mut |_| ())
}

fn lifecycle(directory: &Path) {
    let path = directory.join("data");
    let spec = TargetSpec::File(path.clone());
    let size = Bytes::new((3 << 20) + 4096);
    let outlook = examine(&spec, layout(size, 1)).expect("free");
    assert_eq!(outlook, Outlook { to_write: size, to_make: 1, reused: 0 });
    assert!(!path.exists(), "looking changes nothing");

    let mut heard = Vec::new();
    let how = Preparation {
        spec: &spec,
        layout: layout(size, 1),
        order: Order::Sequential,
        seed: SEED,
        keep: true,
        interrupt: &GOES_ON,
    };
    let target = Target::prepare(&how, &mut |progress| heard.push(progress)).expect("prepared");
    assert_eq!(heard.last(), Some(&Progress { done: size, total: size }));
    assert!(heard.windows(2).all(|pair| pair[0].done < pair[1].done));
    let bytes = std::fs::read(&path).expect("read");
    assert_eq!(bytes.len() as u64, size.get());
    for (page, bytes) in bytes.chunks(4096).enumerate() {
        assert_eq!(bytes[..8], (page as u64 * 4096).to_le_bytes());
        assert!(bytes[16..].iter().filter(|byte| **byte == 0).count() < 100, "page {page} is not random");
    }
    assert!(matches!(prepare(&spec, size, 1, true), Err(HostError::InUse { .. })), "locked while in use");
    drop(target);

    let again = prepare(&spec, size, 1, false).expect("reused");
    assert_eq!(again.outlook(), Outlook { to_write: Bytes::ZERO, to_make: 0, reused: 1 });
    again.remove().expect("nothing to remove");
    assert!(path.exists(), "a file that an earlier run kept is not this run's to remove");
    let resized = prepare(&spec, Bytes::mib(1), 1, false).expect("refilled");
    assert_eq!(resized.outlook().to_write, Bytes::mib(1));
    assert_eq!(std::fs::metadata(&path).expect("there").len(), 1 << 20);
    drop(resized);
    assert!(path.exists());

    // A copy is not the file that lowtide made: even if the marker is copied too, its inode number differs.
    let copy = directory.join("copy");
    let copied = std::process::Command::new("cp").arg("-a").args([&path, &copy]).status().expect("cp");
    assert!(copied.success());
    assert!(matches!(prepare(&TargetSpec::File(copy), size, 1, false), Err(HostError::NotOurs { .. })));
}

#[test]
fn a_file_is_made_filled_locked_reused_and_resized() {
    lifecycle(tempfile::tempdir().expect("a directory").path());
}

#[test]
fn the_same_on_tmpfs() {
    let Some(small) = SmallFilesystem::mount("32m") else { return };
    lifecycle(&small.join(""));
}

#[test]
fn files_of_the_user_are_never_touched() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("precious");
    for contents in ["", "my thesis"] {
        std::fs::write(&path, contents).expect("written");
        let refused = prepare(&TargetSpec::File(path.clone()), Bytes::mib(1), 1, false);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("was not made by lowtide"), "{text}");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), contents);
    }
    // In a directory, one such file rejects the entire target before anything is created.
    std::fs::rename(&path, directory.path().join("lowtide-0002.dat")).expect("renamed");
    let refused = prepare(&TargetSpec::Directory(directory.path().into()), Bytes::mib(4), 4, false);
    assert!(matches!(refused, Err(HostError::NotOurs { .. })));
    assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 1);
}

#[test]
fn a_file_put_in_our_place_is_not_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let target = prepare(&TargetSpec::File(path.clone()), Bytes::mib(1), 1, false).expect("prepared");
    std::fs::rename(&path, directory.path().join("moved")).expect("renamed");
    std::fs::write(&path, "my thesis").expect("written");
    target.remove().expect("not an error");
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "my thesis");
}

#[test]
fn a_directory_gets_its_files_and_loses_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let target =
        prepare(&TargetSpec::Directory(directory.path().into()), Bytes::mib(3), 3, false).expect("prepared");
    assert_eq!(target.data().files().len(), 3);
    assert_eq!(target.data().size(), Bytes::mib(3));
    let second = std::fs::read(&target.data().files()[1]).expect("read");
    assert_eq!(second[..8], (1u64 << 20).to_le_bytes(), "stamps count through all files");
    target.remove().expect("removed");
    assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 0);
}

#[test]
fn what_a_killed_run_left_is_taken_over_and_removed_but_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let spec = TargetSpec::Directory(directory.path().into());
    let left = |files| {
        // Leaks the target but releases its lock, as a kill does.
        let target = prepare(&spec, Bytes::mib(files), files as u32, false).expect("prepared");
        let at = directory.path().join("elsewhere");
        std::fs::create_dir(&at).expect("made");
        for file in target.data().files() {
            let name = file.file_name().expect("a name");
            std::fs::rename(file, at.join(name)).expect("moved");
        }
        drop(target);
        for entry in std::fs::read_dir(&at).expect("listed").flatten() {
            std::fs::rename(entry.path(), directory.path().join(entry.file_name())).expect("moved back");
        }
        std::fs::remove_dir(at).expect("empty");
    };
    left(3);
    std::fs::write(directory.path().join("lowtide-0007.dat"), "mine").expect("written");
    let next = prepare(&spec, Bytes::mib(1), 1, false).expect("prepared");
    assert_eq!(next.outlook(), Outlook { to_write: Bytes::ZERO, to_make: 0, reused: 1 });
    remove_left_over(&spec).expect("removed");
    assert!(next.data().files()[0].exists(), "in use");
    next.remove().expect("removed");
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .expect("listed")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["lowtide-0007.dat"]);
    assert_eq!(std::fs::read(directory.path().join("lowtide-0007.dat")).expect("there"), b"mine");
    // A kept file is not left over.
    let kept = TargetSpec::File(directory.path().join("kept"));
    drop(prepare(&kept, Bytes::mib(1), 1, true).expect("prepared"));
    remove_left_over(&kept).expect("nothing to remove");
    assert!(kept.path().exists());
}

#[test]
fn an_interrupted_fill_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let interrupt = AtomicBool::new(false);
    let spec = TargetSpec::File(path.clone());
    let how = Preparation {
        spec: &spec,
        layout: layout(Bytes::mib(64), 1),
        seed: SEED,
        order: Order::Sequential,
        keep: true,
        interrupt: &interrupt,
    };
    let stopped = Target::prepare(&how, &mut |progress| {
        if progress.done >= Bytes::mib(2) {
            interrupt.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(stopped, Err(HostError::Interrupted { .. })));
    assert!(!path.exists());
}

#[test]
fn devices_and_other_things_are_refused_by_name() {
    let text = |path: &str| {
        prepare(&TargetSpec::File(path.into()), Bytes::mib(1), 1, false).unwrap_err().to_string()
    };
    assert!(text("/dev/null").contains("is a character device"), "{}", text("/dev/null"));
    assert!(text("/tmp").contains("is a directory"));
    assert!(text("/no/such/directory/file").contains("No such file or directory"));
    let refused = prepare(&TargetSpec::Directory("/proc/self/stat".into()), Bytes::mib(1), 1, false);
    assert!(refused.unwrap_err().to_string().contains("is a file, but a directory is wanted here"));
    let devices =
        std::fs::read_dir("/sys/block").map(|list| list.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let seen =
        devices.iter().map(|entry| Path::new("/dev").join(entry.file_name())).find(|path| path.exists());
    let directory = tempfile::tempdir().expect("a directory");
    // A device node alone is refused, with or without a device. 7, 0 is the first loop device.
    let node = directory.path().join("loop");
    let made = || std::process::Command::new("mknod").arg(&node).args(["b", "7", "0"]).status();
    let Some(device) = seen.or_else(|| made().is_ok_and(|made| made.success()).then(|| node.clone())) else {
        skipped("no block device is visible here, and none can be made");
        return;
    };
    let expected = "not a file: write `block:PATH` to test it, or name a file or a directory on it";
    assert!(text(&device.to_string_lossy()).ends_with(expected));
    // Refused also through a link, and also for reading.
    let link = directory.path().join("innocent");
    std::os::unix::fs::symlink(&device, &link).expect("linked");
    assert!(text(&link.to_string_lossy()).ends_with(expected));
    assert!(matches!(Target::existing(&link, Bytes::kib(4)), Err(HostError::BlockDevice { .. })));
}

#[test]
fn too_little_room_is_said_before_anything_is_written() {
    let Some(small) = SmallFilesystem::mount("1m") else { return };
    let path = small.join("data");
    let refused = prepare(&TargetSpec::File(path.clone()), Bytes::mib(64), 1, false).unwrap_err();
    assert!(matches!(refused, HostError::NoSpace { .. }), "{refused}");
    assert!(
        refused.to_string().contains("needs 64.0 MiB free, but its filesystem has 1.0 MiB left"),
        "{refused}"
    );
    assert!(!path.exists());
}

#[test]
fn a_kept_file_that_became_that_of_a_loop_device_is_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let (spec, size) = (TargetSpec::File(path.clone()), Bytes::mib(4));
    drop(prepare(&spec, size, 1, true).expect("made"));
    let Some(node) = loopback::attach(&path, &[]) else { return };
    let before = std::fs::read(&path).expect("read");
    let outcome = [prepare(&spec, size, 1, true).map(drop), prepare(&spec, Bytes::mib(2), 1, true).map(drop)];
    run("losetup", &["--detach", node.to_str().expect("plain")]);
    for outcome in outcome {
        let error = outcome.expect_err("refused").to_string();
        assert!(error.contains("it backs /dev/loop"), "{error}");
    }
    assert!(std::fs::read(&path).expect("read") == before, "a byte changed");
    drop(prepare(&spec, size, 1, true).expect("reused"));
}
