//! Synthetic campaigns for the tests, computed from formulas in the shapes of real campaigns.

mod databases;

pub(crate) use databases::databases;

use lowtide_core::{Bytes, Counters, Latency, Nanos};
use lowtide_lab::experiment::{Experiment, untyped};
use lowtide_record::analysis::{Estimate, Verdict};
use lowtide_record::latency_parts::Gatherer;
use lowtide_record::{Campaign, Cell, Percentiles, Row, Status};
use std::sync::{Arc, LazyLock};

const BLOCK: u64 = 16 << 10;
const INTERVAL_NS: u64 = 10_000_000_000;

/// A campaign without cells.
pub(crate) fn campaign(name: &str, title: &str) -> Campaign {
    Campaign {
        name: name.to_owned(),
        title: title.to_owned(),
        experiment: format!("name = \"{name}\"\n\n[workload]\npattern = \"random-write\"\n"),
        resolved: Some(RESOLVED.clone()),
        target: "device:intel-320-160gb".to_owned(),
        devices: vec!["name = \"intel-320-160gb\"\ncapacity = \"160GB\"\n".to_owned()],
        seed: 1,
        scale: 1,
        version: "0.1.0".to_owned(),
        started_at: "2026-03-01T12:30:45Z".to_owned(),
        command: format!("lowtide run {name} --seed 1"),
        environment: vec![
            ("kernel".to_owned(), "6.1.0".to_owned()),
            ("cpu".to_owned(), "2 cores".to_owned()),
        ],
        cells: Vec::new(),
    }
}

/// A plain experiment, resolved.
static RESOLVED: LazyLock<String> = LazyLock::new(|| {
    let text = "name = 'sample'\ntarget.device = 'intel-320-160gb'\n[workload]\npattern = 'random-write'\n\
                block = '16KiB'\nduration = '1h'\n";
    Experiment::parse("a sample", text, &[]).expect("valid").to_json()
});

/// A cell that has not begun.
pub(crate) fn pending(index: u32, factors: &[(&str, &str)]) -> Cell {
    Cell {
        index,
        factors: factors.iter().map(|(name, level)| untyped(name, (*level).to_owned())).collect(),
        repetition: 1,
        data: Bytes::gib(10),
        capacity: Bytes::new(160_000_000_000),
        raw_capacity: Some(Bytes::gib(160)),
        threads: 1,
        read_share: 0.0,
        written_before: Some(Bytes::ZERO),
        ..Cell::default()
    }
}

/// A latency distribution: most operations take about `typical_ns`, one in a hundred ten times as long.
fn latency(typical_ns: f64, count: u64) -> Latency {
    let mut latency = Latency::default();
    for k in 0..count {
        let share = (k as f64 + 0.5) / count as f64;
        let tail = if share > 0.99 { 10.0 + (share - 0.99) * 2000.0 } else { 0.7 + share * 0.6 };
        latency.record(Nanos::new((typical_ns * tail) as u64));
    }
    latency
}

/// A measured cell: `level(k)` MiB/s in interval `k`, steady from interval `from` on.
pub(crate) fn measured(mut cell: Cell, count: u32, from: u32, level: impl Fn(u32) -> f64) -> Cell {
    let reads = cell.read_share >= 1.0;
    let mut host = cell.written_before.unwrap_or_default().get();
    let mut nand = host;
    cell.counters_before = (!reads).then_some(Counters {
        host_written_bytes: host,
        nand_written_bytes: nand,
        ..Counters::default()
    });
    let mut gatherer = Gatherer::new(count.saturating_sub(from) as usize);
    for k in 0..count {
        let blocks = (level(k) * (1 << 20) as f64 * 10.0 / BLOCK as f64) as u64;
        let waited = latency(f64::from(cell.threads) * 10e9 / blocks.max(1) as f64, 400);
        let mut row = Row {
            start_ns: u64::from(k) * INTERVAL_NS,
            end_ns: u64::from(k + 1) * INTERVAL_NS,
            reads: 0,
            read_bytes: 0,
            writes: 0,
            write_bytes: 0,
            read: Percentiles::default(),
            write: Percentiles::default(),
            ..Row::default()
        };
        if reads {
            (row.reads, row.read_bytes, row.read) = (blocks, blocks * BLOCK, Percentiles::of(&waited));
        } else {
            (row.writes, row.write_bytes, row.write) = (blocks, blocks * BLOCK, Percentiles::of(&waited));
            host += blocks * BLOCK;
            nand += (blocks as f64 * BLOCK as f64 * (85.0 / level(k).max(1.0)).max(1.0)) as u64;
            row.counters =
                Some(Counters { host_written_bytes: host, nand_written_bytes: nand, ..Counters::default() });
        }
        if k >= from {
            gatherer.add((k - from) as usize, reads, &waited);
        }
        Arc::make_mut(&mut cell.rows).push(row);
    }
    let (read, write, parts) = gatherer.finish();
    (cell.read_latency, cell.write_latency, cell.latency_parts) = (read, write, Arc::new(parts));
    let steady: Vec<f64> = (from..count).map(&level).collect();
    let mean = steady.iter().sum::<f64>() / steady.len().max(1) as f64;
    cell.status = Status::Done;
    cell.verdict = Some(Verdict::Steady(Estimate {
        mean,
        half_width: mean * 0.01,
        from_ns: u64::from(from) * INTERVAL_NS,
        to_ns: u64::from(count) * INTERVAL_NS,
        batches: 16,
    }));
    cell
}

/// The Intel 320 study's shape: honeymoon at 80 MiB/s until the raw capacity is written, a dip, an overshoot,
/// then a level that depends on the fill.
pub(crate) fn intel(sizes_gib: &[u64], count: u32) -> Campaign {
    let mut campaign =
        campaign("intel-320-random-write", "Random write throughput by file size, Intel 320 160 GB");
    for (index, gib) in sizes_gib.iter().enumerate() {
        let mut cell = pending(index as u32, &[("file_size", &format!("{gib}GiB"))]);
        cell.data = Bytes::gib(*gib);
        cell.written_before = Some(Bytes::gib(*gib));
        let fill = *gib as f64 / 149.0;
        let settled = 101.0 * (1.0 - fill).powf(0.25) * (1.0 - 0.72 * fill);
        let fresh = 80.0f64.max(settled);
        let honeymoon = ((160.0 - *gib as f64) * 1024.0 / fresh / 10.0) as u32;
        let seed = *gib as f64;
        let noise = move |k: u32| ((f64::from(k) * 12.9898 + seed).sin() * 43_758.547).fract() * 0.05;
        let level = move |k: u32| {
            let after = f64::from(k.saturating_sub(honeymoon));
            let level = if k < honeymoon {
                fresh
            } else {
                settled * (1.0 - 0.75 * (-after / 12.0).exp() + 0.8 * (after / 40.0) * (-after / 30.0).exp())
            };
            level * (1.0 + noise(k))
        };
        let mut cell = measured(cell, count, count * 2 / 3, level);
        cell.wear =
            (0..40).map(|n| (n + 3, (1000.0 * (-((n as f64 - 18.0) / 7.0).powi(2)).exp()) as u64)).collect();
        campaign.cells.push(cell);
    }
    campaign
}

/// Three sizes × read and write × one and sixteen threads; one cell without a steady state.
pub(crate) fn quick() -> Campaign {
    let mut campaign = campaign("disk-quick", "A first look at a disk");
    let mut index = 0;
    for (gib, size) in [(1, "1GiB"), (8, "8GiB"), (64, "64GiB")] {
        for (pattern, reads) in [("random-read", 1.0), ("random-write", 0.0)] {
            for (threads, text) in [(1, "1"), (16, "16")] {
                let mut cell =
                    pending(index, &[("file_size", size), ("pattern", pattern), ("threads", text)]);
                (cell.data, cell.threads, cell.read_share) = (Bytes::gib(gib), threads, reads);
                let level = if reads > 0.5 {
                    30.0 * f64::from(threads).sqrt()
                } else {
                    90.0 / (1.0 + gib as f64 / 60.0)
                };
                let mut cell = measured(cell, 60, 30, |k| level * (1.0 + f64::from(k % 7) * 0.01));
                if index == 7 {
                    cell.verdict = Some(Verdict::NoSteadyState {
                        reason: "the throughput still falls by 4 % per minute".to_owned(),
                    });
                }
                campaign.cells.push(cell);
                index += 1;
            }
        }
    }
    campaign
}
