//! Tests of directory copies: contents, ownership, shared blocks, and cleaning up after a failed copy.
//!
//! Tests of filesystems with shared blocks need root and loop devices. Otherwise they print that they were skipped.
//! Copies of databases are tested in `mariadb` and `postgres`.
#![allow(clippy::print_stdout)]

use lowtide_oltp::{OltpError, snapshot};
use std::cell::Cell;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Reports a skipped test. Panics if `LOWTIDE_REQUIRE_REAL` is set.
fn skipped(why: &str) {
    assert!(std::env::var_os("LOWTIDE_REQUIRE_REAL").is_none(), "LOWTIDE_REQUIRE_REAL is set, but {why}");
    println!("skipped: {why}");
}

/// Creates a tree two directories deep, with a text file, an empty file, a symbolic link, a read-only directory and a
/// sparse file.
fn tree(at: &Path) {
    fs::create_dir_all(at.join("tables/closed")).expect("made");
    fs::write(at.join("empty"), "").expect("written");
    fs::write(at.join("tables/rows"), vec![7; 3 << 20]).expect("written");
    fs::write(at.join("tables/closed/key"), "secret").expect("written");
    symlink("tables/rows", at.join("link")).expect("linked");
    let sparse = File::create(at.join("sparse")).expect("made");
    sparse.set_len(40 << 20).expect("a hole");
    sparse.write_all_at(&[9; 5000], 20 << 20).expect("written");
    let set =
        |name: &str, mode| fs::set_permissions(at.join(name), Permissions::from_mode(mode)).expect("set");
    set("tables/rows", 0o640);
    set("tables/closed/key", 0o400);
    set("tables/closed", 0o500);
    set("tables", 0o750);
}

fn assert_same(a: &Path, b: &Path) {
    for name in ["empty", "tables", "tables/rows", "tables/closed", "tables/closed/key", "sparse"] {
        let [one, other] = [a, b].map(|root| fs::metadata(root.join(name)).expect("there"));
        assert_eq!(one.mode(), other.mode(), "{name}");
        assert_eq!((one.uid(), one.gid()), (other.uid(), other.gid()), "{name}");
        if one.is_file() {
            let [one, other] = [a, b].map(|root| fs::read(root.join(name)).expect("read"));
            assert!(one == other, "{name}");
        }
    }
    assert_eq!(fs::read_link(b.join("link")).expect("a link"), Path::new("tables/rows"));
}

fn count(at: &Path) -> usize {
    fs::read_dir(at).expect("read").count()
}

/// Makes the read-only directory writable again, so that the temporary directory can be removed.
fn open_again(at: &Path) {
    let _ = fs::set_permissions(at.join("tables/closed"), Permissions::from_mode(0o700));
}

#[test]
fn a_copy_has_the_same_bytes_modes_and_holes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("new/to"));
    tree(&from);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(from.join("tables/rows"), Some(65_534), Some(1)).expect("given away");
    }
    let heard = Cell::new(0.0);
    let copied = snapshot::copy(&from, &to, &NEVER, &|share| {
        assert!((heard.get()..=1.0).contains(&share), "{} then {share}", heard.get());
        heard.set(share);
    });
    let copied = copied.expect("copied");
    assert_eq!((copied.files, copied.bytes), (4, (43 << 20) + 6));
    assert_same(&from, &to);
    let blocks = |root: &Path| fs::metadata(root.join("sparse")).expect("there").blocks();
    assert!(blocks(&to) <= blocks(&from) + 16, "{} blocks, not {}", blocks(&to), blocks(&from));

    let error = snapshot::copy(&from, &to, &NEVER, &|_| ()).expect_err("it is not empty");
    assert!(error.to_string().contains("is not empty"), "{error}");
    assert_same(&from, &to);
    open_again(&from);
    open_again(&to);
}

#[test]
fn a_copy_that_is_interrupted_or_does_not_fit_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    tree(&from);
    let interrupt = AtomicBool::new(false);
    let outcome =
        snapshot::copy(&from, &to, &interrupt, &|share| interrupt.store(share > 0.5, Ordering::Relaxed));
    assert!(matches!(outcome, Err(OltpError::Interrupted)), "{outcome:?}");
    assert_eq!(count(&to), 0);
    let outcome = snapshot::copy(&folder.path().join("nowhere"), &to, &NEVER, &|_| ());
    assert!(matches!(outcome, Err(OltpError::Io { .. })), "{outcome:?}");

    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&to).output();
    match mount {
        Ok(output) if output.status.success() => {
            let outcome = snapshot::copy(&from, &to, &NEVER, &|_| ());
            let left = count(&to);
            assert!(Command::new("umount").arg(&to).status().expect("umount runs").success());
            assert!(outcome.expect_err("it does not fit").to_string().contains("No space left"));
            assert_eq!(left, 0);
        }
        other => skipped(&format!("a tmpfs cannot be mounted: {other:?}")),
    }
    open_again(&from);
}

/// A filesystem on a loop device. Dropping it unmounts and removes both.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(make: &str, arguments: &[&str]) -> Option<Mounted> {
        let folder = tempfile::tempdir().expect("a folder");
        let (image, at) = (folder.path().join("image"), folder.path().join("at"));
        File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("a sparse file");
        fs::create_dir(&at).expect("made");
        let run = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => true,
            other => {
                skipped(&format!("{make}: {other:?}"));
                false
            }
        };
        let made = run(Command::new(make).args(arguments).arg(&image));
        (made && run(Command::new("mount").args(["-o", "loop"]).args([&image, &at])))
            .then_some(Mounted(folder))
    }
    fn at(&self) -> std::path::PathBuf {
        self.0.path().join("at")
    }
    fn free(&self) -> u64 {
        rustix::fs::statvfs(self.at()).expect("asked").f_bfree
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at()).status();
    }
}

#[test]
fn filesystems_that_can_share_blocks_do() {
    for (make, arguments) in [("mkfs.btrfs", &["-q"][..]), ("mkfs.xfs", &["-q", "-m", "reflink=1"])] {
        let Some(mounted) = Mounted::new(make, arguments) else { continue };
        let (from, to) = (mounted.at().join("from"), mounted.at().join("to"));
        // A copy from another filesystem shares no blocks but must be complete.
        let folder = tempfile::tempdir().expect("a folder");
        tree(folder.path());
        let copied = snapshot::copy(folder.path(), &from, &NEVER, &|_| ()).expect("copied");
        assert_eq!(copied.shared, 0, "{make}");
        assert_same(folder.path(), &from);
        let large = vec![3; 32 << 20];
        fs::write(from.join("tables/rows"), &large).expect("written");
        rustix::fs::syncfs(File::open(&from).expect("opened")).expect("written");
        let before = mounted.free();
        let copied = snapshot::copy(&from, &to, &NEVER, &|_| ()).expect("copied");
        assert_eq!((copied.files, copied.shared), (4, 3), "{make}: one of them is empty");
        assert_same(&from, &to);
        let block = rustix::fs::statvfs(mounted.at()).expect("asked").f_frsize;
        let taken = before.saturating_sub(mounted.free()) * block;
        assert!(taken < 8 << 20, "{make}: {taken} bytes for a copy of {}", large.len());
        open_again(folder.path());
    }
}
