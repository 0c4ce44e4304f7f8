//! Summarises the errors of the models over all studies.
//!
//! A bound that is kept has no error and is counted separately. A bound that is broken counts like any other number.
//! A published number without a model value counts as missing.

use super::Study;
use lowtide_lab::experiment::NotCompared;
use lowtide_report::{Comparison, Report};
use serde::Serialize;

/// A summary of the errors of the models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Median of the absolute errors of predicted numbers, in percent.
    pub predicted_median_abs_error_pct: Option<f64>,
    /// The 90th percentile of the absolute errors of predicted numbers, in percent.
    pub predicted_p90_abs_error_pct: Option<f64>,
    /// Count of predicted numbers, which were not used to fit a parameter. Both errors above are over these numbers.
    pub predicted_count: usize,
    /// Predicted bounds that the model keeps. Not included in `predicted_count`.
    pub predicted_bounds_kept: usize,
    /// Count of numbers that were used to fit a parameter.
    pub fitted_count: usize,
    /// Published numbers without a model value.
    pub missing_count: usize,
    /// Claims that hold.
    pub claims_passed: usize,
    /// Claims that do not hold.
    pub claims_failed: usize,
    /// Claims that do not hold and whose failure is not explained in the documentation.
    pub claims_failed_unexplained: usize,
}

impl Summary {
    /// Summarises studies.
    pub fn of(studies: &[Study]) -> Summary {
        let comparisons = || studies.iter().flat_map(|study| &study.comparisons);
        let claims = || studies.iter().flat_map(|study| &study.claims);
        let mut errors: Vec<f64> =
            comparisons().filter(|it| !it.used_to_fit).filter_map(absolute_error).collect();
        errors.sort_by(f64::total_cmp);
        let failed = || claims().filter(|claim| !claim.holds);
        Summary {
            predicted_median_abs_error_pct: quantile(&errors, 0.5),
            predicted_p90_abs_error_pct: quantile(&errors, 0.9),
            predicted_count: errors.len(),
            predicted_bounds_kept: comparisons().filter(|it| !it.used_to_fit && keeps_bound(it)).count(),
            fitted_count: comparisons().filter(|it| it.used_to_fit && it.model.is_some()).count(),
            missing_count: comparisons().filter(|it| it.model.is_none()).count(),
            claims_passed: claims().filter(|claim| claim.holds).count(),
            claims_failed: failed().count(),
            claims_failed_unexplained: failed().filter(|claim| claim.left_out.is_none()).count(),
        }
    }
}

fn absolute_error(comparison: &Comparison) -> Option<f64> {
    comparison.error_percent.map(f64::abs)
}

fn keeps_bound(comparison: &Comparison) -> bool {
    comparison.bound.is_some() && comparison.model.is_some() && comparison.error_percent.is_none()
}

/// The quantile of sorted values, interpolated linearly.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = share * last as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * part)
}

/// The report over all studies: summary, claims, every number, and the model's curves with the published points.
pub fn report(studies: &[Study], excuses: &[NotCompared], seed: u64, scale: u64) -> Report {
    let summary = Summary::of(studies);
    let campaigns =
        studies.iter().map(|study| (&study.campaign, study.comparisons.as_slice())).collect::<Vec<_>>();
    let claims: Vec<_> = studies.iter().flat_map(|study| study.claims.iter().cloned()).collect();
    Report::of_studies(&campaigns, &claims, excuses, sentences(&summary), seed, scale)
}

fn sentences(summary: &Summary) -> Vec<String> {
    let mut all = Vec::new();
    if let (Some(median), Some(most)) =
        (summary.predicted_median_abs_error_pct, summary.predicted_p90_abs_error_pct)
    {
        all.push(format!(
            "{} published numbers are predicted with a median error of {median:.1} %; nine of ten are within \
             {most:.1} %.",
            summary.predicted_count
        ));
    }
    if summary.predicted_bounds_kept > 0 {
        all.push(format!("{} published bounds are kept besides.", summary.predicted_bounds_kept));
    }
    if summary.fitted_count > 0 {
        all.push(format!(
            "{} more were used to choose parameters: agreement there proves nothing.",
            summary.fitted_count
        ));
    }
    if summary.missing_count > 0 {
        all.push(format!("For {} the models gave no number.", summary.missing_count));
    }
    let claims = summary.claims_passed + summary.claims_failed;
    if claims > 0 {
        all.push(format!("{} of {claims} claims hold.", summary.claims_passed));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.9), Some(7.0));
        assert_eq!(quantile(&[0.0, 10.0], 0.5), Some(5.0));
        assert_eq!(quantile(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], 0.9), Some(9.0));
    }
}
