//! A synthetic campaign of databases: two engines with three buffer pools each, on a simulated drive with a price.

use super::{INTERVAL_NS, campaign, latency, pending};
use lowtide_core::{Bytes, Counters, Distribution, Latency};
use lowtide_engines::tpcc::Kind;
use lowtide_record::analysis::{Estimate, Verdict};
use lowtide_record::latency_parts::Gatherer;
use lowtide_record::{
    Campaign, Cell, Condition, Counted, Done, Oltp, Percentiles, Row, Status, Totals, Transactions,
};
use std::sync::Arc;

/// The share of each kind of transaction, and its latency divided by that of New-Order.
const MIX: [(f64, f64); Kind::ALL.len()] = [(0.45, 1.0), (0.43, 0.4), (0.04, 0.3), (0.04, 2.5), (0.04, 0.8)];
/// Intervals of a cell.
const COUNT: u32 = 90;
const FROM: u32 = 30;

/// The campaign. Each larger buffer pool doubles the rate of new orders.
pub(crate) fn databases() -> Campaign {
    let mut campaign = campaign("tpcc-by-pool", "TPC-C by buffer pool, two databases");
    let drive = lowtide_files::device::find("intel-320-160gb").expect("in the catalogue");
    campaign.devices = vec![format!("price-usd = 299\n{}", drive.texts[0])];
    campaign.experiment = "name = \"tpcc-by-pool\"\n\n[oltp]\nwarehouses = 100\n".to_owned();
    campaign.environment.push(("cores".to_owned(), "2".to_owned()));
    for (engine, version, base) in
        [("mariadb", "MariaDB 10.11.6, InnoDB", 3_100.0), ("sqlite", "SQLite 3.46.1", 2_300.0)]
    {
        for (pool, times) in [("256MiB", 1.0), ("1GiB", 2.0), ("4GiB", 4.0)] {
            let index = campaign.cells.len() as u32;
            let cell = pending(index, &[("engine", engine), ("buffer_pool", pool)]);
            campaign.cells.push(asked(cell, version, base * times));
        }
    }
    campaign
}

/// A cell whose database reached `notpm` new orders per minute.
fn asked(mut cell: Cell, version: &str, notpm: f64) -> Cell {
    let sqlite = version.starts_with("SQLite");
    (cell.threads, cell.read_share, cell.data) = (16, 0.5, Bytes::gib(10));
    let mut counters =
        Counters { host_written_bytes: 20 << 30, nand_written_bytes: 20 << 30, ..Counters::default() };
    cell.counters_before = Some(counters);
    let mut oltp = Oltp {
        database: version.to_owned(),
        warehouses: 100,
        instances: 1,
        loaded_bytes: 9 << 30,
        settings: settings(sqlite, cell.level("buffer_pool").unwrap_or_default()),
        ignored: if sqlite {
            vec!["io_capacity: SQLite writes nothing in the background".to_owned()]
        } else {
            Vec::new()
        },
        ..Oltp::default()
    };
    let mut gatherer = Gatherer::new((COUNT - FROM) as usize);
    let mut kinds: [Latency; Kind::ALL.len()] = Default::default();
    for k in 0..COUNT {
        // The rate rises while the pool fills, and varies with checkpoints.
        let level =
            notpm * (1.0 - 0.6 * (-f64::from(k) / 6.0).exp()) * (1.0 + 0.02 * f64::from(k % 5) - 0.04);
        let all = level / 60.0 * 10.0 / MIX[0].0;
        let mut transactions = Transactions::default();
        for (kind, (share, slower)) in MIX.iter().enumerate() {
            let ended = (all * share) as u64;
            let waited = latency(16.0 / (all / 10.0) * 1e9 * slower, ended);
            let rolled_back = if kind == 0 { ended / 100 } else { 0 };
            transactions.kinds[kind] = Done {
                committed: ended - rolled_back,
                rolled_back,
                retries: if sqlite || kind > 1 { 0 } else { ended / 40 },
                latency: Percentiles::of(&waited),
            };
            if k >= FROM {
                gatherer.add((k - FROM) as usize, false, &waited);
                kinds[kind].merge(&waited);
            }
        }
        let ended = transactions.ended();
        let (reads, writes) = (ended * 8 / (notpm / 2_300.0) as u64, ended * 3);
        counters.host_written_bytes += writes * 16384;
        counters.nand_written_bytes += writes * 16384 * 3 / 2;
        Arc::make_mut(&mut cell.rows).push(Row {
            start_ns: u64::from(k) * INTERVAL_NS,
            end_ns: u64::from(k + 1) * INTERVAL_NS,
            reads,
            read_bytes: reads * 16384,
            writes,
            write_bytes: writes * 16384,
            counters: Some(counters),
            transactions: Some(Box::new(transactions)),
            ..Row::default()
        });
    }
    oltp.latency = kinds.map(Distribution::from);
    let transactions: u64 =
        cell.rows.iter().filter_map(|row| row.transactions.as_ref()).map(|it| it.ended()).sum();
    oltp.said = Totals {
        transactions,
        statements: transactions * 23,
        client_cpu_ns: transactions * if sqlite { 5_800_000 } else { 260_000 },
        server_cpu_ns: if sqlite { 0 } else { transactions * 900_000 },
        lines: transactions * 9 / 2,
        remote_lines: transactions * 9 / 200,
        payments: transactions * 43 / 100,
        remote_payments: transactions * 43 / 100 * 15 / 100,
        skipped_deliveries: 0,
    };
    oltp.counted = counted(sqlite, transactions as f64);
    oltp.conditions =
        (1..=12).map(|n| Condition { name: format!("3.3.2.{n}"), before: Some(0), after: Some(0) }).collect();
    let (read, write, parts) = gatherer.finish();
    (cell.read_latency, cell.write_latency, cell.latency_parts) = (read, write, Arc::new(parts));
    cell.oltp = Some(Box::new(oltp));
    cell.status = Status::Done;
    cell.verdict = Some(Verdict::Steady(Estimate {
        mean: cell.mean_rate_between(u64::from(FROM) * INTERVAL_NS, u64::MAX).expect("measured"),
        half_width: notpm * 0.006,
        from_ns: u64::from(FROM) * INTERVAL_NS,
        to_ns: u64::from(COUNT) * INTERVAL_NS,
        batches: 12,
    }));
    cell
}

fn settings(sqlite: bool, pool: &str) -> Vec<(String, String)> {
    let all: &[(&str, &str)] = match sqlite {
        true => &[("cache_size", pool), ("journal_mode", "wal"), ("synchronous", "2")],
        false => &[
            ("innodb_buffer_pool_size", pool),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "O_DIRECT"),
        ],
    };
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn counted(sqlite: bool, transactions: f64) -> Vec<Counted> {
    let all: &[(&str, &str, &str, f64)] = match sqlite {
        true => &[("pager", "cache_miss", "count", 6.5), ("lowtide", "waited_for_the_writer", "ns", 4e6)],
        false => &[
            ("innodb_metrics", "buffer_pages_read", "count", 1.9),
            ("innodb_metrics", "buffer_pages_written", "count", 2.4),
            ("innodb_metrics", "log_waits", "count", 0.0),
            ("performance_schema", "wait/io/file/innodb/innodb_log_file", "ns", 3.1e6),
            ("performance_schema", "wait/io/file/innodb/innodb_data_file", "ns", 4.7e6),
            ("/proc of the server", "cpu", "ns", 9e5),
            ("/proc of the server", "write_bytes", "bytes", 48_000.0),
        ],
    };
    all.iter()
        .map(|&(from, name, unit, each)| Counted {
            from: from.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            value: each * transactions,
        })
        .collect()
}
