//! `lowtide validate`: compares the models with published measurements, number by number.
//!
//! The stores are in a temporary directory, or in the directory of `--keep`.

use crate::args::{Format, ValidateArguments};
use crate::failure::{FAILED, Failure, INTERRUPTED, REGRESSION};
use crate::output::REPORT;
use crate::progress::Bars;
use crate::{interrupt, output};
use lowtide_core::Seed;
use lowtide_files::catalogue::Published;
use lowtide_files::output::{CommandFiles, Output, OutputFolder, Role};
use lowtide_lab::experiment::NotCompared;
use lowtide_studies::validate::{Choice, Study, Summary, choose, excused, report};
use serde_json::json;
use std::time::Instant;
use tempfile::TempDir;

/// The directory of the stores.
const STORES: Role = Role::new("stores", "--keep DIR");

/// Runs the studies, and prints the deviations of the models.
pub fn run(arguments: &ValidateArguments) -> Result<u8, Failure> {
    let began = Instant::now();
    let seed = Seed::new(arguments.seed);
    let Choice { taken: chosen, left_out } =
        choose(&arguments.studies, seed, arguments.scale, arguments.real_servers)?;
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|one| one.name.as_str()).collect();
        output::say(format_args!("omitted without `--real-servers`: {}", names.join(", ")));
    }
    for one in chosen.iter().filter(|one| !one.plan.target.is_simulated()) {
        let longest = one.plan.longest().of_all();
        let takes = longest.map_or(String::new(), |longest| format!(", at most {longest} of load"));
        let (name, cells) = (&one.name, one.plan.cells.len());
        output::say(format_args!("{name}: real servers, in wall time: {cells} cells{takes}"));
    }
    // Without `--keep`, the stores are removed at the end.
    let temporary = match &arguments.keep {
        Some(_) => None,
        None => Some(temporary_directory()?),
    };
    let path = arguments.keep.as_deref().or(temporary.as_ref().map(TempDir::path));
    let folder = OutputFolder::new(STORES, path.expect("one of the two"), &CommandFiles::default())?;
    let store = |name: &str| folder.path().join(format!("{name}.db"));
    let mut files = CommandFiles::default();
    chosen.iter().for_each(|one| files.add_store(store(&one.name)));
    let page = arguments.report.as_deref().map(|path| Output::file(REPORT, path, &files)).transpose()?;
    if let Some(existing) = chosen.iter().map(|one| store(&one.name)).find(|path| path.exists()) {
        return Err(Failure::usage(
            format!("{} exists already", existing.display()),
            "name an empty directory with `--keep DIR`",
        ));
    }
    folder.make()?;
    let cells = chosen.iter().map(|one| one.plan.cells.len()).sum();
    let bars = Bars::new(cells);
    let flag = interrupt::flag();
    let started_at = jiff::Timestamp::now().to_string();
    let studies = lowtide_studies::validate::run(&chosen, folder.path(), &started_at, &flag, &bars);
    drop(bars);
    let studies = studies?;
    if studies.iter().any(|study| study.interrupted) {
        output::say("interrupted");
        return Ok(INTERRUPTED);
    }
    let excuses = excused(&chosen, arguments.studies.is_empty());
    let report = report(&studies, &excuses, arguments.seed, arguments.scale);
    let summary = Summary::of(&studies);
    let wall_s = began.elapsed().as_secs_f64();
    match arguments.format {
        Format::Json => output::print(&lines(&studies, &excuses, &summary, wall_s))?,
        Format::Csv => output::print(&numbers(&studies))?,
        Format::Table | Format::Markdown => output::print_report(&report, arguments.format)?,
    }
    if let Some(page) = &page {
        page.write(report.html().as_bytes())?;
        output::say(format_args!("report: {}", page.path().display()));
    }
    output::say(format_args!("{} experiments, {cells} cells, {wall_s:.0} s", studies.len()));
    if studies.iter().any(|study| study.failed > 0) {
        return Ok(FAILED);
    }
    Ok(if arguments.require && summary.claims_failed_unexplained > 0 { REGRESSION } else { 0 })
}

/// One JSON object per line: numbers and claims by study, numbers that are not compared, and the summary.
fn lines(studies: &[Study], excuses: &[NotCompared], summary: &Summary, wall_s: f64) -> String {
    let mut lines: Vec<serde_json::Value> = Vec::new();
    for study in studies {
        lines.extend(study.comparisons.iter().map(|it| {
            json!({
                "kind": "number", "experiment": study.campaign.name, "study": it.study, "row": it.line,
                "metric": it.metric, "where": it.where_label, "published": it.published, "model": it.model,
                "unit": it.unit, "error_pct": it.error_percent, "bound": it.bound.map(|bound| bound.word()),
                "fitted": it.used_to_fit, "missing": it.missing, "note": it.note, "source": it.source,
            })
        }));
        lines.extend(study.claims.iter().map(|it| {
            json!({
                "kind": "claim", "experiment": it.experiment, "study": it.study, "claim": it.name,
                "says": it.says, "where": it.where_label, "check": it.check, "found": it.found,
                "holds": it.holds, "explained_in": it.left_out,
            })
        }));
    }
    let not_compared = |row: &Published, why: &str| {
        json!({
            "kind": "not-compared", "study": row.study, "row": row.line, "metric": row.metric,
            "published": row.value, "unit": row.unit, "why": why,
        })
    };
    lines.extend(
        excuses.iter().flat_map(|excuse| excuse.rows.iter().map(|row| not_compared(row, &excuse.why))),
    );
    let mut last = serde_json::to_value(summary).expect("figures serialise");
    last["kind"] = json!("summary");
    last["wall_s"] = json!((wall_s * 10.0).round() / 10.0);
    lines.push(last);
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The numbers as CSV.
fn numbers(studies: &[Study]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut text =
        "experiment,study,row,metric,where,published,model,unit,error_pct,bound,fitted,note\n".to_owned();
    for study in studies {
        for it in &study.comparisons {
            let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
            let fields = [
                study.campaign.name.clone(),
                it.study.clone(),
                it.line.to_string(),
                quoted(&it.metric),
                quoted(&it.where_label),
                it.published.to_string(),
                number(it.model),
                it.unit.clone(),
                number(it.error_percent),
                it.bound.map_or("", |bound| bound.word()).to_owned(),
                it.used_to_fit.to_string(),
                quoted(&it.note),
            ];
            text.push_str(&(fields.join(",") + "\n"));
        }
    }
    text
}

fn temporary_directory() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("lowtide-validate-").tempdir();
    made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))
}
