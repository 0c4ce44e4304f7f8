//! Erase counts: the distribution of wear over the blocks of the device.

use super::{Axis, Draw, Figure, Panel, Point, Scale, Section, Series};
use crate::answer::Answer;
use crate::number::{fixed, significant};

const MOST_BARS: u64 = 60;

/// The distribution of erase counts after the last cell that has one.
pub(crate) fn erase_counts(answers: &[Answer<'_>]) -> Option<Figure> {
    let last = answers.iter().rev().find(|a| !a.cell.wear.is_empty())?;
    let wear = &last.cell.wear;
    let (least, most) = (wear.iter().map(|w| w.0).min()?, wear.iter().map(|w| w.0).max()?);
    let blocks: u64 = wear.iter().map(|w| w.1).sum();
    let mean = wear.iter().map(|w| w.0 as f64 * w.1 as f64).sum::<f64>() / blocks.max(1) as f64;
    let width = ((most - least + 1).div_ceil(MOST_BARS)).max(1);
    let mut bars: Vec<Point> = (0..=(most - least) / width)
        .map(|bin| Point::new((least + bin * width) as f64 + (width - 1) as f64 / 2.0, 0.0))
        .collect();
    for (erases, count) in wear {
        bars[((erases - least) / width) as usize].y += *count as f64;
    }
    let mut caption = format!(
        "Blocks by how often they were erased, after cell {}: {} blocks, {} to {} erases, {} on average.",
        last.cell.index,
        fixed(blocks as f64, 0),
        fixed(least as f64, 0),
        fixed(most as f64, 0),
        significant(mean)
    );
    if width > 1 {
        caption.push_str(&format!(" Each bar covers {width} counts."));
    }
    let x = Axis::new("erases", Scale::LinearFromData);
    let panels = vec![Panel::new(x, Axis::linear("blocks"), vec![Series::new("", 0, Draw::Bars, bars)])];
    Some(Figure::new("erase-counts", "Erase counts", Section::Wear, caption, panels))
}
