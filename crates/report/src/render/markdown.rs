//! The report as GitHub-flavoured Markdown, without figures. `report --figures` writes figures as files.

use crate::Report;
use crate::table::{Align, Table};
use lowtide_files::table::escape;
use std::fmt::Write;

/// The report as Markdown.
pub(crate) fn text(report: &Report) -> String {
    let mut out = format!("# {}\n\n", escape(&report.title));
    for (i, sentence) in report.verdict.iter().enumerate() {
        let sentence = escape(sentence);
        out.push_str(&if i == 0 { format!("**{sentence}**\n\n") } else { format!("{sentence}\n\n") });
    }
    for table in &report.tables {
        push_table(&mut out, table);
    }
    let facts: Vec<String> =
        report.facts.iter().map(|(name, value)| format!("{}: {}", escape(name), escape(value))).collect();
    let _ = writeln!(out, "{}; lowtide {}", facts.join("; "), escape(&report.version));
    for command in report.commands.iter().filter(|c| !c.is_empty()) {
        let _ = write!(out, "\n    {}\n", command.replace('\n', " "));
    }
    out
}

fn push_table(out: &mut String, table: &Table) {
    let _ = write!(out, "## {}\n\n", escape(&table.title));
    let headings: Vec<String> = table.columns.iter().map(|c| escape(&c.heading())).collect();
    let rules: Vec<&str> =
        table.columns.iter().map(|c| if c.align == Align::Right { "---:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n| {} |", headings.join(" | "), rules.join(" | "));
    for row in table.formatted() {
        let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if !table.note.is_empty() {
        let _ = write!(out, "\n{}\n", escape(&table.note));
    }
    out.push('\n');
}
