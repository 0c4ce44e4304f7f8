//! The memory of a server whose clients take no replies, and what `lowtide drive stat` reports of it.

use crate::common::{Lab, assert_says};
use crate::served::Served;
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::command;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Memory that a server may take beyond its buffers.
const BESIDE: u64 = 64 << 20;

const MIB: u32 = 1 << 20;

fn connect(lab: &Lab) -> NbdClient<UnixStream> {
    let stream = UnixStream::connect(lab.path("drive.sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    NbdClient::connect(stream, "").expect("agreed")
}

/// Peak resident memory of a process in bytes, without pages of files.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// 128 clients that ask for all they can, in reads of 1 MiB and of 32 MiB, and take no replies, beside one
/// more client that reads normally.
fn besieged(lab: &Lab, served: Served, stat: &[&str], budget: u64) {
    let before = peak(served.process());
    let mut other = connect(lab);
    let mut mute: Vec<NbdClient<UnixStream>> = (0..128).map(|_| connect(lab)).collect();
    for (number, client) in mute.iter_mut().enumerate() {
        let (count, length) = if number % 2 == 0 { (60, MIB) } else { (8, 32 * MIB) };
        client.send_reads((0..count).map(|_| 0), length).expect("sent");
    }
    let begin = Instant::now();
    let figures = loop {
        let figures: serde_json::Value = serde_json::from_str(&lab.ok(stat)).expect("JSON");
        let clients = figures.get("clients").filter(|it| it.is_object()).unwrap_or(&figures);
        let waiting = clients.get("waiting").or(clients.get("clients_waiting")).and_then(|it| it.as_u64());
        if waiting == Some(128) {
            break clients.clone();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "not all wait: {figures}");
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
        "budget {} MiB: {} MiB in memory, {} MiB before; 4 KiB reads beside 128 clients: p50 {:?}, p99 {:?}",
        budget >> 20,
        peak >> 20,
        before >> 20,
        spans[1000],
        spans[1980]
    );
    assert!(peak <= budget + BESIDE, "{peak} bytes in memory");
    drop(mute);
    served.ends_well();
}

/// Symptom: 60 clients that sent reads and took no replies made the server hold 4.8 GB. Cause: a limit for
/// each client, and none for all. Fix: one budget for all clients of a server.
#[test]
fn clients_that_take_nothing_cost_no_more_than_the_buffers_and_others_are_served() {
    let lab = Lab::new();
    let stat = ["drive", "stat", "drive.sock", "--format", "json"];
    for (size, budget) in [(None, 256 << 20), (Some("100MiB"), 100 << 20)] {
        let mut arguments = vec!["--unix", "drive.sock", "--max-clients", "129"];
        size.iter().for_each(|size| arguments.extend(["--buffers", size]));
        besieged(&lab, Served::start(&lab, &arguments), &stat, budget);
    }
}

#[test]
fn a_log_disk_keeps_to_its_buffers_too() {
    let lab = Lab::new();
    lab.ok(&["logdisk", "format", "disk.log", "--size", "256MiB", "--segment", "1MiB"]);
    let serve = ["logdisk", "serve", "disk.log", "--unix", "drive.sock", "--max-clients", "129"];
    let served = Served::start_plain(&lab, &serve);
    let mut client = connect(&lab);
    let mut data = vec![7; 32 << 20];
    assert_eq!(client.ask(command::WRITE, 0, 0, 32 * MIB, &mut data).expect("answered"), 0);
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    drop((client, data));
    besieged(&lab, served, &["logdisk", "stat", "disk.log", "--format", "json"], 256 << 20);
}

#[test]
fn too_little_memory_is_refused_and_stat_says_how_much_there_is() {
    let lab = Lab::new();
    let error = lab
        .refuses(&["drive", "serve", crate::served::DRIVE, "--unix", "drive.sock", "--buffers", "32MiB"], 2);
    assert_says(&error, &["64MiB is the least for 128 clients"]);
    let served =
        Served::start(&lab, &["--unix", "drive.sock", "--max-clients", "300", "--buffers", "200MiB"]);
    let _client = connect(&lab);
    let said = lab.ok(&["drive", "stat", "drive.sock"]);
    assert_says(&said, &["clients of the server", "of 200.0 MiB"]);
    served.ends_well();
}
