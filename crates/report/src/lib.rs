//! Reports and exports, made from the records of campaigns.
//!
//! ```text
//!   Campaign ──► Answer (per cell) ──► verdict sentences, tables, figures = Report ──► render::{terminal,
//!   Comparison ──────────────────────►                                                markdown, csv, json}, html
//! ```
//!
//! A [`Report`] owns its contents, so every renderer shows the same verdict, tables and figures, in this order.
//! The HTML page is one file that needs no network and no JavaScript. [`export_csv`] and [`export_json`] write
//! the raw numbers; equal records give equal bytes.
//!
//! The steady-state analysis is in [`lowtide_record::analysis`]. The caller reads the store, finds the published
//! numbers (and passes them as [`Comparison`]s), and writes the output files.

pub mod answer;
mod build;
mod claim;
pub mod compare;
mod comparison;
pub mod cost;
mod databases;
mod durability;
mod export;
mod figure;
pub mod find;
pub mod frame;
mod group;
mod html;
pub mod lifetime;
pub mod number;
mod render;
mod rounds;
#[cfg(test)]
pub(crate) mod sample;
mod sweep;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

pub use claim::Checked;
pub use comparison::{Bound, Comparison, Quantity};
pub use export::{export_csv, export_json, export_transactions};
pub use figure::{Axis, Draw, Figure, Look, Mark, Panel, Point, Scale, Section, Series};
pub use table::{Align, Column, Digits, Table, Value};

use crate::compare::{Judged, NothingToCompare, Question};
use lowtide_lab::experiment::NotCompared;
use lowtide_record::Campaign;

/// A report, ready for any renderer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The heading, one line.
    pub title: String,
    /// Names and values that describe the campaign, its target and its start, in order.
    pub facts: Vec<(String, String)>,
    /// The verdict, one sentence per entry, the most important first.
    pub verdict: Vec<String>,
    /// The tables; the first holds the answer.
    pub tables: Vec<Table>,
    /// Detailed tables: collapsed in HTML, complete in JSON and CSV, absent from terminal and Markdown output.
    pub details: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Facts about the machine and the target, in order.
    pub environment: Vec<(String, String)>,
    /// Command lines that reproduce the numbers.
    pub commands: Vec<String>,
    /// Files that reproduce the numbers: heading and contents.
    pub sources: Vec<(String, String)>,
    /// The version of lowtide that ran the campaign.
    pub version: String,
}

impl Report {
    /// The report of a campaign, compared with any published numbers.
    pub fn new(campaign: &Campaign, comparisons: &[Comparison]) -> Report {
        build::of_campaign(campaign, comparisons)
    }

    /// Returns whether all rounds of a campaign ended in steady state; `None` for a campaign without rounds.
    pub fn rounds_are_steady(campaign: &Campaign) -> Option<bool> {
        rounds::steady(campaign)
    }

    /// The report of several campaigns compared with published numbers, with the checked claims and the numbers
    /// that are not compared. `verdict` comes first.
    pub fn of_studies(
        campaigns: &[(&Campaign, &[Comparison])],
        claims: &[Checked],
        excuses: &[NotCompared],
        verdict: Vec<String>,
        seed: u64,
        scale: u64,
    ) -> Report {
        build::of_studies(campaigns, claims, excuses, verdict, seed, scale)
    }

    /// Adds the table of checked claims.
    pub fn with_claims(mut self, claims: &[Checked]) -> Report {
        self.tables.extend(tables::claims(claims));
        self
    }

    /// Compares two or more campaigns cell by matching cell, with the first as the baseline. Also returns the
    /// judgement of each limit for every other campaign.
    pub fn compare(campaigns: &[&Campaign], question: &Question) -> (Report, Vec<Judged>) {
        build::of_campaigns(campaigns, question)
    }

    /// Compares the values of one factor within a campaign, with the first value as the baseline. Also returns
    /// the judgement of each limit for every other value.
    ///
    /// # Errors
    /// [`NothingToCompare`] if the campaign has fewer than two values of `factor`.
    pub fn compare_factor(
        campaign: &Campaign,
        factor: &str,
        question: &Question,
    ) -> Result<(Report, Vec<Judged>), NothingToCompare> {
        build::of_factor(campaign, factor, question)
    }

    /// One self-contained HTML page.
    pub fn html(&self) -> String {
        html::page(self)
    }
    /// The figures as SVG documents: file name and contents.
    pub fn figures(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|f| (format!("{}.svg", f.name), figure::document(f))).collect()
    }
    /// Text for a terminal of `width` columns, without colour codes. Wider tables are split.
    pub fn terminal(&self, width: usize) -> String {
        render::terminal::text(self, width)
    }
    /// GitHub-flavoured Markdown.
    pub fn markdown(&self) -> String {
        render::markdown::text(self)
    }
    /// The first table, which holds the answer, as CSV; [`Report::table_csv`] returns any table.
    pub fn csv(&self) -> String {
        self.tables.first().map_or_else(String::new, render::csv::text)
    }
    /// The table with this key as CSV.
    pub fn table_csv(&self, key: &str) -> Option<String> {
        let mut all = self.tables.iter().chain(&self.details);
        all.find(|table| table.key == key).map(render::csv::text)
    }
    /// One JSON object with everything except the figures, followed by a newline.
    pub fn json(&self) -> String {
        render::json::text(self)
    }
}
