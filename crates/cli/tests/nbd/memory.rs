//! Memory of a server whose clients read no replies, and its report by `lowtide drive stat`.

use crate::common::{Lab, memory_kib};
use crate::served::{DRIVE, Served, connect};
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::command;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Memory that a server may use in addition to its buffers.
const MARGIN: u64 = 64 << 20;

const MIB: u32 = 1 << 20;

/// Peak resident memory of a process in bytes, without pages of files.
fn peak(process: u32) -> u64 {
    memory_kib(process, "VmHWM").expect("it runs") << 10
}

/// Asserts the memory limit of a server with 128 clients that send reads of 1 MiB and of 32 MiB and take no replies,
/// and that another client is served.
fn assert_limited(lab: &Lab, served: Served, stat: &str, budget: u64) {
    let before = peak(served.process());
    let mut other = connect(lab);
    let mut stalled: Vec<NbdClient<UnixStream>> = (0..128).map(|_| connect(lab)).collect();
    for (number, client) in stalled.iter_mut().enumerate() {
        let (count, length) = if number % 2 == 0 { (60, MIB) } else { (8, 32 * MIB) };
        client.send_reads((0..count).map(|_| 0), length).expect("sent");
    }
    let begin = Instant::now();
    let figures = loop {
        let figures = lab.json(stat);
        let clients = figures.get("clients").filter(|it| it.is_object()).unwrap_or(&figures);
        let waiting = clients.get("waiting").or(clients.get("clients_waiting")).and_then(|it| it.as_u64());
        if waiting == Some(128) {
            break clients.clone();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "not all clients wait: {figures}");
    };
    let figure = |name: &str| figures[name].as_u64().expect("a number");
    assert_eq!(figure("buffers_bytes"), budget);
    assert!(figure("buffers_used_bytes") <= budget, "{figures}");
    let mut spans = Vec::new();
    for n in 0..2000 {
        let begin = Instant::now();
        assert_eq!(other.ask(command::READ, 0, n % 500 * 4096, 4096, &mut [0; 4096]).expect("answered"), 0);
        spans.push(begin.elapsed());
    }
    spans.sort_unstable();
    let mut data = vec![0; 32 << 20];
    assert_eq!(other.ask(command::READ, 0, 0, 32 * MIB, &mut data).expect("answered"), 0);
    let peak = peak(served.process());
    println!(
        "budget {} MiB: peak {} MiB, {} MiB before; 4 KiB reads of the other client: p50 {:?}, p99 {:?}",
        budget >> 20,
        peak >> 20,
        before >> 20,
        spans[1000],
        spans[1980]
    );
    assert!(peak <= budget + MARGIN, "{peak} bytes in memory");
    drop(stalled);
    served.ends_well();
}

/// Symptom: 60 clients that sent reads and took no replies made the server use 4.8 GB. Cause: the limit was per
/// client. Fix: one budget for all clients of a server.
#[test]
fn clients_that_read_no_replies_cost_no_more_than_the_buffers() {
    let lab = Lab::new();
    for (buffers, budget) in [("", 256 << 20), ("--buffers 100MiB", 100 << 20)] {
        let served = Served::start(&lab, &format!("--unix drive.sock --max-clients 129 {buffers}"));
        assert_limited(&lab, served, "drive stat drive.sock", budget);
    }
}

#[test]
fn a_log_disk_is_limited_to_its_buffers() {
    let lab = Lab::new();
    lab.ok("logdisk format disk.log --size 256MiB --segment 1MiB");
    let served = Served::by(&lab, "logdisk serve disk.log --unix drive.sock --max-clients 129");
    let mut client = connect(&lab);
    let mut data = vec![7; 32 << 20];
    assert_eq!(client.ask(command::WRITE, 0, 0, 32 * MIB, &mut data).expect("answered"), 0);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    drop((client, data));
    assert_limited(&lab, served, "logdisk stat disk.log", 256 << 20);
}

#[test]
fn too_little_memory_is_refused_and_stat_reports_the_budget() {
    let lab = Lab::new();
    let serve = format!("drive serve {DRIVE} --unix drive.sock --buffers 32MiB");
    lab.refuses(&serve, 2, &["64MiB is the least for 128 clients"]);
    let served = Served::start(&lab, "--unix drive.sock --max-clients 300 --buffers 200MiB");
    let _client = connect(&lab);
    lab.prints("drive stat drive.sock", &["clients of the server", "of 200.0 MiB"]);
    served.ends_well();
}
