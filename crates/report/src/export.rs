//! Raw numbers: intervals and transactions as CSV, a complete campaign as JSON.
//!
//! Equal records give equal bytes. The exports leave out wall-clock time, environment and command line, which differ
//! between runs with the same measurements.

use crate::group::distinct;
use lowtide_core::measure::Gap;
use lowtide_core::{Counters, Distribution};
use lowtide_engines::tpcc::Kind;
use lowtide_record::analysis::Verdict;
use lowtide_record::column::{Column, Known, Value as Number};
use lowtide_record::{
    Campaign, Cell, Done, FactorLevel, Oltp, Predicted, Quantity, Row, Status, Transactions,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};
use std::io::{self, Write};

/// The columns that identify the cell of a line, in addition to its factors.
const CELL: [&str; 4] = ["campaign", "cell", "step", "repetition"];

/// Writes one CSV line per interval: campaign, cell, factors, then the numbers of the interval.
///
/// # Errors
/// If writing to `out` fails.
pub fn export_csv(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let factors = distinct(campaign.cells.iter().flat_map(|cell| &cell.factors).map(|it| it.name.as_str()));
    let counters = counters(&Counters::default());
    let mut writer = csv::Writer::from_writer(out);
    let mut header: Vec<String> = CELL.map(str::to_owned).to_vec();
    let numbers = || Row::COLUMNS.iter().map(|column| column.name);
    // A factor with the name of a column gets a prefix.
    let taken = |name: &str| CELL.contains(&name) || numbers().any(|column| column == name);
    header.extend(factors.iter().map(|f| if taken(f) { format!("factor_{f}") } else { (*f).to_owned() }));
    header.extend(numbers().map(str::to_owned));
    header.extend(counters.keys().cloned());
    let databases = campaign.quantity() == Quantity::NewOrders;
    header.extend(databases.then(|| Quantity::NewOrders.key().to_owned()));
    writer.write_record(&header)?;
    for cell in &campaign.cells {
        let mut line: Vec<String> = vec![
            campaign.name.clone(),
            cell.index.to_string(),
            cell.step.clone().unwrap_or_default(),
            cell.repetition.to_string(),
        ];
        line.extend(factors.iter().map(|name| cell.level(name).unwrap_or_default().to_owned()));
        let begin = line.len();
        for row in cell.rows.iter() {
            line.truncate(begin);
            line.extend(of_interval(row, cell.device_seen()));
            match &row.counters {
                Some(counted) => line.extend(self::counters(counted).values().map(Json::to_string)),
                None => line.extend(counters.keys().map(|_| String::new())),
            }
            if databases {
                line.push(row.transactions.as_ref().map_or_else(String::new, |_| row.rate().to_string()));
            }
            writer.write_record(&line)?;
        }
    }
    writer.flush()
}

/// Writes one CSV line per interval and kind of transaction of a campaign's databases.
///
/// # Errors
/// If writing to `out` fails.
pub fn export_transactions(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let of_kind = Done::COLUMNS.iter().map(|column| column.name);
    writer.write_record(["campaign", "cell", "start_ns", "end_ns", "kind"].into_iter().chain(of_kind))?;
    for (cell, row) in campaign.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row))) {
        let Some(transactions) = &row.transactions else { continue };
        for (kind, done) in Kind::ALL.iter().zip(&transactions.kinds) {
            let mut line = vec![campaign.name.clone(), cell.index.to_string()];
            line.extend([row.start_ns, row.end_ns].map(|ns| ns.to_string()));
            line.push(kind.name().to_owned());
            line.extend(Done::COLUMNS.iter().map(|column| column.value.text(done)));
            writer.write_record(&line)?;
        }
    }
    writer.flush()
}

/// The numbers of an interval; empty for an unobserved device.
fn of_interval(row: &Row, seen: bool) -> impl Iterator<Item = String> {
    let one = move |column: &Column<Row>| match column.known {
        Known::WithDevice if !seen => String::new(),
        _ => column.value.text(row),
    };
    Row::COLUMNS.iter().map(one)
}

/// Writes one JSON object: the campaign and its cells, with the intervals, histograms and verdict of each.
///
/// # Errors
/// If writing to `out` fails.
pub fn export_json(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let object = Exported {
        cells: &campaign.cells,
        devices: &campaign.devices,
        experiment: &campaign.experiment,
        name: &campaign.name,
        scale: campaign.scale,
        seed: campaign.seed,
        target: &campaign.target,
        title: &campaign.title,
        version: &campaign.version,
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// The JSON form of a campaign, with keys in alphabetical order.
#[derive(Serialize)]
struct Exported<'a> {
    #[serde(serialize_with = "one_by_one")]
    cells: &'a [Cell],
    devices: &'a [String],
    experiment: &'a str,
    name: &'a str,
    scale: u64,
    seed: u64,
    target: &'a str,
    title: &'a str,
    version: &'a str,
}

/// Serialises cells one at a time, so that only one is in memory as JSON.
fn one_by_one<S: Serializer>(cells: &&[Cell], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(cell))
}

/// The name of a status in exports and frames.
pub(crate) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Done => "done",
        Status::Failed => "failed",
        Status::Spared => "spared",
        Status::Damaged => "damaged",
    }
}

fn cell(cell: &Cell) -> Json {
    let pairs = |factor: &FactorLevel| json!([factor.name, factor.level]);
    let mut object = json!({
        "cell": cell.index,
        "step": cell.step,
        "factors": cell.factors.iter().map(pairs).collect::<Vec<_>>(),
        "repetition": cell.repetition,
        "status": status_name(cell.status),
        "failure": cell.failure,
        "data_bytes": cell.data.get(),
        "capacity_bytes": cell.capacity.get(),
        "raw_capacity_bytes": cell.raw_capacity.map(|raw| raw.get()),
        "threads": cell.threads,
        "read_share": cell.read_share,
        "written_before_bytes": cell.written_before.map(|written| written.get()),
        "counters_before": cell.counters_before.as_ref().map(counters),
        "read_latency_ns_counts": buckets(&cell.read_latency),
        "write_latency_ns_counts": buckets(&cell.write_latency),
        "erases_blocks": cell.wear,
        "verdict": cell.verdict.as_ref().map(|it| verdict(it, cell.quantity())),
        "intervals": cell.rows.iter().map(|it| row(it, cell.device_seen())).collect::<Vec<_>>(),
    });
    if let Some(known) = &cell.oltp {
        object["oltp"] = oltp(known);
    }
    if !cell.gaps.is_empty() {
        object["gaps"] = cell.gaps.iter().map(gap).collect();
    }
    if let Some(Predicted { level, low, high }) = cell.predicted {
        object["predicted"] =
            json!({ "level_mib_per_s": level, "low_mib_per_s": low, "high_mib_per_s": high });
    }
    object
}

/// A period during which lowtide did not run.
fn gap(gap: &Gap) -> Json {
    json!({ "at_ns": gap.at_ns, "length_ns": gap.length.get(), "cause": gap.cause.name() })
}

/// The facts of a database, with `_` instead of `-` in keys.
fn oltp(known: &Oltp) -> Json {
    let mut object = underscored(serde_json::to_value(known).expect("plain numbers and texts"));
    let counts = Kind::ALL.iter().zip(&known.latency).map(|(kind, latency)| (kind.name(), buckets(latency)));
    object["latency_ns_counts"] =
        Json::Object(counts.map(|(kind, all)| (kind.to_owned(), json!(all))).collect());
    object
}

fn underscored(json: Json) -> Json {
    match json {
        Json::Object(map) => {
            Json::Object(map.into_iter().map(|(key, it)| (key.replace('-', "_"), underscored(it))).collect())
        }
        Json::Array(all) => Json::Array(all.into_iter().map(underscored).collect()),
        other => other,
    }
}

fn transactions(transactions: &Transactions) -> Json {
    let one = |(kind, done): (&Kind, &Done)| {
        (kind.name().to_owned(), Json::Object(numbers(Done::COLUMNS, done, |_| true)))
    };
    Json::Object(Kind::ALL.iter().zip(&transactions.kinds).map(one).collect())
}

/// An interval; the numbers of an unobserved device are null.
fn row(row: &Row, seen: bool) -> Json {
    let mut object = numbers(Row::COLUMNS, row, |known| seen || known != Known::WithDevice);
    object.insert("counters".to_owned(), row.counters.as_ref().map(counters).into());
    if let Some(known) = &row.transactions {
        object.insert("notpm".to_owned(), json!(row.rate()));
        object.insert("transactions".to_owned(), transactions(known));
    }
    Json::Object(object)
}

/// The numbers of a record by name. Latencies are nested: `read_latency` contains `ns_p99`.
fn numbers<R>(columns: &[Column<R>], record: &R, is_known: impl Fn(Known) -> bool) -> Map<String, Json> {
    let mut object = Map::new();
    for column in columns {
        let number = match column.value {
            _ if !is_known(column.known) => Json::Null,
            Number::Whole { get, .. } => json!(get(record)),
            Number::Real { get, .. } => json!(get(record)),
        };
        match column.name.split_once("latency_ns_") {
            Some((op, percentile)) => {
                let of = object.entry(format!("{op}latency")).or_insert_with(|| json!({}));
                of[format!("ns_{percentile}")] = number;
            }
            None => drop(object.insert(column.name.to_owned(), number)),
        }
    }
    object
}

/// `[highest latency in ns, operations]` of each non-empty bucket.
fn buckets(latency: &Distribution) -> Vec<(u64, u64)> {
    latency.buckets().map(|(ns, count)| (ns.get(), count)).collect()
}

fn verdict(verdict: &Verdict, quantity: Quantity) -> Json {
    match verdict {
        Verdict::Steady(e) => {
            let level = format!("settled_{}", quantity.key());
            let values = [
                (level.clone(), json!(e.mean)),
                (format!("{level}_half_width"), json!(e.half_width)),
                ("from_ns".to_owned(), json!(e.from_ns)),
                ("to_ns".to_owned(), json!(e.to_ns)),
                ("batches".to_owned(), json!(e.batches)),
            ];
            Json::Object(values.into_iter().collect())
        }
        Verdict::NoSteadyState { reason } => json!({ "no_steady_state": reason }),
    }
}

/// The counters in order of name.
fn counters(counters: &Counters) -> Map<String, Json> {
    match serde_json::to_value(counters).expect("counters are plain numbers") {
        Json::Object(map) => map,
        _ => unreachable!("a struct serialises to an object"),
    }
}
