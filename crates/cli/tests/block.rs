//! Block devices from the command line, on loop devices: refused without the serial, overwritten with it.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, assert_says};
use loopback::{Loop, run};

const EXPERIMENT: &str = r#"name = "block"
target.device = "intel-320-160gb"

[before-each-cell]
purge = "trim"
fill = "sequential"

[workload]
pattern = "random-write"
block = "4KiB"
threads = 2
duration = "1s"
interval = "100ms"

[sweep]
utilisation = [0.25, 0.5]
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("block.toml", EXPERIMENT);
    lab
}

#[test]
fn a_device_is_overwritten_only_when_its_serial_is_typed() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    let target = format!("block:{}", disk.node.display());
    let before = disk.checksum();

    let text = lab.ok(&["plan", "block.toml", "--target", &target]);
    assert!(text.contains(&format!("add --destroy '{}'", disk.serial())), "{text}");
    assert!(!text.contains("refused"), "{text}");

    for arguments in [&[][..], &["--destroy", "another"], &["--destroy", "another", "--force-signature"]] {
        let mut all = vec!["run", "block.toml", "--target", &target];
        all.extend(arguments);
        lab.refuses(&all, 3);
    }
    assert_eq!(disk.checksum(), before);

    let serial = disk.serial();
    lab.ok(&["run", "block.toml", "--target", &target, "--destroy", &serial, "--format", "json"]);
    assert_ne!(disk.checksum(), before);
    let text = lab.ok(&["export", "--format", "json"]);
    assert!(text.contains(disk.node.to_str().expect("plain")), "the environment names the device");
}

#[test]
fn a_filesystem_is_named_and_overwritten_only_by_force() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    let target = format!("block:{}", disk.node.display());
    run("mkfs.ext4", &["-q", disk.node.to_str().expect("plain")]);
    let before = disk.checksum();
    let serial = disk.serial();
    let all = ["run", "block.toml", "--target", &target, "--destroy", &serial];
    assert_says(&lab.refuses(&all, 3), &["ext4"]);
    assert_eq!(disk.checksum(), before);
    lab.ok(&[&all[..], &["--force-signature"]].concat());
}
