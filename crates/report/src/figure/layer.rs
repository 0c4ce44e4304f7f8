//! What a log layer writes for each block written to it, by how full it is, with the closed form of the literature beside.
//!
//! Not here: cells that also read, and the drive beneath, whose own amplification is another figure.

use super::{Axis, Draw, Figure, Look, Panel, Part, Point, Scale, Series};
use crate::answer::Answer;
use crate::comparison::{Comparison, Quantity};
use crate::find::limits;
use lowtide_device::DeviceSpec;
use lowtide_files::device::stored;
use lowtide_lab::experiment::Of;
use lowtide_logdisk::closed_form::by_age;
use lowtide_record::Campaign;

/// Points of the closed form's curve.
const POINTS: u32 = 50;

/// Blocks written for a block, over fill; `None` where no two cells that only write behind a layer differ in fill.
pub(crate) fn by_fill(
    campaign: &Campaign,
    answers: &[Answer<'_>],
    comparisons: &[Comparison],
) -> Option<Figure> {
    let point = |a: &Answer<'_>| Some(Point::new(a.fill()? * 100.0, a.layer_amplification?));
    let writes = |a: &&Answer<'_>| a.cell.read_share == 0.0 && point(a).is_some();
    let mut devices: Vec<&str> = Vec::new();
    for answer in answers.iter().filter(writes) {
        let name = device(campaign, answer);
        if !devices.contains(&name) {
            devices.push(name);
        }
    }
    let mut series = Vec::new();
    for (n, name) in devices.iter().enumerate() {
        let of_device = answers.iter().filter(writes).filter(|a| device(campaign, a) == *name);
        let mut points: Vec<Point> = of_device.filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let (first, last) = (points.first()?.x, points.last()?.x);
        let label = if devices.len() > 1 { (*name).to_owned() } else { "the layer".to_owned() };
        if let Some(form) = closed_form(campaign, name, first, last) {
            let label = if n == 0 { "closed form".to_owned() } else { String::new() };
            series.push(Series { label, look: Look::Context, draw: Draw::Line, points: form });
        }
        series.push(Series { label, look: Look::Numbered(n), draw: Draw::LineAndMarkers, points });
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
    let mut caption = "Blocks and pages of the map that the log layer wrote for each block written to it, of cells that only write. \
         The grey line is the closed form of uniform writes where segments are cleaned in the order of age \
         (Desnoyers 2012)."
        .to_owned();
    for (n, (label, points, told)) in [
        ("published", published, " Hollow markers: published numbers."),
        ("most by a claim", limits, " Hollow markers of a claim: the most that it allows."),
    ]
    .into_iter()
    .enumerate()
    {
        if !points.is_empty() {
            caption.push_str(told);
            series.push(Series {
                label: label.to_owned(),
                look: Look::Numbered(n),
                draw: Draw::Hollow,
                points,
            });
        }
    }
    Some(Figure {
        name: "layer-amplification-by-fill".to_owned(),
        title: "What the log layer writes by fill".to_owned(),
        caption,
        part: Part::Wear,
        panels: vec![Panel {
            x: Axis { label: "data as a share of the capacity (%)".to_owned(), ..Axis::default() },
            y: Axis { label: "blocks written per block".to_owned(), scale: Scale::Linear, at_least: 1.0 },
            series,
            ..Panel::default()
        }],
    })
}

/// The name of a cell's device.
fn device<'a>(campaign: &'a Campaign, answer: &Answer<'a>) -> &'a str {
    let target = campaign.target.strip_prefix("device:").unwrap_or_default();
    answer.cell.level("device").unwrap_or(target)
}

/// The closed form between two fills, in percent; `None` where the device is not known any more, or lies on a file of the user's own,
/// which may have changed since.
fn closed_form(campaign: &Campaign, name: &str, first: f64, last: f64) -> Option<Vec<Point>> {
    let own = |text: &&String| text.lines().any(refers_to_a_file);
    if campaign.devices.iter().any(|text| own(&text)) {
        return None;
    }
    let DeviceSpec::Log(log) = stored(&campaign.devices, name)?.spec.scaled(campaign.scale) else {
        return None;
    };
    let at = |n: u32| first + (last - first) * f64::from(n) / f64::from(POINTS);
    (0..=POINTS).map(|n| Some(Point::new(at(n), by_age(log.live_share(at(n) / 100.0)?)))).collect()
}

/// Whether a line of a device file names another by its path.
fn refers_to_a_file(line: &str) -> bool {
    let (key, value) = line.split_once('=').unwrap_or_default();
    let value = value.split('#').next().unwrap_or_default();
    matches!(key.trim(), "over" | "like") && (value.contains('/') || value.contains(".toml"))
}
