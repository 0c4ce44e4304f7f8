//! Levels by size that were not measured, on the curves of those that were: dashed, with their intervals.
//!
//! Leaves out how they are predicted (`crate::adaptive`).

use super::{Draw, Figure, Look, Point, Series};
use crate::record::{Campaign, Cell};
use crate::report::answer::Answer;
use crate::report::sweep::identity;

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
    let mut curves: Vec<(Vec<String>, Vec<Point>)> = Vec::new();
    for cell in &campaign.cells {
        let Some(point) = point(cell, answers, campaign.scale) else { continue };
        let others = identity(cell).into_iter().filter(|(name, _)| !SIZES.contains(&name.as_str()));
        let others: Vec<String> = others.map(|(_, value)| value).collect();
        match curves.iter_mut().find(|(known, _)| *known == others) {
            Some((_, points)) => points.push(point),
            None => curves.push((others, vec![point])),
        }
    }
    for (n, (_, mut points)) in curves.into_iter().enumerate() {
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let label = if n == 0 { "predicted".to_owned() } else { String::new() };
        panel.series.push(Series { label, look: Look::Numbered(n), draw: Draw::Dashed, points });
    }
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
