//! Plain tables of words, for lists that are not reports: columns of text with a heading.
//!
//! Leaves out numbers, units and what reports need; see `report`.

use comfy_table::{ContentArrangement, Table, TableComponent, presets};

/// For a terminal of that many columns.
pub fn plain(head: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let mut table = table(head, rows, presets::NOTHING);
    table
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, ' ');
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(columns.try_into().unwrap_or(u16::MAX));
    text(&table)
}

/// GitHub-flavoured Markdown.
pub fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    text(&table(head, rows, presets::ASCII_MARKDOWN))
}

fn table(head: &[&str], rows: &[Vec<String>], preset: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(preset).set_header(head).add_rows(rows);
    table
}

fn text(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Comma-separated values.
pub fn csv(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written =
        writer.write_record(head).and_then(|()| rows.iter().try_for_each(|row| writer.write_record(row)));
    written.expect("every row has the columns of the head");
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text was written")
}
