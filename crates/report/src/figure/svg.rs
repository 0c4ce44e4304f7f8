//! SVG text: a panel for inlining, or a figure as a document of its own.
//!
//! plotters writes the elements ([`super::draw`]). Its SVG backend has no dashes, so this module adds them to the
//! written text. Figures are not interactive; their numbers are in the tables.

use super::draw::{FINE, LINE, draw, size};
use super::style::{INK, PAPER, css, dashes, hex};
use super::{Figure, Panel};
use plotters::prelude::*;

/// Pixels left free around a document.
const EDGE: i32 = 12;

/// A panel as an `<svg>` element for inlining, styled by [`css`].
pub(crate) fn panel(panel: &Panel) -> String {
    let (width, height) = size(panel);
    let label = if panel.title.is_empty() { &panel.y.label } else { &panel.title };
    format!(
        "<svg class=\"lt\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" width=\"{width}\" height=\"{height}\">{}</svg>",
        escape(label),
        width * FINE,
        height * FINE,
        drawing(panel)
    )
}

/// A figure as an SVG document with its title.
pub(crate) fn document(figure: &Figure) -> String {
    let small = figure.panels.first().is_some_and(|p| p.small);
    let across = if small { figure.panels.len().clamp(1, 3) } else { 1 };
    let cell = |axis: fn((i32, i32)) -> i32| figure.panels.iter().map(|p| axis(size(p))).max().unwrap_or(0);
    let (width, height) = (cell(|s| s.0), cell(|s| s.1));
    let (total_width, head) = ((width * across as i32 + 2 * EDGE).max(480), 34);
    let total_height = head + EDGE + height * figure.panels.len().div_ceil(across) as i32;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lt\" role=\"img\" viewBox=\"0 0 {total_width} {total_height}\" \
         width=\"{total_width}\" height=\"{total_height}\">\n<title>{}</title>\n<desc>{}</desc>\n<style>{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n<text x=\"{EDGE}\" y=\"24\" font-family=\"sans-serif\" \
         font-size=\"15\" font-weight=\"bold\" fill=\"{}\">{}</text>\n",
        escape(&figure.title),
        escape(&figure.caption),
        css(),
        hex(PAPER),
        hex(INK),
        escape(&figure.title),
    );
    for (i, panel) in figure.panels.iter().enumerate() {
        let (x, y) = (EDGE + (i % across) as i32 * width, head + (i / across) as i32 * height);
        let (w, h) = size(panel);
        out.push_str(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {} {}\">{}</svg>\n",
            w * FINE,
            h * FINE,
            drawing(panel)
        ));
    }
    out.push_str("</svg>\n");
    out
}

/// The elements between `<svg>` and `</svg>`.
fn drawing(panel: &Panel) -> String {
    let (width, height) = size(panel);
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, ((width * FINE) as u32, (height * FINE) as u32));
        let canvas = backend.into_drawing_area();
        draw(&canvas, panel, (width, height));
        canvas.present().expect("drawing into a String cannot fail");
    }
    let body = text.split_once('>').map_or("", |(_, rest)| rest).trim().trim_end_matches("</svg>");
    let mut body = body
        .replace(" opacity=\"1\"", "")
        .replace(" \"/>", "\"/>")
        .replace("\">\n", "\">")
        .replace("\n</text>", "</text>");
    for (hex, pattern) in dashes() {
        let stroke = format!("stroke=\"{hex}\" stroke-width=\"{LINE}\"");
        body = body.replace(&stroke, &format!("{stroke} stroke-dasharray=\"{pattern}\""));
    }
    body
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
