//! Runs external programs, which make filesystems, mount them, or send commands to drives.
//!
//! The programs run in a process group of their own, so that Ctrl-C reaches only lowtide. lowtide then ends the
//! programs that can be stopped safely.

use crate::error::HostError;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A program and its package: `("mkfs.xfs", "of xfsprogs")`.
pub(crate) type Program = (&'static str, &'static str);

pub(crate) const MOUNT: Program = ("mount", "of util-linux");
pub(super) const WIPEFS: Program = ("wipefs", "of util-linux");

/// The error of a program that is missing or failed.
pub(super) fn failed((program, package): Program, output: impl ToString) -> HostError {
    HostError::Tool { program, package, output: output.to_string() }
}

/// Runs a program to its end and returns its output.
///
/// # Errors
/// [`HostError::Tool`] with the error output if the program is missing or fails.
pub(crate) fn run(program: Program, arguments: &[&str]) -> Result<String, HostError> {
    let output = command(program, arguments).output();
    printed(program, &output.map_err(|error| failed(program, error))?)
}

/// Runs a program that can be stopped safely, and returns its output. `path` is named in errors.
///
/// # Errors
/// As [`run`]; [`HostError::Interrupted`] once `interrupt` is set.
pub(crate) fn run_until(
    program: Program,
    arguments: &[&str],
    path: &Path,
    interrupt: &AtomicBool,
) -> Result<String, HostError> {
    let fail = |error: std::io::Error| failed(program, error);
    let mut child = command(program, arguments).spawn().map_err(fail)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(fail)? {
            break status;
        }
        if interrupt.load(Ordering::Relaxed) {
            // If it has ended in the meantime, only the wait is needed.
            let _ = child.kill();
            let _ = child.wait();
            return Err(HostError::Interrupted(path.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // The output of these programs fits into the pipes.
    let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
    child.stdout.take().map(|mut pipe| pipe.read_to_end(&mut output.stdout)).transpose().map_err(fail)?;
    child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut output.stderr)).transpose().map_err(fail)?;
    printed(program, &output)
}

fn command(program: Program, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.0);
    command.args(arguments).env("LC_ALL", "C").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn printed(program: Program, output: &Output) -> Result<String, HostError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let printed = [text(&output.stderr), text(&output.stdout)].into_iter().find(|text| !text.is_empty());
    let printed = printed.unwrap_or_else(|| output.status.to_string());
    // Some programs print their usage after the error.
    let lines = printed.lines().map(str::trim).take_while(|line| !line.starts_with("Usage"));
    let one_line: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Err(failed(program, one_line.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_quoted_and_a_missing_one_is_named() {
        assert_eq!(run(("echo", "of coreutils"), &["a", "b"]).expect("runs"), "a b");
        let error = run(("sh", "a shell"), &["-c", "echo one >&2; echo two >&2; exit 3"]).unwrap_err();
        assert_eq!(error.to_string(), "sh (a shell) failed: one; two");
        let error = run(("no-such-program", "of nowhere"), &[]).unwrap_err().to_string();
        assert!(error.starts_with("no-such-program (of nowhere) failed"), "{error}");
    }

    #[test]
    fn an_interrupt_ends_a_program() {
        let (set, unset) = (AtomicBool::new(true), AtomicBool::new(false));
        let error = run_until(("sleep", "of coreutils"), &["60"], Path::new("/x"), &set).unwrap_err();
        assert!(matches!(error, HostError::Interrupted { .. }), "{error}");
        let text = run_until(("echo", "of coreutils"), &["a"], Path::new("/x"), &unset).expect("runs");
        assert_eq!(text, "a");
    }
}
