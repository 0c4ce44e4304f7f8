//! `lowtide compare`: campaigns beside each other, or the values of a factor inside one.

use super::campaign_named;
use crate::args::CompareArguments;
use crate::failure::{Failure, REGRESSION};
use crate::output;
use lowtide_lab::record::Campaign;
use lowtide_lab::report::{Report, differences};

/// Compares; exit code 5 where something is slower than allowed.
pub fn run(arguments: &CompareArguments) -> Result<u8, Failure> {
    let campaigns: Vec<Campaign> = arguments
        .campaigns
        .iter()
        .map(|name| campaign_named(&arguments.store, name))
        .collect::<Result<_, _>>()?;
    let report = match (&arguments.factor, campaigns.as_slice()) {
        (Some(factor), [campaign]) => Report::compare_factor(campaign, factor)
            .map_err(|error| Failure::usage(error, "name a factor that the experiment sweeps"))?,
        (Some(_), _) => {
            return Err(Failure::usage("`--factor` compares inside one campaign", "name one campaign"));
        }
        (None, [_]) => {
            return Err(Failure::usage(
                "one campaign is nothing to compare",
                "name two or more, or a factor with `--factor`; `lowtide show` lists campaigns",
            ));
        }
        (None, campaigns) => Report::compare(&campaigns.iter().collect::<Vec<_>>()),
    };
    output::print_report(&report, arguments.format)?;
    if let Some(path) = &arguments.report {
        output::write_file(path, report.html().as_bytes())?;
    }
    let (Some(limit), [base, others @ ..]) = (arguments.fail_below, campaigns.as_slice()) else {
        return Ok(0);
    };
    let slower = others.iter().flat_map(|other| differences(base, other)).any(|difference| {
        let change = difference.difference_percent();
        difference.significant() == Some(true) && change.is_some_and(|change| change < -limit)
    });
    Ok(if slower { REGRESSION } else { 0 })
}
