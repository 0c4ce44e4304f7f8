//! Programs that know what lowtide does not: making filesystems, mounting, the commands of drives.
//!
//! They run in a process group of their own, so that Ctrl-C reaches lowtide alone, which then ends those that may be
//! ended. Not here: what they are asked.

use crate::error::HostError;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A program and where it comes from: `("mkfs.xfs", "of xfsprogs")`.
pub(crate) type Program = (&'static str, &'static str);

/// Runs a program to its end; what it printed.
///
/// # Errors
/// [`HostError::Tool`] where it is missing or fails, with what it said.
pub(crate) fn run(program: Program, arguments: &[&str]) -> Result<String, HostError> {
    let output = command(program, arguments).output();
    let output = output.map_err(|error| HostError::tool(program.0, program.1, error.to_string()))?;
    printed(program, &output)
}

/// Runs a program on `path` that may be ended before its end.
///
/// # Errors
/// As [`run`]; [`HostError::Interrupted`] once `interrupt` is set.
pub(crate) fn run_until(
    program: Program,
    arguments: &[&str],
    path: &Path,
    interrupt: &AtomicBool,
) -> Result<String, HostError> {
    let fail = |error: std::io::Error| HostError::tool(program.0, program.1, error.to_string());
    let mut child = command(program, arguments).spawn().map_err(fail)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(fail)? {
            break status;
        }
        if interrupt.load(Ordering::Relaxed) {
            // One that has ended by itself meanwhile is waited for all the same.
            let _ = child.kill();
            let _ = child.wait();
            return Err(HostError::Interrupted { path: path.to_owned() });
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // What such programs say fits into the pipe.
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
    let said = [text(&output.stderr), text(&output.stdout)].into_iter().find(|said| !said.is_empty());
    let said = said.unwrap_or_else(|| output.status.to_string());
    // Some print how they are used after what is wrong.
    let lines = said.lines().map(str::trim).take_while(|line| !line.starts_with("Usage"));
    let one_line: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Err(HostError::tool(program.0, program.1, one_line.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_quoted_and_one_that_is_missing_is_named() {
        assert_eq!(run(("echo", "of coreutils"), &["a", "b"]).expect("runs"), "a b");
        let error = run(("sh", "a shell"), &["-c", "echo one >&2; echo two >&2; exit 3"]).unwrap_err();
        assert_eq!(error.to_string(), "sh (a shell) failed: one; two");
        let error = run(("no-such-program", "of nowhere"), &[]).unwrap_err().to_string();
        assert!(error.starts_with("no-such-program (of nowhere) failed"), "{error}");
    }

    #[test]
    fn a_long_program_ends_when_the_user_does_not_want_to_wait() {
        let wanted = AtomicBool::new(true);
        let error = run_until(("sleep", "of coreutils"), &["60"], Path::new("/x"), &wanted).unwrap_err();
        assert!(matches!(error, HostError::Interrupted { .. }), "{error}");
        let goes_on = AtomicBool::new(false);
        let text = run_until(("echo", "of coreutils"), &["a"], Path::new("/x"), &goes_on).expect("runs");
        assert_eq!(text, "a");
    }
}
