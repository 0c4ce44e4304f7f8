//! Tests of experiments: the values of valid experiments, and the errors of invalid experiments.
//!
//! Errors are compared as rendered for the user.

mod bad_input;
mod catalogue;
mod databases;
mod events;
mod faults;
mod inserts;
mod overrides;
mod resolve;
mod trace;

use super::{Experiment, Override};
use miette::GraphicalReportHandler;

/// A small valid experiment. Tests replace its lines.
const GOOD: &str = r#"name = "small"

[target]
device = "intel-320-160gb"

[workload]
pattern = "random-write"
block = "16KiB"
duration = "1h"

[sweep]
file_size = ["10GiB", "20GiB"]
"#;

/// [`GOOD`] with `line` replaced by `other`.
fn with(line: &str, other: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    GOOD.replace(line, other)
}

fn parse(text: &str, overrides: &[&str]) -> Result<Experiment, String> {
    let overrides: Result<Vec<Override>, _> = overrides.iter().map(|text| text.parse()).collect();
    let parsed = overrides.and_then(|overrides| Experiment::parse("small.toml", text, &overrides));
    parsed.map_err(|error| render(&error))
}

fn good(text: &str, overrides: &[&str]) -> Experiment {
    parse(text, overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn bad(text: &str) -> String {
    parse(text, &[]).expect_err("it is bad")
}

fn render(error: &dyn miette::Diagnostic) -> String {
    let mut text = String::new();
    let handler =
        GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor()).with_width(80);
    handler.render_report(&mut text, error).expect("a string takes it");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
