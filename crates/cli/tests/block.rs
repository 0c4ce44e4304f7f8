//! Campaigns on block devices (loop devices): refused without the serial number, run with it.

#[path = "common/attached.rs"]
mod attached;
mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use attached::{Attached, can_attach};
use common::{Lab, Running, VOLUME, plain};
use loopback::{Loop, run};

const EXPERIMENT: &str = common::experiment!(
    "block",
    "trim",
    "pattern = 'random-write'\nblock = '4KiB'\nthreads = 2\nduration = '1s'\ninterval = '100ms'\n\
     [sweep]\nutilisation = [0.25, 0.5]\n"
);

fn lab() -> Lab {
    Lab::with(&[("block.toml", EXPERIMENT), ("volume.toml", VOLUME)])
}

#[test]
fn a_device_is_overwritten_only_when_its_serial_is_typed() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    let target = format!("block:{}", disk.node.display());
    let before = disk.checksum();

    let text = lab.ok(&format!("plan block.toml --target {target}"));
    assert!(text.contains(&format!("add --destroy '{}'", disk.serial())), "{text}");
    assert!(!text.contains("refused"), "{text}");

    for more in ["", "--destroy another", "--destroy another --force-signature"] {
        lab.refuses(&format!("run block.toml --target {target} {more}"), 3, &[]);
    }
    assert_eq!(disk.checksum(), before);

    let serial = disk.serial();
    lab.ok(&format!("run block.toml --target {target} --destroy {serial} --format json"));
    assert_ne!(disk.checksum(), before);
    let text = lab.ok("store export --format json");
    assert!(text.contains(plain(&disk.node)), "the environment names the device");
}

#[test]
fn a_filesystem_is_named_and_overwritten_only_by_force() {
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    let target = format!("block:{}", disk.node.display());
    run("mkfs.ext4", &["-q", plain(&disk.node)]);
    let before = disk.checksum();
    let command = format!("run block.toml --target {target} --destroy {}", disk.serial());
    lab.refuses(&command, 3, &["ext4"]);
    assert_eq!(disk.checksum(), before);
    lab.ok(&format!("{command} --force-signature"));
}

/// A replacement for smartctl, whose counters increase with each call.
const SMARTCTL: &str = r#"#!/bin/sh
n=$(cat "$0.count" 2>/dev/null || echo 0); n=$((n + 1)); echo $n > "$0.count"
printf '{"smartctl":{"exit_status":64},"model_name":"X","temperature":{"current":%d},"logical_block_size":512,' $((30 + n))
printf '"ata_smart_attributes":{"table":[{"id":225,"name":"Host_Writes_32MiB","value":100,"raw":{"value":%d}},' $((100 * n))
printf '{"id":249,"name":"NAND_Writes_1GiB","value":100,"raw":{"value":%d}}]}}' $((9 * n))
"#;

#[test]
fn the_drives_own_counters_and_foreign_traffic_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let Some(disk) = Loop::new(64, &[]) else { return };
    let lab = lab();
    lab.write("smartctl", SMARTCTL);
    std::fs::set_permissions(lab.path("smartctl"), std::fs::Permissions::from_mode(0o755)).expect("set");
    let folder = lab.path("");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let target = format!("block:{}", disk.node.display());
    let serial = disk.serial();
    let command = format!("run block.toml --target {target} --destroy {serial} --set pattern=random-read");
    let mut child = Running::start(lab.command(&command).env("PATH", path));
    // During the run, another program reads the device past the page cache.
    child.reaches("the store", || lab.path("lowtide.db").exists());
    let node = plain(&disk.node);
    while !child.has_ended() {
        let arguments =
            [&format!("if={node}"), "of=/dev/null", "bs=1M", "count=32", "iflag=direct", "status=none"];
        run("dd", &arguments.map(AsRef::<str>::as_ref));
    }
    assert_eq!(child.wait(), Some(0));
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
    let drive = Attached::new(&lab, "killed");
    lab.ok(&format!("drive attach volume.toml --name {}", drive.name));
    let dead = drive.node();
    rustix::process::kill_process(drive.process(), rustix::process::Signal::KILL).expect("killed");
    // The kernel closes the FUSE connection shortly after the process has ended.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let text = lab.ok(&format!("plan block.toml --target block:{}", plain(&disk.node)));
        if text.contains("add --destroy") && !text.contains("refused") {
            break;
        }
        assert!(std::time::Instant::now() < limit, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    lab.run(&format!("plan block.toml --target block:{dead}"));
}
