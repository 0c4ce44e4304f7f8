//! `lowtide compare`: compares campaigns, or the values of a factor in one campaign, and judges limits.

use super::{campaign_named, damaged};
use crate::args::CompareArguments;
use crate::failure::{FAILED, Failure, REGRESSION};
use crate::output::{self, REPORT};
use lowtide_files::output::{CommandFiles, Output};
use lowtide_record::Campaign;
use lowtide_report::Report;
use lowtide_report::compare::{Metric, Operator, Outcome, Question, Scope, Threshold};

/// Compares; exit code 5 if a limit is crossed, 1 if a limit cannot be judged.
pub fn run(arguments: &CompareArguments) -> Result<u8, Failure> {
    let mut question = question(arguments)?;
    let page = arguments.report.as_deref();
    let page = page.map(|path| Output::file(REPORT, path, &CommandFiles::default())).transpose()?;
    let campaigns: Vec<Campaign> = arguments
        .campaigns
        .iter()
        .map(|name| campaign_named(&arguments.store, name))
        .collect::<Result<_, _>>()?;
    question.thresholds.extend(level(arguments, &campaigns));
    let (report, judged) = match (&arguments.factor, campaigns.as_slice()) {
        (Some(factor), [campaign]) => Report::compare_factor(campaign, factor, &question)
            .map_err(|error| Failure::usage(error, "name a factor that the experiment sweeps"))?,
        (Some(_), _) => {
            return Err(Failure::usage("`--factor` compares inside one campaign", "name only one campaign"));
        }
        (None, [_]) => {
            return Err(Failure::usage(
                "one campaign is nothing to compare",
                "name two or more, or a factor with `--factor`; `lowtide store show` lists campaigns",
            ));
        }
        (None, campaigns) => Report::compare(&campaigns.iter().collect::<Vec<_>>(), &question),
    };
    output::print_report(&report, arguments.format)?;
    if let Some(page) = page {
        page.write(report.html().as_bytes())?;
    }
    for one in judged.iter().filter(|one| one.not_judged > 0 && one.outcome != Outcome::NotJudged) {
        output::say(format_args!(
            "{}: {} of {} cells were not judged, most likely for want of a steady state; `--unsettled` includes them",
            one.threshold,
            one.not_judged,
            one.not_judged + one.crossed + one.undecided + one.kept
        ));
    }
    let code = judged.iter().map(|it| code(it.outcome)).max().unwrap_or(0);
    // A crossed limit takes precedence over damaged cells.
    Ok(code.max(damaged(&campaigns)))
}

/// The question of the arguments, with parsed limits.
fn question(arguments: &CompareArguments) -> Result<Question, Failure> {
    let read = |text: &String| text.parse::<Threshold>().map_err(Failure::from);
    let thresholds = arguments.fail_if.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Question { unsettled: arguments.unsettled, thresholds })
}

/// The limit of `--fail-below`, on the quantity of the first campaign's levels.
fn level(arguments: &CompareArguments, campaigns: &[Campaign]) -> Option<Threshold> {
    let quantity = campaigns.first().map(Campaign::quantity).unwrap_or_default();
    arguments.fail_below.map(|percent| Threshold {
        metric: Metric::of_level(quantity),
        operator: Operator::Below,
        limit: 1.0 - percent / 100.0,
        scope: Scope::Each,
    })
}

/// The exit code of a limit. The largest code of all limits counts.
fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Crossed => REGRESSION,
        Outcome::NotJudged => FAILED,
        Outcome::Kept | Outcome::Undecided => 0,
    }
}
