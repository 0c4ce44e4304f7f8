//! `[[claim]]`: a sentence of a study, and a condition on measured numbers that tests the sentence.
//!
//! `lowtide_studies::validate` evaluates the condition.

use super::comparison::study;
use super::finding::{self, Finding, Form};
use super::read::{Entry, Table};
use super::schema;
use super::step::Step;
use super::unit::{Dimension, Unit};
use super::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// The order of the numbers of cells in plan order.
    Trend, "order";
    /// No number is above its predecessor.
    Falling = "falling",
    /// No number is below its predecessor.
    Rising = "rising",
}

/// A sentence of a study, as a condition on measured numbers.
///
/// With the form `value`, every selected cell is checked. Other forms check the ratio of means. With `each`, they
/// check the ratio of every pair instead: the first selected cell with the first cell of `against`, and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// A short name: `larger-is-slower`.
    pub name: String,
    /// The sentence, paraphrased.
    pub says: String,
    /// The study: `e02`.
    pub study: String,
    /// The number that is checked.
    pub finding: Finding,
    /// The name of the unit of the limits.
    pub unit_name: String,
    /// The unit of the limits.
    pub unit: Unit,
    /// The lower limit of the number.
    pub at_least: Option<f64>,
    /// The upper limit of the number.
    pub at_most: Option<f64>,
    /// The order of the numbers.
    pub order: Option<Trend>,
    /// The share by which a number may violate the order.
    pub tolerance: f64,
    /// Whether cells are compared one by one.
    pub each: bool,
    /// The document of this project that explains a known failure.
    pub left_out: Option<String>,
}

/// Reads the claims.
pub(super) fn read(tables: Vec<Table<'_>>, steps: &[Step]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for table in &tables {
        let Some(claim) = one(table, steps) else { continue };
        if let (Some(entry), true) =
            (table.get("name"), claims.iter().any(|earlier| earlier.name == claim.name))
        {
            entry.refuse::<()>("a second claim of this name", "a name of its own for each claim");
        }
        claims.push(claim);
    }
    claims
}

fn one(table: &Table<'_>, steps: &[Step]) -> Option<Claim> {
    table.only(&schema::CLAIM);
    let name = name(table);
    let says = table.require_text("says", "\"…\"");
    let study = study(table);
    let finding = finding::read(table, steps);
    let number = |key: &str| table.optional(key, |entry| entry.number("1.5"));
    let (at_least, at_most) = (number("at-least"), number("at-most"));
    let order = table.optional("order", Entry::word);
    let each = table.value_or("each", false, Entry::boolean);
    let tolerance = tolerance(table);
    if (at_least, at_most, order) == (Some(None), Some(None), Some(None)) {
        let help = "add `at-least = …`, `at-most = …`, or `order = \"falling\"`";
        table.problems.add(table.span.clone(), "a claim without a check", "here", help);
    }
    if let (Some(Some(least)), Some(Some(most)), Some(entry)) = (at_least, at_most, table.get("at-most"))
        && least > most
    {
        let fault = format!("{most} is below `at-least`, {least}");
        entry.refuse::<()>(fault, "a number that is at least as large");
    }
    let finding = finding.filter(|finding| fits(table, finding, each == Some(true)));
    let (unit_name, unit) = finding.as_ref().and_then(|finding| unit(table, finding))?;
    let left_out = table.optional("left-out", |entry| {
        let text = entry.text("\"docs/models/flash.md#limits\"")?;
        if text.starts_with("docs/") {
            return Some(text);
        }
        let fault = format!("`{text}` is no document of this project");
        entry.refuse(fault, "a path under docs/, such as `docs/models/flash.md#limits`")
    });
    Some(Claim {
        name: name?,
        says: says?,
        study: study?.id.to_owned(),
        finding: finding?,
        unit_name,
        unit,
        at_least: at_least?,
        at_most: at_most?,
        order: order?,
        tolerance: tolerance?,
        each: each?,
        left_out: left_out?,
    })
}

/// Checks that `each` and `order` apply to several numbers.
fn fits(table: &Table<'_>, finding: &Finding, each: bool) -> bool {
    let value = finding.form == Form::Value;
    if let (Some(entry), true, true) = (table.get("each"), each, value) {
        let message = "`each` with the form `value`, which checks every cell anyway";
        let help = "remove it, or write `form = \"ratio\"` with `against`";
        table.problems.add(entry.key_span, message, "has no effect", help);
        return false;
    }
    if let (Some(entry), false, false) = (table.get("order"), each, value) {
        let message = format!("`order` of one number: the form `{}` without `each`", finding.form);
        let help = "add `each = true`, which gives a number for each pair of cells, or remove `order`";
        table.problems.add(entry.key_span, message, "nothing to order", help);
        return false;
    }
    true
}

fn name(table: &Table<'_>) -> Option<String> {
    let example = "\"larger-is-slower\"";
    let entry = table.require("name", example)?;
    let name = entry.text(example)?;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.chars().all(kebab) && !edges {
        return Some(name);
    }
    let help = "lower-case letters and digits with single hyphens, such as `larger-is-slower`";
    entry.refuse(format!("`{name}` is not the name of a claim"), help)
}

fn tolerance(table: &Table<'_>) -> Option<f64> {
    let Some(entry) = table.get("tolerance") else { return Some(0.0) };
    if table.get("order").is_none() {
        let message = "`tolerance` belongs to `order`, which is absent";
        table.problems.add(
            entry.key_span,
            message,
            "has no effect",
            "remove it, or add `order = \"falling\"`",
        );
        return None;
    }
    entry.share("0.03", "from 0 to below 1", |share| (0.0..1.0).contains(&share))
}

fn unit(table: &Table<'_>, finding: &Finding) -> Option<(String, Unit)> {
    let Some(entry) = table.get("unit") else {
        let usual = match finding.dimension() {
            Dimension::Time if !finding.measure.is_time() => "ms",
            dimension => dimension.usual(),
        };
        return Some((usual.to_owned(), Unit::named(usual)?));
    };
    let written = entry.text("\"MB/s\"")?;
    let unit = finding::unit(&written, finding, &entry)?;
    Some((written, unit))
}
