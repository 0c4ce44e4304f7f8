//! Exit codes, and the printing of failures. The text of a failure is in [`Failure`].

use crate::say::say;
use lowtide_files::passwords;
pub use lowtide_studies::failure::Failure;
use lowtide_studies::failure::Kind;
use std::process::ExitCode;

/// The command ran to its end and found a failure.
pub const FAILED: u8 = 1;
/// The input cannot be used.
const BAD_INPUT: u8 = 2;
/// Going on might destroy data.
const REFUSED: u8 = 3;
/// A steady state was demanded, and there is none.
pub const NO_STEADY_STATE: u8 = 4;
/// Slower than allowed.
pub const REGRESSION: u8 = 5;
/// Ended by a signal.
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

/// Prints clap's error or the requested help, with passwords from the command line removed.
pub fn of_arguments(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    let shown = passwords::without_in_prose(&plain);
    if shown == plain || !error.use_stderr() {
        error.exit();
    }
    say(shown.trim_end());
    ExitCode::from(BAD_INPUT)
}
