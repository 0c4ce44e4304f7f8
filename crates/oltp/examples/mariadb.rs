//! What the client of MariaDB costs, and how fast it loads: `cargo run --release -p lowtide-oltp --example mariadb --
//! [engine [warehouses [terminals [seconds [folder]]]]]`.
//!
//! Starts a server of its own below the folder (default: that of temporary files), loads it, runs terminals that do not
//! think, and prints a line of figures for each step. Leaves out steady state: these are figures of the client.
#![allow(clippy::print_stdout)]

use lowtide_core::virtual_load::Control;
use lowtide_core::{Nanos, Seed};
use lowtide_oltp::terminals::{Load, Part};
use lowtide_oltp::tpcc::{Kind, Scale};
use lowtide_oltp::{Engine, OltpError, Places, Settings, mariadb, terminals};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

fn main() -> Result<(), OltpError> {
    let mut arguments = std::env::args().skip(1);
    let engine = arguments.next().unwrap_or_else(|| "mariadb".to_owned());
    let mut number = |default: u32| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (warehouses, count, seconds) = (number(1), number(4), number(10));
    let below = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let names: Vec<&str> = Engine::NAMES.iter().map(|(name, _)| *name).collect();
    let engine = Engine::NAMES
        .iter()
        .find(|(name, _)| *name == engine)
        .unwrap_or_else(|| panic!("one of {names:?}"))
        .1;

    let folder = below.join(format!("lowtide-mariadb-{}", std::process::id()));
    let places = Places { data: folder.join("data"), log: None, run: folder.join("run") };
    for place in [&places.data, &places.run] {
        std::fs::create_dir_all(place).expect("a folder");
    }
    let outcome = measure(engine, &places, warehouses, count, seconds);
    std::fs::remove_dir_all(&folder).expect("removed");
    outcome
}

fn measure(
    engine: Engine,
    places: &Places,
    warehouses: u32,
    count: u32,
    seconds: u32,
) -> Result<(), OltpError> {
    let interrupt = AtomicBool::new(false);
    let settings = Settings {
        engine,
        buffer_pool: Some(lowtide_core::Bytes::new(2 << 30)),
        log_size: Some(lowtide_core::Bytes::new(1 << 30)),
        ..Settings::default()
    };
    let begin = Instant::now();
    let server = mariadb::start(&settings, places)?;
    let database = server.database();
    println!("{} up after {:.1} s", database.version(), begin.elapsed().as_secs_f64());
    let scale = Scale::warehouses(warehouses);
    let (begin, cpu) = (Instant::now(), cpu_seconds(server.process()));
    database.load(&scale, Seed::new(1), &interrupt, &|_| ())?;
    let cpu = (cpu_seconds(server.process()) - cpu, cpu_seconds(Some(std::process::id())));
    let wall = begin.elapsed().as_secs_f64();
    println!(
        "load of {warehouses} warehouses: {wall:.1} s; {:.1} s of processor on the server, {:.1} here",
        cpu.0, cpu.1
    );

    let before = database.counters()?;
    let cpu = cpu_seconds(server.process());
    let load = Load {
        terminals: count,
        think: false,
        interval: Nanos::from_secs(1),
        seed: Seed::new(2),
        interrupt: &interrupt,
    };
    let part = Part { database: database.as_ref(), scale: &scale };
    let (mut left, mut new_orders, mut retries) = (seconds, 0, 0);
    let begin = Instant::now();
    let summary = terminals::run(&[part], &load, &mut |interval| {
        new_orders += interval.kinds[Kind::NewOrder as usize].committed;
        retries += interval.kinds.iter().map(|tally| tally.retries).sum::<u64>();
        left = left.saturating_sub(1);
        if left == 0 { Control::Stop } else { Control::Continue }
    })?;
    let wall = begin.elapsed().as_secs_f64();
    let transactions = summary.transactions.max(1) as f64;
    println!(
        "{count} terminals: {:.0} new orders a minute, {retries} retries; for a transaction {:.3} ms of processor here, \
         {:.3} ms on the server, {:.2} crossings",
        new_orders as f64 * 60.0 / wall,
        summary.client_cpu.get() as f64 / transactions / 1e6,
        (cpu_seconds(server.process()) - cpu) * 1e3 / transactions,
        summary.statements as f64 / transactions,
    );
    for counter in database.counters()? {
        let old = before.iter().find(|old| old.name == counter.name).map_or(0.0, |old| old.value);
        if counter.value != old {
            println!("  {} {} {:?}", counter.name, counter.value - old, counter.unit);
        }
    }
    let begin = Instant::now();
    server.stop()?;
    println!("stopped after {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Processor time of a process, all its threads together.
fn cpu_seconds(process: Option<u32>) -> f64 {
    let stat =
        process.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok()).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
