//! Blocks that a log layer writes per block written to it, by fill, with the closed form of the literature.
//!
//! Cells that also read are left out. The amplification of the drive beneath is in another figure.

use super::{Axis, Draw, Figure, Panel, Point, Section, Series};
use crate::answer::Answer;
use crate::comparison::{Comparison, Quantity};
use crate::find::limits;
use crate::group::distinct;
use lowtide_device::DeviceSpec;
use lowtide_files::device::stored;
use lowtide_lab::experiment::Of;
use lowtide_logdisk::closed_form::by_age;
use lowtide_record::Campaign;

/// The points of the closed form's curve.
const POINTS: u32 = 50;

/// Blocks written per block, over fill; `None` unless two write-only cells behind a layer differ in fill.
pub(crate) fn by_fill(
    campaign: &Campaign,
    answers: &[Answer<'_>],
    comparisons: &[Comparison],
) -> Option<Figure> {
    let point = |a: &Answer<'_>| Some(Point::new(a.fill()? * 100.0, a.layer_amplification?));
    let writes = |a: &&Answer<'_>| a.cell.read_share == 0.0 && point(a).is_some();
    let devices = distinct(answers.iter().filter(writes).map(|answer| device(campaign, answer)));
    let mut series = Vec::new();
    for (n, name) in devices.iter().enumerate() {
        let of_device = answers.iter().filter(writes).filter(|a| device(campaign, a) == *name);
        let mut points: Vec<Point> = of_device.filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (first, last) = (points.first()?.x, points.last()?.x);
        let label = if devices.len() > 1 { (*name).to_owned() } else { "the layer".to_owned() };
        if let Some(form) = closed_form(campaign, name, first, last) {
            series.push(Series::context(if n == 0 { "closed form" } else { "" }, form));
        }
        series.push(Series::new(label, n, Draw::LineAndMarkers, points));
    }
    let differ = |s: &Series| s.draw == Draw::LineAndMarkers && s.points.iter().any(|p| p.x != s.points[0].x);
    if !series.iter().any(differ) {
        return None;
    }
    let of_cell = |cell: u32, value: f64| {
        let answer = answers.iter().find(|a| a.cell.index == cell)?;
        Some(Point::new(answer.fill()? * 100.0, value))
    };
    let published = comparisons.iter().filter(|c| c.quantity == Quantity::LayerAmplification);
    let published: Vec<Point> = published.filter_map(|c| of_cell(c.cell?, c.published)).collect();
    let limits = limits(campaign, Of::LayerAmplification).into_iter();
    let limits: Vec<Point> = limits.filter_map(|(cell, most)| of_cell(cell, most)).collect();
    let mut caption =
        "Blocks and map pages that the log layer wrote for each block written to it, in cells that only write. The grey \
         line is the closed form for uniform writes with segments cleaned in order of age (Desnoyers 2012)."
            .to_owned();
    for (n, (label, points, explanation)) in [
        ("published", published, " Hollow markers: published numbers."),
        ("most by a claim", limits, " Hollow markers of a claim: its upper limit."),
    ]
    .into_iter()
    .enumerate()
    {
        if !points.is_empty() {
            caption.push_str(explanation);
            series.push(Series::new(label, n, Draw::Hollow, points));
        }
    }
    let x = Axis::linear("data as a share of the capacity (%)");
    let y = Axis { at_least: 1.0, ..Axis::linear("blocks written per block") };
    let panels = vec![Panel::new(x, y, series)];
    let (name, title) = ("layer-amplification-by-fill", "What the log layer writes by fill");
    Some(Figure::new(name, title, Section::Wear, caption, panels))
}

/// The name of a cell's device.
fn device<'a>(campaign: &'a Campaign, answer: &Answer<'a>) -> &'a str {
    let target = campaign.target.strip_prefix("device:").unwrap_or_default();
    answer.cell.level("device").unwrap_or(target)
}

/// The closed form between two fills in percent; `None` if the device is unknown, or if its description refers to a
/// file of the user, which may have changed.
fn closed_form(campaign: &Campaign, name: &str, first: f64, last: f64) -> Option<Vec<Point>> {
    if campaign.devices.iter().any(|text| text.lines().any(refers_to_a_file)) {
        return None;
    }
    let DeviceSpec::Log(log) = stored(&campaign.devices, name)?.spec.scaled(campaign.scale) else {
        return None;
    };
    let at = |n: u32| first + (last - first) * f64::from(n) / f64::from(POINTS);
    (0..=POINTS).map(|n| Some(Point::new(at(n), by_age(log.live_share(at(n) / 100.0)?)))).collect()
}

/// Returns whether a line of a device file refers to another file by its path.
fn refers_to_a_file(line: &str) -> bool {
    let (key, value) = line.split_once('=').unwrap_or_default();
    let value = value.split('#').next().unwrap_or_default();
    matches!(key.trim(), "over" | "like") && (value.contains('/') || value.contains(".toml"))
}
