//! `[[claim]]`: a sentence of a study, and the check that says whether it holds here.
//!
//! Not here: the check itself (`lowtide_studies::validate`).

use super::comparison::study;
use super::error::Problems;
use super::finding::{self, Finding, Form};
use super::read::Table;
use super::schema;
use super::step::Step;
use super::unit::Unit;
use super::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// How numbers follow each other over cells in plan order.
    Trend, "order";
    /// None is above the one before it.
    Falling = "falling",
    /// None is below the one before it.
    Rising = "rising",
}

/// A sentence of a study, made a check.
///
/// With the form `value` every selected cell is checked. With another form the ratio of means is, or with `each`
/// the ratio of every pair: the first selected cell with the first of `against`, and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// A short name: `larger-is-slower`.
    pub name: String,
    /// The sentence, in our words.
    pub says: String,
    /// The study it comes from: `e02`.
    pub study: String,
    /// The number that is checked.
    pub finding: Finding,
    /// The name of the unit of the limits.
    pub unit_name: String,
    /// The unit of the limits.
    pub unit: Unit,
    /// The number is this or more.
    pub at_least: Option<f64>,
    /// The number is this or less.
    pub at_most: Option<f64>,
    /// The numbers follow each other in this order.
    pub order: Option<Trend>,
    /// The share by which a number may break the order.
    pub tolerance: f64,
    /// Whether cells are held against others one by one.
    pub each: bool,
    /// Where a failure that is known is explained: a document of this project.
    pub left_out: Option<String>,
}

/// Reads the claims.
pub(super) fn read(tables: Vec<Table<'_>>, steps: &[Step], problems: &mut Problems<'_>) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for table in &tables {
        let Some(claim) = one(table, steps, problems) else { continue };
        if let (Some(entry), true) =
            (table.get("name"), claims.iter().any(|earlier| earlier.name == claim.name))
        {
            entry.refuse::<()>("a second claim of this name", "a name of its own for each claim", problems);
        }
        claims.push(claim);
    }
    claims
}

fn one(table: &Table<'_>, steps: &[Step], problems: &mut Problems<'_>) -> Option<Claim> {
    table.only(&schema::CLAIM, problems);
    let name = name(table, problems);
    let says = table.require("says", "\"…\"", problems).and_then(|entry| entry.text("\"…\"", problems));
    let study = study(table, problems);
    let finding = finding::read(table, steps, problems);
    let mut number = |key: &str| table.get(key).map(|entry| entry.number("1.5", problems));
    let (at_least, at_most) = (number("at-least"), number("at-most"));
    let order = table.get("order").map(|entry| entry.word(problems));
    let each = table.get("each").map(|entry| entry.boolean(problems));
    let tolerance = tolerance(table, problems);
    if at_least.is_none() && at_most.is_none() && order.is_none() {
        let help = "add `at-least = …`, `at-most = …`, or `order = \"falling\"`";
        problems.add(table.span.clone(), "a claim without a check", "here", help);
    }
    if let (Some(Some(least)), Some(Some(most)), Some(entry)) = (at_least, at_most, table.get("at-most"))
        && least > most
    {
        let fault = format!("{most} is below `at-least`, {least}");
        entry.refuse::<()>(fault, "a number that is at least as large", problems);
    }
    let finding = finding.filter(|finding| fits(table, finding, each == Some(Some(true)), problems));
    let (unit_name, unit) = finding.as_ref().and_then(|finding| unit(table, finding, problems))?;
    let left_out = table.get("left-out").map(|entry| {
        let text = entry.text("\"docs/models/flash.md#limits\"", problems)?;
        if text.starts_with("docs/") {
            return Some(text);
        }
        let fault = format!("`{text}` is no document of this project");
        entry.refuse(fault, "a path under docs/, such as `docs/models/flash.md#limits`", problems)
    });
    Some(Claim {
        name: name?,
        says: says?,
        study: study?.id.to_owned(),
        finding: finding?,
        unit_name,
        unit,
        at_least: at_least.map_or(Some(None), |number| number.map(Some))?,
        at_most: at_most.map_or(Some(None), |number| number.map(Some))?,
        order: order.map_or(Some(None), |order| order.map(Some))?,
        tolerance: tolerance?,
        each: each.unwrap_or(Some(false))?,
        left_out: left_out.map_or(Some(None), |text| text.map(Some))?,
    })
}

/// `each` and `order` need several numbers.
fn fits(table: &Table<'_>, finding: &Finding, each: bool, problems: &mut Problems<'_>) -> bool {
    let value = finding.form == Form::Value;
    if let (Some(entry), true, true) = (table.get("each"), each, value) {
        let message = "`each` with the form `value`, which checks every cell anyway";
        let help = "remove it, or write `form = \"ratio\"` with `against`";
        problems.add(entry.key_span, message, "has no effect", help);
        return false;
    }
    if let (Some(entry), false, false) = (table.get("order"), each, value) {
        let message = format!("`order` of one number: the form `{}` without `each`", finding.form);
        let help = "add `each = true`, which gives a number for each pair of cells, or remove `order`";
        problems.add(entry.key_span, message, "nothing to order", help);
        return false;
    }
    true
}

fn name(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<String> {
    let example = "\"larger-is-slower\"";
    let entry = table.require("name", example, problems)?;
    let name = entry.text(example, problems)?;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.chars().all(kebab) && !edges {
        return Some(name);
    }
    let help = "lower-case letters and digits with single hyphens, such as `larger-is-slower`";
    entry.refuse(format!("`{name}` is not the name of a claim"), help, problems)
}

fn tolerance(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<f64> {
    let Some(entry) = table.get("tolerance") else { return Some(0.0) };
    if table.get("order").is_none() {
        let message = "`tolerance` belongs to `order`, which is absent";
        problems.add(entry.key_span, message, "has no effect", "remove it, or add `order = \"falling\"`");
        return None;
    }
    match entry.number("0.03", problems)? {
        share if (0.0..1.0).contains(&share) => Some(share),
        other => entry.refuse(
            format!("{other} is not a share"),
            "a share from 0 to below 1, such as `0.03`",
            problems,
        ),
    }
}

fn unit(table: &Table<'_>, finding: &Finding, problems: &mut Problems<'_>) -> Option<(String, Unit)> {
    let Some(entry) = table.get("unit") else {
        let usual = if finding.dimension() == super::unit::Dimension::Time && !finding.measure.is_time() {
            "ms"
        } else {
            finding.dimension().usual()
        };
        return Some((usual.to_owned(), Unit::named(usual)?));
    };
    let written = entry.text("\"MB/s\"", problems)?;
    let unit = finding::unit(&written, finding, &entry, problems)?;
    Some((written, unit))
}
