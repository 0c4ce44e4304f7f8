//! `lowtide completions`: a completion script for a shell.

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the script.
pub fn run(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "lowtide", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
