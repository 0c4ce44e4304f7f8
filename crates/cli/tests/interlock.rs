//! Every known way to use a block device makes lowtide refuse it with exit code 3, with its serial typed and
//! everything forced, and no byte changes: for a campaign and, for every fourth way, for a log disk that
//! would be made on it.
//!
//! The ways are in `crates/host/tests/common/ways.rs`. `LOWTIDE_WAY=TEXT` runs those with TEXT in their
//! names.
#![allow(clippy::print_stdout)]

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;
#[path = "../../host/tests/common/ways.rs"]
mod ways;

use common::{Lab, assert_says, flat};
use loopback::Loop;
use lowtide_host::block::Disk;

const EXPERIMENT: &str = r#"name = "interlock"
target.device = "intel-320-160gb"

[before-each-cell]
purge = "trim"
fill = "sequential"

[workload]
pattern = "random-write"
block = "4KiB"
duration = "200ms"
interval = "100ms"
file_size = "1MiB"
"#;

#[test]
fn every_way_to_use_a_device_is_refused_whatever_is_typed() {
    let lab = Lab::new();
    lab.write("interlock.toml", EXPERIMENT);
    let (mut missed, mut begun) = (Vec::new(), 0);
    let checked = ways::each(|way, target, disk| {
        let before = ways::checksum(disk);
        let serial = Disk::find(target).expect("a device").identity.serial;
        let node = target.to_str().expect("plain");
        let target = format!("block:{node}");
        let run = ["run", "interlock.toml", "--target", &target, "--destroy", &serial, "--force-signature"];
        let format = ["logdisk", "format", node, "--destroy", &serial, "--force-signature"];
        // Both use the same check: some of the ways are enough for the second, as most wait a second.
        begun += 1;
        for arguments in [&run[..], &format].into_iter().take(if begun % 4 == 0 { 2 } else { 1 }) {
            let (code, _, error) = common::told(&lab.run(arguments));
            println!("{}: {}: {code:?}:{}", way.name, arguments[0], flat(&error));
            let is_same = ways::checksum(disk) == before;
            if code != Some(3) || !is_same {
                missed.push(format!("{}: {}: {code:?}, unchanged: {is_same}", way.name, arguments[0]));
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
    let lab = Lab::new();
    lab.write("interlock.toml", EXPERIMENT);
    let before = ways::checksum(&disk);
    let target = format!("block:{}", disk.node.display());
    let text = lab.ok(&["plan", "interlock.toml", "--target", &target]);
    assert!(!text.contains("refused"), "{text}");
    lab.ok(&["run", "interlock.toml", "--target", &target, "--destroy", &disk.serial()]);
    assert_ne!(ways::checksum(&disk), before);
}

#[test]
fn what_speaks_against_a_file_below_is_named_in_the_plan() {
    let Some(disk) = Loop::new(16, &[]) else { return };
    let lab = Lab::new();
    lab.write("interlock.toml", EXPERIMENT);
    let _image = std::fs::File::open(&disk.file).expect("open");
    let target = format!("block:{}", disk.node.display());
    let text = lab.ok(&["plan", "interlock.toml", "--target", &target]);
    let file = disk.file.display();
    assert_says(&text, &[&format!("refused: {file}, which it lies on, is open in")]);
}

#[test]
fn an_image_that_others_use_takes_no_data_of_a_served_drive() {
    let lab = Lab::new();
    let image = lab.path("image");
    std::fs::write(&image, "").expect("written");
    let serve =
        ["drive", "serve", "intel-320-160gb", "--scale", "1/256", "--data", "image", "--tcp", "127.0.0.1:0"];
    let open = std::fs::File::options().read(true).write(true).open(&image).expect("opened");
    let mut user = std::process::Command::new("sleep").arg("60").stdin(open).spawn().expect("sleep");
    let error = lab.refuses(&serve, 3);
    user.kill().and_then(|()| user.wait()).expect("ended");
    assert_says(&error, &["image", "is open in"]);
    assert_eq!(std::fs::metadata(&image).expect("there").len(), 0, "nothing of it has changed");
}
