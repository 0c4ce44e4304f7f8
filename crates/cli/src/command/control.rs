//! `lowtide drive`: orders to a running server (`stat`, `powercut`, `power-on`, `pause`, `resume`, `secure-erase`,
//! `fail`, `record`). `lowtide_live::control` carries them out.

use crate::args::{CutArguments, FailArguments, PlainFormat, RecordVerb, ServerArguments, StatArguments};
use crate::failure::Failure;
use crate::output;
use lowtide_core::Nanos;
use lowtide_device::fault::{Faults, Slow};
use lowtide_files::output::CommandFiles;
use lowtide_files::table;
use lowtide_host::attach;
use lowtide_live::control::{self, AskError, Order, Question, Report};
use lowtide_live::{Power, RECORDING, Stat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The default control socket of a server at a unix socket.
pub fn control_socket(socket: &Path) -> PathBuf {
    let mut name = OsString::from(socket);
    name.push(".control");
    PathBuf::from(name)
}

/// The control socket for a unix socket, a control socket or the name of an attached drive.
fn socket(named: &Path) -> PathBuf {
    let candidates = [control_socket(named), named.to_owned()];
    if let Some(existing) = candidates.into_iter().find(|path| path.exists() && !path.is_dir()) {
        return existing;
    }
    attach::control_of(&named.to_string_lossy()).unwrap_or_else(|_| control_socket(named))
}

fn ask(server: &ServerArguments, order: Order) -> Result<Report, Failure> {
    let question = Question { drive: server.drive.clone(), order };
    control::ask(&socket(&server.socket), &question).map_err(|error| match error {
        AskError::Nobody { .. } => Failure::usage(
            error,
            "name the unix socket or the control socket of `lowtide drive serve`, or an attached drive",
        ),
        AskError::Refused(_) => Failure::failed(error),
    })
}

/// Shows the statistics of drives and log disks.
pub fn stat(arguments: &StatArguments) -> Result<u8, Failure> {
    loop {
        let report = ask(&arguments.server, Order::Stat)?;
        for stat in &report.stats {
            match arguments.format {
                PlainFormat::Json => {
                    output::print(&(serde_json::to_string(stat).expect("counters serialise") + "\n"))?;
                }
                PlainFormat::Table => output::print(&show(stat))?,
            }
        }
        for figures in &report.log_disks {
            super::logdisk::show(figures, arguments.format)?;
        }
        match arguments.every {
            Some(span) => std::thread::sleep(std::time::Duration::from_nanos(span.get())),
            None => return Ok(0),
        }
    }
}

/// Cuts the power.
pub fn powercut(arguments: &CutArguments) -> Result<u8, Failure> {
    let CutArguments { server, tear, stay_off } = arguments;
    let report = ask(server, Order::PowerCut { tear: *tear, stay_off: *stay_off })?;
    for (stat, loss) in report.stats.iter().zip(&report.losses) {
        output::print(&format!(
            "{}: power cut number {}; volatile writes: {} kept, {} dropped, {} torn; the power is {}\n",
            stat.name,
            stat.power_cuts,
            loss.kept.writes,
            loss.dropped.writes,
            loss.torn.writes,
            if stat.power == Power::Off { "off" } else { "on again" },
        ))?;
    }
    Ok(0)
}

/// Carries out an order without an answer.
pub fn plain(server: &ServerArguments, order: Order) -> Result<u8, Failure> {
    ask(server, order).map(|_| 0)
}

/// Replaces the faults of a drive.
pub fn fail(arguments: &FailArguments) -> Result<u8, Failure> {
    let &FailArguments { read_errors, write_errors, slow, delay, slow_share, span, end_of_life, .. } =
        arguments;
    let slow = (slow.is_some() || delay.is_some()).then(|| Slow {
        factor: slow.unwrap_or(1.0),
        added: delay.unwrap_or(Nanos::ZERO),
        share: slow_share.unwrap_or(1.0),
        until: None,
    });
    let faults = Faults { read_errors, write_errors, slow, end_of_life };
    plain(&arguments.server, Order::Fail { faults, span })
}

/// Begins or ends a recording.
pub fn record(verb: &RecordVerb) -> Result<u8, Failure> {
    match verb {
        RecordVerb::Start { server, file } => {
            // The path is made absolute, because the server may have another working directory.
            let path = std::path::absolute(file).map_err(|error| Failure::writing(file, &error))?;
            lowtide_files::output::in_place(RECORDING, &path, &CommandFiles::default())?;
            plain(server, Order::Record { path })
        }
        RecordVerb::Stop { server } => {
            let report = ask(server, Order::StopRecording)?;
            output::print(&format!("{} requests recorded\n", report.recorded.unwrap_or(0)))?;
            Ok(0)
        }
    }
}

/// The statistics of a drive as text.
fn show(stat: &Stat) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let power = match stat.power {
        Power::On => "on",
        Power::Paused => "on, paused",
        Power::Off => "off",
    };
    let mut lines = vec![
        ("power", power.to_owned()),
        ("open for", format!("{:.1} s", stat.open_s)),
        ("host read", mib(stat.since_open.host_read_bytes)),
        ("host written", mib(stat.since_open.host_written_bytes)),
    ];
    if stat.since_new.nand_written_bytes > 0 {
        let amplification = stat.write_amplification().map_or("-".to_owned(), |it| format!("{it:.2}"));
        lines.extend([
            ("NAND written", mib(stat.since_open.nand_written_bytes)),
            ("write amplification", amplification),
            ("free blocks", stat.free_blocks.to_string()),
            ("garbage collection stalls", format!("{:.3} s", stat.since_open.gc_stall_ns as f64 / 1e9)),
        ]);
    }
    lines.extend([
        ("in flight", format!("{}, {} at most", stat.in_flight, stat.most_in_flight)),
        ("not durable", mib(stat.volatile_bytes)),
    ]);
    if stat.power_cuts > 0 {
        let lost =
            format!("{}, {} writes lost, {} torn", stat.power_cuts, stat.lost_writes, stat.torn_writes);
        lines.push(("power cuts", lost));
    }
    if let Some(late) = stat.lateness {
        let words =
            format!("{:.0} us p50, {:.0} us p99, {:.0} us max", late.p50_us, late.p99_us, late.max_us);
        lines.push(("answers late by", words));
    }
    if let Some(clients) = stat.clients {
        let waiting = match clients.waiting {
            0 => String::new(),
            waiting => format!(", {waiting} must take replies before more is read"),
        };
        lines.push(("clients of the server", format!("{}{waiting}", clients.connected)));
        let (used, all) = (mib(clients.buffers_used_bytes), mib(clients.buffers_bytes));
        lines.push(("buffers of all clients", format!("{used} of {all}")));
    }
    if let Some(count) = stat.recording {
        lines.push(("recorded", format!("{count} requests")));
    }
    let facts: String = lines.iter().map(|(key, value)| format!("  {key:26} {value}\n")).collect();
    let kinds = ["read", "write", "flush", "trim, zeroes"];
    let requests = [&stat.reads, &stat.writes, &stat.flushes, &stat.trims];
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(requests)
        .filter(|(_, requests)| requests.latency.count > 0)
        .map(|(name, requests)| {
            let it = &requests.latency;
            let (count, bytes) = (it.count.to_string(), mib(requests.bytes));
            let mut row = vec![(*name).to_owned(), count, bytes, requests.errors.to_string()];
            row.extend([it.p50_us, it.p95_us, it.p99_us, it.max_us].map(|us| format!("{us:.0}")));
            row
        })
        .collect();
    let head = ["request", "answered", "bytes", "errors", "p50 us", "p95 us", "p99 us", "max us"];
    let requests =
        if rows.is_empty() { String::new() } else { table::plain(&head, &rows, output::columns()) };
    let warning = stat.too_slow().map(|text| format!("warning: {text}\n")).unwrap_or_default();
    format!("{}: {}\n{facts}{requests}{warning}", stat.name, stat.title)
}
