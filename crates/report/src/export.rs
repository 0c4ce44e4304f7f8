//! Raw numbers: every interval of a campaign as CSV, the transactions of databases as CSV, every record as JSON.
//!
//! The same records give the same bytes. Not here: wall-clock time, the environment and the command line,
//! which differ between runs that measured the same.

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

/// Columns that say which cell a line is of, beside its factors.
const CELL: [&str; 4] = ["campaign", "cell", "step", "repetition"];

/// Writes one CSV line per interval: campaign, cell, factors, then the numbers of the interval with their units.
///
/// # Errors
/// Where `out` refuses to be written.
pub fn export_csv(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    let mut factors: Vec<&str> = Vec::new();
    for factor in campaign.cells.iter().flat_map(|cell| &cell.factors) {
        if !factors.contains(&factor.name.as_str()) {
            factors.push(&factor.name);
        }
    }
    let counters = counters(&Counters::default());
    let mut writer = csv::Writer::from_writer(out);
    let mut header: Vec<String> = CELL.map(str::to_owned).to_vec();
    let numbers = || Row::COLUMNS.iter().map(|column| column.name);
    // A factor that is called like a column would make the name ambiguous.
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

/// Writes one CSV line per interval and kind of transaction of the databases of a campaign.
///
/// # Errors
/// Where `out` refuses to be written.
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

/// The numbers of an interval; those of a device that was not seen are empty.
fn of_interval(row: &Row, seen: bool) -> impl Iterator<Item = String> {
    let one = move |column: &Column<Row>| match column.known {
        Known::WithDevice if !seen => String::new(),
        _ => column.value.text(row),
    };
    Row::COLUMNS.iter().map(one)
}

/// Writes one JSON object: the campaign, its cells, and for each its intervals, histograms and verdict.
///
/// # Errors
/// Where `out` refuses to be written.
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

/// A campaign as JSON has it: keys in alphabetical order, as in all its objects.
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

/// Cells as JSON, of which one is in memory at a time.
fn one_by_one<S: Serializer>(cells: &&[Cell], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(cells.iter().map(cell))
}

fn cell(cell: &Cell) -> Json {
    let pairs = |factor: &FactorLevel| json!([factor.name, factor.level]);
    let mut object = json!({
        "cell": cell.index,
        "step": cell.step,
        "factors": cell.factors.iter().map(pairs).collect::<Vec<_>>(),
        "repetition": cell.repetition,
        "status": match cell.status {
            Status::Pending => "pending",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Spared => "spared",
            Status::Damaged => "damaged",
        },
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

/// When lowtide itself did not run.
fn gap(gap: &Gap) -> Json {
    json!({ "at_ns": gap.at_ns, "length_ns": gap.length.get(), "cause": gap.cause.name() })
}

/// What is known of a database, its keys with `_` as everywhere else.
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
        let value = Json::Object(numbers(Done::COLUMNS, done, |_| true));
        (kind.name().to_owned(), value)
    };
    Json::Object(Kind::ALL.iter().zip(&transactions.kinds).map(one).collect())
}

/// An interval; the numbers of a device that was not observed are null.
fn row(row: &Row, seen: bool) -> Json {
    let mut object = numbers(Row::COLUMNS, row, |known| seen || known != Known::WithDevice);
    object.insert("counters".to_owned(), row.counters.as_ref().map(counters).into());
    if let Some(known) = &row.transactions {
        object.insert("notpm".to_owned(), json!(row.rate()));
        object.insert("transactions".to_owned(), transactions(known));
    }
    Json::Object(object)
}

/// The numbers of a record by name; those of a latency are an object of their own: `read_latency`, with `ns_p99` in it.
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

/// `[highest latency of the bucket in ns, operations]` of each bucket that is not empty.
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

/// The counters by name, in order of name.
fn counters(counters: &Counters) -> Map<String, Json> {
    match serde_json::to_value(counters).expect("counters are plain numbers") {
        Json::Object(map) => map,
        _ => unreachable!("a struct serialises to an object"),
    }
}
