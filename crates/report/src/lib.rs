//! Reports and exports, made from the records of campaigns.
//!
//! ```text
//!   Campaign ──► Answer (per cell) ──► verdict sentences, tables, figures = Report ──► render::{terminal,
//!   Comparison ──────────────────────►                                                markdown, csv, json}, html
//! ```
//!
//! A [`Report`] owns everything it shows, so every renderer shows the same: verdict first, then tables, then
//! figures. The HTML page is one file that needs no network and no JavaScript. [`export_csv`] and
//! [`export_json`] give the raw numbers instead; the same records give the same bytes.
//!
//! Not here: judging steady state ([`lowtide_record::analysis`]), finding published numbers (the caller
//! hands over [`Comparison`]s), reading the store, and deciding where output goes.

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
pub use figure::{Axis, Draw, Figure, Look, Mark, Panel, Part, Point, Scale, Series};
pub use table::{Align, Column, Digits, Table, Value};

use crate::compare::{Judged, NothingToCompare, Question};
use lowtide_lab::experiment::NotCompared;
use lowtide_record::Campaign;

/// A report, ready for any renderer.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// One line for people.
    pub title: String,
    /// Name and value of what was measured, on what and when, in order.
    pub facts: Vec<(String, String)>,
    /// The verdict in sentences, the most important first.
    pub verdict: Vec<String>,
    /// The tables; the first is the answer.
    pub tables: Vec<Table>,
    /// Tables with details: collapsed in HTML, complete in JSON and CSV, absent from terminal and Markdown.
    pub details: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Facts about the machine and the target, in order.
    pub environment: Vec<(String, String)>,
    /// Command lines that reproduce the numbers.
    pub commands: Vec<String>,
    /// Files that reproduce the numbers: heading and content.
    pub sources: Vec<(String, String)>,
    /// The version of lowtide that ran the campaign.
    pub version: String,
}

impl Report {
    /// The report of a campaign, compared with published numbers where there are any.
    pub fn new(campaign: &Campaign, comparisons: &[Comparison]) -> Report {
        build::of_campaign(campaign, comparisons)
    }

    /// Whether all rounds of a campaign ended in steady state; `None` for a campaign without rounds.
    pub fn rounds_are_steady(campaign: &Campaign) -> Option<bool> {
        rounds::steady(campaign)
    }

    /// The report of several campaigns compared with published numbers, with the claims that were checked and
    /// the numbers that are not compared; `verdict` comes first.
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

    /// A comparison of two or more campaigns, cell by matching cell, with the first as the baseline; and the
    /// judgement of each limit for every other campaign.
    pub fn compare(campaigns: &[&Campaign], question: &Question) -> (Report, Vec<Judged>) {
        build::of_campaigns(campaigns, question)
    }

    /// A comparison of the values of one factor inside a campaign, with the first value as the baseline; and
    /// the judgement of each limit for every other value.
    ///
    /// # Errors
    /// Where the campaign has fewer than two values of `factor`.
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
    /// The figures as SVG documents: file name and content.
    pub fn figures(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|f| (format!("{}.svg", f.name), figure::document(f))).collect()
    }
    /// Text for a terminal `width` columns wide, without colour codes. Tables that are too wide are split.
    pub fn terminal(&self, width: usize) -> String {
        render::terminal::text(self, width)
    }
    /// GitHub-flavoured Markdown.
    pub fn markdown(&self) -> String {
        render::markdown::text(self)
    }
    /// The first table, which holds the answer, as CSV; [`Report::table_csv`] gives the others.
    pub fn csv(&self) -> String {
        self.tables.first().map_or_else(String::new, render::csv::text)
    }
    /// The table with this key as CSV.
    pub fn table_csv(&self, key: &str) -> Option<String> {
        let mut all = self.tables.iter().chain(&self.details);
        all.find(|table| table.key == key).map(render::csv::text)
    }
    /// One JSON object with everything but the figures, and a newline at the end.
    pub fn json(&self) -> String {
        render::json::text(self)
    }
}
