//! Limits on ratios (`throughput < 0.95`, `latency_p99 > 110% overall`) and their judgement.
//!
//! ```text
//! METRIC ('<' | '>') NUMBER ['%'] ['overall']
//! ```
//!
//! A limit states the forbidden range of the ratio of the other side's metric to the base's. It is crossed if the
//! whole 95 % interval lies in that range. With several points, Holm's correction keeps chance from crossing a limit
//! near 1. Limits on the numbers themselves are claims (`[[claim]]`) of an experiment.

use super::{Comparison, Metric, Missing, Pair};
use lowtide_core::suggest::nearest;
use lowtide_record::analysis::{Ratio, holm};
use miette::{Diagnostic, NamedSource, SourceSpan};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The one-sided significance level: a 95 % interval leaves out half of 5 % on each side.
const BEYOND: f64 = 0.025;

/// The side of the limit on which a ratio fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `>`
    Above,
}

/// The ratios to which a limit applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every point.
    Each,
    /// The geometric mean over all points.
    Overall,
}

/// A limit on the ratio of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The metric.
    pub metric: Metric,
    /// The side of the limit that fails.
    pub operator: Operator,
    /// The limit on the ratio of the other side to the base.
    pub limit: f64,
    /// Each point, or the mean.
    pub scope: Scope,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.operator == Operator::Below { '<' } else { '>' };
        let scope = if self.scope == Scope::Overall { " overall" } else { "" };
        write!(f, "{} {operator} {}{scope}", self.metric, self.limit)
    }
}

/// A syntax error in a limit.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct ThresholdError {
    message: String,
    #[source_code]
    text: Arc<NamedSource<String>>,
    #[label("{label}")]
    at: SourceSpan,
    label: String,
    #[help]
    help: String,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let mut words = words(text).into_iter();
        let mut next = |missing: &str, help: &str| {
            words.next().ok_or_else(|| {
                fault(text, text.trim_end().len()..text.len(), format!("`{text}` ends early"), missing, help)
            })
        };
        let wrong = |(at, word): (usize, &str), message: String, label: &str, help: &str| {
            fault(text, at..at + word.len(), message, label, help)
        };
        let name = next("a metric is missing", &metrics())?;
        let metric = Metric::named(name.1).ok_or_else(|| {
            let near = nearest(name.1, Metric::names());
            let near = near.map(|near| format!("did you mean `{near}`?")).unwrap_or_default();
            wrong(name, format!("there is no metric `{}`", name.1), &near, &metrics())
        })?;
        let operators = "`<`: fail below; `>`: fail above; such as `throughput < 0.95`";
        let sign = next("`<` or `>` is missing", operators)?;
        let operator = match sign.1 {
            "<" => Operator::Below,
            ">" => Operator::Above,
            other => return Err(wrong(sign, format!("there is no operator `{other}`"), "", operators)),
        };
        let limits = "a ratio above 0 and below 20, such as `0.95` or `95%`";
        let number = next("a limit is missing", limits)?;
        let percent = number.1.strip_suffix('%');
        let limit = percent.unwrap_or(number.1).parse::<f64>().ok();
        let limit = limit.map(|limit| if percent.is_some() { limit / 100.0 } else { limit });
        let limit = limit.filter(|limit| *limit > 0.0 && *limit < MOST);
        let limit =
            limit.ok_or_else(|| wrong(number, format!("`{}` is not a limit", number.1), "", limits))?;
        let scopes = "nothing (each cell), or `overall` (the geometric mean over all cells)";
        let scope = match words.next() {
            None => Scope::Each,
            Some((_, "overall")) => Scope::Overall,
            Some(word) => return Err(wrong(word, format!("unexpected `{}`", word.1), "", scopes)),
        };
        if let Some((at, word)) = words.next() {
            let help = "write `--fail-if` once for each limit";
            return Err(fault(text, at..text.len(), format!("unexpected `{word}`"), "", help));
        }
        Ok(Threshold { metric, operator, limit, scope })
    }
}

fn metrics() -> String {
    format!("metrics: {}", Metric::names().collect::<Vec<_>>().join(", "))
}

fn fault(text: &str, at: std::ops::Range<usize>, message: String, label: &str, help: &str) -> ThresholdError {
    ThresholdError {
        message,
        text: Arc::new(NamedSource::new("--fail-if", text.to_owned())),
        at: at.into(),
        label: label.to_owned(),
        help: help.to_owned(),
    }
}

/// The words of a text with their offsets. Comparison signs are words of their own.
fn words(text: &str) -> Vec<(usize, &str)> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Space,
        Sign,
        Word,
    }
    let kind = |c: char| match c {
        _ if c.is_whitespace() => Kind::Space,
        '<' | '>' | '=' | '!' => Kind::Sign,
        _ => Kind::Word,
    };
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut last = Kind::Space;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match (kind(c), words.last_mut()) {
            (Kind::Space, _) => {}
            (now, Some((begin, word))) if now == last => *word = &text[*begin..end],
            _ => words.push((at, &text[at..end])),
        }
        last = kind(c);
    }
    words
}

/// Limits from this value on are refused: they are probably percentages without the `%` sign.
const MOST: f64 = 20.0;

/// The outcome of a judged limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// At some point the whole interval lies beyond the limit.
    Crossed,
    /// No interval lies beyond the limit, but some reach beyond it.
    Undecided,
    /// Every interval ends before the limit.
    Kept,
    /// There is no ratio to judge.
    NotJudged,
}

impl Outcome {
    /// The outcome in words.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Crossed => "crossed",
            Outcome::Undecided => "undecided",
            Outcome::Kept => "kept",
            Outcome::NotJudged => "not judged",
        }
    }
}

/// The judgement of a limit for two sides.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The limit.
    pub threshold: Threshold,
    /// The outcome over all points.
    pub outcome: Outcome,
    /// The side that is compared with the base.
    pub other: String,
    /// The number of points that crossed the limit. In scope [`Scope::Overall`] the mean counts as the only point.
    pub crossed: usize,
    /// The number of points whose interval reaches beyond the limit.
    pub undecided: usize,
    /// The number of points whose interval ends before the limit.
    pub kept: usize,
    /// The number of points without a ratio.
    pub not_judged: usize,
    /// The point nearest to the limit or farthest beyond it, and its ratio.
    pub worst: Option<(String, Ratio)>,
    /// The reason, if there is nothing to judge.
    pub reason: Option<String>,
}

impl Threshold {
    /// Judges a comparison.
    pub(crate) fn judge(&self, comparison: &Comparison) -> Judged {
        let pairs: Vec<&Pair> = comparison.pairs.iter().collect();
        let found: Vec<(String, Ratio)> = match self.scope {
            Scope::Each => {
                let ratio = |pair: &&Pair| Some((pair.label(), pair.of(self.metric).ratio.ok()?));
                pairs.iter().filter_map(ratio).collect()
            }
            Scope::Overall => {
                comparison.overall(self.metric).map(|it| ("overall".to_owned(), it)).into_iter().collect()
            }
        };
        // One-sided, so that the interval alone decides for a single point.
        let probability = |ratio: &Ratio| match self.beyond(ratio) {
            true => ratio.probability(self.limit) / 2.0,
            false => 1.0,
        };
        let corrected = holm(&found.iter().map(|(_, ratio)| probability(ratio)).collect::<Vec<f64>>());
        let crossed = corrected.iter().filter(|probability| **probability < BEYOND).count();
        let kept = found.iter().filter(|(_, ratio)| self.within(ratio)).count();
        let undecided = found.len() - crossed - kept;
        let outcome = match (found.len(), crossed, undecided) {
            (0, ..) => Outcome::NotJudged,
            (_, 0, 0) => Outcome::Kept,
            (_, 0, _) => Outcome::Undecided,
            _ => Outcome::Crossed,
        };
        let reason = (outcome == Outcome::NotJudged).then(|| {
            let why = pairs.iter().find_map(|pair| pair.of(self.metric).ratio.err());
            why.map_or_else(|| "no cell in common".to_owned(), |why: Missing| why.to_string())
        });
        let how_far = |ratio: &Ratio| match self.operator {
            Operator::Below => ratio.high,
            Operator::Above => -ratio.low,
        };
        Judged {
            threshold: *self,
            outcome,
            other: comparison.other.clone(),
            crossed,
            undecided,
            kept,
            not_judged: pairs.iter().filter(|pair| pair.of(self.metric).ratio.is_err()).count(),
            worst: found.into_iter().min_by(|a, b| how_far(&a.1).total_cmp(&how_far(&b.1))),
            reason,
        }
    }

    fn beyond(&self, ratio: &Ratio) -> bool {
        match self.operator {
            Operator::Below => ratio.below(self.limit),
            Operator::Above => ratio.above(self.limit),
        }
    }

    fn within(&self, ratio: &Ratio) -> bool {
        match self.operator {
            Operator::Below => ratio.low >= self.limit,
            Operator::Above => ratio.high <= self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_parse_with_and_without_spaces() {
        let read = |text: &str| text.parse::<Threshold>().expect("valid").to_string();
        assert_eq!(read("throughput < 0.95"), "throughput < 0.95");
        assert_eq!(read(" latency_p99>110% overall "), "latency_p99 > 1.1 overall");
        assert_eq!(read("write_amplification > 1.05"), "write_amplification > 1.05");
    }

    #[test]
    fn errors_name_the_position_and_the_accepted_words() {
        for (text, at, says, help) in [
            ("thruput < 0.9", 0, "there is no metric `thruput`", "throughput, iops"),
            ("latency_p98 > 1", 0, "there is no metric `latency_p98`", "latency_p99"),
            ("iops == 1", 5, "there is no operator `==`", "`<`: fail below"),
            ("iops <= 1", 5, "there is no operator `<=`", "`<`: fail below"),
            ("iops < much", 7, "`much` is not a limit", "`95%`"),
            ("iops < -1", 7, "`-1` is not a limit", "above 0"),
            ("iops < nan", 7, "`nan` is not a limit", "above 0"),
            ("iops < 0.9 always", 11, "unexpected `always`", "`overall`"),
            ("iops < 0.9 overall iops", 19, "unexpected `iops`", "once for each"),
            ("iops <", 6, "ends early", "`0.95`"),
            ("iops", 4, "ends early", "`<`"),
            ("", 0, "ends early", "throughput"),
            ("ö < 1", 0, "there is no metric `ö`", "throughput"),
        ] {
            let error = text.parse::<Threshold>().expect_err(text);
            assert_eq!(error.at.offset(), at, "{text}");
            assert!(error.to_string().contains(says), "{text}: {error}");
            assert!(error.help.contains(help), "{text}: {}", error.help);
        }
        let error = "thruput < 0.9".parse::<Threshold>().expect_err("no such metric");
        let drawn = format!("{:?}", miette::Report::new(error));
        assert!(drawn.contains("did you mean `throughput`?") && drawn.contains("--fail-if:1:1"), "{drawn}");
    }
}
