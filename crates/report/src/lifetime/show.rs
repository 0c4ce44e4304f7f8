//! The lifetime report: a sentence, a table, the formula with its numbers.

use super::case::Case;
use super::endurance::{Span, dwpd, years};
use super::life::{Life, Period};
use super::rate::WriteRate;
use super::words;
use crate::number::significant;
use crate::{Column, Report, Table, Value};
use lowtide_core::Bytes;
use lowtide_lab::smart::Reading;

/// The options of a lifetime report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The rate of host writes.
    pub rate: WriteRate,
    /// The number of years over which drive writes per day are counted.
    pub warranty_years: f64,
}

/// The lifetime of a model, or of the models of a campaign.
///
/// # Panics
/// If `cases` is empty.
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
        "Some levels had not settled: their write amplification is that of the end, and may still change."
            .to_owned()
    }));
    verdict.extend(notes.iter().cloned());
    report(title, facts, verdict, table)
}

/// The lifetime of a real drive, from its counters.
pub fn of_life(now: &Reading, life: &Life, rate: Option<WriteRate>) -> Report {
    let mut verdict = vec![left(life, rate)];
    let last = &life.periods[life.periods.len() - 1];
    verdict.push(match last.write_amplification {
        Some(ratio) => format!("Write amplification {}: {} NAND bytes per host byte.", last.name, significant(ratio)),
        None if now.media.is_some() => format!("The host wrote nothing {}.", last.name),
        None => "The drive has no counter of NAND writes that lowtide knows, so the write amplification is unknown. The \
                 remaining life follows from the used share that the drive reports."
            .to_owned(),
    });
    verdict.extend(now.notes.iter().cloned());
    let mut facts = vec![("counters".to_owned(), now.sources.join(", "))];
    facts.extend(life.basis.clone().map(|basis| ("basis".to_owned(), basis)));
    let title = format!("Life of {}", now.model.as_deref().unwrap_or("a drive"));
    report(title, facts, verdict, periods(life))
}

fn report(title: String, facts: Vec<(String, String)>, verdict: Vec<String>, table: Table) -> Report {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Report { title, facts, verdict, tables: vec![table], version, ..Report::default() }
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

/// Reports a requested rate above the drive's own write rate.
fn too_fast(cases: &[Case], question: Question) -> Option<String> {
    let wanted =
        |case: &Case| question.rate.bytes_per_day(case.capacity) / 86_400.0 / Bytes::mib(1).get() as f64;
    let slow = cases.iter().filter(|case| case.mib_per_s.is_some_and(|most| most < wanted(case)));
    let rated = slow.filter_map(|case| Some((case, case.mib_per_s?)));
    let (slowest, most) = rated.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "The model takes only {} MiB/s ({}), less than the requested {} MiB/s; at its own rate it lasts longer by the same \
         factor.",
        significant(most),
        slowest.writes,
        significant(wanted(slowest)),
    ))
}

fn table(cases: &[Case], question: Question) -> Table {
    let range = cases.iter().any(|case| case.endurance.cycles.fewest() < case.endurance.cycles.most());
    let mut columns = vec![
        Column::text("writes", "writes").naming(),
        Column::each("write_amplification", "write ampl.", ""),
        Column::each("wear_levelling", "wear levelling", ""),
    ];
    let most = |column: Column| Column {
        key: column.key.clone() + "_most",
        name: column.name.clone() + " to",
        ..column
    };
    let mut ends = vec![
        Column::each("years", "life", "years"),
        Column::each("tbw_bytes", "TBW", "TB").scaled(1e-12),
        Column::each("dwpd", "DWPD", "1/day"),
    ];
    if range {
        ends = ends.into_iter().flat_map(|column| [column.clone(), most(column)]).collect();
    }
    columns.extend(ends);
    columns.push(Column::each("nand_bytes_per_day", "NAND", "GB/day").scaled(1e-9));
    columns.push(Column::each("level_mib_per_s", "drive takes", "MiB/s"));
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
    let note = format!(
        "TBW = raw NAND{} × rated cycles{} ÷ (write amplification × wear levelling); life = TBW ÷ host writes per day \
         ÷ 365; DWPD over {} years. Only wear by erasing is included: see docs/models/lifetime.md.",
        numbers(first.raw.to_string()),
        numbers(first.cycles.to_string()),
        significant(question.warranty_years),
    );
    Table::new("lifetime", "Until the rated erase cycles are used", columns, rows.collect()).with_note(note)
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
            "At least {} of host writes left; the remaining time is unknown, because nothing was written or the drive \
             reports no power-on time: add the rate with `--writes 40GB/day`.",
            words::decimal(bytes.low)
        ),
        (None, _) => {
            "The remaining life is unknown: the drive does not report the used share of its life. For a drive that \
             counts NAND writes, add its rating with `--cycles 3000`."
                .to_owned()
        }
    }
}

fn periods(life: &Life) -> Table {
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
    let columns = vec![
        Column::text("period", "period").naming(),
        Column::each("power_on_hours", "on", "h"),
        Column::each("host_bytes", "host", "TB").scaled(1e-12),
        Column::each("nand_bytes", "NAND", "TB").scaled(1e-12),
        Column::each("write_amplification", "write ampl.", ""),
        Column::each("host_bytes_per_day", "host", "GB/day").scaled(1e-9),
        Column::each("nand_bytes_per_day", "NAND", "GB/day").scaled(1e-9),
        Column::each("years_left", "left", "years"),
        Column::each("years_left_most", "to", "years"),
    ];
    let note = "A day is 24 power-on hours. The used share of the life is a whole number of percent and assumed to be off \
                by at most one.";
    let rows = life.periods.iter().map(row).collect();
    Table::new("counters", "Counters of the drive", columns, rows).with_note(note).without_empty_columns()
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

    fn both_patterns() -> [Case; 2] {
        [case("random", 4.0, "5000..10000"), case("sequential", 1.0, "5000..10000")]
    }

    #[test]
    fn the_table_follows_the_formula() {
        let report = shown(&both_patterns(), "1TB/day");
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
    fn a_rate_above_the_drives_own_is_reported() {
        let report = shown(&[case("random", 4.0, "3000")], "40MiB/s");
        assert!(
            report.verdict[1].contains("only 20 MiB/s (random), less than the requested 40"),
            "{report:?}"
        );
        let columns: Vec<_> = report.tables[0].columns.iter().map(|column| column.key.as_str()).collect();
        assert!(!columns.contains(&"years_most"), "{columns:?}");
        assert_eq!(shown(&[case("random", 4.0, "3000")], "1MiB/s").verdict.len(), 1);
    }

    #[test]
    fn the_report_fits_a_terminal() {
        let text = shown(&both_patterns(), "40MiB/s").terminal(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
