//! `lowtide logdisk`: formats, serves, attaches, checks and repairs a log disk in a file or on a block device.
//!
//! The layer is in `lowtide_logdisk`; the file or device below it and the service are in `lowtide_live::logdisk`.

mod attach;

use super::serve::{DEFAULT_ADDRESS, report_end};
use crate::args::live::ClientsArguments;
use crate::args::{LogdiskArguments, LogdiskFormatArguments, LogdiskVerb, PlainFormat};
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::output;
use lowtide_core::Bytes;
use lowtide_files::table;
use lowtide_host::Event;
use lowtide_host::live::Clock;
use lowtide_host::nbd::{Listener, Settings};
use lowtide_live::Service;
use lowtide_live::control::AskError;
use lowtide_live::logdisk::{
    Backing, Figures, LogDrive, Overwrite, QueuedDisk, advice, announce, ask, identity, resize,
};
use lowtide_logdisk::check::{Checked, check};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::format::Geometry;
use lowtide_logdisk::{Disk, LogError, Options, blocks};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The message after a log disk was closed cleanly.
pub const CLOSED: &str = "closed in order";

/// Carries out a verb.
pub fn run(arguments: &LogdiskArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        LogdiskVerb::Format(arguments) => format(arguments),
        LogdiskVerb::Serve { target, unix, tcp, name, read_only, map_memory, clients } => {
            let addresses = (unix.as_deref(), tcp.as_deref());
            serve(target, name.as_deref(), addresses, clients, *read_only, running(*map_memory))
        }
        LogdiskVerb::Attach(arguments) => attach::run(arguments),
        LogdiskVerb::Stat(arguments) => stat(&arguments.target, arguments.format),
        LogdiskVerb::Check(arguments) => verify(&arguments.target, false, arguments.format),
        LogdiskVerb::Scrub(arguments) => verify(&arguments.target, true, arguments.format),
        LogdiskVerb::Repair { target, accept_old_data } => repair(target, *accept_old_data),
        LogdiskVerb::Resize { target, size, reserve } => {
            print_size(target, &resize(target, *size, *reserve)?);
            Ok(0)
        }
        LogdiskVerb::Advise { bare, sequential, format } => advise(*bare, *sequential, *format),
    }
}

fn running(map_memory: Option<Bytes>) -> Running {
    Running { map_memory: map_memory.map_or(usize::MAX, |bytes| bytes.get() as usize), ..Running::default() }
}

fn format(arguments: &LogdiskFormatArguments) -> Result<u8, Failure> {
    let LogdiskFormatArguments { target, size, segment, reserve, .. } = arguments;
    let options = Options { segment: segment.get(), reserve: *reserve };
    let over = Overwrite {
        file: arguments.overwrite,
        serial: arguments.destroy.as_deref(),
        signature: arguments.force_signature,
    };
    let existed = target.exists();
    let place = Backing::make(target, *size, options, over)?;
    let id = identity().map_err(Failure::failed)?;
    let made = Disk::format(place.medium()?, options, id);
    // After a failure, a new file is removed.
    let disk = made.inspect_err(|_| {
        if !existed {
            let _ = std::fs::remove_file(target);
        }
    })?;
    print_size(target, disk.geometry());
    disk.close()?;
    Ok(0)
}

/// A number of bytes in GB or MB.
fn in_words(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

/// Prints the size of a log disk.
fn print_size(target: &Path, geometry: &Geometry) {
    output::say(format_args!(
        "{}: {} offered, in {} segments of {}",
        target.display(),
        in_words(geometry.capacity()),
        geometry.segments,
        Bytes::new(geometry.segment_bytes())
    ));
}

/// Opens the log disk in a file or on a block device.
fn open(target: &Path, read_only: bool, running: Running) -> Result<QueuedDisk, Failure> {
    Ok(LogDrive::open(Backing::open(target, read_only)?.medium()?, running)?)
}

/// Opens a log disk, and reports its recovery.
fn open_and_report(target: &Path, read_only: bool, running: Running) -> Result<QueuedDisk, Failure> {
    let disk = open(target, read_only, running)?;
    let recovery = disk.recovery();
    if !recovery.clean {
        output::say(format_args!(
            "{} was not closed: {} slots replayed, {} after the end of the log dropped, {} damaged",
            target.display(),
            recovery.replayed,
            recovery.dropped,
            recovery.spoiled
        ));
    }
    if let Some(lost) = recovery.damage() {
        output::say(errors_until_written(lost));
    }
    Ok(disk)
}

/// The message about blocks that are known to be lost.
fn errors_until_written(lost: u64) -> String {
    format!(
        "damaged: {} of the flushed end of the log cannot be read: reads are an error until it is written again; restore the \
         data from a copy",
        blocks(lost)
    )
}

/// The message about lost blocks that are unknown.
fn unusable(target: &Path, lost: u64) -> String {
    format!(
        "damaged: {} of the flushed end of the log cannot be read, and which blocks is unknown: any block may be older than its \
         flushed version, so the log disk is not opened; restore a copy, or accept older data with `lowtide logdisk repair {} \
         --accept-old-data`",
        blocks(lost),
        target.display()
    )
}

/// Repairs a log disk whose flushed end is damaged, and prints the result.
fn repair(target: &Path, accept_old_data: bool) -> Result<u8, Failure> {
    let medium = Backing::open(target, !accept_old_data)?.medium()?;
    let damaged = match Disk::open(&medium, Running::default()) {
        Ok(disk) => disk.recovery().damage().map(errors_until_written),
        Err(LogError::Damaged(lost)) => Some(unusable(target, lost)),
        Err(error) => return Err(error.into()),
    };
    let Some(damaged) = damaged else {
        output::print("nothing to repair: the log is readable up to its flushed end\n")?;
        return Ok(0);
    };
    if !accept_old_data {
        output::print(&(damaged + "\nnothing was changed: `--accept-old-data` repairs the log disk\n"))?;
        return Ok(FAILED);
    }
    let disk = Disk::open_with_old_data(&medium, Running::default())?;
    let recovery = disk.recovery();
    disk.close()?;
    let mut text = format!("repaired: {} lost\n", blocks(recovery.lost + recovery.unknown));
    if recovery.lost > 0 {
        text += &format!("{}: an error until they are written again\n", blocks(recovery.lost));
    }
    if recovery.unknown > 0 {
        text += &format!(
            "{}: unknown, so any block may read as older data: check the filesystem or the database on the log disk\n",
            blocks(recovery.unknown)
        );
    }
    output::print(&text)?;
    Ok(0)
}

/// The default name of a log disk.
fn name_of(target: &Path) -> String {
    target.file_stem().map_or_else(|| "log".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Announces the service of a target, so that `lowtide logdisk stat` finds it.
fn answer_stat(service: &Service<LogDrive>, target: &Path) {
    if let Err(error) = announce(service, target) {
        output::say(format_args!(
            "warning: `lowtide logdisk stat {}` will not work while the log disk is served: {error}",
            target.display()
        ));
    }
}

fn serve(
    target: &Path,
    name: Option<&str>,
    (unix, tcp): (Option<&Path>, Option<&str>),
    clients: &ClientsArguments,
    read_only: bool,
    running: Running,
) -> Result<u8, Failure> {
    let buffers = clients.buffers()?;
    let disk = open_and_report(target, read_only, running)?;
    let name = name.map_or_else(|| name_of(target), str::to_owned);
    let size = in_words(disk.geometry().capacity());
    let drive = LogDrive::new(disk, &name, &format!("log disk in {}", target.display()), read_only)
        .map_err(Failure::failed)?;
    let mut listener = Listener::new(usize::from(clients.max_clients));
    if let Some(path) = unix {
        listener.unix(path)?;
    }
    if let Some(address) = tcp.or((unix.is_none()).then_some(DEFAULT_ADDRESS)) {
        listener.tcp(address)?;
    }
    let stop = Event::new().map_err(Failure::failed)?;
    let service = Service::start(vec![drive], Clock::new(), false, buffers).map_err(Failure::failed)?;
    // A log disk may have several read-only servers, which change nothing.
    if !read_only {
        answer_stat(&service, target);
    }
    let flag = interrupt::flag();
    let (stops, ends) = (stop.clone(), service.handle().clone());
    std::thread::spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        stops.set();
        ends.stop();
    });
    output::say(format_args!("{name}: {size}"));
    for address in listener.addresses() {
        if let Some(uri) = address.uri(false) {
            output::say(format_args!("serving at {uri}"));
        }
    }
    let settings = Settings { stop: Some(stop), ..Settings::default() };
    listener.run(
        service.exports(),
        &settings,
        |transport, agreed| service.handle().serve(transport, agreed),
        report_end,
    )?;
    end(service.wait().remove(0), read_only)
}

/// Closes a log disk, and reports the result.
fn end(drive: LogDrive, read_only: bool) -> Result<u8, Failure> {
    let (disk, error) = drive.into_parts();
    let counters = disk.counters();
    if let Some(error) = error {
        output::say(format_args!("warning: the first failed request: {error}"));
    }
    output::say(format_args!(
        "{} blocks written, {} moved by the cleaner, {} pages of the map, {} unreadable",
        counters.host_blocks, counters.moved_blocks, counters.map_pages, counters.bad_blocks
    ));
    if read_only {
        return Ok(0);
    }
    match disk.close() {
        Ok(_) => {
            output::say(CLOSED);
            Ok(0)
        }
        Err(error) => {
            output::say(format_args!("error: not closed in order: {error}"));
            Ok(FAILED)
        }
    }
}

fn stat(named: &Path, format: PlainFormat) -> Result<u8, Failure> {
    let target = target_of(named)?;
    let failure = match Backing::open(&target, true).and_then(|place| place.medium()) {
        Ok(medium) => match Disk::open(medium, Running::default()) {
            Ok(mut disk) => {
                show(&Figures::of(&mut disk), format)?;
                let damage = disk.recovery().damage();
                damage.into_iter().for_each(|lost| output::say(errors_until_written(lost)));
                return Ok(if damage.is_some() { FAILED } else { 0 });
            }
            Err(LogError::Damaged(lost)) => return print_unusable(&target, lost, format),
            Err(error) => error.into(),
        },
        Err(error) => Failure::from(error),
    };
    let figures = ask(&target).map_err(|error| match error {
        AskError::Nobody { .. } => failure,
        AskError::Refused(_) => Failure::failed(error),
    })?;
    show(&figures, format)?;
    Ok(0)
}

/// Prints the facts of a log disk that cannot be opened.
fn print_unusable(target: &Path, lost: u64, format: PlainFormat) -> Result<u8, Failure> {
    output::say(unusable(target, lost));
    print(&json!({ "damaged_blocks": lost, "good": false }), format)?;
    Ok(FAILED)
}

/// The file or block device of a path, or of the name of an attached log disk.
fn target_of(named: &Path) -> Result<PathBuf, Failure> {
    if named.exists() {
        return Ok(named.to_owned());
    }
    let name = named.to_string_lossy();
    let attached = lowtide_host::attach::list().into_iter().find(|attached| attached.name == name);
    match attached.map(|attached| PathBuf::from(attached.device)) {
        Some(device) if device.is_absolute() => Ok(device),
        Some(device) => Err(Failure::usage(
            format!("{name} is a simulated drive ({}), not a log disk", device.display()),
            format!("use `lowtide drive stat {name}`"),
        )),
        None => Ok(named.to_owned()),
    }
}

/// Prints the figures of a log disk.
pub fn show(figures: &Figures, format: PlainFormat) -> Result<(), Failure> {
    print(&serde_json::to_value(figures).expect("figures serialise"), format)
}

/// Checks the consistency of a log disk and, with `data`, the checksum of every block.
fn verify(target: &Path, data: bool, format: PlainFormat) -> Result<u8, Failure> {
    let medium = Backing::open(target, true)?.medium()?;
    let flag = interrupt::flag();
    let mut progress = |_, _| match flag.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let checked = match check(&medium, data, &mut progress) {
        Err(LogError::Damaged(lost)) => return print_unusable(target, lost, format),
        checked => checked?,
    };
    if let Some(lost) = checked.recovery.damage() {
        output::say(errors_until_written(lost));
    }
    for what in &checked.contradictions {
        output::say(format_args!("error: {what}"));
    }
    for lba in &checked.bad {
        output::say(format_args!("error: block {lba}: its checksum is wrong, or it is out of date"));
    }
    for lba in &checked.stale {
        output::say(format_args!("error: block {lba}: it reads as older data; restore it from a copy"));
    }
    let Checked { mapped, lost, read, bad_count, stale_count, contradiction_count, recovery, .. } = &checked;
    let facts = json!({
        "blocks": mapped,
        "blocks_read": read,
        "blocks_unreadable": bad_count,
        "blocks_out_of_date": stale_count,
        "blocks_lost_before": lost,
        "contradictions": contradiction_count,
        "damaged_blocks": recovery.damage().unwrap_or(0),
        "closed_in_order": recovery.clean,
        "good": checked.is_good(),
    });
    print(&facts, format)?;
    Ok(if flag.load(Ordering::Relaxed) {
        crate::failure::INTERRUPTED
    } else if checked.is_good() {
        0
    } else {
        FAILED
    })
}

fn advise(bare: f64, sequential: Bytes, format: PlainFormat) -> Result<u8, Failure> {
    if !(bare.is_finite() && bare > 0.0) || sequential.get() == 0 {
        let help = "measure them with `lowtide run` or fio: random writes of 4 KiB, and sequential writes";
        return Err(Failure::usage("`--bare` and `--sequential` must be above 0", help));
    }
    let rows = advice(bare, sequential);
    let text = match format {
        PlainFormat::Json => serde_json::to_string(&rows).expect("figures serialise"),
        PlainFormat::Table => {
            let head = ["fill", "written per block", "random writes/s", "gain"];
            let rows: Vec<Vec<String>> = rows
                .iter()
                .map(|row| {
                    vec![
                        format!("{:.0} %", row.fill * 100.0),
                        format!("{:.2}", row.write_amplification),
                        format!("{:.0}", row.iops),
                        format!("{:.1} x", row.gain),
                    ]
                })
                .collect();
            table::plain(&head, &rows, output::columns())
        }
    };
    output::print(&(text + "\n"))?;
    Ok(0)
}

fn print(facts: &Value, format: PlainFormat) -> Result<(), Failure> {
    let text = match format {
        PlainFormat::Json => facts.to_string() + "\n",
        PlainFormat::Table => {
            let empty = Map::new();
            let facts = facts.as_object().unwrap_or(&empty);
            facts.iter().map(|(key, value)| format!("{key:22} {value}\n")).collect()
        }
    };
    output::print(&text)
}
