//! The arguments of `lowtide run`.
//!
//! Not here: which experiment (`ExperimentArguments`).

use super::{ExperimentArguments, Format, address};
use clap::Args;
use lowtide_host::http::Hosts;
use lowtide_host::http::head::Host;
use lowtide_studies::ask::quoted;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// What to run
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// With --interleave: more experiments, measured in turns with the first
    #[arg(value_name = "OTHERS", requires = "interleave")]
    pub others: Vec<String>,
    /// Measure two or more experiments in turns, cell by cell, so that drift of the machine affects all of
    /// them; then compare them
    #[arg(long, requires = "others")]
    pub interleave: bool,
    /// The store that keeps every number
    #[arg(long, default_value = "lowtide.db", value_name = "FILE")]
    pub store: PathBuf,
    /// Continue the last campaign with the same experiment, seed, scale, --adaptive and --precision
    #[arg(long)]
    pub resume: bool,
    /// Where to write the HTML report
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub report: PathBuf,
    /// How to print the answer
    #[arg(long, default_value = "table")]
    pub format: Format,
    /// Exit with code 4 if a cell has no steady state
    #[arg(long)]
    pub require_steady: bool,
    /// Overwrite the block device with this serial number; `lowtide plan` shows the number
    #[arg(long, value_name = "SERIAL")]
    pub destroy: Option<String>,
    /// With --destroy: even if the device has partitions or a filesystem, RAID, LVM, LUKS or ZFS label
    #[arg(long, requires = "destroy")]
    pub force_signature: bool,
    /// Draw the running cell in the terminal: throughput, latency, the verdict so far
    #[arg(long)]
    pub watch: bool,
    /// Serve the live report to browsers during the run, at http://127.0.0.1:PORT; 0 takes any free port
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address)]
    pub serve: Option<SocketAddr>,
    /// With --serve: also answer requests for this host, besides localhost and this machine's name and
    /// address
    #[arg(long, value_name = "HOST", requires = "serve", value_parser = Hosts::parse)]
    pub accept_host: Vec<Host>,
    /// Measure only as many data sizes as needed, and predict the levels at the others
    #[arg(long, conflicts_with_all = ["interleave", "part"])]
    pub adaptive: bool,
    /// With --adaptive: maximum half-width of each 95 % interval, as a share of the level
    #[arg(long, value_name = "SHARE", default_value = "5%", requires = "adaptive", value_parser = precision)]
    pub precision: Precision,
    /// Run only part K of N, such as 2/4; cells that share a history stay together, and `lowtide store merge`
    /// joins the parts
    #[arg(long, value_name = "K/N", conflicts_with_all = ["interleave", "require_steady"])]
    pub part: Option<Part>,
    /// Cells that run at the same time on simulated devices [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

impl RunArguments {
    /// The arguments as the user would type them again, with the places that are not the usual ones.
    pub fn command(&self) -> String {
        let mut command = self.experiment.asked().command();
        if self.interleave {
            command.push_str(" --interleave");
            self.others.iter().for_each(|other| command.push_str(&format!(" {}", quoted(other))));
        }
        for (name, path, usual) in
            [("--store", &self.store, "lowtide.db"), ("--report", &self.report, "report.html")]
        {
            if path.as_os_str() != usual {
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

    /// How the user would ask for what is measured adaptively.
    pub fn adaptively(&self) -> String {
        format!(" --adaptive --precision {}", self.precision)
    }
}

/// Half of an interval, as a share of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision(pub f64);

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, so that a share that is no binary fraction is printed as it was written: six digits, as many as it is read with.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    // The nearest to the decimal that was meant, however that was written: 0.7 / 100 is another number than 0.007.
    match share.map(|share| (share * 1e8).round() / 1e8) {
        Ok(share) if (0.005..=0.5).contains(&share) => Ok(Precision(share)),
        _ => Err("a precision is a share from 0.5% to 50%, such as 5% or 0.05".to_owned()),
    }
}

/// A part of a campaign: one of several, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub number: usize,
    /// How many there are.
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
    fn a_precision_is_the_same_however_it_is_written_and_as_often_as_it_is_read() {
        for tenths in 5..=500u32 {
            let percent = format!("{}.{}%", tenths / 10, tenths % 10);
            let share = format!("0.{tenths:03}");
            let of_percent = precision(&percent).expect("it is one");
            assert_eq!(Ok(of_percent), precision(&share), "{percent} and {share}");
            assert_eq!(Ok(of_percent), precision(&of_percent.to_string()), "{percent}");
        }
        for bad in ["0.4%", "51%", "0", "NaN", "inf", "five"] {
            assert!(precision(bad).is_err(), "{bad}");
        }
    }
}
