//! The arguments of `lowtide run`. `ExperimentArguments` has those of the experiment.

use super::{ExperimentArguments, Format, address};
use clap::Args;
use lowtide_host::http::Hosts;
use lowtide_host::http::head::Host;
use lowtide_studies::ask::quoted;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// With --interleave: the experiments to interleave with the first
    #[arg(value_name = "OTHERS", requires = "interleave")]
    pub others: Vec<String>,
    /// Interleave two or more experiments cell by cell, so that drift of the machine affects all of them, and compare
    /// them
    #[arg(long, requires = "others")]
    pub interleave: bool,
    /// The store of all raw numbers
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Resume the last campaign with the same experiment, seed, scale, --adaptive and --precision
    #[arg(long)]
    pub resume: bool,
    /// Where to write the HTML report
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub report: PathBuf,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
    /// Exit with code 4 if a cell has no steady state
    #[arg(long)]
    pub require_steady: bool,
    /// Overwrite the block device with this serial number; `lowtide plan` shows the number
    #[arg(long, value_name = "SERIAL")]
    pub destroy: Option<String>,
    /// With --destroy: overwrite even a device with partitions, a filesystem, or a RAID, LVM, LUKS or ZFS label
    #[arg(long, requires = "destroy")]
    pub force_signature: bool,
    /// Draw the throughput, latency and preliminary verdict of the running cell in the terminal
    #[arg(long)]
    pub watch: bool,
    /// Serve the growing report to browsers at http://127.0.0.1:PORT during the run; 0 takes any free port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address)]
    pub serve: Option<SocketAddr>,
    /// With --serve: also answer requests for this host name or address, in addition to localhost and the machine's
    /// own
    #[arg(long, value_name = "HOST", requires = "serve", value_parser = Hosts::parse)]
    pub accept_host: Vec<Host>,
    /// Measure only some of the data sizes, and predict the levels at the other sizes
    #[arg(long, conflicts_with_all = ["interleave", "part"])]
    pub adaptive: bool,
    /// With --adaptive: maximum half-width of each 95 % interval, as a share of the level
    #[arg(long, value_name = "SHARE", default_value = "5%", requires = "adaptive", value_parser = precision)]
    pub precision: Precision,
    /// Run only part K of N, such as 2/4. Cells that share a history stay together; `lowtide store merge` joins the
    /// parts
    #[arg(long, value_name = "K/N", conflicts_with_all = ["interleave", "require_steady"])]
    pub part: Option<Part>,
    /// Maximum number of concurrent cells on simulated devices [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

impl RunArguments {
    /// The command line that repeats the run, with all paths that are not the default.
    pub fn command(&self) -> String {
        let mut command = self.experiment.asked().command();
        if self.interleave {
            command.push_str(" --interleave");
            self.others.iter().for_each(|other| command.push_str(&format!(" {}", quoted(other))));
        }
        for (name, path, default) in
            [("--store", &self.store, "lowtide.db"), ("--report", &self.report, "report.html")]
        {
            if path.as_os_str() != default {
                command.push_str(&format!(" {name} {}", quoted(&path.to_string_lossy())));
            }
        }
        if self.adaptive {
            command.push_str(&self.adaptively());
        }
        if let Some(part) = self.part {
            command.push_str(&format!(" --part {part}"));
        }
        if let Some(serial) = &self.destroy {
            command.push_str(&format!(" --destroy {}", quoted(serial)));
        }
        if self.force_signature {
            command.push_str(" --force-signature");
        }
        command
    }

    /// The options of an adaptive run.
    pub fn adaptively(&self) -> String {
        format!(" --adaptive --precision {}", self.precision)
    }
}

/// Maximum half-width of an interval, as a share of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision(pub f64);

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to the digits that `precision` keeps, so that it prints as it was written.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    // Rounded, so that 0.7% and 0.007 give the same number: in floating point, 0.7 / 100 is not 0.007.
    match share.map(|share| (share * 1e8).round() / 1e8) {
        Ok(share) if (0.005..=0.5).contains(&share) => Ok(Precision(share)),
        _ => Err("a precision is a share from 0.5% to 50%, such as 5% or 0.05".to_owned()),
    }
}

/// A part of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the part, counted from 1.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let part = Part { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? };
            (1..=part.of).contains(&part.number).then_some(part)
        });
        parsed.ok_or_else(|| "a part is K/N, with K from 1 to N, such as 2/4".to_owned())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::precision;

    #[test]
    fn a_precision_reads_back_and_does_not_depend_on_the_notation() {
        for tenths in 5..=500u32 {
            let percent = format!("{}.{}%", tenths / 10, tenths % 10);
            let share = format!("0.{tenths:03}");
            let of_percent = precision(&percent).expect("a precision");
            assert_eq!(Ok(of_percent), precision(&share), "{percent} and {share}");
            assert_eq!(Ok(of_percent), precision(&of_percent.to_string()), "{percent}");
        }
        for bad in ["0.4%", "51%", "0", "NaN", "inf", "five"] {
            assert!(precision(bad).is_err(), "{bad}");
        }
    }
}
