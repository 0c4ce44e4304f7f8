//! `lowtide logdisk`: a log-structured layer in a file, served to NBD clients, looked at and checked.
//!
//! Leaves out the layer itself (`lowtide_logdisk`), and its file and service (`lowtide_lab::logdisk`).

use super::serve::USUAL;
use crate::args::{BenchFormat, LogdiskArguments, LogdiskVerb};
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::output;
use lowtide_core::Bytes;
use lowtide_host::live::{Clock, Server};
use lowtide_host::nbd::{Listener, Settings, Stop};
use lowtide_lab::logdisk::{LogDrive, Place, PlaceError, advice, identity};
use lowtide_lab::table;
use lowtide_logdisk::check::{Checked, check};
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{Disk, LogError, Options};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The most clients at a time.
const CLIENTS: usize = 64;

/// Carries out a verb.
pub fn run(arguments: &LogdiskArguments) -> Result<u8, Failure> {
    match &arguments.verb {
        LogdiskVerb::Format { file, size, segment, reserve, overwrite } => {
            let options = Options { segment: segment.get(), reserve: *reserve };
            format(file, *size, options, *overwrite)
        }
        LogdiskVerb::Serve { file, unix, tcp, name, read_only, map_memory } => {
            let running = Running {
                map_memory: map_memory.map_or(usize::MAX, |bytes| bytes.get() as usize),
                ..Running::default()
            };
            let place = (unix.as_deref(), tcp.as_deref());
            serve(file, name.as_deref(), place, *read_only, running)
        }
        LogdiskVerb::Stat { file, format } => stat(file, *format),
        LogdiskVerb::Check { file, format } => look(file, false, *format),
        LogdiskVerb::Scrub { file, format } => look(file, true, *format),
        LogdiskVerb::Advise { bare, sequential, format } => advise(*bare, *sequential, *format),
    }
}

fn format(file: &Path, size: Option<Bytes>, options: Options, overwrite: bool) -> Result<u8, Failure> {
    let there = file.exists();
    let place = Place::make(file, size, overwrite)?;
    let id = identity().map_err(Failure::failed)?;
    let made = Disk::format(place.medium()?, options, id);
    // A file that was made for nothing does not stay.
    let disk = made.inspect_err(|_| {
        if !there {
            let _ = std::fs::remove_file(file);
        }
    })?;
    let geometry = disk.geometry();
    output::say(format_args!(
        "{}: {} offered, in {} segments of {}",
        file.display(),
        Bytes::new(geometry.capacity()),
        geometry.segments,
        Bytes::new(geometry.segment_bytes())
    ));
    disk.close()?;
    Ok(0)
}

fn serve(
    file: &Path,
    name: Option<&str>,
    (unix, tcp): (Option<&Path>, Option<&str>),
    read_only: bool,
    running: Running,
) -> Result<u8, Failure> {
    let disk = LogDrive::open(Place::open(file, read_only)?.medium()?, running)?;
    let recovery = disk.recovery();
    if !recovery.clean {
        output::say(format_args!(
            "{} was not closed: {} slots read forward, {} after the end of the log dropped, {} spoiled",
            file.display(),
            recovery.replayed,
            recovery.dropped,
            recovery.spoiled
        ));
    }
    let own =
        || file.file_stem().map_or_else(|| "log".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let name = name.map_or_else(own, str::to_owned);
    let size = Bytes::new(disk.geometry().capacity());
    let drive = LogDrive::new(disk, &name, &format!("log disk in {}", file.display()), read_only)
        .map_err(Failure::failed)?;
    let mut listener = Listener::new(CLIENTS);
    if let Some(path) = unix {
        listener.unix(path)?;
    }
    if let Some(address) = tcp.or((unix.is_none()).then_some(USUAL)) {
        listener.tcp(address)?;
    }
    let stop = Stop::new().map_err(Failure::failed)?;
    let exports = vec![lowtide_host::live::Drive::export(&drive).clone()];
    let (server, handle) = Server::new(vec![drive], Clock::new()).map_err(Failure::failed)?;
    let served = std::thread::Builder::new().name("log disk".to_owned()).spawn(move || server.run());
    let served = served.map_err(Failure::failed)?;
    let flag = interrupt::flag();
    let (stops, ends) = (stop.clone(), handle.clone());
    std::thread::spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        stops.stop();
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
        &exports,
        &settings,
        |transport, agreed| handle.serve(transport, agreed),
        |peer, ended| {
            if !ended.is_ordinary() {
                output::say(format_args!("{peer} {ended}"));
            }
        },
    )?;
    let drives = served.join().map_err(|_| Failure::failed("the thread that serves the disk broke off"))?;
    let mut code = 0;
    for drive in drives {
        let (disk, error) = drive.into_parts();
        let counters = disk.counters();
        if let Some(error) = error {
            output::say(format_args!("warning: a request failed first with: {error}"));
        }
        output::say(format_args!(
            "{} blocks written, {} moved by the cleaner, {} pages of the map, {} unreadable",
            counters.host_blocks, counters.moved_blocks, counters.map_pages, counters.bad_blocks
        ));
        if !read_only && let Err(error) = disk.close() {
            output::say(format_args!("error: it was not closed in order: {error}"));
            code = FAILED;
        }
    }
    Ok(code)
}

fn stat(file: &Path, format: BenchFormat) -> Result<u8, Failure> {
    let mut disk = Disk::open(Place::open(file, true)?.medium()?, Running::default())?;
    let geometry = *disk.geometry();
    let (free, live) = (disk.log().segments().free(), disk.live_slots());
    let recovery = disk.recovery();
    let facts = json!({
        "offered_bytes": geometry.capacity(),
        "live_bytes": live * lowtide_logdisk::BLOCK as u64,
        "fill": live as f64 / f64::from(geometry.blocks),
        "segment_bytes": geometry.segment_bytes(),
        "segments": geometry.segments,
        "free_segments": free,
        "map_bytes_in_memory": disk.map_memory(),
        "map_bytes_whole": geometry.pages() as usize * lowtide_logdisk::BLOCK,
        "closed_in_order": recovery.clean,
        "replayed_slots": recovery.replayed,
        "dropped_slots": recovery.dropped,
        "spoiled_slots": recovery.spoiled,
    });
    print(&facts, format)?;
    Ok(0)
}

fn look(file: &Path, data: bool, format: BenchFormat) -> Result<u8, Failure> {
    let medium = Place::open(file, true)?.medium()?;
    let flag = interrupt::flag();
    let mut progress = |_, _| match flag.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let checked = check(&medium, data, &mut progress)?;
    for what in &checked.contradictions {
        output::say(format_args!("error: {what}"));
    }
    for lba in &checked.bad {
        output::say(format_args!("error: block {lba}: its checksum does not fit"));
    }
    let Checked { mapped, lost, read, bad_count, contradiction_count, recovery, .. } = &checked;
    let facts = json!({
        "blocks": mapped,
        "blocks_read": read,
        "blocks_unreadable": bad_count,
        "blocks_lost_before": lost,
        "contradictions": contradiction_count,
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

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Failure {
        match &error {
            PlaceError::Full(_) => {
                Failure::refused(&error, "with `--overwrite` it is, and all it holds is lost")
            }
            PlaceError::None(_) => Failure::usage(&error, "give `--size` to make one"),
            PlaceError::Kind { .. } => Failure::usage(&error, "name a file"),
            PlaceError::Held(_) => Failure::usage(&error, "end that one first"),
            PlaceError::File { .. } => Failure::failed(&error),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        match &error {
            LogError::Geometry(_) => Failure::usage(&error, "choose other sizes"),
            _ => Failure::failed(&error),
        }
    }
}
