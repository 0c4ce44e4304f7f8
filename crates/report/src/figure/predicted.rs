//! Predicted levels by size, dashed and with their intervals, on the curves of measured levels.
//!
//! The prediction itself is in `lowtide_studies::adaptive`.

use super::{Draw, Figure, Point, Series};
use crate::answer::Answer;
use crate::sweep::identity;
use lowtide_record::{Campaign, Cell};

const GIB: f64 = (1u64 << 30) as f64;
/// The factors that set the amount of data.
const SIZES: [&str; 2] = ["file_size", "utilisation"];

/// Adds predicted levels to the figure of levels by size, if there is one.
pub(super) fn add(campaign: &Campaign, answers: &[Answer<'_>], figures: &mut [Figure]) {
    let by_size = figures.iter_mut().find(|figure| figure.name.ends_with("-by-size"));
    let Some(panel) = by_size.and_then(|figure| {
        figure.caption.push_str(
            " Dashed: sizes that were not measured, with the 95 % interval predicted from the measured sizes.",
        );
        figure.panels.first_mut()
    }) else {
        return;
    };
    panel.series.extend(dashed(campaign, answers));
}

/// A line for each curve with a predicted point, in the look of that curve; the first line has the label.
fn dashed(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<Series> {
    let mut curves: Vec<(Vec<String>, Vec<Point>, bool)> = Vec::new();
    // Measured cells come first, so that curves have the order in which they are drawn.
    let [measured, spared] =
        [false, true].map(|wanted| campaign.cells.iter().filter(move |it| it.predicted.is_some() == wanted));
    for cell in measured.chain(spared) {
        let Some(point) = point(cell, answers, campaign.scale) else { continue };
        let predicted = cell.predicted.is_some();
        let others = identity(cell).into_iter().filter(|it| !SIZES.contains(&it.name.as_str()));
        let others: Vec<String> = others.map(|it| it.level).collect();
        match curves.iter_mut().find(|(known, ..)| *known == others) {
            Some((_, points, any)) => {
                points.push(point);
                *any |= predicted;
            }
            None => curves.push((others, vec![point], predicted)),
        }
    }
    let some = curves.into_iter().enumerate().filter(|(_, (.., predicted))| *predicted);
    some.enumerate()
        .map(|(at, (n, (_, mut points, _)))| {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series::new(if at == 0 { "predicted" } else { "" }, n, Draw::Dashed, points)
        })
        .collect()
}

/// The predicted or the measured point of a cell.
fn point(cell: &Cell, answers: &[Answer<'_>], scale: u64) -> Option<Point> {
    let x = cell.data.get() as f64 * scale as f64 / GIB;
    if let Some(predicted) = cell.predicted {
        return Some(Point { x, y: predicted.level, half_width: predicted.half_width() });
    }
    let answer = answers.iter().find(|answer| answer.cell.index == cell.index)?;
    Some(Point::new(x, answer.settled.map(|it| it.mean).or(answer.end)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Look;
    use crate::sample;
    use lowtide_record::{Predicted, Status};

    #[test]
    fn only_curves_with_predicted_points_are_dashed_and_the_first_is_labelled() {
        let mut campaign = sample::campaign("t", "t");
        for (n, (threads, gib)) in
            [1u32, 4, 16].iter().flat_map(|t| [8u64, 16, 32].map(|gib| (*t, gib))).enumerate()
        {
            let (size, of) = (format!("{gib}GiB"), threads.to_string());
            let mut cell = sample::pending(n as u32, &[("threads", &of), ("file_size", &size)]);
            (cell.data, cell.threads) = (lowtide_core::Bytes::gib(gib), threads);
            campaign.cells.push(sample::measured(cell, 20, 10, |_| 100.0));
        }
        // One size of the second and of the third curve is predicted.
        for spared in [4, 6] {
            let cell = &mut campaign.cells[spared];
            (cell.status, cell.verdict) = (Status::Spared, None);
            cell.predicted = Some(Predicted { level: 90.0, low: 88.0, high: 92.0 });
        }
        let answers = Answer::of_all(&campaign);
        let lines = dashed(&campaign, &answers);
        let looks: Vec<(Look, &str)> = lines.iter().map(|it| (it.look, it.label.as_str())).collect();
        assert_eq!(looks, [(Look::Numbered(1), "predicted"), (Look::Numbered(2), "")]);
        for line in &lines {
            let sizes: Vec<f64> = line.points.iter().map(|point| point.x).collect();
            assert_eq!(sizes, [8.0, 16.0, 32.0]);
        }
        assert_eq!(lines[0].points.iter().filter(|point| point.half_width > 0.0).count(), 1);
    }
}
