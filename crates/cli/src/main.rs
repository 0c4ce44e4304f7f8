//! The command `lowtide`: parses arguments, calls the crates below, prints results.
//!
//! Results go to standard output, messages to standard error. The crates below measure and judge.

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

use args::{DriveVerb, PowercutVerb, StoreVerb, Verb};
use failure::Failure;
use lowtide_host::memory::HugePages;
use lowtide_live::control::Order;
use std::process::ExitCode;

/// Simulated drives have tables of hundreds of megabytes that are read at random.
#[global_allocator]
static ALLOCATOR: HugePages = HugePages;

fn main() -> ExitCode {
    let arguments = match args::parse() {
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
        Verb::Report(arguments) => command::report::run(&arguments),
        Verb::Compare(arguments) => command::compare::run(&arguments),
        Verb::Experiments(arguments) => command::catalogue::experiments(&arguments),
        Verb::Devices(arguments) => command::catalogue::devices(&arguments),
        Verb::Store(verb) => store(verb),
        Verb::Validate(arguments) => command::validate::run(&arguments),
        Verb::Advise(arguments) => command::advise::run(&arguments),
        Verb::Lifetime(arguments) => command::lifetime::run(&arguments),
        Verb::Cost(arguments) => command::cost::run(&arguments),
        Verb::Fit(arguments) => command::fit::run(&arguments),
        Verb::Powercut(PowercutVerb::Oltp(arguments)) => command::powercut::oltp(&arguments),
        Verb::Drive(verb) => drive(verb),
        Verb::Logdisk(arguments) => command::logdisk::run(&arguments),
        Verb::Bench(arguments) => command::bench::run(&arguments),
        Verb::Completions { shell } => command::completions::run(shell),
    }
}

fn store(verb: StoreVerb) -> Result<u8, Failure> {
    match verb {
        StoreVerb::Show(arguments) => command::show::run(&arguments),
        StoreVerb::Export(arguments) => command::export::run(&arguments),
        StoreVerb::Import(arguments) => command::import::run(&arguments),
        StoreVerb::Merge(arguments) => command::merge::run(&arguments),
        StoreVerb::Baseline(arguments) => command::baseline::run(&arguments),
    }
}

fn drive(verb: DriveVerb) -> Result<u8, Failure> {
    match verb {
        DriveVerb::Serve(arguments) => command::serve::run(&arguments),
        DriveVerb::Attach(arguments) => command::attach::run(&arguments),
        DriveVerb::Detach(arguments) => command::attach::detach(&arguments),
        DriveVerb::Stat(arguments) => command::control::stat(&arguments),
        DriveVerb::Record(arguments) => command::control::record(&arguments.verb),
        DriveVerb::Powercut(arguments) => command::control::powercut(&arguments),
        DriveVerb::PowerOn(server) => command::control::plain(&server, Order::PowerOn),
        DriveVerb::Pause(server) => command::control::plain(&server, Order::Pause),
        DriveVerb::Resume(server) => command::control::plain(&server, Order::Resume),
        DriveVerb::SecureErase(server) => command::control::plain(&server, Order::SecureErase),
        DriveVerb::Fail(arguments) => command::control::fail(&arguments),
    }
}
