//! The answer as a report: a sentence, a table, the formula with its numbers.
//!
//! Not here: how a report is printed; see `report`.

use super::case::Case;
use super::endurance::{Span, dwpd, years};
use super::life::{Life, Period};
use super::rate::WriteRate;
use super::words;
use crate::number::significant;
use crate::{Column, Digits, Report, Table, Value};
use lowtide_core::Bytes;
use lowtide_lab::smart::Reading;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// What the host writes.
    pub rate: WriteRate,
    /// Over how many years drive writes per day are counted.
    pub warranty_years: f64,
}

/// The lifetime of a model, or of the models of a campaign.
///
/// # Panics
/// Where there is no case.
pub fn of_cases(
    title: String,
    facts: Vec<(String, String)>,
    cases: &[Case],
    question: Question,
    notes: &[String],
) -> Report {
    let table = table(cases, question);
    let mut verdict = vec![sentence(cases, question)];
    verdict.extend(too_fast(cases, question));
    verdict.extend(cases.iter().any(|case| !case.steady).then(|| {
        "Some had not settled: their write amplification is that of the end, and may still change.".to_owned()
    }));
    verdict.extend(notes.iter().cloned());
    report(title, facts, verdict, table)
}

/// The lifetime of a real drive by its counters.
pub fn of_life(now: &Reading, life: &Life, rate: Option<WriteRate>) -> Report {
    let mut verdict = vec![left(life, rate)];
    let last = &life.periods[life.periods.len() - 1];
    verdict.push(match last.write_amplification {
        Some(ratio) => format!("Write amplification {}: {} {}.", last.name, significant(ratio), "NAND bytes per host byte"),
        None if now.media.is_some() => format!("The host wrote nothing {}.", last.name),
        None => "The drive counts no NAND writes, or not under a name that lowtide knows: no write amplification. What \
                 is left follows from the share of its life that it says is used."
            .to_owned(),
    });
    verdict.extend(now.notes.iter().cloned());
    let mut facts = vec![("counters".to_owned(), now.sources.join(", "))];
    facts.extend(life.basis.clone().map(|basis| ("rests on".to_owned(), basis)));
    let title = format!("Life of {}", now.model.as_deref().unwrap_or("a drive"));
    report(title, facts, verdict, periods(life))
}

fn report(title: String, facts: Vec<(String, String)>, verdict: Vec<String>, table: Table) -> Report {
    Report {
        title,
        facts,
        verdict,
        tables: vec![table],
        details: Vec::new(),
        figures: Vec::new(),
        environment: Vec::new(),
        commands: Vec::new(),
        sources: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn years_of(case: &Case, question: Question) -> Span {
    let per_day = question.rate.bytes_per_day(case.capacity);
    case.endurance.host_bytes(case.wear).map(|bytes| years(bytes, per_day))
}

/// `1.2 years`, `0.9–1.8 years`.
fn years_words(years: Span) -> String {
    format!("{} years", words::span(years, words::years))
}

fn sentence(cases: &[Case], question: Question) -> String {
    let amplification = |case: &Case| significant(case.wear.write_amplification);
    let one = |case: &Case| {
        let years = years_words(years_of(case, question));
        format!("{years} of {} writes (write amplification {})", case.writes, amplification(case))
    };
    let rate = question.rate;
    let Some((first, rest)) = cases.split_first() else { unreachable!("there is a case") };
    match rest {
        [] => format!("At {rate} the rated erase cycles last for {}.", one(first)),
        [second] => {
            format!("At {rate} the rated erase cycles last for {}, or {}.", one(first), one(second))
        }
        _ => {
            let by_life =
                |a: &&Case, b: &&Case| years_of(a, question).low.total_cmp(&years_of(b, question).low);
            let (short, long) = (cases.iter().min_by(by_life), cases.iter().max_by(by_life));
            let (short, long) = (short.unwrap_or(first), long.unwrap_or(first));
            let end = |case: &Case| {
                let years = years_words(years_of(case, question));
                format!("{years} ({}, write amplification {})", case.writes, amplification(case))
            };
            format!("At {rate} the rated erase cycles last from {} to {}.", end(short), end(long))
        }
    }
}

/// A rate that the drive cannot take wears it no faster than it can write.
fn too_fast(cases: &[Case], question: Question) -> Option<String> {
    let wanted =
        |case: &Case| question.rate.bytes_per_day(case.capacity) / 86_400.0 / Bytes::mib(1).get() as f64;
    let slow = cases.iter().filter(|case| case.mib_per_s.is_some_and(|most| most < wanted(case)));
    let slowest =
        slow.min_by(|a, b| a.mib_per_s.partial_cmp(&b.mib_per_s).unwrap_or(std::cmp::Ordering::Equal))?;
    let most = slowest.mib_per_s?;
    Some(format!(
        "The model takes only {} MiB/s ({}), less than the {} MiB/s asked for; at that it lasts longer by the same factor.",
        significant(most),
        slowest.writes,
        significant(wanted(slowest)),
    ))
}

fn table(cases: &[Case], question: Question) -> Table {
    let range = cases.iter().any(|case| case.endurance.cycles.fewest() < case.endurance.cycles.most());
    let each = |key: &str, name: &str, unit: &str| Column::number(key, name, unit).digits(Digits::Each);
    let mut columns = vec![
        Column::text("writes", "writes").naming(),
        each("write_amplification", "write ampl.", ""),
        each("wear_levelling", "wear levelling", ""),
    ];
    let most = |column: Column| Column {
        key: column.key.clone() + "_most",
        name: column.name.clone() + " to",
        ..column
    };
    let mut ends = vec![
        each("years", "life", "years"),
        each("tbw_bytes", "TBW", "TB").scaled(1e-12),
        each("dwpd", "DWPD", "1/day"),
    ];
    if range {
        ends = ends.into_iter().flat_map(|column| [column.clone(), most(column)]).collect();
    }
    columns.extend(ends);
    columns.push(each("nand_bytes_per_day", "NAND", "GB/day").scaled(1e-9));
    columns.push(each("level_mib_per_s", "drive takes", "MiB/s"));
    let unsettled = cases.iter().any(|case| !case.steady);
    columns.extend(unsettled.then(|| Column::text("settled", "settled")));
    let rows = cases.iter().map(|case| {
        let bytes = case.endurance.host_bytes(case.wear);
        let warranty = bytes.map(|bytes| dwpd(bytes, question.warranty_years, case.capacity));
        let per_day = question.rate.bytes_per_day(case.capacity) * case.wear.write_amplification;
        let mut row = vec![
            Value::text(&case.writes),
            Value::Number(case.wear.write_amplification),
            Value::Number(case.wear.levelling),
        ];
        for Span { low, high } in [years_of(case, question), bytes, warranty] {
            row.push(Value::Number(low));
            row.extend(range.then_some(Value::Number(high)));
        }
        row.push(Value::Number(per_day));
        row.push(Value::number(case.mib_per_s));
        row.extend(unsettled.then_some(Value::Flag(case.steady, ["yes", "no"])));
        row
    });
    let first = &cases[0].endurance;
    let same = cases.iter().all(|case| case.endurance == *first);
    let numbers = |text: String| if same { format!(" ({text})") } else { String::new() };
    Table {
        key: "lifetime".to_owned(),
        title: "Until the rated erase cycles are used".to_owned(),
        note: format!(
            "TBW = raw NAND{} × rated cycles{} ÷ (write amplification × wear levelling); life = TBW ÷ host writes a \
             day ÷ 365; DWPD over {} years. Only wear by erasing: see docs/models/lifetime.md.",
            numbers(first.raw.to_string()),
            numbers(first.cycles.to_string()),
            significant(question.warranty_years),
        ),
        rows: rows.collect(),
        columns,
    }
}

fn left(life: &Life, rate: Option<WriteRate>) -> String {
    let pace = match (rate, life.bytes_per_day) {
        (Some(rate), _) => rate.to_string(),
        (None, Some(per_day)) => {
            format!("{}/day, as {}", words::decimal(per_day), life.periods[life.periods.len() - 1].name)
        }
        (None, None) => String::new(),
    };
    match (life.host_bytes_left, life.years_left) {
        (_, Some(years)) if years.high <= 0.0 => "Nothing is left of its rated life.".to_owned(),
        (_, Some(years)) if years.high.is_infinite() => {
            format!("At least {} years left at {pace}.", words::years(years.low))
        }
        (_, Some(years)) => format!("{} left at {pace}.", years_words(years)),
        (Some(bytes), None) => format!(
            "At least {} of host writes left; how long that lasts is not known, for it tells no power-on time or \
             nothing was written: say what is written with `--writes 40GB/day`.",
            words::decimal(bytes.low)
        ),
        (None, _) => {
            "What is left is not known: the drive does not say what share of its life is used. Say what its \
                      NAND is rated for with `--cycles 3000`; that needs a drive that counts NAND writes."
                .to_owned()
        }
    }
}

fn periods(life: &Life) -> Table {
    let each = |key: &str, name: &str, unit: &str| Column::number(key, name, unit).digits(Digits::Each);
    let row = |period: &Period| {
        let last = std::ptr::eq(period, &life.periods[life.periods.len() - 1]);
        let end = |pick: fn(Span) -> f64| Value::number(life.years_left.filter(|_| last).map(pick));
        let nand_per_day =
            period.host_bytes_per_day().zip(period.write_amplification).map(|(host, ratio)| host * ratio);
        vec![
            Value::text(period.name),
            Value::number(period.hours),
            Value::number(period.host_bytes),
            Value::number(period.nand_bytes),
            Value::number(period.write_amplification),
            Value::number(period.host_bytes_per_day()),
            Value::number(nand_per_day),
            end(|years| years.low),
            end(|years| years.high),
        ]
    };
    let table = Table {
        key: "counters".to_owned(),
        title: "What the drive counted".to_owned(),
        note: "A day is 24 power-on hours. The share of life used is a whole number of percent; it is taken to be off by \
               up to one."
            .to_owned(),
        columns: vec![
            Column::text("period", "period").naming(),
            each("power_on_hours", "on", "h"),
            each("host_bytes", "host", "TB").scaled(1e-12),
            each("nand_bytes", "NAND", "TB").scaled(1e-12),
            each("write_amplification", "write ampl.", ""),
            each("host_bytes_per_day", "host", "GB/day").scaled(1e-9),
            each("nand_bytes_per_day", "NAND", "GB/day").scaled(1e-9),
            each("years_left", "left", "years"),
            each("years_left_most", "to", "years"),
        ],
        rows: life.periods.iter().map(row).collect(),
    };
    table.without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifetime::{Endurance, Wear};

    fn case(writes: &str, write_amplification: f64, cycles: &str) -> Case {
        Case {
            writes: writes.to_owned(),
            wear: Wear { write_amplification, levelling: 1.0 },
            steady: true,
            mib_per_s: Some(20.0),
            endurance: Endurance { raw: Bytes::gib(180), cycles: cycles.parse().expect("cycles") },
            capacity: Bytes::new(160_000_000_000),
        }
    }

    fn shown(cases: &[Case], rate: &str) -> Report {
        let question = Question { rate: rate.parse().expect("a rate"), warranty_years: 5.0 };
        of_cases("Life of a drive".to_owned(), Vec::new(), cases, question, &[])
    }

    #[test]
    fn the_table_has_the_figures_of_the_formula() {
        let report =
            shown(&[case("random", 4.0, "5000..10000"), case("sequential", 1.0, "5000..10000")], "1TB/day");
        let row = &report.tables[0].records()[0];
        // 180 GiB × 5000 / 4 = 241.6 TB: 0.662 years at 1 TB a day, 0.827 drive writes a day over 5 years.
        let number = |key: &str| row[key].as_f64().expect("a number");
        assert_eq!(number("tbw_bytes"), 180.0 * 1_073_741_824.0 * 5000.0 / 4.0);
        assert_eq!(number("nand_bytes_per_day"), 4e12);
        assert!((number("years") - 0.66190).abs() < 1e-5, "{row:?}");
        assert!((number("dwpd") - 0.82737).abs() < 1e-5, "{row:?}");
        for key in ["tbw_bytes", "dwpd", "years"] {
            assert_eq!(
                number(&format!("{key}_most")),
                2.0 * number(key),
                "the range of e13 is a factor of two"
            );
        }
        assert_eq!(
            report.verdict,
            [
                "At 1 TB/day (11.0 MiB/s) the rated erase cycles last for 0.662–1.32 years of random writes (write amplification 4), or \
              2.65–5.30 years of sequential writes (write amplification 1)."
            ]
        );
    }

    #[test]
    fn more_than_the_drive_takes_is_told() {
        let report = shown(&[case("random", 4.0, "3000")], "40MiB/s");
        assert!(report.verdict[1].contains("only 20 MiB/s (random), less than the 40 MiB/s"), "{report:?}");
        let columns: Vec<_> = report.tables[0].columns.iter().map(|column| column.key.as_str()).collect();
        assert!(!columns.contains(&"years_most"), "{columns:?}");
        assert_eq!(shown(&[case("random", 4.0, "3000")], "1MiB/s").verdict.len(), 1);
    }

    #[test]
    fn all_fits_a_terminal() {
        let report =
            shown(&[case("random", 4.0, "5000..10000"), case("sequential", 1.0, "5000..10000")], "40MiB/s");
        let text = report.terminal(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
