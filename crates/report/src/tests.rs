//! Tests of complete reports: every format has the same contents, all text is escaped, and nothing is lost.

use super::sample;
use super::*;
use crate::compare::Question;
use crate::frame::{self, Values};
use lowtide_core::Nanos;
use lowtide_core::measure::{Cause, Gap};
use lowtide_record::analysis::Verdict;
use lowtide_record::{Cell, FactorLevel, Predicted, Status};
use std::collections::BTreeSet;

fn comparison(quantity: Quantity, published: f64, model: f64, cell: u32) -> Comparison {
    Comparison {
        study: "Intel 320 random write".to_owned(),
        line: 1,
        metric: "throughput stabilised".to_owned(),
        where_label: "100 GiB".to_owned(),
        unit: "MiB/s".to_owned(),
        published,
        model: Some(model),
        missing: None,
        error_percent: Some((model / published - 1.0) * 100.0),
        bound: None,
        used_to_fit: false,
        source: "a published post".to_owned(),
        note: String::new(),
        quantity,
        cell: Some(cell),
    }
}

/// Three sizes of the Intel 320 study, short, with two published numbers.
fn small() -> Report {
    let campaign = sample::intel(&[10, 70, 140], 120);
    let fitted = Comparison {
        used_to_fit: true,
        note: "read off a graph".to_owned(),
        ..comparison(Quantity::Settled, 15.0, 16.2, 2)
    };
    let bound = Comparison {
        bound: Some(Bound::AtLeast),
        error_percent: None,
        ..comparison(Quantity::Settled, 40.0, 57.8, 1)
    };
    Report::new(&campaign, &[comparison(Quantity::Settled, 100.0, 98.1, 0), bound, fitted])
}

/// The page without style sheets and without the contents of drawings.
fn skeleton(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    loop {
        let next = [("<style>", "</style>"), ("<svg", "</svg>")]
            .into_iter()
            .filter_map(|(open, close)| Some((rest.find(open)?, open, close)))
            .min();
        let Some((at, open, close)) = next else { break };
        out.push_str(&rest[..at]);
        out.push_str(open.trim_end_matches('>'));
        out.push_str("…>");
        let end = rest[at..].find(close).expect("closed") + at + close.len();
        rest = &rest[end..];
    }
    out.push_str(rest);
    for tag in [
        "<section", "<tr", "<figure", "</table", "<header", "<main", "<footer", "<details", "<pre", "<p",
        "<h2", "<dt", "<div",
    ] {
        out = out.replace(tag, &format!("\n{tag}"));
    }
    out + "\n"
}

#[test]
fn the_terminal_says_it_in_eighty_columns() {
    for report in [small(), Report::new(&sample::quick(), &[])] {
        let text = report.terminal(80);
        for line in text.lines().filter(|line| !line.starts_with("$ ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(!text.contains('\u{1b}'));
    }
    insta::assert_snapshot!("terminal", small().terminal(80));
}

#[test]
fn markdown_csv_and_json_say_the_same() {
    let report = small();
    insta::assert_snapshot!("markdown", report.markdown());
    insta::assert_snapshot!("csv", report.csv());
    insta::assert_snapshot!(
        "published_csv",
        report.table_csv("published").expect("there are published numbers")
    );
    insta::assert_snapshot!("json", report.json());
}

#[test]
fn the_page_has_its_parts_in_order() {
    let html = small().html();
    insta::assert_snapshot!("html", skeleton(&html));
    assert!(!html.contains("<script"));
    assert!(!html.contains("http://") && !html.contains("https://"), "nothing is fetched");
}

#[test]
fn figures_are_documents_of_their_own() {
    let figures = small().figures();
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "throughput-by-size.svg",
            "throughput-over-time.svg",
            "latency-distribution.svg",
            "write-amplification-over-time.svg",
            "erase-counts.svg"
        ]
    );
    for (name, svg) in &figures {
        assert!(svg.starts_with("<svg xmlns="), "{name}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count(), "{name}");
        assert!(svg.contains("<text") && svg.contains("prefers-color-scheme"), "{name}");
    }
    // Only series lines are dashed; a hollow marker shows a published number.
    assert!(figures[0].1.contains("stroke-dasharray") && figures[0].1.contains("published, settled"));
}

#[test]
fn names_from_outside_are_escaped_everywhere() {
    let nasty = "<script>alert(1)</script>&\"'\u{1b}[31m";
    let mut campaign = sample::intel(&[10, 20], 40);
    campaign.title = nasty.to_owned();
    campaign.name = nasty.to_owned();
    campaign.experiment = format!("</pre>{nasty}");
    campaign.devices = vec![nasty.to_owned()];
    campaign.environment = vec![(nasty.to_owned(), nasty.to_owned())];
    campaign.command = nasty.to_owned();
    for cell in &mut campaign.cells {
        cell.factors.push(FactorLevel::word(nasty, &format!("{nasty}{}", cell.index)));
    }
    campaign.cells[0].verdict = Some(Verdict::NoSteadyState { reason: nasty.to_owned() });
    let compared = Comparison {
        metric: nasty.to_owned(),
        study: nasty.to_owned(),
        ..comparison(Quantity::Settled, 1.0, 1.0, 1)
    };
    let report = Report::new(&campaign, &[compared]);
    assert!(!report.html().contains("<script"));
    for (name, svg) in report.figures() {
        assert!(!svg.contains("<script"), "{name}");
    }
    // An indented line is code, which Markdown shows as it is.
    assert!(!report.markdown().lines().any(|line| !line.starts_with("    ") && line.contains("<script")));
    assert!(!report.terminal(80).contains('\u{1b}'));
}

/// Symptom: a report of rounds silently became a list of cells. Cause: an experiment that no longer parses was
/// ignored. Fix: the verdict reports it.
#[test]
fn an_experiment_that_does_not_read_back_is_reported() {
    let mut campaign = sample::intel(&[10, 20], 40);
    let plain = Report::new(&campaign, &[]);
    campaign.resolved = Some("{}".to_owned());
    campaign.experiment = "name = 't'".to_owned();
    let report = Report::new(&campaign, &[]);
    let (last, others) = report.verdict.split_last().expect("sentences");
    assert!(last.starts_with("Rounds and claims are left out: the experiment of campaign"), "{last}");
    assert_eq!(others, plain.verdict);
}

#[test]
fn nothing_done_is_said_and_nothing_breaks() {
    let mut campaign = sample::campaign("nothing", "Nothing yet");
    let empty = Report::new(&campaign, &[]);
    assert!(empty.figures.is_empty() && empty.tables.is_empty());
    assert_eq!(empty.verdict, ["Nothing was measured to its end, so there is no answer."]);
    assert_eq!(empty.csv(), "");
    campaign.cells.push(sample::pending(0, &[("file_size", "10GiB")]));
    let failure = Some("No space left on device".to_owned());
    campaign.cells.push(Cell {
        status: Status::Failed,
        failure,
        ..sample::pending(1, &[("file_size", "20GiB")])
    });
    // A completed cell without intervals has no time to divide by.
    campaign.cells.push(Cell { status: Status::Done, ..sample::pending(2, &[("file_size", "30GiB")]) });
    let report = Report::new(&campaign, &[]);
    insta::assert_snapshot!("nothing_done", report.terminal(80));
    assert!(report.html().contains("No space left on device"));
    assert!(!report.html().contains("NaN") && !report.json().contains("NaN"));
}

#[test]
fn a_scaled_campaign_shows_sizes_as_written() {
    let plain = sample::intel(&[100], 60);
    let mut scaled = plain.clone();
    scaled.scale = 4;
    let verdict = &Report::new(&scaled, &[]).verdict[0];
    assert!(verdict.contains("400\u{a0}GiB in use") && verdict.contains("67\u{a0}%"), "{verdict}");
}

#[test]
fn what_was_not_measured_is_shown_as_predicted() {
    let mut campaign = sample::intel(&[10, 70, 100, 140], 60);
    campaign.cells.iter_mut().for_each(|cell| cell.took = Some(Nanos::from_secs(5400)));
    let (index, factors) = (campaign.cells[2].index, [("file_size", "100GiB")]);
    let spared = Cell {
        status: Status::Spared,
        data: campaign.cells[2].data,
        predicted: Some(Predicted { level: 23.5, low: 22.5, high: 24.5 }),
        ..sample::pending(index, &factors)
    };
    campaign.cells[2] = spared;
    let said = "3 of 4 sizes measured, 1 predicted";
    campaign.environment.push((lowtide_record::fact::SPARED.to_owned(), said.to_owned()));
    let report = Report::new(&campaign, &[]);
    let (terminal, html) = (report.terminal(120), report.html());
    let line = terminal.lines().find(|line| line.contains("100GiB") && line.contains("spared"));
    let line = line.unwrap_or_else(|| panic!("{terminal}"));
    assert!(line.contains("23.5 ± 1.0"), "{line}");
    for wanted in [said, "3 of 4 done, 1 predicted", "device time", "1.50", "predicted"] {
        assert!(terminal.contains(wanted), "{wanted}:\n{terminal}");
    }
    let (_, figure) = report.figures().remove(0);
    assert!(figure.contains("stroke-dasharray") && figure.contains("predicted"));
    assert!(html.contains("Dashed: sizes that were not measured"));
    let mut json = Vec::new();
    export_json(&campaign, &mut json).expect("a Vec takes everything");
    let parsed: serde_json::Value = serde_json::from_slice(&json).expect("valid JSON");
    let wanted =
        serde_json::json!({ "level_mib_per_s": 23.5, "low_mib_per_s": 22.5, "high_mib_per_s": 24.5 });
    assert_eq!(
        (&parsed["cells"][2]["status"], &parsed["cells"][2]["predicted"]),
        (&"spared".into(), &wanted)
    );
    assert!(parsed["cells"][1].get("predicted").is_none());
    let table = frame::cells(&campaign);
    let values = |name: &str| table.column(name).expect(name).values.clone();
    let none_but = |value: f64| Values::Real(vec![None, None, Some(value), None]);
    assert_eq!(values("predicted"), none_but(23.5));
    assert_eq!((values("predicted_low"), values("predicted_high")), (none_but(22.5), none_but(24.5)));
    let took = Some(5_400_000_000_000);
    assert_eq!(values("device_time_ns"), Values::Whole(vec![took, took, None, took]));
}

#[test]
fn a_gap_is_reported_with_its_cell_and_exported() {
    let mut campaign = sample::intel(&[10, 140], 60);
    let gap = Gap { at_ns: 65_900_000_000, length: Nanos::from_millis(12_340), cause: Cause::Stopped };
    campaign.cells[1].gaps.push(gap);
    let report = Report::new(&campaign, &[]);
    let words = "stopped for 12.3 s at 00:01:05 (SIGSTOP or Ctrl-Z): that time and the requests in flight then are left out";
    let told: Vec<&String> = report.verdict.iter().filter(|sentence| sentence.contains(words)).collect();
    assert!(told.len() == 1 && told[0].starts_with("Cell 1 (file_size 140GiB): "), "{:?}", report.verdict);
    assert!(report.tables[0].note.contains(&format!("140GiB: {words}")), "{}", report.tables[0].note);
    let mut json = Vec::new();
    export_json(&campaign, &mut json).expect("a Vec takes everything");
    let parsed: serde_json::Value = serde_json::from_slice(&json).expect("valid JSON");
    let wanted = serde_json::json!([{ "at_ns": 65_900_000_000u64, "length_ns": 12_340_000_000u64, "cause": "stopped" }]);
    assert_eq!(parsed["cells"][1]["gaps"], wanted);
    assert!(parsed["cells"][0].get("gaps").is_none());
    campaign.cells[0].gaps = vec![gap; 7];
    let many = Report::new(&campaign, &[]);
    assert!(many.verdict.iter().any(|it| it == "And 5 more such gaps, in the store and its JSON export."));
    assert!(many.tables[0].note.contains("; and 4 more."), "{}", many.tables[0].note);
}

#[test]
fn campaigns_are_compared_cell_by_cell() {
    let base = sample::intel(&[10, 70, 140], 120);
    let mut other = base.clone();
    other.name = "faster-drive".to_owned();
    other.cells.pop();
    for (cell, factor) in other.cells.iter_mut().zip([1.001, 1.3]) {
        if let Some(Verdict::Steady(estimate)) = &mut cell.verdict {
            estimate.mean *= factor;
        }
    }
    let (report, _) = Report::compare(&[&base, &other], &Question::default());
    insta::assert_snapshot!("compare", report.terminal(80));
    assert_eq!(report.figures[0].name, "throughput-by-size");
    assert_eq!(report.figures[0].panels[0].series.len(), 2);
}

#[test]
fn values_of_a_factor_are_compared_inside_a_campaign() {
    let campaign = sample::quick();
    let (report, _) =
        Report::compare_factor(&campaign, "threads", &Question::default()).expect("threads vary");
    assert_eq!(report.tables[0].title, "threads 16 against threads 1");
    assert_eq!(report.tables[0].rows.len(), 6);
    let error =
        Report::compare_factor(&campaign, "block", &Question::default()).expect_err("block does not vary");
    assert_eq!(
        error.to_string(),
        "no two values of `block` to compare; factors that vary: file_size, pattern, threads"
    );
}

#[test]
fn the_export_reads_back_and_repeats_byte_by_byte() {
    let mut campaign = sample::quick();
    let export = |campaign: &Campaign| {
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        export_csv(campaign, &mut csv).expect("a Vec takes everything");
        export_json(campaign, &mut json).expect("a Vec takes everything");
        (csv, json)
    };
    let (csv, json) = export(&campaign);
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    let header = reader.headers().expect("a header").clone();
    assert_eq!(header.iter().collect::<BTreeSet<_>>().len(), header.len(), "no name twice");
    let column = |name: &str| header.iter().position(|h| h == name).expect(name);
    let records: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a record")).collect();
    assert_eq!(records.len(), 12 * 60);
    let rows = campaign.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row)));
    for (record, (cell, row)) in records.iter().zip(rows) {
        assert_eq!(record[column("cell")], cell.index.to_string());
        assert_eq!(Some(&record[column("file_size")]), cell.level("file_size"));
        assert_eq!(record[column("write_bytes")].parse(), Ok(row.write_bytes));
        assert_eq!(record[column("read_latency_ns_p99")].parse(), Ok(row.read.p99_ns));
        let written = row.counters.map(|c| c.host_written_bytes.to_string()).unwrap_or_default();
        assert_eq!(record[column("host_written_bytes")], written);
    }
    let parsed: serde_json::Value = serde_json::from_slice(&json).expect("valid JSON");
    assert_eq!(
        parsed["cells"][7]["verdict"]["no_steady_state"],
        "the throughput still falls by 4 % per minute"
    );
    assert_eq!(parsed["cells"][0]["intervals"].as_array().map(Vec::len), Some(60));

    campaign.started_at = "2030-01-01T00:00:00Z".to_owned();
    campaign.environment.clear();
    campaign.command = "another".to_owned();
    assert_eq!(export(&campaign), (csv, json));
}

/// The sample of databases, or one cell of it.
fn databases(only: Option<usize>) -> Campaign {
    let mut campaign = sample::databases();
    if let Some(index) = only {
        campaign.cells = vec![campaign.cells.swap_remove(index)];
    }
    campaign
}

#[test]
fn databases_are_told_in_new_orders() {
    let (sweep, single) = (Report::new(&databases(None), &[]), Report::new(&databases(Some(2)), &[]));
    for report in [&sweep, &single] {
        let text = report.terminal(80);
        for line in text.lines().filter(|line| !line.starts_with("$ ")) {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(!report.json().contains("mib_per_s") && !report.json().contains("NaN"));
    }
    insta::assert_snapshot!("databases_terminal", sweep.terminal(80));
    insta::assert_snapshot!("database_terminal", single.terminal(80));
    insta::assert_snapshot!("database_json", single.json());
    insta::assert_snapshot!("databases_html", skeleton(&sweep.html()));
    let names: Vec<String> = sweep.figures().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "new-orders-by-buffer-pool.svg",
            "new-orders-over-time.svg",
            "device-over-time.svg",
            "latency-of-new-order.svg",
            "latency-by-kind.svg",
            "write-amplification-over-time.svg",
        ]
    );
}

/// Symptom: on overlay, tmpfs or NFS, the report claimed that transactions read and wrote 0 bytes. Cause: unobserved
/// device traffic was recorded as 0. Fix: unobserved traffic is left out.
#[test]
fn what_a_device_did_that_nobody_saw_is_not_told() {
    let mut campaign = databases(Some(2));
    let told = |report: &Report| report.terminal(80).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told(&Report::new(&campaign, &[])).contains("the device read"));
    campaign.cells[0].oltp.as_mut().expect("a database").device_unseen = true;
    for row in std::sync::Arc::make_mut(&mut campaign.cells[0].rows) {
        (row.reads, row.read_bytes, row.writes, row.write_bytes) = (0, 0, 0, 0);
    }
    let report = Report::new(&campaign, &[]);
    let text = told(&report);
    assert!(!text.contains("the device read"), "{text}");
    assert!(text.contains("the device traffic was not visible"), "{text}");
    let answer: serde_json::Value = serde_json::from_str(&report.json()).expect("JSON");
    assert!(!answer.to_string().contains("\"write_bytes_per_transaction\":0"), "{answer}");
    let (mut csv, mut json) = (Vec::new(), Vec::new());
    export_csv(&campaign, &mut csv).expect("a Vec takes everything");
    export_json(&campaign, &mut json).expect("a Vec takes everything");
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    let header = reader.headers().expect("a header").clone();
    let column = header.iter().position(|name| name == "write_bytes").expect("a column");
    let first = reader.records().next().expect("a record").expect("whole");
    assert_eq!(&first[column], "");
    let parsed: serde_json::Value = serde_json::from_slice(&json).expect("valid JSON");
    assert!(parsed["cells"][0]["intervals"][0]["write_bytes"].is_null());
}

#[test]
fn a_broken_condition_is_the_first_sentence() {
    let mut campaign = databases(None);
    let conditions =
        |campaign: &mut Campaign| campaign.cells[1].oltp.as_mut().map(|it| it.conditions[3].after = Some(7));
    conditions(&mut campaign);
    let report = Report::new(&campaign, &[]);
    assert!(report.verdict[0].starts_with("INCONSISTENT (mariadb, 1GiB)"), "{:?}", report.verdict);
    assert!(report.verdict[0].contains("7 rows break `3.3.2.4`"), "{:?}", report.verdict);
    assert!(!report.verdict.iter().any(|it| it.contains("conditions of consistency held, before and after")));
    campaign.cells[1].oltp.as_mut().expect("a database").conditions[0].before = Some(1);
    let report = Report::new(&campaign, &[]);
    assert!(report.verdict[0].contains("before the measurement already 1 row broke"), "{:?}", report.verdict);
}

#[test]
fn what_is_not_the_benchmark_is_told() {
    let mut campaign = databases(Some(1));
    let said = &mut campaign.cells[0].oltp.as_mut().expect("a database").said;
    (said.remote_lines, said.remote_payments) = (said.lines / 10, 0);
    let told = |campaign: &Campaign| {
        Report::new(campaign, &[]).verdict.into_iter().find(|it| it.starts_with("Not the mix"))
    };
    let text = told(&campaign).expect("both shares are far off").replace('\u{a0}', " ");
    assert!(text.contains("10 % of the order lines") && text.contains("0 % of the payments"), "{text}");
    // With one warehouse per instance, no transaction can be remote.
    campaign.cells[0].oltp.as_mut().expect("a database").instances = 100;
    assert_eq!(told(&campaign), None);
}

#[test]
fn databases_are_exported_and_compared_in_new_orders() {
    let campaign = databases(None);
    let (mut rows, mut kinds, mut json) = (Vec::new(), Vec::new(), Vec::new());
    export_csv(&campaign, &mut rows).expect("a Vec takes everything");
    export_transactions(&campaign, &mut kinds).expect("a Vec takes everything");
    export_json(&campaign, &mut json).expect("a Vec takes everything");
    let mut reader = csv::Reader::from_reader(rows.as_slice());
    let notpm = reader.headers().expect("a header").iter().position(|h| h == "notpm").expect("notpm");
    let record = reader.records().nth(89).expect("ninety intervals").expect("a record");
    assert_eq!(record[notpm].parse(), Ok(campaign.cells[0].rows[89].rate()));
    let mut reader = csv::Reader::from_reader(kinds.as_slice());
    let all: Vec<csv::StringRecord> = reader.records().map(|it| it.expect("a record")).collect();
    assert_eq!(all.len(), 6 * 90 * 5);
    let done = &campaign.cells[0].rows[1].transactions.as_ref().expect("asked").kinds[3];
    assert_eq!((&all[8][4], all[8][5].parse()), ("delivery", Ok(done.committed)));
    let parsed: serde_json::Value = serde_json::from_slice(&json).expect("valid JSON");
    let cell = &parsed["cells"][0];
    assert!(cell["verdict"]["settled_notpm"].is_f64() && cell["oltp"]["said"]["remote_lines"].is_u64());
    assert_eq!(cell["oltp"]["conditions"].as_array().map(Vec::len), Some(12));

    let mut other = campaign.clone();
    other.name = "other".to_owned();
    let question =
        Question { thresholds: vec!["new_orders < 0.9".parse().expect("valid")], ..Question::default() };
    let (report, judged) = Report::compare(&[&campaign, &other], &question);
    assert!(report.tables[0].columns.iter().any(|column| column.key == "base_notpm"));
    assert_eq!((judged[0].kept, judged[0].not_judged), (6, 0));
    // New orders of a database are not compared with the throughput of a block device.
    for cell in &mut other.cells {
        cell.oltp = None;
        std::sync::Arc::make_mut(&mut cell.rows).iter_mut().for_each(|row| row.transactions = None);
    }
    let (report, _) = Report::compare(&[&campaign, &other], &question);
    assert!(report.tables[0].rows.is_empty(), "{:?}", report.tables[0].rows);
}
