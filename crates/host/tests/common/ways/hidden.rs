//! Ways to use a device that no path of the device or of its file shows: through overlay filesystems, and beside
//! filesystems of programs.
//!
//! Leaves out the other ways (`ways`).

use super::scripts::{MAPPED, SERVED};
use super::{Bench, Use, Way, text};
use std::path::{Path, PathBuf};

const OPEN: &str = "f = os.open(a[0], os.O_RDWR)";
const READ: &str = "f = os.open(a[0], os.O_RDONLY)";
const ABSOLUTE: &str = "lowerdir=$0/l,upperdir=$1,workdir=$0/w";

/// Runs a shell command in the folder of the bench (`$0`); `$1` is the folder of the device's file.
fn shell(bench: &Bench<'_>, begun: &mut Use, command: &str, undone_by: &[&str]) -> Result<(), String> {
    let folder = bench.file().parent().expect("a folder");
    let script = format!("cd $0 && {command}");
    begun.command(&["sh", "-c", &script, text(bench.folder), text(folder)], undone_by).map(drop)
}

/// Mounts an overlay filesystem with the folder of the device's file as a layer; the file in it.
fn overlay(bench: &Bench<'_>, begun: &mut Use, options: &str) -> Result<PathBuf, String> {
    let at = bench.folder.join("m");
    let mount = format!("mkdir l w m && mount -i -t overlay o -o \"{options}\" m");
    shell(bench, begun, &mount, &["umount", text(&at)])?;
    Ok(at.join(bench.file().file_name().expect("a name")))
}

/// Has a program hold the device's file in such an overlay filesystem.
fn overlaid(bench: &Bench<'_>, begun: &mut Use, options: &str, script: &str) -> Result<(), String> {
    let file = overlay(bench, begun, options)?;
    begun.python(&[], script, &[&file]).map(drop)
}

pub const WAYS: &[Way] = &[
    // Filesystems of programs, elsewhere.
    way!("it is open, and elsewhere a FUSE is mounted on /dev", |bench, begun| {
        begun.python(&["unshare", "-m"], SERVED, &[Path::new("/dev")])?;
        begun.python(&[], OPEN, &[bench.node()]).map(drop)
    }),
    way!("its file is open, and elsewhere a FUSE is mounted on its folder", |bench, begun| {
        begun.python(&["unshare", "-m"], SERVED, &[bench.file().parent().expect("a folder")])?;
        begun.python(&[], OPEN, &[bench.file()]).map(drop)
    }),
    way!("its file is mapped, and elsewhere a FUSE is mounted on its folder", |bench, begun| {
        begun.python(&["unshare", "-m"], SERVED, &[bench.file().parent().expect("a folder")])?;
        begun.python(&[], MAPPED, &[bench.file()]).map(drop)
    }),
    // Overlay filesystems.
    way!("its file is open through an overlay filesystem", |bench, begun| {
        overlaid(bench, begun, ABSOLUTE, OPEN)
    }),
    way!("its file is open through an overlay filesystem, in a lower layer", |bench, begun| {
        overlaid(bench, begun, "lowerdir=$0/l:$1", READ)
    }),
];
