//! The report as one HTML page without network access and JavaScript.
//!
//! The verdict comes first, then tables, figures, environment and reproduction. Figures are inline SVG with colours
//! from the style sheet, so the page follows a dark screen and prints in grey.

use super::figure;
use super::sweep::slug;
use super::table::{Align, Table, Value};
use super::{Figure, Report, Section};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// The heading of collapsed tables.
const DETAILS: &str = "Details";

/// From this many table rows on, the page opens with a table of contents.
const LONG: usize = 30;

/// The page.
pub(crate) fn page(report: &Report) -> String {
    let mut sections = vec![
        (Section::Rounds, "Rounds"),
        (Section::Throughput, "Throughput"),
        (Section::NewOrders, "New orders"),
        (Section::Latency, "Latency"),
        (Section::Wear, "Write amplification and wear"),
    ];
    sections.retain(|(section, _)| report.figures.iter().any(|f| f.section == *section));
    let rows: usize = report.tables.iter().map(|t| t.rows.len()).sum();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "lowtide " (report.version) };
                title { (report.title) " · lowtide" }
                style { (PreEscaped(STYLE)) (PreEscaped(figure::css())) }
            }
            body {
                header {
                    h1 { (report.title) }
                    dl.facts {
                        @for (name, value) in &report.facts { div { dt { (name) } dd { (value) } } }
                    }
                }
                main {
                    section.verdict aria-label="Verdict" {
                        @for sentence in &report.verdict { p { (sentence) } }
                    }
                    @if rows > LONG { (contents(report, &sections)) }
                    @for table in &report.tables {
                        section id=(table.key) { h2 { (table.title) } (one_table(table)) }
                    }
                    (details(report))
                    @for (section, heading) in &sections {
                        section id=(slug(heading)) {
                            h2 { (heading) }
                            @for figure in report.figures.iter().filter(|f| f.section == *section) {
                                (one_figure(figure))
                            }
                        }
                    }
                    (environment(report))
                    (reproduce(report))
                }
                footer { "Measured by lowtide " (report.version) "." }
            }
        }
    }
    .into_string()
}

fn contents(report: &Report, sections: &[(Section, &str)]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for table in &report.tables { li { a href={ "#" (table.key) } { (table.title) } } }
                @if !report.details.is_empty() { li { a href="#details" { (DETAILS) } } }
                @for (_, heading) in sections { li { a href={ "#" (slug(heading)) } { (heading) } } }
                @if !report.environment.is_empty() { li { a href="#environment" { "Environment" } } }
                li { a href="#reproduce" { "How to reproduce" } }
            }
        }
    }
}

fn one_table(table: &Table) -> Markup {
    let formatted = table.formatted();
    let shades = table.shades();
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for column in &table.columns {
                            th scope="col" class=[(column.align == Align::Right).then_some("n")] {
                                (column.name)
                                @if !column.unit.is_empty() { " " span.unit { (column.unit) } }
                            }
                        }
                    }
                }
                tbody {
                    @for ((row, texts), shades) in table.rows.iter().zip(&formatted).zip(&shades) {
                        tr {
                            @for (((column, value), text), shade) in table.columns.iter().zip(row).zip(texts).zip(shades) {
                                @let right = column.align == Align::Right;
                                // The reason for a missing number has a style of its own.
                                @let word = matches!(value, Value::Missing(_));
                                @let short = !right && text.chars().count() <= 24;
                                @let class = match (right, word) {
                                    (_, true) => Some("n word"),
                                    (true, false) => Some("n"),
                                    (false, false) => short.then_some("short"),
                                };
                                @if column.names_row {
                                    th scope="row" class=[class] { (text) }
                                } @else {
                                    td class=[class] style=[shade.map(|percent| format!("--shade:{percent}%"))] { (text) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if !table.note.is_empty() { p.note { (table.note) } }
    }
}

/// The detailed tables, each collapsed.
fn details(report: &Report) -> Markup {
    html! {
        @if !report.details.is_empty() {
            section #details {
                h2 { (DETAILS) }
                @for table in &report.details {
                    details id=(table.key) { summary { (table.title) } (one_table(table)) }
                }
            }
        }
    }
}

fn one_figure(figure: &Figure) -> Markup {
    let small = figure.panels.first().is_some_and(|p| p.small);
    html! {
        figure id=(figure.name) {
            h3 { (figure.title) }
            div class=(if small { "panels" } else { "scroll panel" }) {
                @for panel in &figure.panels { (PreEscaped(figure::panel(panel))) }
            }
            figcaption { (figure.caption) }
        }
    }
}

fn environment(report: &Report) -> Markup {
    html! {
        @if !report.environment.is_empty() {
            section #environment {
                h2 { "Environment" }
                dl.environment {
                    @for (name, value) in &report.environment { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

fn reproduce(report: &Report) -> Markup {
    html! {
        section #reproduce {
            h2 { "How to reproduce" }
            @for command in report.commands.iter().filter(|c| !c.is_empty()) { pre.command { (command) } }
            @for (heading, text) in &report.sources {
                details { summary { (heading) } pre { (text) } }
            }
        }
    }
}
