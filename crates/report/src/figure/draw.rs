//! Draws a panel with plotters: bands, axes, marks, series, legend, in that order from back to front.
//!
//! The canvas is ten times as fine as the page, because plotters places elements at whole units. plotters' SVG
//! backend does not know dashes; [`super::svg`] adds them.

use super::axis::Layout;
use super::style::{BAND, COUNT, GRID, INK, MUTED, PAPER, colour};
use super::{Draw, Look, Mark, Panel, Point, Series};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Canvas units per pixel.
pub(crate) const FINE: i32 = 10;
/// Stroke width of series lines in canvas units, which no other line has.
pub(crate) const LINE: u32 = 17;
/// Pixels left free on both sides.
const PAD: i32 = 2;
/// The length of a dash and of the gap after it.
const DASH: f64 = 6.0 * FINE as f64;
const CANNOT_FAIL: &str = "drawing into a String cannot fail";

type Canvas<'b> = DrawingArea<SVGBackend<'b>, plotters::coord::Shift>;

/// The size of a panel in pixels.
pub(crate) fn size(panel: &Panel) -> (i32, i32) {
    if panel.small { (290, 182) } else { (660, 354 + legend_rows(panel) * 20) }
}

/// The position of the data on the canvas.
struct Plot {
    x: Layout,
    y: Layout,
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Plot {
    fn px(&self, x: f64) -> i32 {
        self.even_x(self.x.place(x))
    }
    fn py(&self, y: f64) -> i32 {
        self.even_y(self.y.place(y))
    }
    fn even_x(&self, even: f64) -> i32 {
        let share = (even - self.x.from) / (self.x.to - self.x.from);
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }
    fn even_y(&self, even: f64) -> i32 {
        let share = (even - self.y.from) / (self.y.to - self.y.from);
        self.bottom - (share * f64::from(self.bottom - self.top)).round() as i32
    }
}

/// Draws a panel of the given size in pixels.
pub(crate) fn draw(canvas: &Canvas<'_>, panel: &Panel, (width, height): (i32, i32)) {
    let head = if panel.small { 40 } else { 32 + legend_rows(panel) * 20 };
    let y = Layout::y(panel);
    let widest = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(1) as i32;
    let plot = Plot {
        x: Layout::x(panel),
        left: (PAD + 6 + widest * 7) * FINE,
        top: head * FINE,
        right: (width - 12) * FINE,
        bottom: (height - 36) * FINE,
        y,
    };
    for (from, to) in &panel.bands {
        rect(canvas, (plot.px(*from), plot.top), (plot.px(*to), plot.bottom), BAND);
    }
    axes(canvas, panel, &plot);
    for mark in &panel.marks {
        let (x, label, anchor, gap) = match mark {
            Mark::Vertical { x, label } => {
                let at = plot.px(*x);
                line(canvas, &[(at, plot.top), (at, plot.bottom)], MUTED, 12);
                let left = at > (plot.left + plot.right) / 2;
                let (anchor, gap) = if left { (HPos::Right, -4) } else { (HPos::Left, 4) };
                (x, label, anchor, gap)
            }
            Mark::Label { x, label } => (x, label, HPos::Center, 0),
            Mark::Level { .. } => continue,
        };
        text(canvas, label, (plot.px(*x) + gap * FINE, plot.top + 8 * FINE), 11, MUTED, anchor, false);
    }
    for series in &panel.series {
        draw_series(canvas, series, &plot);
    }
    for mark in &panel.marks {
        if let Mark::Level { y, half_width, from_to } = mark {
            let (left, right) = (plot.px(from_to.0), plot.px(from_to.1));
            line(canvas, &[(left, plot.py(*y)), (right, plot.py(*y))], INK, 20);
            let (low, high) = (plot.py(y - half_width), plot.py(y + half_width));
            if low - high >= 6 * FINE {
                line(canvas, &[(left, low), (right, low)], INK, 7);
                line(canvas, &[(left, high), (right, high)], INK, 7);
            }
        }
    }
    let title_size = if panel.small { 12 } else { 13 };
    text(
        canvas,
        &cut(&panel.title, width, title_size),
        (PAD * FINE, 9 * FINE),
        title_size,
        INK,
        HPos::Left,
        true,
    );
    text(canvas, &panel.aside, (plot.right, plot.top - 15 * FINE), 11, INK, HPos::Right, false);
    legend(canvas, panel, width);
}

fn axes(canvas: &Canvas<'_>, panel: &Panel, plot: &Plot) {
    for (even, label) in &plot.y.ticks {
        let y = plot.even_y(*even);
        line(canvas, &[(plot.left, y), (plot.right, y)], GRID, 10);
        text(canvas, label, (plot.left - 5 * FINE, y), 11, MUTED, HPos::Right, false);
    }
    line(canvas, &[(plot.left, plot.bottom), (plot.right, plot.bottom)], MUTED, 10);
    let mut free_from = i32::MIN;
    for (even, label) in &plot.x.ticks {
        let x = plot.even_x(*even);
        line(canvas, &[(x, plot.bottom), (x, plot.bottom + 4 * FINE)], MUTED, 10);
        // A label that would touch the one before it is left out.
        let half = text_width(label, 11) / 2 * FINE;
        if x - half >= free_from {
            text(canvas, label, (x, plot.bottom + 11 * FINE), 11, MUTED, HPos::Center, false);
            free_from = x + half + 6 * FINE;
        }
    }
    text(canvas, &panel.x.label, (plot.right, plot.bottom + 26 * FINE), 11, INK, HPos::Right, false);
    text(canvas, &panel.y.label, (PAD * FINE, plot.top - 15 * FINE), 11, INK, HPos::Left, false);
}

fn draw_series(canvas: &Canvas<'_>, series: &Series, plot: &Plot) {
    let colour = colour(series.look);
    let at = |p: &Point| (plot.px(p.x), plot.py(p.y));
    let path: Vec<(i32, i32)> = series.points.iter().map(at).collect();
    match series.draw {
        Draw::Line => line(canvas, &path, colour, if series.look == Look::Context { 8 } else { LINE }),
        Draw::LineAndMarkers => {
            line(canvas, &path, colour, LINE);
            for (point, position) in series.points.iter().zip(&path) {
                error_bar(canvas, point, position.0, plot, colour, 7 * FINE);
                marker(canvas, series.look, *position, false);
            }
        }
        Draw::Dashed => {
            dashes(canvas, &path, colour);
            for (point, position) in series.points.iter().zip(&path) {
                error_bar(canvas, point, position.0, plot, colour, 0);
            }
        }
        Draw::Hollow => path.iter().for_each(|position| marker(canvas, series.look, *position, true)),
        Draw::Bars => {
            let gap = path.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(20 * FINE);
            let half = (gap * 9 / 20).clamp(FINE / 2, 12 * FINE);
            for (x, y) in path {
                rect(canvas, (x - half, y), (x + half, plot.bottom), colour);
            }
        }
    }
}

/// The interval of a point, unless it is shorter than `least`.
fn error_bar(canvas: &Canvas<'_>, point: &Point, x: i32, plot: &Plot, colour: RGBColor, least: i32) {
    let (low, high) = (plot.py(point.y - point.half_width), plot.py(point.y + point.half_width));
    if low - high > least {
        let cap = 3 * FINE;
        for bar in
            [[(x, low), (x, high)], [(x - cap, low), (x + cap, low)], [(x - cap, high), (x + cap, high)]]
        {
            line(canvas, &bar, colour, 12);
        }
    }
}

/// A dashed line.
fn dashes(canvas: &Canvas<'_>, path: &[(i32, i32)], colour: RGBColor) {
    for pair in path.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (x1 - x0).hypot(y1 - y0);
        let at = |far: f64| {
            let share = (far / length).min(1.0);
            ((x0 + (x1 - x0) * share).round() as i32, (y0 + (y1 - y0) * share).round() as i32)
        };
        let mut far = 0.0;
        while far < length {
            line(canvas, &[at(far), at(far + DASH)], colour, 12);
            far += 2.0 * DASH;
        }
    }
}

/// The outline of a marker around the origin, with a radius of about 4 pixels; empty for a circle.
fn outline(look: Look) -> Vec<(i32, i32)> {
    let Look::Numbered(n) = look else { return Vec::new() };
    match n % COUNT {
        1 => vec![(-33, -33), (33, -33), (33, 33), (-33, 33)],
        2 => vec![(0, -46), (42, 32), (-42, 32)],
        3 => vec![(0, -48), (44, 0), (0, 48), (-44, 0)],
        4 => vec![(0, 46), (42, -32), (-42, -32)],
        5 => vec![(-45, -14), (45, -14), (45, 14), (-45, 14)],
        6 => vec![(-14, -45), (14, -45), (14, 45), (-14, 45)],
        _ => Vec::new(),
    }
}

fn marker(canvas: &Canvas<'_>, look: Look, (x, y): (i32, i32), hollow: bool) {
    let grow =
        |(dx, dy): (i32, i32)| if hollow { (x + dx * 13 / 10, y + dy * 13 / 10) } else { (x + dx, y + dy) };
    let shape: Vec<(i32, i32)> = outline(look).into_iter().map(grow).collect();
    let (colour, inside) = (colour(look), if hollow { PAPER } else { colour(look) });
    if shape.is_empty() {
        let radius = if hollow { 46 } else { 36 };
        canvas.draw(&Circle::new((x, y), radius, inside.filled())).expect(CANNOT_FAIL);
        if hollow {
            canvas.draw(&Circle::new((x, y), radius, colour.stroke_width(15))).expect(CANNOT_FAIL);
        }
        return;
    }
    canvas.draw(&Polygon::new(shape.clone(), inside.filled())).expect(CANNOT_FAIL);
    if hollow {
        let closed: Vec<(i32, i32)> = shape.iter().chain(&shape[..2]).copied().collect();
        line(canvas, &closed, colour, 15);
    }
}

/// The legend's entries, each with its row and its x in pixels.
fn legend_places(panel: &Panel, width: i32) -> Vec<(i32, i32, &Series)> {
    let named: Vec<&Series> = panel.series.iter().filter(|s| !s.label.is_empty()).collect();
    if panel.small || named.len() < 2 {
        return Vec::new();
    }
    let (mut x, mut row) = (PAD, 0);
    let mut places = Vec::new();
    for series in named {
        let wide = 34 + text_width(&series.label, 12) + 14;
        if x > PAD && x + wide > width {
            (x, row) = (PAD, row + 1);
        }
        places.push((row, x, series));
        x += wide;
    }
    places
}

fn legend_rows(panel: &Panel) -> i32 {
    legend_places(panel, 660).last().map_or(0, |(row, _, _)| row + 1)
}

fn legend(canvas: &Canvas<'_>, panel: &Panel, width: i32) {
    for (row, x, series) in legend_places(panel, width) {
        let y = (12 + row * 20) * FINE;
        let (left, right) = (x * FINE, (x + 28) * FINE);
        match series.draw {
            Draw::Hollow => {}
            Draw::Dashed => dashes(canvas, &[(left, y), (right, y)], colour(series.look)),
            Draw::Line | Draw::LineAndMarkers | Draw::Bars => {
                line(canvas, &[(left, y), (right, y)], colour(series.look), LINE);
            }
        }
        if matches!(series.draw, Draw::Hollow | Draw::LineAndMarkers) {
            marker(canvas, series.look, ((left + right) / 2, y), series.draw == Draw::Hollow);
        }
        text(canvas, &series.label, (right + 5 * FINE, y), 12, INK, HPos::Left, false);
    }
}

fn line(canvas: &Canvas<'_>, points: &[(i32, i32)], colour: RGBColor, width: u32) {
    if points.len() > 1 {
        canvas.draw(&PathElement::new(points.to_vec(), colour.stroke_width(width))).expect(CANNOT_FAIL);
    }
}

fn rect(canvas: &Canvas<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) {
    canvas.draw(&Rectangle::new([from, to], colour.filled())).expect(CANNOT_FAIL);
}

fn text(
    canvas: &Canvas<'_>,
    words: &str,
    at: (i32, i32),
    pixels: i32,
    colour: RGBColor,
    anchor: HPos,
    bold: bool,
) {
    if words.is_empty() {
        return;
    }
    // plotters divides font sizes by 1.24 to get SVG's.
    let size = f64::from(pixels * FINE) * 1.24;
    let weight = if bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = FontDesc::new(FontFamily::Name("sans-serif"), size, weight);
    let style = TextStyle::from(font).color(&colour).pos(Pos::new(anchor, VPos::Center));
    canvas.draw_text(words, &style, at).expect(CANNOT_FAIL);
}

/// `words`, truncated to a panel of `width` pixels.
fn cut(words: &str, width: i32, pixels: i32) -> String {
    let room = (f64::from(width - 2 * PAD) / (f64::from(pixels) * 0.58)) as usize;
    if words.chars().count() <= room {
        return words.to_owned();
    }
    words.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// The approximate width of `words` at a font size of `pixels`.
fn text_width(words: &str, pixels: i32) -> i32 {
    (words.chars().count() as f64 * f64::from(pixels) * 0.56).ceil() as i32
}
