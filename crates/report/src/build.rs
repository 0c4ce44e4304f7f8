//! Assembles reports: of one campaign, of several campaigns compared, of the values of a factor compared.

use super::group::distinct;
use super::sweep::{identity, varying};
use super::{Checked, Comparison, Figure, Report, Table, databases, figure, number, rounds, tables, verdict};
use crate::answer::Answer;
use crate::compare::{self, Judged, NothingToCompare, Question, Side};
use lowtide_lab::experiment::{NotCompared, Resolved};
use lowtide_record::fact;
use lowtide_record::{Campaign, Cell, FactorLevel, Status};

/// The report of one campaign.
pub(crate) fn of_campaign(campaign: &Campaign, comparisons: &[Comparison]) -> Report {
    let published = tables::published(comparisons, !campaign.devices.is_empty());
    let answers = Answer::of_all(campaign);
    let (database_tables, details) = databases::tables(&answers);
    let experiment = Resolved::of(campaign);
    let rounds = experiment.as_ref().ok().and_then(Option::as_ref);
    let (mut sentences, all, figures) = match rounds.and_then(|it| rounds::of_campaign(it, campaign)) {
        Some(rounds) => {
            let all = rounds.tables.into_iter().chain(published).chain(database_tables).collect();
            let sentences = databases::broken(&answers).into_iter().chain(rounds.verdict).collect();
            (sentences, all, rounds.figures)
        }
        None => {
            let cells = (!campaign.cells.is_empty()).then(|| tables::cells(campaign));
            let tables = cells.into_iter().chain(published).chain(database_tables);
            let all = tables.chain(tables::utilisation(&answers)).collect();
            let sentences = verdict::sentences(campaign, &answers, comparisons);
            (sentences, all, figure::figures(campaign, &answers, comparisons))
        }
    };
    sentences.extend(experiment.err().map(|error| format!("Rounds and claims are left out: {error}.")));
    sentences.extend(verdict::gaps(campaign));
    Report {
        title: title(campaign),
        facts: facts(campaign),
        verdict: sentences,
        tables: all,
        details,
        figures,
        environment: shown(&campaign.environment),
        commands: vec![campaign.command.clone()],
        sources: sources(campaign, ""),
        version: campaign.version.clone(),
    }
}

/// The title of a campaign, or else its name.
fn title(campaign: &Campaign) -> String {
    if campaign.title.is_empty() { campaign.name.clone() } else { campaign.title.clone() }
}

/// The environment without drive logs, which stay in the store, and without warnings, which are in the verdict.
fn shown(environment: &[(String, String)]) -> Vec<(String, String)> {
    let for_people = |(name, _): &&(String, String)| name != fact::WARNING && !name.starts_with(fact::LOG);
    environment.iter().filter(for_people).cloned().collect()
}

/// The report of several campaigns compared with published numbers.
pub(crate) fn of_studies(
    campaigns: &[(&Campaign, &[Comparison])],
    claims: &[Checked],
    excuses: &[NotCompared],
    verdict: Vec<String>,
    seed: u64,
    scale: u64,
) -> Report {
    let comparisons = || campaigns.iter().flat_map(|(_, comparisons)| *comparisons);
    let mut studies = distinct(comparisons().map(|comparison| comparison.study.as_str()));
    studies.sort_unstable();
    let mut all: Vec<Table> = tables::claims(claims).into_iter().collect();
    for study in studies {
        let mut rows: Vec<Comparison> = comparisons().filter(|it| it.study == study).cloned().collect();
        rows.sort_by_key(|it| it.line);
        all.extend(tables::study(&rows).map(|table| Table { key: format!("published_{study}"), ..table }));
    }
    all.extend(tables::not_compared(excuses));
    let mut figures = Vec::new();
    for (campaign, comparisons) in campaigns {
        figures.extend(figure::with_published(campaign, comparisons).into_iter().map(|figure| Figure {
            name: format!("{}-{}", campaign.name, figure.name),
            title: format!("{}: {}", campaign.title, figure.title.to_lowercase()),
            ..figure
        }));
    }
    let mut facts =
        vec![("experiments".to_owned(), campaigns.len().to_string()), ("seed".to_owned(), seed.to_string())];
    if scale > 1 {
        let text = format!("1:{scale}, sizes and times shown as written in the experiments");
        facts.push(("scale".to_owned(), text));
    }
    Report {
        title: "Published numbers and the models".to_owned(),
        facts,
        verdict,
        tables: all,
        figures,
        commands: campaigns.iter().map(|(campaign, _)| campaign.command.clone()).collect(),
        version: campaigns.first().map_or_else(String::new, |(campaign, _)| campaign.version.clone()),
        ..Report::default()
    }
}

fn facts(campaign: &Campaign) -> Vec<(String, String)> {
    let count = |status| campaign.cells.iter().filter(|c| c.status == status).count();
    let (done, total) = (count(Status::Done), campaign.cells.len());
    let cells = match (done == total, count(Status::Spared)) {
        (true, _) => total.to_string(),
        (false, 0) => format!("{done} of {total} done"),
        (false, predicted) => format!("{done} of {total} done, {predicted} predicted"),
    };
    let mut facts = vec![
        ("experiment".to_owned(), campaign.name.clone()),
        ("target".to_owned(), campaign.target.clone()),
        ("cells".to_owned(), cells),
        ("seed".to_owned(), campaign.seed.to_string()),
    ];
    if campaign.scale > 1 {
        let databases = campaign.cells.iter().any(|cell| cell.oltp.is_some());
        let but = if databases { ", server settings and loaded data not scaled" } else { "" };
        let text = format!("1:{}, sizes and times shown as written in the experiment{but}", campaign.scale);
        facts.push(("scale".to_owned(), text));
    }
    if !campaign.started_at.is_empty() {
        facts.push(("started".to_owned(), when(&campaign.started_at)));
    }
    facts
}

/// `2026-11-21 01:20 UTC` for an RFC 3339 timestamp; any other text unchanged.
fn when(text: &str) -> String {
    text.parse::<jiff::Timestamp>()
        .map_or_else(|_| text.to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn sources(campaign: &Campaign, prefix: &str) -> Vec<(String, String)> {
    let mut sources = vec![(format!("{prefix}Experiment"), campaign.experiment.clone())];
    sources.extend(campaign.devices.iter().map(|device| (format!("{prefix}Device"), device.clone())));
    sources.retain(|(_, text)| !text.is_empty());
    sources
}

/// The factor that distinguishes merged campaigns.
const CAMPAIGN: &str = "campaign";

/// The comparison of several campaigns.
pub(crate) fn of_campaigns(campaigns: &[&Campaign], question: &Question) -> (Report, Vec<Judged>) {
    let names = names(campaigns);
    let mut cells: Vec<(Cell, u64)> = Vec::new();
    for (campaign, name) in campaigns.iter().zip(&names) {
        for cell in &campaign.cells {
            let mut cell = cell.clone();
            cell.index = cells.len() as u32;
            cell.factors.insert(0, FactorLevel::word(CAMPAIGN, name));
            cells.push((cell, campaign.scale));
        }
    }
    let base = campaigns.first().and_then(|campaign| campaign.interleaved());
    let interleaved = |other: usize| base.is_some() && campaigns[other].interleaved() == base;
    let cells: Vec<(&Cell, u64)> = cells.iter().map(|(cell, scale)| (cell, *scale)).collect();
    let values: Vec<FactorLevel> = names.iter().map(|name| FactorLevel::word(CAMPAIGN, name)).collect();
    let (mut report, judged) = compared(&cells, CAMPAIGN, &values, question, interleaved);
    report.title = format!("Comparison: {}", names.join(", "));
    report.environment = differing(campaigns);
    for (campaign, name) in campaigns.iter().zip(&names) {
        report.facts.push((name.clone(), format!("{}, seed {}", campaign.target, campaign.seed)));
        report.commands.push(campaign.command.clone());
        report.sources.extend(sources(campaign, &format!("{name}: ")));
    }
    report.version = campaigns.first().map_or_else(String::new, |c| c.version.clone());
    (report, judged)
}

/// Names for the campaigns: the first of name, target, version, seed and start that distinguishes all of them.
fn names(campaigns: &[&Campaign]) -> Vec<String> {
    let candidates: [fn(&Campaign) -> String; 5] = [
        |c| c.name.clone(),
        |c| c.target.clone(),
        |c| format!("version {}", c.version),
        |c| format!("{}, seed {}", c.name, c.seed),
        |c| when(&c.started_at),
    ];
    for candidate in candidates {
        let names: Vec<String> = campaigns.iter().map(|c| candidate(c)).collect();
        if names.iter().enumerate().all(|(i, name)| !name.is_empty() && !names[..i].contains(name)) {
            return names;
        }
    }
    campaigns.iter().enumerate().map(|(i, c)| format!("{} #{}", c.name, i + 1)).collect()
}

/// The environment facts that differ between campaigns.
fn differing(campaigns: &[&Campaign]) -> Vec<(String, String)> {
    let Some((first, others)) = campaigns.split_first() else { return Vec::new() };
    let value = |c: &Campaign, key: &str| {
        let fact = c.environment.iter().find(|(name, _)| name == key);
        fact.map_or_else(|| "–".to_owned(), |(_, value)| value.clone())
    };
    let differs = |(key, own): &&(String, String)| others.iter().any(|c| value(c, key) != *own);
    let row = |(key, _): &(String, String)| {
        let values: Vec<String> = campaigns.iter().map(|c| value(c, key)).collect();
        (key.clone(), values.join(" | "))
    };
    first.environment.iter().filter(differs).map(row).collect()
}

/// The comparison of the values of a factor.
pub(crate) fn of_factor(
    campaign: &Campaign,
    factor: &str,
    question: &Question,
) -> Result<(Report, Vec<Judged>), NothingToCompare> {
    let values = campaign.cells.iter().flat_map(identity).filter(|value| value.name == factor);
    let values: Vec<FactorLevel> = distinct(values);
    if values.len() < 2 {
        return Err(NothingToCompare { factor: factor.to_owned(), accepted: varying(&campaign.cells) });
    }
    let cells: Vec<(&Cell, u64)> = campaign.cells.iter().map(|c| (c, campaign.scale)).collect();
    let (mut report, judged) = compared(&cells, factor, &values, question, |_| false);
    let names: Vec<String> = values.iter().map(FactorLevel::describe).collect();
    report.title = format!("{}: {}", title(campaign), names.join(", "));
    report.facts = facts(campaign);
    report.environment = shown(&campaign.environment);
    report.commands = vec![campaign.command.clone()];
    report.sources = sources(campaign, "");
    report.version = campaign.version.clone();
    Ok((report, judged))
}

/// Tables, verdict and figures of a comparison, without title, facts and sources. `interleaved` returns whether a
/// value was measured alternately with the first.
fn compared(
    cells: &[(&Cell, u64)],
    factor: &str,
    values: &[FactorLevel],
    question: &Question,
    interleaved: impl Fn(usize) -> bool,
) -> (Report, Vec<Judged>) {
    let done = cells.iter().filter(|(cell, _)| cell.status == Status::Done);
    let answers: Vec<Answer<'_>> = done.map(|(cell, scale)| Answer::of(cell, *scale)).collect();
    let sides: Vec<Side<'_>> = values.iter().map(|value| Side::value(&answers, value)).collect();
    let mut report = Report { figures: figure::sweeps(&answers, factor), ..Report::default() };
    let Some((base, others)) = sides.split_first() else { return (report, Vec::new()) };
    let mut judged: Vec<Judged> = Vec::new();
    for (n, other) in others.iter().enumerate() {
        let suffix = if others.len() == 1 { String::new() } else { format!("_{}", n + 1) };
        let comparison = compare::Comparison::of(base, other, question.unsettled, interleaved(n + 1));
        report.tables.extend(tables::compare(&comparison, &suffix));
        report.verdict.push(verdict::of_sides(&comparison));
        judged.extend(question.thresholds.iter().map(|threshold| threshold.judge(&comparison)));
    }
    report.verdict.extend(verdict::of_limits(&judged));
    report.tables.extend(tables::thresholds(&judged));
    // If both sides have the same fill in every row, the comparison already shows it.
    if !report.tables.iter().any(|table| table.columns.iter().any(|column| column.key == "fill")) {
        report.tables.extend(tables::utilisation(&answers));
    }
    if report.verdict.is_empty() {
        report.verdict.push(format!(
            "Only {} was given, so there is nothing to compare.",
            number::fixed(sides.len() as f64, 0)
        ));
    }
    (report, judged)
}
