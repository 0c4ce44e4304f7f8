//! The cost report: the cheapest device, a table of devices that keep the floor, tables of every size.

use super::curve::{Curve, Fit};
use super::floor::Floor;
use super::published::Recomputed;
use crate::group::distinct;
use crate::number::{significant, size};
use crate::{Column, Digits, Report, Table, Value};
use lowtide_record::Quantity;

const GB: f64 = 1e9;

/// The cost of each measured size, and the amount of data that keeps `floor`.
pub fn of_curves(curves: &[Curve], floor: Option<Floor>) -> Report {
    let mut verdict = Vec::new();
    let mut tables = Vec::new();
    if let Some(floor) = floor {
        let rated: Vec<&Curve> = curves.iter().filter(|curve| curve.quantity == floor.quantity).collect();
        verdict.push(cheapest_gb(&rated, floor));
        tables.extend((!rated.is_empty()).then(|| floor_table(&rated, floor)));
    }
    verdict.extend(cheapest_iops(curves));
    verdict.extend(most_orders(curves));
    let unsettled =
        curves.iter().flat_map(|curve| &curve.points).filter(|point| point.level.is_err()).count();
    if unsettled > 0 {
        let total = curves.iter().map(|curve| curve.points.len()).sum::<usize>();
        verdict.push(format!("{unsettled} of {total} sizes have no settled level and are left out."));
    }
    for (quantity, key, title) in [
        (Quantity::Throughput, "sizes", "Every size"),
        (Quantity::NewOrders, "databases", "Every size of the databases"),
    ] {
        let curves: Vec<&Curve> = curves.iter().filter(|curve| curve.quantity == quantity).collect();
        tables.extend((!curves.is_empty()).then(|| size_table(&curves, quantity, key, title)));
    }
    let devices = distinct(curves.iter().map(|curve| curve.device.as_str()));
    let experiments = distinct(curves.iter().map(|curve| curve.experiment.as_str()));
    let mut facts =
        vec![("devices".to_owned(), devices.join(", ")), ("experiments".to_owned(), experiments.join(", "))];
    facts.extend(floor.map(|floor| ("floor".to_owned(), floor.to_string())));
    report("What capacity and speed cost".to_owned(), facts, verdict, tables)
}

/// The published table, compared with its recomputed values.
pub fn of_published(devices: &[Recomputed]) -> Report {
    let agree = devices.iter().filter(|device| device.agrees()).count();
    let verdict = vec![
        format!(
            "{agree} of {} devices: the printed dollars per GB and transactions per dollar follow from the printed \
             prices, capacities and transactions, with further digits cut off.",
            devices.len()
        ),
        "The transactions are those of the source.".to_owned(),
    ];
    let columns = vec![
        Column::text("device", "device").naming(),
        Column::each("price_usd", "price", "USD"),
        Column::each("capacity_gb", "capacity", "GB"),
        Column::each("usd_per_gb", "computed", "USD/GB"),
        Column::each("published_usd_per_gb", "published", "USD/GB"),
        Column::each("usable_usd_per_gb", "usable", "USD/GB"),
        Column::number("tpm", "TPM", "1/min").digits(Digits::Fixed(0)),
        Column::each("tpm_per_usd", "computed", "TPM/USD"),
        Column::each("published_tpm_per_usd", "published", "TPM/USD"),
    ];
    let row = |it: &Recomputed| {
        vec![
            Value::text(&it.device),
            Value::Number(it.price_usd),
            Value::Number(it.capacity_gb),
            Value::Number(it.usd_per_gb),
            Value::Number(it.published_usd_per_gb),
            Value::number(it.usable_usd_per_gb),
            Value::Number(it.tpm),
            Value::Number(it.tpm_per_usd),
            Value::Number(it.published_tpm_per_usd),
        ]
    };
    let note = "Capacity: RAID10 of eight disks of 73 GB holds half of their capacity; one X25-E; the card as sold. A comment \
                under the post gives up 40 GB of the card for speed, so its usable dollars are per GB of 120 GB. Another \
                comment adds $1520 and $200 to $1790; the sum is $1720.";
    let rows = devices.iter().map(row).collect();
    let table = Table::new("published", "Published study e10, computed again", columns, rows).with_note(note);
    let facts = vec![("source".to_owned(), "published/e10, mysqlperformanceblog".to_owned())];
    report("Dollars of published study e10".to_owned(), facts, verdict, vec![table])
}

fn report(title: String, facts: Vec<(String, String)>, verdict: Vec<String>, tables: Vec<Table>) -> Report {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Report { title, facts, verdict, tables, version, ..Report::default() }
}

/// `intel-320-160gb (threads 4)`.
fn name(curve: &Curve) -> String {
    if curve.load.is_empty() { curve.device.clone() } else { format!("{} ({})", curve.device, curve.load) }
}

fn cheapest_gb(curves: &[&Curve], floor: Floor) -> String {
    let priced = curves.iter().filter_map(|curve| {
        let fit = curve.fit(floor.level);
        Some((curve, fit, curve.price_usd / (fit.data_bytes()? / GB)))
    });
    match priced.min_by(|a, b| a.2.total_cmp(&b.2)) {
        None => format!("No measured size keeps {floor}."),
        Some((curve, fit, usd)) => {
            let data = fit.data_bytes().map_or_else(String::new, size);
            let how = match fit {
                Fit::AtLeast { .. } => "the most that was measured",
                _ => "between two measured sizes",
            };
            let (usd, name) = (significant(usd), name(curve));
            format!("At {floor} or more, a usable GB costs ${usd} on {name}: {data} of data, {how}.")
        }
    }
}

fn cheapest_iops(curves: &[Curve]) -> Option<String> {
    // The requests of a database are its device traffic, not a performance of its own.
    let plain = curves.iter().filter(|curve| curve.quantity == Quantity::Throughput);
    let all = plain.flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let rated = all.filter_map(|(curve, point)| Some((curve, point, curve.price_usd / point.iops?)));
    let (curve, point, usd) = rated.min_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(format!(
        "One IO/s costs at least ${}, on {} with {} of data.",
        significant(usd),
        name(curve),
        size(point.data_bytes)
    ))
}

fn most_orders(curves: &[Curve]) -> Option<String> {
    let databases = curves.iter().filter(|curve| curve.quantity == Quantity::NewOrders);
    let all = databases.flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let rated =
        all.filter_map(|(curve, point)| Some((curve, point, point.level.as_ref().ok()? / curve.price_usd)));
    let (curve, point, most) = rated.max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(format!(
        "A dollar buys at most {} NOTPM, on {} with {} of data.",
        significant(most),
        name(curve),
        size(point.data_bytes)
    ))
}

/// The columns that distinguish the curves: the device if there are several, the load if a device has several.
fn naming(curves: &[&Curve]) -> Vec<Column> {
    let devices = curves.iter().any(|curve| curve.device != curves[0].device);
    let again =
        curves.iter().enumerate().any(|(at, curve)| curves[..at].iter().any(|it| it.device == curve.device));
    let loads = again || curves.iter().any(|curve| !curve.load.is_empty());
    let mut columns = Vec::new();
    columns.extend(devices.then(|| Column::text("device", "device").naming()));
    columns.extend(loads.then(|| Column::text("load", "load").naming()));
    columns
}

/// The values of the identifying columns. A load without a name is named after its experiment.
fn names(curve: &Curve, columns: &[Column]) -> Vec<Value> {
    let load = if curve.load.is_empty() { &curve.experiment } else { &curve.load };
    let word = |column: &Column| if column.key == "device" { &curve.device } else { load };
    columns.iter().map(|column| Value::text(word(column))).collect()
}

fn floor_table(curves: &[&Curve], floor: Floor) -> Table {
    let named = naming(curves);
    let rows = curves.iter().map(|curve| {
        let fit = curve.fit(floor.level);
        let data = fit.data_bytes();
        let how = match fit {
            Fit::Between { below, above, .. } => {
                format!("interpolated between {} and {}", size(below), size(above))
            }
            Fit::AtLeast { .. } => "largest size measured; more may fit".to_owned(),
            Fit::Never => "no measured size keeps it".to_owned(),
            Fit::Unknown => "no settled level".to_owned(),
        };
        let share = data.and_then(|data| Some(data * curve.points[0].fill? / curve.points[0].data_bytes));
        let mut row = names(curve, &named);
        row.extend([
            Value::Number(curve.price_usd),
            Value::number(data),
            Value::number(share),
            Value::number(data.map(|data| curve.price_usd / (data / GB))),
            Value::text(how),
        ]);
        row
    });
    let mut columns = named.clone();
    columns.extend([
        Column::each("price_usd", "price", "USD"),
        Column::each("usable_bytes", "usable", "GB").scaled(1e-9),
        Column::percent("fill", "fill"),
        Column::each("usd_per_usable_gb", "usable", "USD/GB"),
        Column::text("how", "how"),
    ]);
    let note = "Between two measured sizes, the level is interpolated linearly.";
    Table::new("floor", format!("Data that keeps {floor}"), columns, rows.collect()).with_note(note)
}

/// Every size of curves of one quantity.
fn size_table(curves: &[&Curve], quantity: Quantity, key: &str, title: &str) -> Table {
    let databases = quantity == Quantity::NewOrders;
    let named = naming(curves);
    let mut rows = Vec::new();
    for curve in curves {
        for point in &curve.points {
            let level = point.level.as_ref().ok();
            let per = |amount: Option<f64>| {
                Value::number(amount.filter(|amount| *amount > 0.0).map(|amount| curve.price_usd / amount))
            };
            let mut row = names(curve, &named);
            row.extend([
                Value::Number(point.data_bytes),
                Value::number(point.fill),
                level.map_or_else(|| Value::Missing("none".to_owned()), |level| Value::Number(*level)),
                Value::number(point.iops),
                per(Some(point.data_bytes / GB)),
            ]);
            row.extend(match databases {
                true => vec![Value::number(level.map(|level| level / curve.price_usd))],
                false => vec![per(point.iops), per(level.copied())],
            });
            rows.push(row);
        }
    }
    let mut columns = named;
    columns.extend([
        Column::each("data_bytes", "used", "GB").scaled(1e-9).naming(),
        Column::percent("fill", "fill"),
        Column::each(&format!("settled_{}", quantity.key()), "settled", quantity.unit()),
        Column::number("iops", "IOPS", "1/s").digits(Digits::Fixed(0)),
        Column::each("usd_per_gb", "used", "USD/GB"),
    ]);
    columns.extend(match databases {
        true => vec![Column::each("notpm_per_usd", "NOTPM per dollar", "")],
        false => {
            vec![
                Column::each("usd_per_iops", "IOPS", "USD"),
                Column::each("usd_per_mib_per_s", "MiB/s", "USD"),
            ]
        }
    });
    let mut prices: Vec<String> =
        curves.iter().map(|curve| format!("{} ${}", curve.device, curve.price_usd)).collect();
    prices.dedup();
    let rates = match databases {
        true => "NOTPM (new orders per minute) and the IOPS of the device",
        false => "IOPS and MiB/s",
    };
    let prices = prices.join(", ");
    let note = format!("Prices: {prices}. A GB is one of data under test; {rates} are settled values.");
    Table::new(key, title, columns, rows).with_note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Point, recomputed};

    const FLOOR: Floor = Floor { level: 60.0, quantity: Quantity::Throughput };

    fn curve(device: &str, price_usd: f64, levels: &[(f64, Option<f64>)]) -> Curve {
        let point = |&(gb, level): &(f64, Option<f64>)| Point {
            data_bytes: gb * GB,
            fill: Some(gb / 160.0),
            level: level.ok_or_else(|| "no steady state".to_owned()),
            iops: level.map(|level| level * 64.0),
        };
        Curve {
            device: device.to_owned(),
            load: String::new(),
            experiment: "by-size".to_owned(),
            quantity: Quantity::Throughput,
            price_usd,
            points: levels.iter().map(point).collect(),
        }
    }

    #[test]
    fn dollars_are_the_price_divided_by_use() {
        let cheap = curve("cheap", 300.0, &[(50.0, Some(100.0)), (100.0, Some(20.0)), (150.0, None)]);
        let fast = curve("fast", 4000.0, &[(50.0, Some(800.0)), (150.0, Some(400.0))]);
        let report = of_curves(&[cheap, fast], Some(FLOOR));
        let floor = report.tables[0].records();
        // 100 to 20 over 50 GB: 60 is met up to 75 GB, half full; 300 over 75 is 4.
        assert_eq!((&floor[0]["usable_bytes"], &floor[0]["usd_per_usable_gb"]), (&75e9.into(), &4.0.into()));
        assert_eq!(floor[0]["fill"], 75.0 / 160.0);
        assert_eq!(floor[1]["how"], "largest size measured; more may fit");
        let sizes = report.tables[1].records();
        assert_eq!(
            (&sizes[0]["usd_per_gb"], &sizes[0]["usd_per_iops"]),
            (&6.0.into(), &(300.0 / 6400.0).into())
        );
        assert_eq!(sizes[0]["usd_per_mib_per_s"], 3.0);
        assert_eq!(sizes[2]["settled_mib_per_s_missing"], "none");
        assert!(
            report.verdict[0].starts_with("At 60\u{a0}MiB/s or more, a usable GB costs $4 on cheap"),
            "{report:?}"
        );
        assert!(report.verdict[2].starts_with("1 of 5 sizes"), "{report:?}");
        let none = of_curves(&[curve("cheap", 300.0, &[(50.0, Some(10.0))])], Some(FLOOR));
        assert!(none.verdict[0].starts_with("No measured size keeps"), "{none:?}");
    }

    #[test]
    fn databases_are_priced_by_new_orders() {
        let mut tpcc = curve("cheap", 300.0, &[(50.0, Some(9000.0)), (100.0, Some(4500.0))]);
        (tpcc.quantity, tpcc.load) = (Quantity::NewOrders, "engine mariadb".to_owned());
        let block = curve("cheap", 300.0, &[(50.0, Some(100.0))]);
        let floor = Floor { level: 6000.0, quantity: Quantity::NewOrders };
        let report = of_curves(&[tpcc, block], Some(floor));
        // 9000 to 4500 over 50 GB: 6000 is met up to 83.3 GB.
        let floor = report.tables[0].records();
        assert_eq!(floor.len(), 1, "a block device keeps no new orders");
        assert!((floor[0]["usable_bytes"].as_f64().expect("met") / GB - 83.333).abs() < 0.01, "{floor:?}");
        let databases = report.tables.iter().find(|table| table.key == "databases").expect("there is one");
        assert_eq!(databases.records()[0]["notpm_per_usd"], 30.0);
        assert_eq!(databases.records()[1]["settled_notpm"], 4500.0);
        let text = report.terminal(80);
        assert!(text.contains("A dollar buys at most 30 NOTPM, on cheap (engine mariadb)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn reports_fit_a_terminal() {
        let curve = curve("fusionio-iodrive-160gb-slc", 4800.0, &[(50.0, Some(100.0)), (100.0, Some(20.0))]);
        for report in [of_curves(&[curve], Some(FLOOR)), of_published(&recomputed())] {
            let text = report.terminal(80);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
