//! The answer as a report: the cheapest first, a table of what meets the floor, tables of every size.
//!
//! Not here: how a report is printed; see `report`.

use super::curve::{Curve, Fit};
use super::floor::Floor;
use super::published::Recomputed;
use crate::number::{significant, size};
use crate::{Column, Digits, Report, Table, Value};
use lowtide_record::Quantity;

const GB: f64 = 1e9;

/// What the sizes of campaigns cost, and which of them keep `floor`.
pub fn of_curves(curves: &[Curve], floor: Option<Floor>) -> Report {
    let mut verdict = Vec::new();
    let mut tables = Vec::new();
    if let Some(floor) = floor {
        let asked: Vec<&Curve> = curves.iter().filter(|curve| curve.quantity == floor.quantity).collect();
        verdict.push(cheapest_gb(&asked, floor));
        tables.extend((!asked.is_empty()).then(|| floor_table(&asked, floor)));
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
    let experiments: Vec<&str> = curves.iter().map(|curve| curve.experiment.as_str()).collect();
    let devices: Vec<&str> = curves.iter().map(|curve| curve.device.as_str()).collect();
    let mut facts = vec![
        ("devices".to_owned(), unique(&devices).join(", ")),
        ("experiments".to_owned(), unique(&experiments).join(", ")),
    ];
    facts.extend(floor.map(|floor| ("floor".to_owned(), floor.to_string())));
    report("What capacity and speed cost".to_owned(), facts, verdict, tables)
}

/// The published table beside what it follows from.
pub fn of_published(devices: &[Recomputed]) -> Report {
    let agree = devices.iter().filter(|device| device.agrees()).count();
    let verdict = vec![
        format!(
            "{agree} of {} devices: the printed dollars per GB and transactions per dollar follow from the printed \
             prices, capacities and transactions, with further digits cut off.",
            devices.len()
        ),
        "The transactions are the source's own.".to_owned(),
    ];
    let each = |key: &str, name: &str, unit: &str| Column::number(key, name, unit).digits(Digits::Each);
    let table = Table {
        key: "published".to_owned(),
        title: "Published study e10, computed again".to_owned(),
        note: "Capacity: RAID10 of eight disks of 73 GB holds half of them; one X25-E; the card as sold. Where the card \
               gives 40 GB up for speed, as a comment under the post says, its dollars are divided by 120 GB (usable). \
               Another comment adds $1520 and $200 to $1790; it is $1720."
            .to_owned(),
        columns: vec![
            Column::text("device", "device").naming(),
            each("price_usd", "price", "USD"),
            each("capacity_gb", "capacity", "GB"),
            each("usd_per_gb", "computed", "USD/GB"),
            each("published_usd_per_gb", "published", "USD/GB"),
            each("usable_usd_per_gb", "usable", "USD/GB"),
            Column::number("tpm", "TPM", "1/min").digits(Digits::Fixed(0)),
            each("tpm_per_usd", "computed", "TPM/USD"),
            each("published_tpm_per_usd", "published", "TPM/USD"),
        ],
        rows: devices
            .iter()
            .map(|it| {
                vec![
                    Value::text(&it.device),
                    Value::Number(it.price_usd),
                    Value::Number(it.capacity_gb),
                    Value::Number(it.usd_per_gb),
                    Value::Number(it.published_usd_per_gb),
                    Value::number(it.usable.map(|(_, usd)| usd)),
                    Value::Number(it.tpm),
                    Value::Number(it.tpm_per_usd),
                    Value::Number(it.published_tpm_per_usd),
                ]
            })
            .collect(),
    };
    let facts = vec![("source".to_owned(), "published/e10, mysqlperformanceblog".to_owned())];
    report("Dollars of published study e10".to_owned(), facts, verdict, vec![table])
}

fn report(title: String, facts: Vec<(String, String)>, verdict: Vec<String>, tables: Vec<Table>) -> Report {
    Report {
        title,
        facts,
        verdict,
        tables,
        details: Vec::new(),
        figures: Vec::new(),
        environment: Vec::new(),
        commands: Vec::new(),
        sources: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn unique<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut seen: Vec<&str> = Vec::new();
    names.iter().for_each(|name| {
        if !seen.contains(name) {
            seen.push(name);
        }
    });
    seen
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
        None => format!("Nothing that was measured keeps {floor}."),
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
    // The requests of a database are what its device was asked, not what anybody wanted.
    let plain = curves.iter().filter(|curve| curve.quantity == Quantity::Throughput);
    let all = plain.flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let rated = all.filter_map(|(curve, point)| Some((curve, point, curve.price_usd / point.iops?)));
    let (curve, point, usd) = rated.min_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(format!(
        "One IO/s costs ${} at the least, on {} with {} of data.",
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
        "A dollar buys {} NOTPM at the most, on {} with {} of data.",
        significant(most),
        name(curve),
        size(point.data_bytes)
    ))
}

/// The columns that tell curves apart: the device where there are several, the load where a device has several.
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

/// A load that has no name of its own goes by its experiment's.
fn names(curve: &Curve, columns: &[Column]) -> Vec<Value> {
    let load = if curve.load.is_empty() { &curve.experiment } else { &curve.load };
    let word = |column: &Column| if column.key == "device" { &curve.device } else { load };
    columns.iter().map(|column| Value::text(word(column))).collect()
}

fn floor_table(curves: &[&Curve], floor: Floor) -> Table {
    let each = |key: &str, name: &str, unit: &str| Column::number(key, name, unit).digits(Digits::Each);
    let named = naming(curves);
    let rows = curves.iter().map(|curve| {
        let fit = curve.fit(floor.level);
        let data = fit.data_bytes();
        let how = match fit {
            Fit::Between { below, above, .. } => {
                format!("interpolated between {} and {}", size(below), size(above))
            }
            Fit::AtLeast { .. } => "largest size measured; more may fit".to_owned(),
            Fit::Never => "no size measured keeps it".to_owned(),
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
    let rows = rows.collect();
    let mut columns = named.clone();
    columns.extend([
        each("price_usd", "price", "USD"),
        each("usable_bytes", "usable", "GB").scaled(1e-9),
        Column::number("fill", "fill", "%").scaled(100.0).digits(Digits::Fixed(0)),
        each("usd_per_usable_gb", "usable", "USD/GB"),
        Column::text("how", "how"),
    ]);
    Table {
        key: "floor".to_owned(),
        title: format!("As much data as keeps {floor}"),
        note: "Between two measured sizes the level is taken to fall on a straight line.".to_owned(),
        columns,
        rows,
    }
}

/// Every size of curves of one quantity.
fn size_table(curves: &[&Curve], quantity: Quantity, key: &str, title: &str) -> Table {
    let databases = quantity == Quantity::NewOrders;
    let each = |key: &str, name: &str, unit: &str| Column::number(key, name, unit).digits(Digits::Each);
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
        each("data_bytes", "used", "GB").scaled(1e-9).naming(),
        Column::number("fill", "fill", "%").scaled(100.0).digits(Digits::Fixed(0)),
        each(&format!("settled_{}", quantity.key()), "settled", quantity.unit()),
        Column::number("iops", "IOPS", "1/s").digits(Digits::Fixed(0)),
        each("usd_per_gb", "used", "USD/GB"),
    ]);
    columns.extend(match databases {
        true => vec![each("notpm_per_usd", "NOTPM per dollar", "")],
        false => vec![each("usd_per_iops", "IOPS", "USD"), each("usd_per_mib_per_s", "MiB/s", "USD")],
    });
    let mut prices: Vec<String> =
        curves.iter().map(|curve| format!("{} ${}", curve.device, curve.price_usd)).collect();
    prices.dedup();
    let rates = if databases {
        "NOTPM (new orders per minute), and the IOPS of the device,"
    } else {
        "IOPS and MiB/s"
    };
    Table {
        key: key.to_owned(),
        title: title.to_owned(),
        note: format!(
            "Prices: {}. A GB is one of data under test; {rates} are the settled ones.",
            prices.join(", ")
        ),
        columns,
        rows,
    }
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
    fn dollars_are_the_price_over_what_is_used() {
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
        assert!(none.verdict[0].starts_with("Nothing that was measured keeps"), "{none:?}");
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
        assert!(text.contains("A dollar buys 30 NOTPM at the most, on cheap (engine mariadb)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn all_fits_a_terminal() {
        let curve = curve("fusionio-iodrive-160gb-slc", 4800.0, &[(50.0, Some(100.0)), (100.0, Some(20.0))]);
        for report in [of_curves(&[curve], Some(FLOOR)), of_published(&recomputed())] {
            let text = report.terminal(80);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
