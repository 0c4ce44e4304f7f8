//! Writes the device file of a fitted drive. A comment after each fitted value states its interval or source.
//!
//! Output for people is in `show`.

use super::family::Family;
use super::{Fitted, Interval, MIB, Measured, Question};
use lowtide_device::flash::spec::Policy;
use serde::Serialize;
use toml::{Table, Value};

/// The policy in the syntax of a device file.
pub(super) fn policy(policy: Policy) -> String {
    match policy {
        Policy::DChoices(d) => format!("{{ d-choices = {d} }}"),
        other => {
            Value::try_from(other).map_or_else(|_| format!("{other:?}"), |it| it.to_string().replace('"', ""))
        }
    }
}

/// Formats a size for people.
pub(super) fn size(bytes: f64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)];
    let (name, unit) = units.into_iter().find(|(_, unit)| bytes >= *unit as f64).unwrap_or(("KiB", 1 << 10));
    format!("{:.4} {name}", bytes / unit as f64).replace(".0000", "")
}

/// The text of the device file.
pub(super) fn device(family: &Family, question: &Question, measured: &Measured, fitted: &Fitted) -> String {
    let spec = family.drive(&fitted.parameters);
    let unit = spec.map.unit.get() as f64;
    let between = |of: &Interval, show: &dyn Fn(f64) -> String| {
        format!("fitted: 95 % of other noise gives {} to {}", show(of.low), show(of.high))
    };
    let fixed = question.fixed;
    let said = || "given".to_owned();
    let micros = |seconds: f64| format!("{:.2} us", seconds * unit * 1e6);
    let raw = if fixed.raw.is_some() { said() } else { between(&fitted.raw, &size) };
    let write = match fixed.write {
        Some(_) => said(),
        None => {
            let rate = |it: f64| format!("{:.1}", it / MIB);
            format!("with request: {} MiB/s while nothing is moved", between(&fitted.peak, &rate))
        }
    };
    let moved = if fixed.moved.is_some() { said() } else { between(&fitted.moved, &micros) };
    let others: Vec<String> = fitted.other_policies.iter().map(|it| policy(*it)).collect();
    let chosen = match (fixed.policy, others.is_empty()) {
        (Some(_), _) => said(),
        (None, true) => "fitted".to_owned(),
        (None, false) => format!("fitted; {} suits as well", others.join(" or ")),
    };
    let reach = fitted.reach.map(|reach| format!("{}: reach of the table", between(&reach, &size)));
    let rest = family.like.as_ref().map_or("assumed: the controller is what limits".to_owned(), |like| {
        format!("as `{}` has it", in_comment(like))
    });
    let mut text = format!(
        "# Fitted by lowtide {} to {}: {} levels of random writes of {}, seed {}.\n# What says nothing else is {rest}.\n",
        env!("CARGO_PKG_VERSION"),
        in_comment(&measured.name),
        measured.points.len(),
        family.block,
        question.seed.get(),
    );
    text += &format!(
        "name  = {}\ntitle = {}\n\n",
        quoted(&question.name),
        quoted(&format!("{}, fitted", question.name))
    );
    let mut notes: Vec<(&str, &str, String)> = vec![
        ("flash.nand", "raw", raw),
        ("flash.controller", "write-unit", write),
        ("flash.controller", "gc-unit", moved),
        ("flash.gc", "policy", chosen),
    ];
    notes.extend(reach.map(|reach| ("flash.map", "cache", reach)));
    let table = Table::try_from(Named { flash: &spec }).expect("a description of a drive is a table");
    let Some(Value::Table(flash)) = table.get("flash") else { unreachable!("it was just made") };
    tables(&mut text, "flash", flash, &notes);
    text
}

#[derive(Serialize)]
struct Named<'a> {
    flash: &'a lowtide_device::flash::FlashSpec,
}

/// Appends a table and its inner tables, one key per line. A note becomes a comment after the value.
fn tables(text: &mut String, name: &str, table: &Table, notes: &[(&str, &str, String)]) {
    text.push_str(&format!("[{name}]\n"));
    let inner = |value: &Value| matches!(value, Value::Table(it) if name == "flash" || it.len() > 3);
    for (key, value) in table.iter().filter(|(_, value)| !inner(value)) {
        let note = notes.iter().find(|(at, of, _)| *at == name && of == key);
        let note = note.map(|(.., note)| format!("  # {note}")).unwrap_or_default();
        let value = match value {
            Value::Table(it) => {
                let pairs: Vec<String> = it.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }
            other => other.to_string(),
        };
        text.push_str(&format!("{key} = {value}{note}\n"));
    }
    for (key, value) in table.iter().filter(|(_, value)| inner(value)) {
        let Value::Table(inner) = value else { unreachable!("only tables are inner") };
        text.push('\n');
        tables(text, &format!("{name}.{key}"), inner, notes);
    }
}

/// Replaces control characters, so that the text cannot leave its comment line.
fn in_comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
