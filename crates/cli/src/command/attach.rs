//! `lowtide attach` and `lowtide detach`: a simulated drive as a block device of this machine.
//!
//! The server is this program, started once more with `--server`. Leaves out how a drive is served.

use crate::args::{AttachArguments, DetachArguments, FilesystemName, PlainFormat};
use crate::failure::{FAILED, Failure};
use crate::{interrupt, output};
use lowtide_host::attach::{self, Attachment, Force, Server, State, Wish};
use lowtide_host::block::FilesystemKind;
use lowtide_host::live::Port;
use lowtide_lab::catalogue;
use lowtide_lab::device::{self, Device};
use lowtide_lab::table;
use std::process::Command;
use std::sync::Arc;

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
    let known = find(device)?;
    let name = arguments.name.clone().unwrap_or_else(|| usual_name(&known));
    let wish = Wish {
        name: &name,
        device,
        filesystem: arguments.mkfs.map(FilesystemName::kind),
        mount: arguments.mount.as_deref(),
        options: &arguments.options,
    };
    let attached = attach::attach(&wish, server(device, &name)?, &interrupt::flag())?;
    print(&[attached], format)
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
    let port = drive(&find(device)?, &server)?;
    server.serve(port)?;
    Ok(0)
}

/// The drive that is served, with its control socket.
fn drive(device: &Device, _server: &Server) -> Result<Arc<dyn Port>, Failure> {
    Err(Failure::usage(format!("{} cannot be served live yet", device.name), "use a later version"))
}

/// This program once more, as the server.
fn server(device: &str, name: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| Failure::usage(format!("this program is not found: {error}"), ""))?;
    let mut command = Command::new(program);
    command.args(["attach", "--server", "--name", name, "--", device]);
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
