//! `lowtide drive attach` and `lowtide drive detach`: a simulated drive as a block device of this machine.
//!
//! The server is this program, started again with `--server`. `lowtide_host::live` serves the drive, and
//! `lowtide_host::attach` makes the block device.

use super::logdisk::CLOSED;
use crate::args::{self, AttachArguments, DetachArguments, DriveArguments, PlainFormat};
use crate::failure::{FAILED, Failure};
use crate::{failure, interrupt, output};
use lowtide_files::output::CommandFiles;
use lowtide_files::table;
use lowtide_host::attach::{self, AttachRequest, Attachment, Force, State};
use lowtide_live::attached::{self, ServeOptions, Served};
use lowtide_live::control::{self, Order, Question};
use lowtide_live::{Data, Offer, Power, ResolvedOffer};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Attaches or reattaches a drive, lists drives, or runs as the server of a drive.
pub fn run(arguments: &AttachArguments) -> Result<u8, Failure> {
    let format = arguments.format;
    if let Some(which) = &arguments.again {
        let name = attach::name_of(which)?;
        check_answers(&name)?;
        let again = attach::reattach(&name, force(arguments.force), &interrupt::flag())?;
        return print_one(&again, format);
    }
    let Some(device) = &arguments.device else {
        return print_list(&attach::list(), format);
    };
    let mut known = look_up(arguments, device)?;
    if let Some(name) = &arguments.server {
        known.name.clone_from(name);
        return serve(arguments, &known);
    }
    let request = AttachRequest {
        block: arguments.block,
        filesystem: arguments.mkfs,
        mount: arguments.mount.as_deref(),
        options: &arguments.options,
        ..AttachRequest::new(&known.name, device)
    };
    let attached =
        attach::attach(&request, server_again(&["drive", "attach"], &known.name)?, &interrupt::flag())?;
    print_one(&attached, format)
}

/// Refuses to reattach a drive that is paused or without power, because its requests would not complete.
fn check_answers(name: &str) -> Result<(), Failure> {
    let question = Question { drive: None, order: Order::Stat };
    // Reattaching itself reports a server that does not answer.
    let Ok(report) = control::ask(&attach::control_of(name)?, &question) else {
        return Ok(());
    };
    let (reason, verb) = match report.stats.first().map(|stat| stat.power) {
        Some(Power::Paused) => ("it is paused", "resume"),
        Some(Power::Off) => ("its power is off", "power-on"),
        Some(Power::On) | None => return Ok(()),
    };
    Err(Failure::usage(
        format!("{name} does not answer requests: {reason}"),
        format!("first run `lowtide drive {verb} {name}`"),
    ))
}

/// Detaches one drive, or all.
pub fn detach(arguments: &DetachArguments) -> Result<u8, Failure> {
    let names = match &arguments.which {
        Some(which) => vec![attach::name_of(which)?],
        None => {
            // A drive that is attached on another one is detached first.
            let mut all = attach::list();
            let depths: BTreeMap<String, usize> =
                all.iter().map(|it| (it.name.clone(), depth(&all, it))).collect();
            all.sort_by_key(|it| Reverse(depths[&it.name]));
            all.into_iter().map(|it| it.name).collect()
        }
    };
    let mut code = 0;
    for name in names {
        // A failure, such as a drive in use, does not prevent detaching the others.
        let mut log = String::new();
        let last = |state: &Path| {
            log = std::fs::read_to_string(state.with_extension("log")).unwrap_or_default();
        };
        match attach::detach_with(&name, force(arguments.force), last) {
            Ok(detached) => {
                output::say(format_args!("{name} is detached"));
                for line in log.lines().filter(|line| line.starts_with("error") || *line == CLOSED) {
                    output::say(format_args!("{name}: {line}"));
                }
                if detached.cut_off {
                    output::say(format_args!(
                        "warning: {name} was cut off from the programs that used it: unwritten data are lost"
                    ));
                }
                for left in detached.left {
                    output::say(format_args!("warning: removed only when it is no longer in use: {left}"));
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                code = failure::code(&failure);
                failure::print(&failure);
            }
        }
    }
    Ok(code)
}

/// The number of attached drives in the stack below this one.
fn depth(all: &[Attachment], it: &Attachment) -> usize {
    let below = all.iter().find(|other| other.node.as_deref() == Some(Path::new(&it.device)));
    below.map_or(0, |below| 1 + depth(all, below))
}

/// Serves the drive until it is detached.
fn serve(arguments: &AttachArguments, known: &ResolvedOffer) -> Result<u8, Failure> {
    let DriveArguments { no_delay, rt, .. } = arguments.drive;
    let how = ServeOptions { no_delay, at_once_first: arguments.at_once_first, real_time: rt };
    let say = |text: std::fmt::Arguments<'_>| output::say(text);
    let Some(Served { drives, ended }) = attached::serve(known, how, say)? else {
        return Ok(FAILED);
    };
    let code = super::serve::end(std::slice::from_ref(known), drives)?;
    ended?;
    Ok(code)
}

/// Looks up the drive and checks its files, before anything is made.
fn look_up(arguments: &AttachArguments, device: &str) -> Result<ResolvedOffer, Failure> {
    // Paths are made absolute, because the server has another working directory.
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(|error| Failure::writing(path, &error));
    let mut offer = arguments.drive.offer(arguments.name.clone(), device, 0);
    offer.block = arguments.block;
    if let Some(path) = &arguments.data {
        offer.data = Data::File(absolute(path)?);
    }
    offer.state = arguments.state.as_ref().map(absolute).transpose()?;
    let mut known = offer.look_up()?;
    known.check_outputs(&mut CommandFiles::default())?;
    if arguments.name.is_none() {
        known.name = plain_name(&known.name);
    }
    Ok(known)
}

/// The command that runs this program again as the server of `name`, with the same arguments after `verb`.
pub(super) fn server_again(verb: &[&str], name: &str) -> Result<Command, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(program);
    command.args(verb).args(["--server", name]).args(args::words().into_iter().skip(1 + verb.len()));
    Ok(command)
}

/// The command that runs this program again as the server of a drive that a campaign attaches.
pub fn server_of(offer: &Offer) -> std::io::Result<Command> {
    Ok(attached::server_command(&std::env::current_exe()?, offer))
}

/// A name of letters, digits, - and _.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }
    };
    name.chars().map(plain).take(64).collect()
}

fn force(forced: bool) -> Force {
    if forced { Force::Lazily } else { Force::No }
}

fn print_list(all: &[Attachment], format: PlainFormat) -> Result<u8, Failure> {
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

/// Prints the facts of one attached drive.
pub(super) fn print_one(attached: &Attachment, format: PlainFormat) -> Result<u8, Failure> {
    if format == PlainFormat::Json {
        return print_list(std::slice::from_ref(attached), format);
    }
    let lines = [
        ("drive", format!("{} ({}, {})", attached.name, attached.device, size(attached))),
        ("block device", format!("{}, by {}", node(attached), attach::METHOD)),
        ("mounted at", mounted(attached)),
        ("file", attached.file.display().to_string()),
        ("control", attached.control.display().to_string()),
        ("log", attached.log.display().to_string()),
        ("to detach", format!("lowtide drive detach {}", attached.name)),
    ];
    let text: String = lines.iter().map(|(what, value)| format!("{what:13} {value}\n")).collect();
    output::print(&text)?;
    Ok(0)
}

fn row(attached: &Attachment) -> Vec<String> {
    let state = name_of(attached.state).to_owned();
    vec![attached.name.clone(), node(attached), size(attached), mounted(attached), state]
}

fn node(attached: &Attachment) -> String {
    attached.node.as_ref().map_or_else(|| "-".to_owned(), |node| node.display().to_string())
}

fn size(attached: &Attachment) -> String {
    format!("{:.1} GB", attached.size.get() as f64 / 1e9)
}

fn mounted(attached: &Attachment) -> String {
    match &attached.mounted[..] {
        [] => "-".to_owned(),
        all => all.iter().map(|at| at.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

fn name_of(state: State) -> &'static str {
    match state {
        State::Served => "served",
        State::Unfinished => "unfinished",
        State::ServerGone => "server gone",
        State::OwnerGone => "owner gone",
    }
}

fn json(attached: &Attachment) -> serde_json::Value {
    serde_json::json!({
        "name": attached.name,
        "device": attached.device,
        "way": attach::METHOD,
        "state": name_of(attached.state),
        "node": attached.node,
        "size_bytes": attached.size.get(),
        "mounted": attached.mounted,
        "file": attached.file,
        "control": attached.control,
        "log": attached.log,
        "process": attached.process,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Bytes;

    fn attached(name: &str, device: &str, node: &str) -> Attachment {
        let nowhere = PathBuf::new();
        Attachment {
            name: name.to_owned(),
            device: device.to_owned(),
            state: State::Served,
            node: Some(PathBuf::from(node)),
            size: Bytes::mib(1),
            mounted: Vec::new(),
            file: nowhere.clone(),
            control: nowhere.clone(),
            log: nowhere,
            process: None,
        }
    }

    #[test]
    fn a_drive_on_another_is_deeper() {
        let all = [
            attached("drive", "mtron-32gb", "/dev/loop1"),
            attached("upper", "/dev/loop0", "/dev/loop2"),
            attached("lower", "/dev/loop1", "/dev/loop0"),
            attached("file", "/home/disk.log", "/dev/loop3"),
        ];
        assert_eq!(all.each_ref().map(|it| depth(&all, it)), [0, 2, 1, 0]);
    }
}
