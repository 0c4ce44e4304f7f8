//! `lowtide attach` and `lowtide detach`: a simulated drive as a block device of this machine.
//!
//! The server is this program, started once more with `--server`. Leaves out how a drive is served
//! (`lowtide_host::live`) and how a block device is made of it (`lowtide_host::attach`).

use crate::args::{AttachArguments, DetachArguments, FilesystemName, PlainFormat};
use crate::failure::{FAILED, Failure};
use crate::{interrupt, output};
use lowtide_core::{Seed, VirtualTime};
use lowtide_device::DeviceSpec;
use lowtide_host::attach::{self, Attachment, Force, Server, State, Wish};
use lowtide_host::block::FilesystemKind;
use lowtide_host::live::contents::Memory;
use lowtide_host::live::{self as host, Clock, Contents, Drive};
use lowtide_host::nbd::Export;
use lowtide_lab::catalogue;
use lowtide_lab::device::{self, Device};
use lowtide_lab::live::{LiveDrive, Pace, Parts, control};
use lowtide_lab::table;
use std::os::unix::net::UnixListener;
use std::process::Command;

/// Bytes of a logical block: what an attached drive reads and writes at least.
const BLOCK: u32 = 4096;

/// Attaches a drive, attaches one again, lists them, or serves one.
pub fn run(arguments: &AttachArguments) -> Result<u8, Failure> {
    let format = arguments.format;
    if let Some(which) = &arguments.again {
        let again = attach::again(&attach::name_of(which)?, force(arguments.force), &interrupt::flag())?;
        return tell(&again, format);
    }
    let Some(device) = &arguments.device else {
        return print(&attach::list(), format);
    };
    if arguments.server {
        return serve(arguments, device);
    }
    let known = find(device)?;
    let name = arguments.name.clone().unwrap_or_else(|| usual_name(&known));
    let wish = Wish {
        name: &name,
        device,
        filesystem: arguments.mkfs.map(FilesystemName::kind),
        mount: arguments.mount.as_deref(),
        options: &arguments.options,
    };
    let attached = attach::attach(&wish, server(arguments, device, &name)?, &interrupt::flag())?;
    tell(&attached, format)
}

/// Detaches one drive, or all.
pub fn detach(arguments: &DetachArguments) -> Result<u8, Failure> {
    let names = match &arguments.which {
        Some(which) => vec![attach::name_of(which)?],
        None => attach::list().into_iter().map(|attached| attached.name).collect(),
    };
    let mut code = 0;
    for name in names {
        // One that is in use does not keep the others.
        match attach::detach(&name, force(arguments.force)) {
            Ok(detached) => {
                output::say(format_args!("{name} is detached"));
                if detached.cut_off {
                    output::say(format_args!(
                        "warning: {name} was cut off from those that used it or waited for it: what was not yet \
                         written is lost"
                    ));
                }
                for left in detached.left {
                    output::say(format_args!("warning: goes as soon as nobody uses it any more: {left}"));
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                code = failure.code();
                failure.print();
            }
        }
    }
    Ok(code)
}

/// Serves the drive until it is detached.
fn serve(arguments: &AttachArguments, device: &str) -> Result<u8, Failure> {
    let name = arguments.name.as_deref().unwrap_or_default();
    let Some(server) = Server::begin(name)? else { return Ok(FAILED) };
    let device = find(device)?;
    let clock = Clock::new();
    let pace = Pace::RealTime { transport_ns: server.transport_ns(clock)? };
    let drive = drive(arguments, &device, name, pace)?;
    let (size, block) = (drive.export().size, drive.export().minimum_block);
    let (serving, handle) = host::Server::new(vec![drive], clock).map_err(Failure::failed)?;
    let socket = server.control();
    let listener = UnixListener::bind(&socket).map_err(|error| Failure::writing(&socket, &error))?;
    let controlled = handle.clone();
    std::thread::spawn(move || control::serve(&listener, &controlled));
    let thread = std::thread::spawn(move || serving.run());
    let served = server.serve(handle.port(0, size, block));
    handle.stop();
    for drive in thread.join().into_iter().flatten() {
        drive.close().map_err(Failure::failed)?;
    }
    served?;
    Ok(0)
}

/// The drive that is served, as new.
fn drive(arguments: &AttachArguments, device: &Device, name: &str, pace: Pace) -> Result<LiveDrive, Failure> {
    let spec = device.spec.scaled(arguments.scale);
    let seed = Seed::new(arguments.seed);
    let model = spec.build(seed).map_err(Failure::failed)?;
    let size = spec.capacity().get() / u64::from(BLOCK) * u64::from(BLOCK);
    let export = Export {
        name: name.to_owned(),
        description: device.title.clone(),
        size,
        minimum_block: BLOCK,
        preferred_block: BLOCK,
        read_only: false,
        rotational: matches!(spec, DeviceSpec::Disk(_)),
    };
    let contents = Contents::Memory(Memory::new(size).map_err(Failure::failed)?);
    let (began, cache) = (VirtualTime::START, spec.cache());
    Ok(LiveDrive::new(Parts { export, model, began, cache, contents, pace, seed }))
}

/// This program once more, as the server.
fn server(arguments: &AttachArguments, device: &str, name: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| Failure::usage(format!("this program is not found: {error}"), ""))?;
    let mut command = Command::new(program);
    command.args(["attach", "--server", "--name", name]);
    command.args(["--scale", &arguments.scale.to_string(), "--seed", &arguments.seed.to_string()]);
    command.args(["--", device]);
    Ok(command)
}

fn find(device: &str) -> Result<Device, Failure> {
    let found = catalogue::device(device)?;
    device::parse(&found.text).map_err(|error| {
        Failure::usage(
            format!("the device {} cannot be used: {error}", found.path),
            "docs/formats.md lists the keys of a device file",
        )
    })
}

/// The device's name, with what no name has left out.
fn usual_name(device: &Device) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    device.name.chars().map(plain).take(64).collect()
}

fn force(forced: bool) -> Force {
    if forced { Force::Lazily } else { Force::No }
}

fn print(all: &[Attachment], format: PlainFormat) -> Result<u8, Failure> {
    let text = match format {
        PlainFormat::Json => all.iter().map(|it| format!("{}\n", json(it))).collect(),
        PlainFormat::Table => {
            let head = ["name", "block device", "size", "mounted at", "state"];
            let rows: Vec<Vec<String>> = all.iter().map(row).collect();
            table::plain(&head, &rows, output::columns())
        }
    };
    output::print(&text)?;
    Ok(0)
}

/// Says what one drive is, and where.
fn tell(attached: &Attachment, format: PlainFormat) -> Result<u8, Failure> {
    if format == PlainFormat::Json {
        return print(std::slice::from_ref(attached), format);
    }
    let node = attached.node.as_ref().map_or_else(String::new, |node| node.display().to_string());
    let mounted = mounted(attached);
    let lines = [
        ("drive", format!("{} ({}, {})", attached.name, attached.device, attached.size)),
        ("block device", format!("{node}, by {}", attached.way)),
        ("mounted at", mounted),
        ("file", attached.file.display().to_string()),
        ("control", attached.control.display().to_string()),
        ("log", attached.log.display().to_string()),
        ("to take away", format!("lowtide detach {}", attached.name)),
    ];
    let text: String = lines.iter().map(|(what, value)| format!("{what:13} {value}\n")).collect();
    output::print(&text)?;
    Ok(0)
}

fn row(attached: &Attachment) -> Vec<String> {
    let node = attached.node.as_ref().map_or_else(|| "-".to_owned(), |node| node.display().to_string());
    let state = said(attached.state).to_owned();
    vec![attached.name.clone(), node, attached.size.to_string(), mounted(attached), state]
}

fn mounted(attached: &Attachment) -> String {
    match &attached.mounted[..] {
        [] => "-".to_owned(),
        all => all.iter().map(|at| at.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

fn said(state: State) -> &'static str {
    match state {
        State::Served => "served",
        State::Unfinished => "unfinished",
        State::ServerGone => "server gone",
    }
}

fn json(attached: &Attachment) -> serde_json::Value {
    serde_json::json!({
        "name": attached.name,
        "device": attached.device,
        "way": attached.way.to_string(),
        "state": said(attached.state),
        "node": attached.node,
        "size_bytes": attached.size.get(),
        "mounted": attached.mounted,
        "file": attached.file,
        "control": attached.control,
        "log": attached.log,
        "process": attached.process,
    })
}

impl FilesystemName {
    fn kind(self) -> FilesystemKind {
        match self {
            FilesystemName::Ext4 => FilesystemKind::Ext4,
            FilesystemName::Xfs => FilesystemKind::Xfs,
            FilesystemName::Btrfs => FilesystemKind::Btrfs,
        }
    }
}
