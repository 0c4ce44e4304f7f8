//! The report as text for a terminal of a given width, without colour codes.
//!
//! A table that is too wide is split into several, each with the columns that identify the rows. Numbers are never
//! wrapped. Figures, environment and sources are left to the HTML page.

use crate::Report;
use crate::table::{Align, Table};
use comfy_table::{Cell, CellAlignment, ContentArrangement, presets};

/// Text columns are wrapped at the first of these widths that avoids splitting the table, or else at the first width.
/// Wide columns take the remaining width.
const TEXT_WIDTHS: [usize; 3] = [28, 20, 14];
/// Headings are wrapped at this width, or at the width of their values if that is larger.
const WIDEST_HEADING: usize = 11;

/// The report as text of at least 40 columns.
pub(crate) fn text(report: &Report, width: usize) -> String {
    let width = width.max(40);
    let mut blocks = vec![wrap(&clean(&report.title), width).join("\n")];
    blocks.push(report.verdict.iter().flat_map(|s| wrap(&clean(s), width)).collect::<Vec<_>>().join("\n"));
    for table in &report.tables {
        blocks.push(one_table(table, width));
    }
    let facts: Vec<String> =
        report.facts.iter().map(|(name, value)| format!("{}\u{a0}{}", clean(name), clean(value))).collect();
    let mut last = wrap(&format!("{}; lowtide {}", facts.join("; "), clean(&report.version)), width);
    last.extend(report.commands.iter().filter(|c| !c.is_empty()).map(|c| format!("$ {}", clean(c))));
    blocks.push(last.join("\n"));
    blocks.retain(|block| !block.is_empty());
    // After line breaking, no-break spaces can become ordinary spaces.
    blocks.join("\n\n").replace(['\u{a0}', '\u{202f}'], " ") + "\n"
}

/// Replaces control characters, so that names from files cannot control the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn one_table(table: &Table, width: usize) -> String {
    let fits = |columns: &Vec<Prepared>| columns.iter().map(|c| c.width + 2).sum::<usize>() <= width;
    let mut choices = TEXT_WIDTHS.iter().map(|text| prepare(table, *text, width));
    let columns = choices.find(fits).unwrap_or_else(|| prepare(table, TEXT_WIDTHS[0], width));
    let naming: Vec<usize> = (0..columns.len()).filter(|c| table.columns[*c].names_row).collect();
    let taken = |parts: &[usize]| parts.iter().map(|c| columns[*c].width + 2).sum::<usize>();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for c in (0..columns.len()).filter(|c| !table.columns[*c].names_row) {
        match parts.last_mut() {
            Some(part) if taken(part) + columns[c].width + 2 <= width => part.push(c),
            _ => parts.push(naming.iter().copied().chain([c]).collect()),
        }
    }
    if parts.is_empty() {
        parts.push(naming);
    }
    let mut out = vec![wrap(&clean(&table.title), width).join("\n")];
    out.push(parts.iter().map(|part| draw(table, &columns, part)).collect::<Vec<_>>().join("\n\n"));
    if !table.note.is_empty() {
        out.push(wrap(&clean(&table.note), width).join("\n"));
    }
    out.join("\n")
}

/// A column with wrapped texts.
struct Prepared {
    heading: Vec<String>,
    cells: Vec<String>,
    width: usize,
}

fn prepare(table: &Table, text_width: usize, width: usize) -> Vec<Prepared> {
    let formatted = table.formatted();
    let prepare_one = |c: usize, text_width: usize| {
        let column = &table.columns[c];
        let lines = |row: &Vec<String>| match column.align {
            Align::Left => wrap(&clean(&row[c]), text_width),
            Align::Right => vec![clean(&row[c])],
        };
        let cells: Vec<Vec<String>> = formatted.iter().map(lines).collect();
        let widest = cells.iter().flatten().map(|line| length(line)).max().unwrap_or(0);
        let mut heading = wrap(&clean(&column.name), WIDEST_HEADING.max(widest));
        heading.extend((!column.unit.is_empty()).then(|| clean(&column.unit)));
        let width = heading.iter().map(|line| length(line)).max().unwrap_or(0).max(widest);
        Prepared { heading, cells: cells.into_iter().map(|lines| lines.join("\n")).collect(), width }
    };
    let (wide, others): (Vec<usize>, Vec<usize>) =
        (0..table.columns.len()).partition(|c| table.columns[*c].wide);
    let taken: usize = others.iter().map(|c| prepare_one(*c, text_width).width + 2).sum();
    let room = (width.saturating_sub(taken) / wide.len().max(1)).saturating_sub(2).max(text_width);
    let width_of = |c: usize| if table.columns[c].wide { room } else { text_width };
    (0..table.columns.len()).map(|c| prepare_one(c, width_of(c))).collect()
}

fn draw(table: &Table, columns: &[Prepared], part: &[usize]) -> String {
    let align = |c: &usize| match table.columns[*c].align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    };
    let tall = part.iter().map(|c| columns[*c].heading.len()).max().unwrap_or(0);
    let mut out = comfy_table::Table::new();
    out.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    out.set_header(part.iter().map(|c| {
        // Headings are aligned at the bottom.
        let lines = &columns[*c].heading;
        let padded = [vec![String::new(); tall - lines.len()], lines.clone()].concat();
        Cell::new(padded.join("\n")).set_alignment(align(c))
    }));
    out.add_row(part.iter().map(|c| "─".repeat(columns[*c].width)));
    for row in 0..table.rows.len() {
        out.add_row(part.iter().map(|c| Cell::new(&columns[*c].cells[row]).set_alignment(align(c))));
    }
    out.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Breaks lines at spaces, and longer words after `-`, `/`, `,` or `:`; any other word that does not fit is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let fits =
            |lines: &[String], extra: usize| lines.last().is_some_and(|line| length(line) + extra <= width);
        let gap = usize::from(lines.last().is_some_and(|line| !line.is_empty()));
        if fits(&lines, gap + length(word)) {
            let line = lines.last_mut().expect("there is always a line");
            line.push_str(if gap == 1 { " " } else { "" });
            line.push_str(word);
            continue;
        }
        if gap == 1 {
            lines.push(String::new());
        }
        for piece in word.split_inclusive(['-', '/', ',', ':']) {
            if !fits(&lines, length(piece)) {
                lines.push(String::new());
            }
            for c in piece.chars() {
                if !fits(&lines, 1) {
                    lines.push(String::new());
                }
                lines.last_mut().expect("there is always a line").push(c);
            }
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_at_spaces_and_long_words_at_hyphens() {
        assert_eq!(wrap("a settled level", 9), ["a settled", "level"]);
        assert_eq!(wrap("intel-320-random-write", 11), ["intel-320-", "random-", "write"]);
        assert_eq!(wrap("unbreakable", 4), ["unbr", "eaka", "ble"]);
    }
}
