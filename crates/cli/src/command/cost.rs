//! `lowtide cost`: dollars per usable GB, per IOPS and per MiB/s, and new orders per minute and dollar.

use super::campaign_named;
use crate::args::CostArguments;
use crate::failure::Failure;
use crate::output;
use lowtide_record::Campaign;
use lowtide_report::cost::{Prices, curves, of_curves, of_published, recomputed};
use std::path::Path;

/// Prints the costs of campaigns, or recomputes a published table.
pub fn run(arguments: &CostArguments) -> Result<u8, Failure> {
    let report = match arguments.published.as_deref() {
        Some("e10") => of_published(&recomputed()),
        Some(other) => {
            return Err(Failure::usage(
                format!("`{other}` has no published table of costs"),
                "use `--published e10`",
            ));
        }
        None => {
            let prices = arguments.prices.as_deref().map_or_else(|| Ok(Prices::default()), prices)?;
            let load = |name: &String| campaign_named(&arguments.store, name);
            let campaigns: Vec<Campaign> = arguments.campaigns.iter().map(load).collect::<Result<_, _>>()?;
            let curves = curves(&campaigns, &prices).map_err(|error| {
                let line = format!("{},390", error.device);
                Failure::usage(
                    &error,
                    format!(
                        "give a list with `--prices prices.csv`, one device and its price per line: `{line}`"
                    ),
                )
            })?;
            if curves.is_empty() {
                return Err(Failure::usage(
                    "no cell of these campaigns is done",
                    "resume one with `lowtide run … --resume`; `lowtide store show` lists campaigns",
                ));
            }
            of_curves(&curves, arguments.floor)
        }
    };
    output::print_report(&report, arguments.format)?;
    Ok(0)
}

fn prices(path: &Path) -> Result<Prices, Failure> {
    let help = "write one device and its price per line: `intel-320-160gb,299` in CSV, `intel-320-160gb = 299` in TOML";
    let fail = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()), help);
    let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
    Prices::parse(&path.to_string_lossy(), &text).map_err(|error| fail(&error))
}
