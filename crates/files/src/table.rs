//! Plain-text tables for lists. Tables of reports, with numbers and units, are in `lowtide_report`.

use comfy_table::{ContentArrangement, Row, Table, TableComponent, presets};

/// Formats a table for a terminal that is `columns` characters wide.
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

/// Formats a table as GitHub-flavoured Markdown.
pub fn markdown(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|heading| escape(heading)).collect();
    let rows = rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect::<Vec<_>>());
    text(&table(&head, rows, presets::ASCII_MARKDOWN))
}

/// Escapes the characters that Markdown or HTML would interpret, and replaces line breaks by spaces.
///
/// An underscore within a word (`latency_ns_p99`) is unchanged, because GitHub-flavoured Markdown does not interpret
/// it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let within_word = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '_' if within_word(before) && within_word(characters.peek().copied()) => out.push(c),
            // Markdown interprets these only at the beginning of a line.
            '#' | '>' | '+' | '-' if before.is_none() && !within_word(characters.peek().copied()) => {
                out.extend(['\\', c]);
            }
            '|' | '*' | '_' | '~' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
        before = Some(c);
    }
    out
}

fn table(head: &[impl AsRef<str>], rows: impl IntoIterator<Item = impl Into<Row>>, preset: &str) -> Table {
    let mut table = Table::new();
    let head: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
    table.load_preset(preset).set_header(head).add_rows(rows);
    table
}

fn text(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a table as comma-separated values.
pub fn csv(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written =
        writer.write_record(head).and_then(|()| rows.iter().try_for_each(|row| writer.write_record(row)));
    written.expect("every row has the columns of the head");
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text was written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symptom: `|` in a serial number or name broke the table of `plan --format markdown`, and `*` became italics.
    /// Cause: only reports escaped these characters. Fix: reports and lists share one `escape`.
    #[test]
    fn a_markdown_table_reads_as_its_cells() {
        let rows = [vec!["a|b*c*".to_owned(), "<b>&\n`x` [y](z) _z_ ~~w~~".to_owned()]];
        let lines = markdown(&["latency_ns_p99", "-"], &rows);
        let cells = lines.lines().last().expect("a row");
        assert!(lines.starts_with("| latency_ns_p99 | \\- "), "{lines}");
        assert_eq!(cells, r"| a\|b\*c\*      | &lt;b>&amp; \`x\` \[y\](z) \_z\_ \~\~w\~\~ |");
    }

    #[test]
    fn what_would_begin_a_list_or_a_heading_is_escaped_at_the_beginning_only() {
        assert_eq!(escape("# 5 - 3 > 1"), r"\# 5 - 3 > 1");
        assert_eq!(escape("-3.5 %"), "-3.5 %");
    }
}
