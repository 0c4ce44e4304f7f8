//! The looks of series (colour, dash and marker), and the style sheet for dark screens.
//!
//! Colours are Okabe and Ito's palette for the colour-blind (2008), darkened for thin lines. The drawing has plain
//! presentation attributes, so it is correct without a style sheet. On a dark screen the style sheet overrides
//! these attributes by their value.

use super::Look;
use plotters::style::RGBColor;

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x26, 0x2b);
/// Secondary text.
pub(crate) const MUTED: RGBColor = RGBColor(0x5b, 0x63, 0x6c);
/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xe9);
/// Background, and the inside of hollow markers.
pub(crate) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// The steady window.
pub(crate) const BAND: RGBColor = RGBColor(0xe6, 0xee, 0xf5);
/// Context lines.
pub(crate) const FAINT: RGBColor = RGBColor(0xb4, 0xba, 0xc1);

/// Colour of a look on white, on black, and its dashes in tenths of a pixel.
const LOOKS: [(RGBColor, &str, &str); 7] = [
    (RGBColor(0x00, 0x5f, 0x9e), "#5db4f0", ""),
    (RGBColor(0xc4, 0x4e, 0x00), "#ff9248", "70 30"),
    (RGBColor(0x00, 0x85, 0x60), "#3fcf9f", "20 25"),
    (RGBColor(0xa8, 0x48, 0x80), "#eb9cc6", "110 30 20 30"),
    (RGBColor(0x8a, 0x66, 0x00), "#f0bd41", "130 40"),
    (RGBColor(0x4a, 0x4f, 0x55), "#c4cad1", "40 40"),
    (RGBColor(0x1f, 0x93, 0xb8), "#7fd6ef", "60 20"),
];

/// The number of distinct looks.
pub(crate) const COUNT: usize = LOOKS.len();

/// Colour of a look.
pub(crate) fn colour(look: Look) -> RGBColor {
    match look {
        Look::Numbered(n) => LOOKS[n % COUNT].0,
        Look::Context => FAINT,
    }
}

/// The stroke colours with dashes, as SVG writes both.
pub(crate) fn dashes() -> impl Iterator<Item = (String, &'static str)> {
    LOOKS.iter().filter(|look| !look.2.is_empty()).map(|look| (hex(look.0), look.2))
}

/// `#RRGGBB`, as the drawing writes it.
pub(crate) fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// The style sheet of all figures.
pub(crate) fn css() -> String {
    let mut css = String::from(
        "svg.lt text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif}\n\
         @media screen and (prefers-color-scheme:dark){\n",
    );
    let mut rule = |colour: RGBColor, dark: &str| {
        let hex = hex(colour);
        css.push_str(&format!(
            "svg.lt [stroke=\"{hex}\"]{{stroke:{dark}}}svg.lt [fill=\"{hex}\"]{{fill:{dark}}}\n"
        ));
    };
    rule(INK, "#e6e8ea");
    rule(MUTED, "#a3abb3");
    rule(GRID, "#30363c");
    rule(PAPER, "#15181b");
    rule(BAND, "#20303d");
    rule(FAINT, "#565d65");
    for (colour, dark, _) in LOOKS {
        rule(colour, dark);
    }
    css.push_str("}\n");
    css
}
