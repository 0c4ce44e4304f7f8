//! Tests of the experiments in the catalogue: every experiment is valid, and every published number is either
//! compared or excused.

use super::super::*;
use lowtide_files::catalogue::{experiments, studies};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_experiment_parses_and_is_called_as_its_file() {
    for entry in experiments() {
        let experiment = Experiment::parse(entry.path, entry.text, &[]);
        let experiment = experiment.unwrap_or_else(|error| panic!("{}: {error}", entry.path));
        assert_eq!(experiment.name, entry.name, "{}", entry.path);
    }
}

#[test]
fn every_number_that_is_looked_for_has_its_cells() {
    for entry in experiments() {
        let experiment = Experiment::parse(entry.path, entry.text, &[]).expect("it parses");
        let compared =
            experiment.published.iter().map(|it| (&it.finding, format!("row {}", it.published.line)));
        let claimed = experiment.claims.iter().map(|it| (&it.finding, it.name.clone()));
        for (finding, name) in compared.chain(claimed) {
            let any = |cells: &Selection| {
                experiment.steps.iter().any(|step| {
                    let times = 1..=experiment.repeat.times.max(1);
                    let mut meant =
                        step.points().flat_map(|point| times.clone().map(move |n| (point.clone(), n)));
                    meant.any(|(point, repetition)| cells.includes(step, &point, repetition))
                })
            };
            assert!(any(&finding.cells), "{}: {name}", entry.path);
            assert!(finding.against.as_ref().is_none_or(any), "{}: {name}: against", entry.path);
        }
    }
}

/// Every published number is either compared or excused, and excused at most once.
#[test]
fn every_published_number_is_compared_or_excused_and_not_both() {
    let mut compared = BTreeSet::new();
    let mut excused: Vec<(String, u32)> = Vec::new();
    let rows = |excuses: &[NotCompared]| -> Vec<(String, u32)> {
        excuses.iter().flat_map(|it| &it.rows).map(|row| (row.study.clone(), row.line)).collect()
    };
    for entry in experiments() {
        let experiment = Experiment::parse(entry.path, entry.text, &[]).expect("it parses");
        compared
            .extend(experiment.published.iter().map(|it| (it.published.study.clone(), it.published.line)));
        excused.extend(rows(&experiment.not_compared));
    }
    excused.extend(rows(&compared_by_none()));
    let all = studies().iter().flat_map(|study| &study.rows).map(|row| (row.study.clone(), row.line));
    let passed_over: Vec<_> = all.filter(|row| !compared.contains(row) && !excused.contains(row)).collect();
    assert!(passed_over.is_empty(), "neither compared nor excused: {passed_over:?}");
    let stale: Vec<_> = excused.iter().filter(|row| compared.contains(*row)).collect();
    assert!(stale.is_empty(), "compared, and excused: {stale:?}");
    let mut once = BTreeSet::new();
    let twice: Vec<_> = excused.iter().filter(|row| !once.insert((*row).clone())).collect();
    assert!(twice.is_empty(), "excused twice: {twice:?}");
}

/// The document and the heading that explain a known failure exist.
#[test]
fn every_claim_has_a_name_of_its_own_and_a_document_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names = BTreeSet::new();
    for entry in experiments() {
        let experiment = Experiment::parse(entry.path, entry.text, &[]).expect("it parses");
        for claim in &experiment.claims {
            assert!(
                names.insert((claim.study.clone(), claim.name.clone())),
                "{}: {} twice",
                claim.study,
                claim.name
            );
            let Some(place) = &claim.left_out else { continue };
            let (path, heading) = place.split_once('#').unwrap_or((place, ""));
            let text = std::fs::read_to_string(root.join(path));
            let text = text.unwrap_or_else(|error| panic!("{}: {}: {path}: {error}", entry.path, claim.name));
            let there = heading.is_empty() || text.lines().filter_map(anchor).any(|anchor| anchor == heading);
            assert!(there, "{}: {}: {path} has no heading #{heading}", entry.path, claim.name);
        }
    }
}

/// The anchor of a Markdown heading: in lower case, with hyphens for spaces and without other punctuation.
fn anchor(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    Some(kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect())
}

/// A store keeps the entire experiment, except events and the addresses of servers.
#[test]
fn every_experiment_reads_back_as_it_was_resolved() {
    for entry in experiments() {
        let mut resolved = Experiment::parse(entry.path, entry.text, &[]).expect("it parses").resolved;
        let back: Resolved = serde_json::from_str(&resolved.to_json()).expect("it reads back");
        resolved.load.events.clear();
        if let Work::Transactions(oltp) = &mut resolved.load.work {
            oltp.servers.clear();
        }
        assert_eq!(back, resolved, "{}", entry.path);
    }
}
