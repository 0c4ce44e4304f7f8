//! Exit codes of the command, and printing of failures.

use crate::say::say;
use lowtide_files::passwords;
pub use lowtide_studies::failure::Failure;
use lowtide_studies::failure::Kind;
use std::process::ExitCode;

/// The command failed, or its check failed.
pub const FAILED: u8 = 1;
/// The input is invalid.
const BAD_INPUT: u8 = 2;
/// The command was refused, because continuing might destroy data.
const REFUSED: u8 = 3;
/// A cell lacks the steady state that `--require-steady` demands.
pub const NO_STEADY_STATE: u8 = 4;
/// A limit was crossed.
pub const REGRESSION: u8 = 5;
/// A signal interrupted the command.
pub const INTERRUPTED: u8 = 130;

/// The exit code of a failure.
pub fn code(failure: &Failure) -> u8 {
    match failure.kind() {
        Kind::Failed => FAILED,
        Kind::BadInput => BAD_INPUT,
        Kind::Refused => REFUSED,
        Kind::Interrupted => INTERRUPTED,
    }
}

/// Prints a failure to standard error.
pub fn print(failure: &Failure) {
    failure.reports().iter().for_each(|report| say(format_args!("{report:?}")));
}

/// Prints clap's error or the requested help, without passwords from the command line.
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    let shown = passwords::without_in_prose(&plain);
    if shown == plain || !error.use_stderr() {
        error.exit();
    }
    say(shown.trim_end());
    ExitCode::from(BAD_INPUT)
}
