//! Ways to use a device that are not visible in any path of the device or of its file: through overlay filesystems,
//! next to FUSE filesystems, and as mounted files.
//!
//! # Not tested
//! acct(2), which the kernel shows nowhere.

use super::scripts::{EROFS, MAPPED, SERVED};
use super::{Bench, Use, Way, text};
use std::path::{Path, PathBuf};

const OPEN: &str = "f = os.open(a[0], os.O_RDWR)";
const READ: &str = "f = os.open(a[0], os.O_RDONLY)";
const RELATIVE: &str = "lowerdir=l,upperdir=$(realpath --relative-to=. $1),workdir=w";
const ABSOLUTE: &str = "lowerdir=$0/l,upperdir=$1,workdir=$0/w";

/// Runs a shell command in the bench's folder (`$0`). `$1` is the folder of the device's file.
fn shell(bench: &Bench<'_>, begun: &mut Use, command: &str, undone_by: &[&str]) -> Result<(), String> {
    let folder = bench.file().parent().expect("a folder");
    let script = format!("cd $0 && {command}");
    begun.command(&["sh", "-c", &script, text(bench.folder), text(folder)], undone_by).map(drop)
}

/// Mounts an overlay filesystem whose layer is the folder of the device's file. Returns the file's path in it.
fn overlay(bench: &Bench<'_>, begun: &mut Use, options: &str) -> Result<PathBuf, String> {
    let at = bench.folder.join("m");
    let mount = format!("mkdir l w m && mount -i -t overlay o -o \"{options}\" m");
    shell(bench, begun, &mount, &["umount", text(&at)])?;
    Ok(at.join(bench.file().file_name().expect("a name")))
}

/// Starts a program that holds the device's file in such an overlay filesystem.
fn overlaid(bench: &Bench<'_>, begun: &mut Use, options: &str, script: &str) -> Result<(), String> {
    let file = overlay(bench, begun, options)?;
    begun.python(&[], script, &[&file]).map(drop)
}

/// Bind-mounts the folder of the device's file in the bench's folder.
fn bind(bench: &Bench<'_>, begun: &mut Use, name: &str) -> Result<(), String> {
    let at = bench.folder.join(name);
    shell(bench, begun, &format!("mkdir {name} && mount --bind $1 {name}"), &["umount", text(&at)])
}

/// Makes an erofs and mounts the device's file, by the name that the file has in the folder `below`.
fn erofs(bench: &Bench<'_>, begun: &mut Use, below: &Path, name: &Path) -> Result<(), String> {
    let at = bench.folder.join("m");
    shell(bench, begun, "mkdir m", &["umount", text(&at)])?;
    begun.python(&[], EROFS, &[bench.node(), below, name, &at]).map(drop)
}

pub const WAYS: &[Way] = &[
    // FUSE filesystems that are mounted elsewhere.
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
    way!("its file is open through an overlay filesystem with relative layers", |bench, begun| {
        overlaid(bench, begun, RELATIVE, OPEN)
    }),
    way!("its file is mapped through an overlay filesystem with relative layers", |bench, begun| {
        overlaid(bench, begun, RELATIVE, MAPPED)
    }),
    way!("its file is open through an overlay filesystem, in a layer named by a link", |bench, begun| {
        shell(bench, begun, "ln -s $1 link", &[])?;
        overlaid(bench, begun, "lowerdir=$0/l,upperdir=$0/link,workdir=$0/w", OPEN)
    }),
    way!(
        "its file is open through an overlay filesystem, in a layer that is a bind mount",
        |bench, begun| {
            bind(bench, begun, "bound")?;
            overlaid(bench, begun, "lowerdir=$0/l:$0/bound", READ)
        }
    ),
    way!("its file is open through an overlay filesystem, in a layer with a colon", |bench, begun| {
        bind(bench, begun, "a:b")?;
        overlaid(bench, begun, r"lowerdir=$0/a\\:b:$0/l", READ)
    }),
    way!("its file is open through an overlay filesystem, in a layer that was added", |bench, begun| {
        overlaid(bench, begun, "lowerdir+=$0/l,lowerdir+=$1", READ)
    }),
    way!("its file is open through an overlay filesystem, in another filesystem's layer", |bench, begun| {
        let at = bench.folder.join("t");
        let mount = "mkdir t && mount -t tmpfs t t && mkdir t/u t/w";
        shell(bench, begun, mount, &["umount", text(&at)])?;
        bind(bench, begun, "bound")?;
        overlaid(bench, begun, "lowerdir=$0/bound,upperdir=$0/t/u,workdir=$0/t/w", READ)
    }),
    way!("its file is open through an overlay filesystem that was unmounted lazily", |bench, begun| {
        overlaid(bench, begun, ABSOLUTE, OPEN)?;
        shell(bench, begun, "umount --lazy m", &[])
    }),
    way!("its file is open through an overlay filesystem, in a layer that was renamed", |bench, begun| {
        overlaid(bench, begun, ABSOLUTE, OPEN)?;
        let folder = bench.file().parent().expect("a folder");
        let renamed = format!("{}.renamed", text(folder));
        shell(bench, begun, "mv $1 $1.renamed", &["mv", &renamed, text(folder)])
    }),
    way!("its file is open through an overlay filesystem in another mount namespace", |bench, begun| {
        let folder = bench.file().parent().expect("a folder");
        let script = "cd $0 && mkdir l w m && ln -s $1 u && mount -i -t overlay o -o lowerdir=l,upperdir=u,workdir=w m && \
                      exec 3<>m/disk.img && echo ready && read x";
        begun.program(&["unshare", "-m", "sh", "-c", script, text(bench.folder), text(folder)]).map(drop)
    }),
    way!("its file is open through an overlay filesystem that copied it up", |bench, begun| {
        let mount = "mkdir l u w m && truncate -s 16M l/c.img && mount -i -t overlay o -o lowerdir=l,upperdir=u,workdir=w m && \
                     printf x >>m/c.img";
        let file = bench.folder.join("m/c.img");
        shell(bench, begun, mount, &["umount", text(&bench.folder.join("m"))])?;
        begun.target = Some(begun.over(&bench.folder.join("u/c.img"), &[])?);
        begun.python(&[], OPEN, &[&file]).map(drop)
    }),
    way!("another loop device has the same file, through an overlay filesystem", |bench, begun| {
        let file = overlay(bench, begun, RELATIVE)?;
        begun.over(&file, &[]).map(drop)
    }),
    way!("another loop device has the same file, by a name that here is below a FUSE", |bench, begun| {
        let (folder, at) = (bench.file().parent().expect("a folder"), bench.folder.join("m"));
        let script = "cd $0 && mkdir m && mount --bind $1 m && losetup --find --show $0/m/disk.img >node && \
                      trap 'losetup --detach $(cat $0/node)' EXIT && echo ready && read x";
        begun.program(&["unshare", "-m", "bash", "-c", script, text(bench.folder), text(folder)])?;
        // Undone in reverse order: the FUSE filesystem can be unmounted only after its program has ended.
        shell(bench, begun, "true", &["umount", text(&at)])?;
        begun.python(&[], SERVED, &[&at]).map(drop)
    }),
    way!("its file is one of an overlay filesystem, and open in the layer", |bench, begun| {
        let file = overlay(bench, begun, RELATIVE)?.with_file_name("other.img");
        shell(bench, begun, "truncate -s 16M $1/other.img", &[])?;
        begun.target = Some(begun.over(&file, &[])?);
        begun.python(&[], OPEN, &[&bench.file().with_file_name("other.img")]).map(drop)
    }),
    // Mounted files.
    way!("its file is mounted without a loop device", |bench, begun| {
        erofs(bench, begun, Path::new("/"), bench.file())
    }),
    way!("its file is mounted without a loop device, by a relative name", |bench, begun| {
        let folder = bench.file().parent().expect("a folder");
        erofs(bench, begun, folder, Path::new("disk.img"))
    }),
    way!("its file is mounted without a loop device in another mount namespace", |bench, begun| {
        let at = bench.folder.join("m");
        shell(bench, begun, "mkdir m", &[])?;
        let arguments = [bench.node(), Path::new("/"), bench.file(), &at];
        begun.python(&["unshare", "-m"], EROFS, &arguments).map(drop)
    }),
];
