//! The report as one JSON object. Keys include the unit and do not change between versions.
//!
//! ```text
//! { "title", "version", "facts": {…}, "verdict": ["…"], "tables": { "cells": { "title", "note", "rows": [ {…} ] } },
//!   "environment": {…}, "commands": ["…"] }
//! ```

use crate::Report;
use serde_json::{Map, Value as Json, json};

/// The report as a pretty-printed JSON object with a final newline.
pub(crate) fn text(report: &Report) -> String {
    let tables: Map<String, Json> = report
        .tables
        .iter()
        .chain(&report.details)
        .map(|t| (t.key.clone(), json!({ "title": t.title, "note": t.note, "rows": t.records() })))
        .collect();
    let object = json!({
        "title": report.title,
        "version": report.version,
        "facts": pairs(&report.facts),
        "verdict": report.verdict,
        "tables": tables,
        "environment": pairs(&report.environment),
        "commands": report.commands,
    });
    format!("{object:#}\n")
}

fn pairs(facts: &[(String, String)]) -> Map<String, Json> {
    facts.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
}
