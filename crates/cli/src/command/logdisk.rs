//! `lowtide logdisk`: a log-structured layer in a file or on a block device, served to NBD clients, attached, looked at and checked.
//!
//! Not here: the layer itself (`lowtide_logdisk`), and the file or device below it and its service
//! (`lowtide_live::logdisk`).

mod attach;

use super::serve::USUAL;
use crate::args::live::ClientsArguments;
use crate::args::{BenchFormat, LogdiskArguments, LogdiskFormatArguments, LogdiskVerb};
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

/// What is said of a log disk when it has been closed.
pub const CLOSED: &str = "closed in order";

/// Carries out a verb.
pub fn run(arguments: &LogdiskArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        LogdiskVerb::Format(arguments) => format(arguments),
        LogdiskVerb::Serve { target, unix, tcp, name, read_only, map_memory, clients } => {
            let place = (unix.as_deref(), tcp.as_deref());
            serve(target, name.as_deref(), place, clients, *read_only, running(*map_memory))
        }
        LogdiskVerb::Attach(arguments) => attach::run(arguments),
        LogdiskVerb::Stat { target, format } => stat(target, *format),
        LogdiskVerb::Check { target, format } => look(target, false, *format),
        LogdiskVerb::Scrub { target, format } => look(target, true, *format),
        LogdiskVerb::Repair { target, accept_old_data } => repair(target, *accept_old_data),
        LogdiskVerb::Resize { target, size, reserve } => {
            tell_size(target, &resize(target, *size, *reserve)?);
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
    let there = target.exists();
    let place = Backing::make(target, *size, options, over)?;
    let id = identity().map_err(Failure::failed)?;
    let made = Disk::format(place.medium()?, options, id);
    // A file that was made for nothing does not stay.
    let disk = made.inspect_err(|_| {
        if !there {
            let _ = std::fs::remove_file(target);
        }
    })?;
    tell_size(target, disk.geometry());
    disk.close()?;
    Ok(0)
}

/// So many bytes as people say them.
fn in_words(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.1} MB", bytes / 1e6),
    }
}

/// Says how large a log disk is now.
fn tell_size(target: &Path, geometry: &Geometry) {
    output::say(format_args!(
        "{}: {} offered, in {} segments of {}",
        target.display(),
        in_words(geometry.capacity()),
        geometry.segments,
        Bytes::new(geometry.segment_bytes())
    ));
}

/// Opens the log disk of a file or a block device to be written; says how it was found where `tell` says so.
fn open(target: &Path, tell: bool, running: Running) -> Result<QueuedDisk, Failure> {
    open_as(target, false, tell, running)
}

fn open_as(target: &Path, read_only: bool, tell: bool, running: Running) -> Result<QueuedDisk, Failure> {
    let disk = LogDrive::open(Backing::open(target, read_only)?.medium()?, running)?;
    let recovery = disk.recovery();
    if tell && !recovery.clean {
        output::say(format_args!(
            "{} was not closed: {} slots read forward, {} after the end of the log dropped, {} spoiled",
            target.display(),
            recovery.replayed,
            recovery.dropped,
            recovery.spoiled
        ));
    }
    if tell && let Some(lost) = recovery.damage() {
        output::say(errors_until_written(lost));
    }
    Ok(disk)
}

/// What is said of blocks that are known to be lost.
fn errors_until_written(lost: u64) -> String {
    format!(
        "damaged: {} of the flushed end of the log cannot be read; reading that is an error until it is written again: restore it \
         from a copy",
        blocks(lost)
    )
}

/// What is said where it is not known which blocks are lost.
fn unusable(target: &Path, lost: u64) -> String {
    format!(
        "damaged: {} of the flushed end of the log cannot be read; nothing says which that is, so any block may be older than what was \
         flushed, and the log disk is not opened: restore a copy, or take what may be older data with `lowtide logdisk repair {} \
         --accept-old-data`",
        blocks(lost),
        target.display()
    )
}

/// Makes a log disk usable whose flushed end is damaged. The first line is the answer.
fn repair(target: &Path, accept_old_data: bool) -> Result<u8, Failure> {
    let medium = Backing::open(target, !accept_old_data)?.medium()?;
    let damaged = match Disk::open(&medium, Running::default()) {
        Ok(disk) => disk.recovery().damage().map(errors_until_written),
        Err(LogError::Damaged(lost)) => Some(unusable(target, lost)),
        Err(error) => return Err(error.into()),
    };
    let Some(damaged) = damaged else {
        output::print("nothing to repair: the log can be read up to the end of what was flushed\n")?;
        return Ok(0);
    };
    if !accept_old_data {
        output::print(&(damaged + "\nnothing was changed: `--accept-old-data` makes it usable\n"))?;
        return Ok(FAILED);
    }
    let disk = Disk::open_with_old_data(&medium, Running::default())?;
    let recovery = disk.recovery();
    disk.close()?;
    let mut text = format!("repaired: {} lost\n", blocks(recovery.lost + recovery.unknown));
    if recovery.lost > 0 {
        text += &format!("{}: an error until it is written again\n", blocks(recovery.lost));
    }
    if recovery.unknown > 0 {
        text += &format!(
            "{}: nobody knows which; whatever was there may read as older data: check what lies on it\n",
            blocks(recovery.unknown)
        );
    }
    output::print(&text)?;
    Ok(0)
}

/// What a log disk is called where nobody says.
fn name_of(target: &Path) -> String {
    target.file_stem().map_or_else(|| "log".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Makes the log disk of a target report its status to `lowtide logdisk stat`.
fn tell_of(service: &Service<LogDrive>, target: &Path) {
    if let Err(error) = announce(service, target) {
        output::say(format_args!(
            "warning: `lowtide logdisk stat {}` will not say how it is while it is served: {error}",
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
    let disk = open_as(target, read_only, true, running)?;
    let name = name.map_or_else(|| name_of(target), str::to_owned);
    let size = in_words(disk.geometry().capacity());
    let drive = LogDrive::new(disk, &name, &format!("log disk in {}", target.display()), read_only)
        .map_err(Failure::failed)?;
    let mut listener = Listener::new(usize::from(clients.max_clients));
    if let Some(path) = unix {
        listener.unix(path)?;
    }
    if let Some(address) = tcp.or((unix.is_none()).then_some(USUAL)) {
        listener.tcp(address)?;
    }
    let stop = Event::new().map_err(Failure::failed)?;
    let service = Service::start(vec![drive], Clock::new(), false, buffers).map_err(Failure::failed)?;
    // Those that may only read are several, and none of them changes anything.
    if !read_only {
        tell_of(&service, target);
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
        |peer, ended| {
            if !ended.is_ordinary() {
                output::say(format_args!("{peer} {ended}"));
            }
        },
    )?;
    end(service.wait().remove(0), read_only)
}

/// Closes a log disk in order, and says what came of it.
fn end(drive: LogDrive, read_only: bool) -> Result<u8, Failure> {
    let (disk, error) = drive.into_parts();
    let counters = disk.counters();
    if let Some(error) = error {
        output::say(format_args!("warning: a request failed first with: {error}"));
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
            output::say(format_args!("error: it was not closed in order: {error}"));
            Ok(FAILED)
        }
    }
}

fn stat(named: &Path, format: BenchFormat) -> Result<u8, Failure> {
    let target = target_of(named)?;
    let failure = match Backing::open(&target, true).and_then(|place| place.medium()) {
        Ok(medium) => match Disk::open(medium, Running::default()) {
            Ok(mut disk) => {
                show(&Figures::of(&mut disk), format)?;
                let damage = disk.recovery().damage();
                damage.into_iter().for_each(|lost| output::say(errors_until_written(lost)));
                return Ok(if damage.is_some() { FAILED } else { 0 });
            }
            Err(LogError::Damaged(lost)) => return tell_unusable(&target, lost, format),
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

/// Says of a log disk that is not opened what there is to say.
fn tell_unusable(target: &Path, lost: u64, format: BenchFormat) -> Result<u8, Failure> {
    output::say(unusable(target, lost));
    print(&json!({ "damaged_blocks": lost, "good": false }), format)?;
    Ok(FAILED)
}

/// What a user means: a file or a block device, or what an attached log disk of that name lies in.
fn target_of(named: &Path) -> Result<PathBuf, Failure> {
    if named.exists() {
        return Ok(named.to_owned());
    }
    let name = named.to_string_lossy();
    let attached = lowtide_host::attach::list().into_iter().find(|attached| attached.name == name);
    match attached.map(|attached| PathBuf::from(attached.device)) {
        Some(device) if device.is_absolute() => Ok(device),
        Some(device) => Err(Failure::usage(
            format!("{name} is no log disk, but a simulated drive ({})", device.display()),
            format!("`lowtide drive stat {name}` shows its state"),
        )),
        None => Ok(named.to_owned()),
    }
}

/// Shows how a log disk is.
pub fn show(figures: &Figures, format: BenchFormat) -> Result<(), Failure> {
    print(&serde_json::to_value(figures).expect("figures serialise"), format)
}

fn look(target: &Path, data: bool, format: BenchFormat) -> Result<u8, Failure> {
    let medium = Backing::open(target, true)?.medium()?;
    let flag = interrupt::flag();
    let mut progress = |_, _| match flag.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let checked = match check(&medium, data, &mut progress) {
        Err(LogError::Damaged(lost)) => return tell_unusable(target, lost, format),
        checked => checked?,
    };
    if let Some(lost) = checked.recovery.damage() {
        output::say(errors_until_written(lost));
    }
    for what in &checked.contradictions {
        output::say(format_args!("error: {what}"));
    }
    for lba in &checked.bad {
        output::say(format_args!("error: block {lba}: its checksum does not fit, or it is out of date"));
    }
    for lba in &checked.stale {
        output::say(format_args!("error: block {lba}: it reads as older data: restore it from a copy"));
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

fn advise(bare: f64, sequential: Bytes, format: BenchFormat) -> Result<u8, Failure> {
    if !(bare.is_finite() && bare > 0.0) || sequential.get() == 0 {
        let help = "measure them with `lowtide run` or fio: random writes of 4 KiB, and writes in sequence";
        return Err(Failure::usage("`--bare` and `--sequential` have to be more than 0", help));
    }
    let rows = advice(bare, sequential);
    let text = match format {
        BenchFormat::Json => serde_json::to_string(&rows).expect("figures serialise"),
        BenchFormat::Table => {
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

fn print(facts: &Value, format: BenchFormat) -> Result<(), Failure> {
    let text = match format {
        BenchFormat::Json => facts.to_string() + "\n",
        BenchFormat::Table => {
            let empty = Map::new();
            let facts = facts.as_object().unwrap_or(&empty);
            facts.iter().map(|(key, value)| format!("{key:22} {value}\n")).collect()
        }
    };
    output::print(&text)
}
