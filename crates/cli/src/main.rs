//! The command `lowtide`: parses arguments, calls the crates below, prints results.
//!
//! Results go to standard output, everything else to standard error. Leaves out all measuring and judging.

mod args;
mod command;
mod failure;
mod interrupt;
mod metrics;
mod output;
mod progress;
mod say;
mod serve;
mod show;
mod watch;

use args::{Arguments, Verb};
use clap::Parser;
use failure::Failure;
use lowtide_host::memory::HugePages;
use lowtide_live::control::Order;
use std::process::ExitCode;

/// Simulated drives live in hundreds of megabytes of tables that are read at random.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    match run(arguments.verb) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure::print(&failure);
            ExitCode::from(failure::code(&failure))
        }
    }
}

fn run(verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Run(arguments) => command::run::run(&arguments),
        Verb::Plan(arguments) => command::plan::run(&arguments),
        Verb::Show(arguments) => command::show::run(&arguments),
        Verb::Report(arguments) => command::report::run(&arguments),
        Verb::Compare(arguments) => command::compare::run(&arguments),
        Verb::Baseline(arguments) => command::baseline::run(&arguments),
        Verb::Export(arguments) => command::export::run(&arguments),
        Verb::Import(arguments) => command::import::run(&arguments),
        Verb::Merge(arguments) => command::merge::run(&arguments),
        Verb::Devices(arguments) => command::catalogue::devices(&arguments),
        Verb::Experiments(arguments) => command::catalogue::experiments(&arguments),
        Verb::Lifetime(arguments) => command::lifetime::run(&arguments),
        Verb::Cost(arguments) => command::cost::run(&arguments),
        Verb::Advise(arguments) => command::advise::run(&arguments),
        Verb::Fit(arguments) => command::fit::run(&arguments),
        Verb::Validate(arguments) => command::validate::run(&arguments),
        Verb::Attach(arguments) => command::attach::run(&arguments),
        Verb::Detach(arguments) => command::attach::detach(&arguments),
        Verb::Serve(arguments) => command::serve::run(&arguments),
        Verb::Stat(arguments) => command::control::stat(&arguments),
        Verb::Powercut(arguments) => command::control::powercut(&arguments),
        Verb::PowerOn(server) => command::control::plain(&server, Order::PowerOn),
        Verb::Pause(server) => command::control::plain(&server, Order::Pause),
        Verb::Resume(server) => command::control::plain(&server, Order::Resume),
        Verb::SecureErase(server) => command::control::plain(&server, Order::SecureErase),
        Verb::Fail(arguments) => command::control::fail(&arguments),
        Verb::Record(arguments) => command::control::record(&arguments.verb),
        Verb::Logdisk(arguments) => command::logdisk::run(&arguments),
        Verb::Bench(arguments) => command::bench::run(&arguments),
        Verb::Completions { shell } => command::completions::run(shell),
    }
}
