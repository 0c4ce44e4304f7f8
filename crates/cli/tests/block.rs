//! Block devices from the command line, on loop devices: refused without the serial, overwritten with it.

#[path = "common/attached.rs"]
mod attached;
mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::{Attached, can_attach};
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
    let text = lab.ok(&["store", "export", "--format", "json"]);
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

/// A drive whose counters go up each time they are read: a program in the place of smartctl.
const SMARTCTL: &str = r#"#!/bin/sh
n=$(cat "$0.count" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.count"
printf '{"smartctl":{"exit_status":64},"model_name":"X","temperature":{"current":%d},"logical_block_size":512,' $((30 + n))
printf '"ata_smart_attributes":{"table":[{"id":225,"name":"Host_Writes_32MiB","value":100,"raw":{"value":%d}},' $((100 * n))
printf '{"id":249,"name":"NAND_Writes_1GiB","value":100,"raw":{"value":%d}}]}}' $((9 * n))
"#;

#[test]
fn the_drives_own_counters_and_foreign_traffic_are_told() {
    use std::os::unix::fs::PermissionsExt;
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    lab.write("smartctl", SMARTCTL);
    std::fs::set_permissions(lab.path("smartctl"), std::fs::Permissions::from_mode(0o755)).expect("set");
    let folder = lab.path("");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let target = format!("block:{}", disk.node.display());
    let serial = disk.serial();
    let all =
        ["run", "block.toml", "--target", &target, "--destroy", &serial, "--set", "pattern=random-read"];
    let mut child = lab.command(&all).env("PATH", path).spawn().expect("started");
    // Once it is taken, somebody else reads the device all the while, past the page cache.
    while !lab.path("lowtide.db").exists() {
        assert!(child.try_wait().expect("waited").is_none(), "it never began");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let node = disk.node.to_str().expect("plain");
    while child.try_wait().expect("waited").is_none() {
        let arguments =
            [&format!("if={node}"), "of=/dev/null", "bs=1M", "count=32", "iflag=direct", "status=none"];
        run("dd", &arguments.map(AsRef::<str>::as_ref));
    }
    assert!(child.wait().expect("waited").success());
    let report = lab.read("report.html");
    // 100 * 32 MiB by the host and 9 GiB into the NAND: 9 * 1024 / 3200.
    for words in ["31 °C", "32 °C", "counted-write-amplification", "2.88", "that the load did not ask for"]
    {
        assert!(report.contains(words), "{words}");
    }
    assert!(!report.contains("log-before"), "logs are for programs");
}

#[test]
fn a_drive_whose_server_was_killed_stops_no_other_device() {
    if !can_attach() {
        return;
    }
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    lab.write(
        "volume.toml",
        "name = \"volume\"\ntitle = \"A volume\"\n[volume]\ncapacity = \"64MiB\"\niops = 100_000\n\
         throughput = \"1GiB\"\nio-size = \"256KiB\"\nlatency = \"100us\"\nlatency-spread = \"0us\"\n",
    );
    let drive = Attached::new(&lab, "killed");
    lab.ok(&["drive", "attach", "volume.toml", "--name", &drive.name]);
    let dead = drive.node();
    rustix::process::kill_process(drive.process(), rustix::process::Signal::KILL).expect("killed");
    // The kernel closes the FUSE connection shortly after the process has ended.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::fs::File::open(&dead).is_ok() {
        assert!(std::time::Instant::now() < limit, "{dead} still has its server");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    let plan = |node: &str| lab.ok(&["plan", "block.toml", "--target", &format!("block:{node}")]);
    let text = plan(disk.node.to_str().expect("plain"));
    assert!(text.contains("add --destroy") && !text.contains("refused"), "{text}");
    lab.run(&["plan", "block.toml", "--target", &format!("block:{dead}")]);
}
