//! `lowtide logdisk attach`: a log disk as a block device of this machine.
//!
//! The server is this program, started again with `--server`. `lowtide drive detach` detaches log disks, and
//! `lowtide_host::attach` makes the block device.

use super::{end, open, open_and_report, running};
use crate::args::LogdiskAttachArguments;
use crate::command::attach::{plain_name, print_one, server_again};
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use lowtide_core::Bytes;
use lowtide_host::attach::{self, AttachRequest, Server};
use lowtide_host::live::{Buffers, Clock};
use lowtide_live::logdisk::{Figures, LogDrive};
use lowtide_live::{ControlSocket, Service};
use lowtide_logdisk::BLOCK;
use std::path::Path;

/// Attaches a log disk, or runs as the server of an attached one.
pub fn run(arguments: &LogdiskAttachArguments) -> Result<u8, Failure> {
    let LogdiskAttachArguments { target, mkfs, mount, options, format, .. } = arguments;
    if let Some(name) = &arguments.server {
        return serve(target, name, arguments.map_memory);
    }
    let name = arguments.name.clone().unwrap_or_else(|| plain_name(&super::name_of(target)));
    // Errors are reported before anything is made. The server opens the log disk again.
    let figures = Figures::of(&mut open(target, false, running(None))?);
    if let Some(kind) = mkfs
        && figures.live_bytes > 0
    {
        return Err(Failure::refused(
            format!(
                "{} holds {} of data, which {} on it would destroy",
                target.display(),
                Bytes::new(figures.live_bytes),
                kind.name()
            ),
            "leave out `--mkfs`, or format the log disk again with `lowtide logdisk format`",
        ));
    }
    let path = std::fs::canonicalize(target).map_err(Failure::failed)?;
    let device = path.to_string_lossy();
    let request = AttachRequest {
        filesystem: *mkfs,
        mount: mount.as_deref(),
        options,
        ..AttachRequest::new(&name, &device)
    };
    let attached =
        attach::attach(&request, server_again(&["logdisk", "attach"], &name)?, &interrupt::flag())?;
    print_one(&attached, *format)
}

/// Serves a log disk until it is detached, and closes it.
fn serve(target: &Path, name: &str, map_memory: Option<Bytes>) -> Result<u8, Failure> {
    let Some(server) = Server::begin(name)? else {
        return Ok(FAILED);
    };
    let disk = open_and_report(target, false, running(map_memory))?;
    let drive = LogDrive::new(disk, name, &format!("log disk in {}", target.display()), false)
        .map_err(Failure::failed)?;
    let mut service =
        Service::start(vec![drive], Clock::new(), false, Buffers::default()).map_err(Failure::failed)?;
    super::answer_stat(&service, target);
    service.obey(ControlSocket::at(&server.control()).map_err(Failure::failed)?);
    let ended = server.serve(service.port(0, BLOCK as u32));
    service.handle().stop();
    let code = end(service.wait().remove(0), false)?;
    ended?;
    Ok(code)
}
