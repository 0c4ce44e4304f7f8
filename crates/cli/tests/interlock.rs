//! Block devices in use: lowtide refuses each with exit code 3 and changes no byte, even with the serial number and
//! `--force-signature`. Tested for a campaign and, for every fourth way of use, for `logdisk format`.
//!
//! The ways of use are in `crates/host/tests/common/ways.rs`. `LOWTIDE_WAY=TEXT` selects the ways whose names contain
//! TEXT.
#![allow(clippy::print_stdout)]

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;
#[path = "../../host/tests/common/ways.rs"]
mod ways;

use common::{Lab, Running, flat};
use loopback::Loop;
use lowtide_host::block::Disk;

const EXPERIMENT: &str = common::experiment!(
    "interlock",
    "trim",
    "pattern = 'random-write'\nblock = '4KiB'\nduration = '200ms'\ninterval = '100ms'\nfile_size = '1MiB'\n"
);

#[test]
fn a_device_in_use_is_refused_whatever_is_typed() {
    let lab = Lab::with(&[("interlock.toml", EXPERIMENT)]);
    let (mut missed, mut begun) = (Vec::new(), 0);
    let checked = ways::each(|way, target, disk| {
        let before = ways::checksum(disk);
        let serial = Disk::find(target).expect("a device").identity.serial;
        let node = target.to_str().expect("plain");
        let target = format!("block:{node}");
        let run = ["run", "interlock.toml", "--target", &target, "--destroy", &serial, "--force-signature"];
        let format = ["logdisk", "format", node, "--destroy", &serial, "--force-signature"];
        // Both commands share the check, and most refusals take a second, so `format` is tried for every fourth way
        // only.
        begun += 1;
        for command in [&run[..], &format].into_iter().take(if begun % 4 == 0 { 2 } else { 1 }) {
            let (code, _, error) = common::decoded(&lab.run(command));
            println!("{}: {}: {code:?}:{}", way.name, command[0], flat(&error));
            let is_same = ways::checksum(disk) == before;
            if code != Some(3) || !is_same {
                missed.push(format!("{}: {}: {code:?}, unchanged: {is_same}", way.name, command[0]));
            }
        }
    });
    println!("{checked} of {} ways begun", ways::all().count());
    assert!(missed.is_empty(), "not refused:\n{}", missed.join("\n"));
    assert!(ways::all().count() >= 40);
}

#[test]
fn the_same_device_without_users_is_overwritten() {
    let Some(disk) = Loop::new(16, &[]) else { return };
    let lab = Lab::with(&[("interlock.toml", EXPERIMENT)]);
    let before = ways::checksum(&disk);
    let target = format!("block:{}", disk.node.display());
    let text = lab.ok(&format!("plan interlock.toml --target {target}"));
    assert!(!text.contains("refused"), "{text}");
    lab.ok(&format!("run interlock.toml --target {target} --destroy {}", disk.serial()));
    assert_ne!(ways::checksum(&disk), before);
}

#[test]
fn a_plan_names_the_users_of_the_backing_file() {
    let Some(disk) = Loop::new(16, &[]) else { return };
    let lab = Lab::with(&[("interlock.toml", EXPERIMENT)]);
    let _image = std::fs::File::open(&disk.file).expect("open");
    let target = format!("block:{}", disk.node.display());
    let says = format!("refused: {}, which it lies on, is open in", disk.file.display());
    lab.prints(&format!("plan interlock.toml --target {target}"), &[&says]);
}

#[test]
fn a_file_in_use_is_refused_as_the_data_of_a_served_drive() {
    let lab = Lab::new();
    lab.write("image", "");
    let open = std::fs::File::options().read(true).write(true).open(lab.path("image")).expect("opened");
    let _user = Running::start(std::process::Command::new("sleep").arg("60").stdin(open));
    let serve = "drive serve intel-320-160gb --scale 1/256 --data image --tcp 127.0.0.1:0";
    lab.refuses(serve, 3, &["image", "is open in"]);
    assert_eq!(lab.read("image"), "", "the file was changed");
}
