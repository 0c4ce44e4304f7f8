//! The report: from the records of a campaign to what people and programs read.
//!
//! ```text
//!   Campaign ──► Answer (per cell) ──► verdict sentences, tables, figures = Report ──► render::{terminal,
//!   Comparison ──────────────────────►                                                markdown, csv, json}, html
//! ```
//!
//! A [`Report`] owns everything it shows, so every renderer says the same: verdict first, then tables, then
//! figures. The HTML page is one file that needs no network and no JavaScript. [`export_csv`] and
//! [`export_json`] give the raw numbers instead, the same bytes for the same records.
//!
//! Leaves out: judging steady state ([`lowtide_record::analysis`]), finding published numbers (the caller hands over
//! [`Comparison`]s), reading the store, and deciding where output goes.

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
    /// A line for people.
    pub title: String,
    /// What was measured, on what, when: name and value, in order.
    pub facts: Vec<(String, String)>,
    /// The answer in sentences, the most important first.
    pub verdict: Vec<String>,
    /// The tables; the first is the answer.
    pub tables: Vec<Table>,
    /// Tables for a closer look: folded on a page, whole in JSON and CSV, left out of a terminal and of Markdown.
    pub details: Vec<Table>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Facts about the machine and the target, in order.
    pub environment: Vec<(String, String)>,
    /// Command lines that make the numbers again.
    pub commands: Vec<String>,
    /// Texts that make the numbers again: heading and content.
    pub sources: Vec<(String, String)>,
    /// The version of lowtide that measured.
    pub version: String,
}

impl Report {
    /// The report of a campaign, beside published numbers where there are some.
    pub fn new(campaign: &Campaign, comparisons: &[Comparison]) -> Report {
        build::of_campaign(campaign, comparisons)
    }

    /// Whether the rounds of a campaign ended in steady state, all of them; `None` of a campaign without rounds.
    pub fn rounds_are_steady(campaign: &Campaign) -> Option<bool> {
        rounds::steady(campaign)
    }

    /// The report of several campaigns beside published numbers, with the claims that were checked and what is not
    /// compared; `verdict` comes first.
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

    /// The same report with the claims that were checked for it.
    pub fn with_claims(mut self, claims: &[Checked]) -> Report {
        self.tables.extend(tables::claims(claims));
        self
    }

    /// A comparison of two or more campaigns, cell by matching cell; the first is compared against. With it what became
    /// of each limit, for every campaign but the first.
    pub fn compare(campaigns: &[&Campaign], question: &Question) -> (Report, Vec<Judged>) {
        build::of_campaigns(campaigns, question)
    }

    /// A comparison of the values of one factor inside a campaign; the first value is compared against. With it what
    /// became of each limit, for every value but the first.
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

    /// One HTML page that needs nothing else.
    pub fn html(&self) -> String {
        html::page(self)
    }
    /// The figures as SVG documents: file name and content.
    pub fn figures(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|f| (format!("{}.svg", f.name), figure::document(f))).collect()
    }
    /// Text for a terminal `width` columns wide, without colour codes. Tables that do not fit are split.
    pub fn terminal(&self, width: usize) -> String {
        render::terminal::text(self, width)
    }
    /// GitHub-flavoured Markdown.
    pub fn markdown(&self) -> String {
        render::markdown::text(self)
    }
    /// The first table, the answer, as CSV; [`Report::table_csv`] gives the others.
    pub fn csv(&self) -> String {
        self.tables.first().map_or_else(String::new, render::csv::text)
    }
    /// The table with this key as CSV.
    pub fn table_csv(&self, key: &str) -> Option<String> {
        let mut all = self.tables.iter().chain(&self.details);
        all.find(|table| table.key == key).map(render::csv::text)
    }
    /// One JSON object with everything but the figures, ending in a line break.
    pub fn json(&self) -> String {
        render::json::text(self)
    }
}
