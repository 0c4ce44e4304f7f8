//! Requests of qemu-io and of fio's engine for NBD, which verify what they read.

use crate::common::Lab;
use crate::served::{Served, ok, qemu_io, real};

#[test]
fn qemu_io_reads_what_it_wrote_discarded_and_zeroed() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock");
    let commands = [
        "read -P 0 0 1M",
        "write -P 0x5a 64k 128k",
        "write -f -P 0x5b 512 512", // durable before the answer
        "read -P 0 0 512",
        "read -P 0x5b 512 512",
        "read -P 0 1k 63k",
        "read -P 0x5a 64k 128k",
        "flush",
        "write -z 64k 4k",    // zeroes that take room
        "write -z -u 68k 4k", // zeroes that may be a hole
        "write -z -f 72k 4k",
        "read -P 0 64k 12k",
        "read -P 0x5a 76k 116k",
        "discard 96k 64k",
        "read -P 0 96k 64k",
        "aio_write -P 1 1M 256k",
        "aio_write -P 2 2M 256k",
        "aio_flush",
        "read -P 1 1M 256k",
        "read -P 2 2M 256k",
        "write -P 0xa5 8M 32M",
        "read -P 0xa5 8M 32M",
        "writev -P 9 100k 512 1024 4096",
        "readv -P 9 100k 5632",
    ];
    let uri = served.uri("");
    let Some(out) = qemu_io(&lab, &uri, &commands) else { return };
    assert!(!out.contains("failed"), "{out}");
    // The last sector is usable.
    let size = ok(&lab, "nbdinfo", &format!("--size {uri}")).unwrap_or_default();
    if let Ok(size) = size.trim().parse::<u64>() {
        let last = format!("write -P 3 {} 512", size - 512);
        qemu_io(&lab, &uri, &[&last, &last.replace("write", "read")]);
    }
    served.ends_well();
}

#[test]
fn a_read_only_drive_refuses_writes() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock --read-only");
    let uri = served.uri("");
    let Some(refused) = real(&lab, "qemu-io", &["-f", "raw", "-c", "write -P 1 0 4k", &uri]) else { return };
    assert!(!refused.status.success());
    let text =
        ok(&lab, "qemu-io", &["-r", "-f", "raw", "-c", "read -P 0 0 4k", &uri]).expect("it ran before");
    assert!(!text.contains("failed"), "{text}");
    served.ends_well();
}

#[test]
fn fio_verifies_what_it_wrote() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock");
    let uri = format!("--uri={}", served.uri(""));
    let engines = ok(&lab, "fio", "--enghelp");
    if engines.is_none_or(|engines| !engines.lines().any(|line| line.trim() == "nbd")) {
        return crate::loopback::skipped("fio has no engine for NBD");
    }
    for job in [
        "--rw=randwrite --bs=4k --verify=crc32c --fsync=64",
        "--rw=write --bsrange=512-64k --bs_unaligned=0 --verify=sha1",
        "--rw=randrw --bs=16k --verify=crc32c --numjobs=2 --offset_increment=64m",
    ] {
        let job = format!("--name=j --ioengine=nbd {uri} --randseed=7 --size=32m --iodepth=16 {job}");
        let out = ok(&lab, "fio", &job).expect("it ran before");
        assert!(out.contains("err= 0"), "{out}");
    }
    served.ends_well();
}
