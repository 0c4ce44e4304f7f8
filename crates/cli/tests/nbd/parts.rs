//! Requests for parts of blocks, by clients that do not know the block size: compared with an array, and from
//! concurrent clients that write to the same blocks.

use crate::common::Lab;
use crate::loopback::skipped;
use crate::served::{DRIVE, Served, connect, ok, real};
use lowtide_core::Seed;
use lowtide_core::rng::below;
use lowtide_host::nbd::wire::{command, flag};

const SEED: u64 = 11;
const SIZE: usize = 8 << 20;

/// The system's Python, which has the module of libnbd.
const PYTHON: &str = "/usr/bin/python3";

/// The commands of three servers: a drive in real time, a drive without delay, and a log disk.
fn servers(lab: &Lab) -> [String; 3] {
    lab.ok("logdisk format disk.log --size 64MiB --segment 1MiB");
    let drive = format!("drive serve {DRIVE} --scale 1/256 --cache volatile --unix drive.sock");
    [format!("{drive} --no-delay"), drive, "logdisk serve disk.log --unix drive.sock".to_owned()]
}

/// Symptom: requests of less than 512 bytes were refused for old clients, which choose an export by EXPORT_NAME.
/// Cause: the server assumed a block size that it had not announced. Fix: parts of blocks are served.
#[test]
fn any_bytes_are_read_as_they_were_written() {
    println!("seed {SEED}");
    let lab = Lab::new();
    for serve in servers(&lab) {
        let mut rng = Seed::new(SEED).stream();
        let served = Served::by(&lab, &serve);
        let mut client = connect(&lab);
        let mut plain = vec![0u8; SIZE];
        for n in 0..300 {
            let length = 1 + below(&mut rng, if n % 30 == 0 { 300_000 } else { 3000 }) as usize;
            let offset = below(&mut rng, (SIZE - length) as u64) as usize;
            let range = offset..offset + length;
            let mut data = vec![n as u8; length];
            let kind = [command::WRITE, command::READ, command::WRITE, command::WRITE_ZEROES][n % 4];
            let flags = if kind == command::READ || n % 8 > 0 { 0 } else { flag::FUA };
            let answer = client.ask(kind, flags, offset as u64, length as u32, &mut data);
            assert_eq!(answer.expect("answered"), 0, "{serve:?}: request {n}");
            match kind {
                command::WRITE => plain[range].copy_from_slice(&data),
                command::READ => assert!(data == plain[range], "{serve:?}: read {n}"),
                _ => plain[range].fill(0),
            }
        }
        assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
        let mut found = vec![0; SIZE];
        assert_eq!(client.ask(command::READ, 0, 0, SIZE as u32, &mut found).expect("answered"), 0);
        assert!(found == plain, "{serve:?}");
        served.ends_well();
    }
}

#[test]
fn clients_that_write_to_different_bytes_of_a_block_do_not_undo_each_other() {
    println!("seed {SEED}");
    let lab = Lab::new();
    for serve in servers(&lab) {
        let served = Served::by(&lab, &serve);
        std::thread::scope(|threads| {
            for own in 0..4_u64 {
                let lab = &lab;
                threads.spawn(move || {
                    let mut client = connect(lab);
                    // Every fourth range of a hundred bytes, with several requests in flight.
                    for round in 1..=3_u8 {
                        for n in 0..100 {
                            let data = [round * 16 + own as u8; 100];
                            let offset = (n * 4 + own) * 100;
                            client.send(command::WRITE, 0, offset, 100, &data).expect("sent");
                        }
                        for _ in 0..100 {
                            assert_eq!(client.receive(&mut []).expect("answered").1, 0);
                        }
                    }
                });
            }
        });
        let mut found = vec![0; 40_000];
        assert_eq!(connect(&lab).ask(command::READ, 0, 0, 40_000, &mut found).expect("answered"), 0);
        for (number, piece) in found.chunks(100).enumerate() {
            assert!(piece.iter().all(|byte| *byte == 48 + (number % 4) as u8), "{serve:?}: piece {number}");
        }
        served.ends_well();
    }
}

#[test]
fn libnbd_reads_and_writes_any_bytes() {
    let lab = Lab::new();
    for serve in servers(&lab) {
        let served = Served::by(&lab, &serve);
        let script = format!(
            "import nbd\n\
             h = nbd.NBD()\n\
             h.set_request_block_size(False)\n\
             h.set_strict_mode(0)\n\
             h.connect_uri('{}')\n\
             h.pwrite(b'some words', 1000)\n\
             h.pwrite(b'other words', 1010, nbd.CMD_FLAG_FUA)\n\
             assert h.pread(21, 1000) == b'some wordsother words'\n\
             h.zero(5, 1005)\n\
             assert h.pread(23, 999) == b'\\0some \\0\\0\\0\\0\\0other words\\0', h.pread(23, 999)\n\
             h.trim(3, 1003)\n\
             h.cache(7, 3)\n\
             assert h.pread(4, 1000) == b'some'\n\
             h.shutdown()\n",
            served.uri("")
        );
        lab.write("any.py", &script);
        let module = real(&lab, PYTHON, &["-c", "import nbd"]);
        if !module.is_some_and(|module| module.status.success()) {
            return skipped("Python has no module nbd (python3-libnbd)");
        }
        ok(&lab, PYTHON, "any.py");
        served.ends_well();
    }
}
