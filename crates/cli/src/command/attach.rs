//! `lowtide attach` and `lowtide detach`: a simulated drive as a block device of this machine.
//!
//! The server is this program, started once more with `--server`. Leaves out how a drive is served
//! (`lowtide_host::live`) and how a block device is made of it (`lowtide_host::attach`).

use crate::args::{AttachArguments, DetachArguments, FilesystemName, PlainFormat};
use crate::failure::{FAILED, Failure};
use crate::{interrupt, output};
use lowtide_host::attach::{self, Attachment, Force, Server, State, Wish};
use lowtide_host::block::FilesystemKind;
use lowtide_host::live::{Clock, through_device_ns};
use lowtide_lab::live::control::{self, Order, Question};
use lowtide_lab::live::{Data, Known, Service};
use lowtide_lab::table;
use std::path::Path;
use std::process::Command;

/// Attaches a drive, attaches one again, lists them, or serves one.
pub fn run(arguments: &AttachArguments) -> Result<u8, Failure> {
    let format = arguments.format;
    if let Some(which) = &arguments.again {
        let again = attach::again(&attach::name_of(which)?, force(arguments.force), &interrupt::flag())?;
        return print(&[again], format);
    }
    let Some(device) = &arguments.device else {
        return print(&attach::list(), format);
    };
    if arguments.server {
        return serve(arguments, device);
    }
    // Looked up here too, so that what is wrong is told here.
    let known = known(arguments, None, device)?;
    let name = arguments.name.clone().unwrap_or_else(|| usual_name(&known.name));
    let wish = Wish {
        name: &name,
        device,
        filesystem: arguments.mkfs.map(FilesystemName::kind),
        mount: arguments.mount.as_deref(),
        options: &arguments.options,
    };
    let attached = attach::attach(&wish, server(arguments, &name)?, &interrupt::flag())?;
    if !arguments.drive.no_delay
        && let Err(why) = measure_way(&attached)
    {
        output::say(format_args!("warning: the way to {name} was not measured: {why}"));
    }
    print(&[attached], format)
}

/// Measures what a request takes on its way through the block device; the server takes it off from then on.
fn measure_way(attached: &Attachment) -> Result<(), String> {
    let order = |order| control::ask(&attached.control, &Question { drive: None, order });
    let Some(node) = &attached.node else { return Err("there is no block device".to_owned()) };
    order(Order::Probe)?;
    let found = through_device_ns(node);
    order(Order::Probed { transport_ns: found.as_ref().ok().copied() })?;
    found.map(drop).map_err(|error| error.to_string())
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
    let known = known(arguments, Some(name), device)?;
    let clock = Clock::new();
    let drive = known.open(arguments.drive.pace(clock).map_err(Failure::failed)?)?;
    if let Some(warning) = known.begin()? {
        output::say(format_args!("warning: {warning}"));
    }
    let mut service = Service::start(vec![drive], clock, false).map_err(Failure::failed)?;
    service.control(&server.control()).map_err(Failure::failed)?;
    if arguments.drive.rt
        && let Err(error) = service.real_time()
    {
        output::say(format_args!("warning: --rt is not to be had: {error}"));
    }
    let served = server.serve(service.port(0));
    service.handle().stop();
    let code = super::serve::end(&[known], service.wait())?;
    served?;
    Ok(code)
}

/// This program once more, with the same arguments, as the server.
fn server(arguments: &AttachArguments, name: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| Failure::usage(format!("this program is not found: {error}"), ""))?;
    let mut command = Command::new(program);
    command.args(["attach", "--server"]);
    if arguments.name.is_none() {
        command.args(["--name", name]);
    }
    // Without the program and the verb.
    command.args(std::env::args_os().skip(2));
    Ok(command)
}

/// The drive that is wanted.
fn known(arguments: &AttachArguments, name: Option<&str>, device: &str) -> Result<Known, Failure> {
    let mut known = arguments.drive.offer(name.map(str::to_owned), device, 0).look_up()?;
    if arguments.data != Path::new("memory") {
        known.keep_data(Data::File(arguments.data.clone()));
    }
    if let Some(path) = &arguments.state {
        known.keep_state(path.clone());
    }
    Ok(known)
}

/// The device's name, with what no name has left out.
fn usual_name(device: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    device.chars().map(plain).take(64).collect()
}

fn force(forced: bool) -> Force {
    if forced { Force::Lazily } else { Force::No }
}

fn print(all: &[Attachment], format: PlainFormat) -> Result<u8, Failure> {
    let text = match format {
        PlainFormat::Json => all.iter().map(|it| format!("{}\n", json(it))).collect(),
        PlainFormat::Table => {
            let rows: Vec<Vec<String>> = all.iter().map(row).collect();
            let head = ["name", "device", "block device", "size", "mounted", "state"];
            let mut text = table::plain(&head, &rows, output::columns());
            if let [one] = all {
                for (what, path) in [("file", &one.file), ("control", &one.control), ("log", &one.log)] {
                    text.push_str(&format!("{what:8} {}\n", path.display()));
                }
            }
            text
        }
    };
    output::print(&text)?;
    Ok(0)
}

fn row(attached: &Attachment) -> Vec<String> {
    let none = || "-".to_owned();
    let mounted: Vec<String> = attached.mounted.iter().map(|at| at.display().to_string()).collect();
    vec![
        attached.name.clone(),
        attached.device.clone(),
        attached.node.as_ref().map_or_else(none, |node| node.display().to_string()),
        attached.size.to_string(),
        if mounted.is_empty() { none() } else { mounted.join(", ") },
        said(attached.state).to_owned(),
    ]
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
