//! Sectioning: the standard error of a statistic of a measurement, from the same statistic of each section.
//!
//! The percentile of a measurement cannot be computed from the percentiles of its parts. The scatter of the parts'
//! percentiles around it gives its standard error: S. Asmussen and P. W. Glynn, "Stochastic Simulation", 2007, III.5;
//! M. K. Nakayama, "Confidence intervals for quantiles using sectioning when applying variance-reduction techniques",
//! ACM TOMACS 24(4),
//! 2014. The sections are equal parts of a measurement, or complete repetitions of a measurement. Correlation between
//! neighbouring parts widens the interval as in `batch`. `coverage` checks both kinds of sections by simulation.

use super::Level;
use super::batch::{FEWEST, inflation, von_neumann};

impl Level {
    /// The level of a measurement. `value` is the statistic over the measurement; `parts` are its values for
    /// consecutive parts. `None` for fewer than ten parts.
    pub fn of_parts(value: f64, parts: &[f64]) -> Option<Level> {
        if parts.len() < FEWEST {
            return None;
        }
        let standard_error = spread(value, parts) * inflation(von_neumann(parts)).sqrt();
        Some(Level { value, standard_error, freedom: parts.len() as f64 - 1.0 })
    }

    /// The level of independent repetitions. `value` is the statistic over all repetitions; `repetitions` are its
    /// values for each repetition. `None` for fewer than two repetitions.
    pub fn of_repetitions(value: f64, repetitions: &[f64]) -> Option<Level> {
        let freedom = repetitions.len() as f64 - 1.0;
        (freedom > 0.0).then(|| Level { value, standard_error: spread(value, repetitions), freedom })
    }
}

/// The standard error of `value` from the scatter of two or more independent sections around it.
pub(super) fn spread(value: f64, sections: &[f64]) -> f64 {
    let count = sections.len() as f64;
    let squares: f64 = sections.iter().map(|section| (section - value).powi(2)).sum();
    (squares / (count * (count - 1.0))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_repetitions_make_a_wide_interval_and_one_makes_none() {
        let level = Level::of_repetitions(10.0, &[9.0, 11.0]).expect("two");
        // Half the difference, times Student's t for one degree of freedom.
        assert!((level.half_width() - 12.706).abs() < 1e-3, "{level:?}");
        assert_eq!(Level::of_repetitions(10.0, &[10.0]), None);
        assert_eq!(Level::of_parts(1.0, &[1.0; 9]), None);
        assert_eq!(Level::of_parts(1.0, &[1.0; 10]).map(|level| level.standard_error), Some(0.0));
    }

    #[test]
    fn a_value_away_from_its_sections_has_a_larger_error() {
        let sections = [9.0, 11.0, 9.0, 11.0, 9.0, 11.0, 9.0, 11.0, 9.0, 11.0];
        let at = |value| Level::of_parts(value, &sections).expect("ten").standard_error;
        assert!((at(10.0) - (10.0f64 / 90.0).sqrt()).abs() < 1e-12);
        assert!(at(10.5) > at(10.0));
    }
}
