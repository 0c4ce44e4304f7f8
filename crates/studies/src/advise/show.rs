//! Builds the report of an answer: the choice, all candidates that meet the question, and objections to the others.
//!
//! Module `assumptions` lists the assumptions; crate `lowtide-report` prints the report.

use super::assumptions::assumptions;
use super::choose::{Advice, Checked};
use super::question::Question;
use super::row::{Life, Measured, Outcome, Row, written_per_day};
use super::search::UpTo;
use super::trial::Trial;
use lowtide_report::lifetime::decimal;
use lowtide_report::number::significant;
use lowtide_report::{Column, Digits, Report, Table, Value};

/// The report of an answer.
pub fn report(advice: &Advice) -> Report {
    let question = &advice.question;
    let mut facts = vec![
        ("data".to_owned(), question.data.to_string()),
        ("asked for".to_owned(), question.rate_words()),
        ("years".to_owned(), significant(question.years)),
    ];
    facts.extend(question.budget_usd.map(|usd| ("budget".to_owned(), dollars(usd))));
    facts.push(("seed".to_owned(), question.seed.to_string()));
    let (meet, not): (Vec<&Row>, Vec<&Row>) =
        advice.rows.iter().partition(|row| row.objections(question).is_empty());
    let mut tables = Vec::new();
    let (priced, unpriced): (Vec<&Row>, Vec<&Row>) =
        meet.into_iter().partition(|row| row.candidate.price_usd.is_some());
    let title = "What meets all that was asked, the cheapest first";
    tables.extend((!priced.is_empty()).then(|| meeting(question, "meeting", title, &priced)));
    let title = "What meets it, too, but nobody says what it costs";
    tables.extend((!unpriced.is_empty()).then(|| meeting(question, "unpriced", title, &unpriced)));
    tables.extend(others(question, &not));
    tables.push(assumptions(advice));
    Report {
        title: format!("Where to put {} at {}", question.data, question.rate_words()),
        facts,
        verdict: verdict(advice),
        tables,
        details: vec![all(advice)],
        figures: Vec::new(),
        environment: Vec::new(),
        commands: Vec::new(),
        sources: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Formats dollars: `$6309`.
fn dollars(usd: f64) -> String {
    format!("${}", significant(usd))
}

/// Formats a level: `38.2 MiB/s (38.0 to 38.4)`.
fn level(question: &Question, trial: &Trial) -> String {
    let word = |value: f64| significant(value);
    match &trial.unsettled {
        None => format!(
            "{} {} ({} to {})",
            word(trial.mean),
            question.unit().word(),
            word(trial.low),
            word(trial.high)
        ),
        Some(reason) => format!("{} {}, not settled: {reason}", word(trial.mean), question.unit().word()),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 100.0).floor())
}

fn verdict(advice: &Advice) -> Vec<String> {
    let question = &advice.question;
    let mut said = Vec::new();
    match advice.choice() {
        Some((row, trial)) => {
            let measured = row.measured().expect("a choice was measured");
            said.push(choice(question, row, measured));
            said.push(life_and_cost(question, measured));
            let size = match trial.scale {
                1 => "full size".to_owned(),
                scale => format!("1/{scale} of the size"),
            };
            said.push(format!(
                "Checked with seed {}, longer, at {size}: {}.",
                trial.seed,
                level(question, trial)
            ));
        }
        None => {
            said.push("Nothing that comes into question meets all that was asked.".to_owned());
            let small = |row: &Row| matches!(row.outcome, Outcome::TooSmall);
            let largest = advice.rows.iter().max_by_key(|row| row.candidate.capacity());
            if let Some(largest) = largest.filter(|_| advice.rows.iter().all(small)) {
                said.push(format!(
                    "None holds {}: the largest, {}, holds {}.",
                    decimal(largest.data.get() as f64),
                    largest.candidate.device.name,
                    decimal(largest.candidate.capacity().get() as f64)
                ));
            }
            if let Some(row) = advice.rows.first().filter(|row| row.measured().is_some()) {
                let against = row.objections(question).join("; ");
                let name = &row.candidate.device.name;
                if !against.is_empty() {
                    said.push(format!("What comes nearest is {name}: {against}."));
                }
            }
        }
    }
    let chosen = advice.choice().map(|(row, _)| row.candidate.device.name.as_str());
    let failed = advice.checks.iter().filter(|check| Some(name(advice, check)) != chosen);
    said.extend(failed.map(|check| {
        let against = check.objections(question, &advice.rows[check.row]).join("; ");
        format!("{} came first, but not when it was run again: {against}.", name(advice, check))
    }));
    said
}

fn name<'a>(advice: &'a Advice, check: &Checked) -> &'a str {
    &advice.rows[check.row].candidate.device.name
}

fn choice(question: &Question, row: &Row, measured: &Measured) -> String {
    let device = &row.candidate.device;
    let full = percent(row.candidate.fill(row.data));
    let memory = measured.pool.map_or_else(String::new, |pool| {
        format!(", with {} of memory for the database", decimal(pool.get() as f64))
    });
    let limit = match measured.up_to {
        Some(UpTo::Fill(fill, _)) if fill >= 1.0 => "; it meets that when it is full, too".to_owned(),
        Some(UpTo::Fill(fill, _)) => format!("; it meets that up to {} full", percent(fill)),
        Some(UpTo::Never) | None => String::new(),
    };
    format!(
        "{} ({}): {full} full{memory} it does {} of the {} asked for{limit}.",
        device.name,
        device.title,
        level(question, &measured.trial),
        question.rate_words()
    )
}

fn life_and_cost(question: &Question, measured: &Measured) -> String {
    let per_day = decimal(written_per_day(question, &measured.trial));
    let life = match measured.life {
        Life::Years(_) => format!(
            "{per_day} a day are written, and {} to NAND: it lives {} years",
            decimal(
                written_per_day(question, &measured.trial)
                    * measured.trial.write_amplification.unwrap_or(1.0)
            ),
            measured.life.words()
        ),
        Life::Wearless => format!("{per_day} a day are written, which does not wear it"),
        Life::Unknown(why) => format!("{per_day} a day are written; how long it lives is not known: {why}"),
    };
    let cost = match measured.cost {
        None => "Nobody says what it costs: give `--price DEVICE=DOLLARS`.".to_owned(),
        Some(cost) => {
            let memory = match cost.memory_usd > 0.0 {
                true => format!(" and {} for memory", dollars(cost.memory_usd)),
                false => String::new(),
            };
            format!(
                "It costs {}{memory}: {} a year, {} for a million {}.",
                dollars(cost.device_usd),
                dollars(cost.usd_per_year),
                dollars(cost.usd_per_million),
                question.unit().counted()
            )
        }
    };
    format!("{life}. {cost}")
}

fn each(key: &str, name: &str, unit: &str) -> Column {
    Column::number(key, name, unit).digits(Digits::Each)
}

fn whole(key: &str, name: &str, unit: &str) -> Column {
    Column::number(key, name, unit).digits(Digits::Fixed(0))
}

/// The table of candidates that meet the question.
fn meeting(question: &Question, key: &str, title: &str, rows: &[&Row]) -> Table {
    let columns = vec![
        Column::text("device", "device").naming(),
        each("total_usd", "price", "$"),
        whole("fill", "full", "%").scaled(100.0),
        whole("fill_most", "up to", "%").scaled(100.0),
        each("pool_bytes", "memory", "GB").scaled(1e-9),
        each(&format!("level_{}", question.unit().key()), "level", question.unit().word()),
        Column { unit: "years".to_owned(), ..Column::text("life", "life") },
        each("usd_per_year", "a year", "$"),
        each("usd_per_million", "million", "$"),
    ];
    let row = |row: &&Row| {
        let measured = row.measured().expect("it meets the rate");
        let cost = measured.cost;
        vec![
            Value::text(&row.candidate.device.name),
            Value::number(cost.map(|cost| cost.total_usd())),
            Value::Number(row.candidate.fill(row.data)),
            Value::number(measured.up_to.and_then(UpTo::fill)),
            Value::number(measured.pool.map(|pool| pool.get() as f64)),
            Value::Estimate(measured.trial.mean, measured.trial.mean - measured.trial.low),
            Value::text(measured.life.words()),
            Value::number(cost.map(|cost| cost.usd_per_year)),
            Value::number(cost.map(|cost| cost.usd_per_million)),
        ]
    };
    let table = Table {
        key: key.to_owned(),
        title: title.to_owned(),
        note: notes(question, key),
        columns,
        rows: rows.iter().map(row).collect(),
    };
    table.without_empty_columns()
}

/// The note that explains the columns. Only the table with the key `meeting` has one.
fn notes(question: &Question, key: &str) -> String {
    match key {
        "meeting" => format!(
            "Price: device and memory. Full: the data as a share of the capacity; what is not filled is reserve. Up to: the fill \
             that was found to meet the rate still. Million: of {}.",
            question.unit().counted()
        ),
        _ => String::new(),
    }
}

/// The table of objections to the other candidates. Candidates that are too small or were skipped are only listed.
fn others(question: &Question, rows: &[&Row]) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let name = |row: &Row| row.candidate.device.name.clone();
    let holds = |row: &Row| format!("{} ({})", name(row), decimal(row.candidate.capacity().get() as f64));
    let row = |row: &Row| vec![Value::text(name(row)), Value::text(row.objections(question).join("; "))];
    let (mut small, mut passed_over, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for one in rows {
        match one.outcome {
            Outcome::TooSmall => small.push(holds(one)),
            Outcome::PassedOver => passed_over.push(name(one)),
            Outcome::TooDear | Outcome::Failed(_) | Outcome::Measured(_) => told.push(row(one)),
        }
    }
    let list = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("{what}: {}. ", names.join(", ")),
    };
    let passed_over =
        list("Without a price, and not tried because one that has a price is enough", &passed_over);
    let note = (list("Too small", &small) + &passed_over).trim_end().to_owned();
    Some(Table {
        key: "others".to_owned(),
        title: "Why the others are not chosen, the nearest first".to_owned(),
        note,
        columns: vec![Column::text("device", "device").naming(), Column::text("why", "why").wide()],
        rows: told,
    })
}

/// The table of all candidates with all figures, for programs.
fn all(advice: &Advice) -> Table {
    let question = &advice.question;
    let unit = question.unit().key();
    let columns = vec![
        Column::text("device", "device").naming(),
        Column::text("chosen", "chosen"),
        Column::text("why_not", "why not"),
        each("price_usd", "price", "$"),
        each("memory_usd", "memory", "$"),
        each("capacity_bytes", "capacity", "GB").scaled(1e-9),
        each("data_bytes", "data", "GB").scaled(1e-9),
        each("fill", "full", "%").scaled(100.0),
        each("fill_most", "up to", "%").scaled(100.0),
        each("pool_bytes", "memory", "GB").scaled(1e-9),
        each(&format!("level_{unit}"), "level", question.unit().word()),
        each(&format!("level_{unit}_low"), "from", question.unit().word()),
        each(&format!("level_{unit}_high"), "to", question.unit().word()),
        each("write_amplification", "write ampl.", ""),
        each("nand_bytes_per_day", "NAND", "GB/day").scaled(1e-9),
        each("years", "life", "years"),
        each("years_most", "to", "years"),
        each("usd_per_year", "a year", "$"),
        each("usd_per_million", "a million", "$"),
        each("scale", "simulated at 1/", ""),
    ];
    let chosen = advice.choice().map(|(row, _)| row);
    let row = |row: &Row| {
        let candidate = &row.candidate;
        let measured = row.measured();
        let cost = measured.and_then(|measured| measured.cost);
        let years = measured.and_then(|measured| match measured.life {
            Life::Years(years) => Some(years),
            Life::Wearless | Life::Unknown(_) => None,
        });
        let trial = measured.map(|measured| &measured.trial);
        let nand =
            trial.and_then(|trial| Some(written_per_day(question, trial) * trial.write_amplification?));
        vec![
            Value::text(&candidate.device.name),
            Value::Flag(chosen == Some(row), ["yes", "no"]),
            Value::text(row.objections(question).join("; ")),
            Value::number(candidate.price_usd),
            Value::number(cost.map(|cost| cost.memory_usd)),
            Value::Number(candidate.capacity().get() as f64),
            Value::Number(row.data.get() as f64),
            Value::Number(candidate.fill(row.data)),
            Value::number(measured.and_then(|measured| measured.up_to).and_then(UpTo::fill)),
            Value::number(measured.and_then(|measured| measured.pool).map(|pool| pool.get() as f64)),
            Value::number(trial.map(|trial| trial.mean)),
            Value::number(trial.map(|trial| trial.low)),
            Value::number(trial.map(|trial| trial.high)),
            Value::number(trial.and_then(|trial| trial.write_amplification)),
            Value::number(nand),
            Value::number(years.map(|years| years.low)),
            Value::number(years.map(|years| years.high)),
            Value::number(cost.map(|cost| cost.usd_per_year)),
            Value::number(cost.map(|cost| cost.usd_per_million)),
            Value::Number(candidate.scale as f64),
        ]
    };
    Table {
        key: "candidates".to_owned(),
        title: "Every candidate".to_owned(),
        note: String::new(),
        columns,
        rows: advice.rows.iter().map(row).collect(),
    }
}
