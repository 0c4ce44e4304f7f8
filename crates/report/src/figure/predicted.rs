//! Levels by size that were not measured, on the curves of those that were: dashed, with their intervals.
//!
//! Not here: how they are predicted (`lowtide_studies::adaptive`).

use super::{Draw, Figure, Look, Point, Series};
use crate::answer::Answer;
use crate::sweep::identity;
use lowtide_record::{Campaign, Cell};

const GIB: f64 = (1u64 << 30) as f64;
/// The factors that say how much data there is.
const SIZES: [&str; 2] = ["file_size", "utilisation"];

/// Adds them to the figure of levels by size, where there is one.
pub(super) fn add(campaign: &Campaign, answers: &[Answer<'_>], figures: &mut [Figure]) {
    let by_size = figures.iter_mut().find(|figure| figure.name.ends_with("-by-size"));
    let Some(panel) = by_size.and_then(|figure| {
        figure.caption.push_str(
            " Dashed: sizes that were not measured, with the 95 % interval of what the others tell of them.",
        );
        figure.panels.first_mut()
    }) else {
        return;
    };
    panel.series.extend(dashed(campaign, answers));
}

/// A line for each curve of which something is predicted, in the look of that curve; the first of them has the label.
fn dashed(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<Series> {
    let mut curves: Vec<(Vec<String>, Vec<Point>, bool)> = Vec::new();
    // Those that were measured first: the curves that are drawn already are in the order of these.
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
    let mut labels = std::iter::once("predicted".to_owned()).chain(std::iter::repeat(String::new()));
    let some = curves.into_iter().enumerate().filter(|(_, (.., predicted))| *predicted);
    some.map(|(n, (_, mut points, _))| {
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let label = labels.next().expect("they do not end");
        Series { label, look: Look::Numbered(n), draw: Draw::Dashed, points }
    })
    .collect()
}

/// Where a cell lies: as predicted, or as measured.
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
    use crate::sample;
    use lowtide_record::{Predicted, Status};

    #[test]
    fn only_curves_with_something_predicted_are_dashed_and_the_first_of_them_is_named() {
        let mut campaign = sample::campaign("t", "t");
        for (n, (threads, gib)) in
            [1u32, 4, 16].iter().flat_map(|t| [8u64, 16, 32].map(|gib| (*t, gib))).enumerate()
        {
            let (size, of) = (format!("{gib}GiB"), threads.to_string());
            let mut cell = sample::pending(n as u32, &[("threads", &of), ("file_size", &size)]);
            (cell.data, cell.threads) = (lowtide_core::Bytes::gib(gib), threads);
            campaign.cells.push(sample::measured(cell, 20, 10, |_| 100.0));
        }
        // Of the second and the third curve a size was not measured.
        for spared in [4, 6] {
            let cell = &mut campaign.cells[spared];
            (cell.status, cell.verdict) = (Status::Spared, None);
            cell.predicted = Some(Predicted { level: 90.0, low: 88.0, high: 92.0 });
        }
        let answers: Vec<Answer<'_>> = campaign
            .cells
            .iter()
            .filter(|cell| cell.status == Status::Done)
            .map(|cell| Answer::of(cell, campaign.scale))
            .collect();
        let lines = dashed(&campaign, &answers);
        let said: Vec<(Look, &str)> = lines.iter().map(|it| (it.look, it.label.as_str())).collect();
        assert_eq!(said, [(Look::Numbered(1), "predicted"), (Look::Numbered(2), "")]);
        for line in &lines {
            let sizes: Vec<f64> = line.points.iter().map(|point| point.x).collect();
            assert_eq!(sizes, [8.0, 16.0, 32.0]);
        }
        assert_eq!(lines[0].points.iter().filter(|point| point.half_width > 0.0).count(), 1);
    }
}
