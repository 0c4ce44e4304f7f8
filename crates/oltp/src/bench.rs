//! `lowtide bench oltp`: the throughput of a database under a load of terminals, and the cost of the client.
//!
//! Creates a database in a new directory, loads it, runs terminals without think time, and removes the database.
//! Steady states, preparation and drives belong to experiments.

use crate::terminals::{self, Load, Part, WallClock};
use crate::{Folder, Instance, OltpError, Places, folder, instance};
use lowtide_core::{Bytes, Control, Latency, Nanos, Seed};
use lowtide_engines::tpcc::{Kind, Scale};
use lowtide_engines::{Engine, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Buffer pool if the request names none.
const BUFFER_POOL: Bytes = Bytes::gib(1);

/// A benchmark request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The database and its settings. The buffer pool is 1 GiB unless set.
    pub settings: Settings,
    /// Warehouses.
    pub warehouses: u32,
    /// Number of terminals, which have no think time.
    pub terminals: u32,
    /// Duration of the measurement in seconds.
    pub seconds: u32,
    /// The directory in which a data directory is created and afterwards removed.
    pub directory: PathBuf,
    /// Seed of the rows and the inputs.
    pub seed: Seed,
}

/// The results of a benchmark.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Figures {
    /// The name of the engine.
    pub engine: &'static str,
    /// Name and version as the database reports them.
    pub version: String,
    /// Warehouses.
    pub warehouses: u32,
    /// Terminals.
    pub terminals: u32,
    /// Size of the buffer pool.
    pub buffer_pool_bytes: u64,
    /// The durability setting of commits, or `engine default` if the request names none.
    pub durability: &'static str,
    /// Seconds for loading rows, creating keys and writing both.
    pub load_s: f64,
    /// Duration of the measurement in seconds.
    pub seconds: f64,
    /// Number of completed transactions.
    pub transactions: u64,
    /// New-Orders per minute: committed, or rolled back as the specification requires (clause 5.4.2).
    pub notpm: f64,
    /// Processor time of the terminals' threads per transaction, in milliseconds.
    pub client_cpu_ms_per_transaction: f64,
    /// Statements per transaction; a batch counts once.
    pub statements_per_transaction: f64,
    /// Number of retries after a conflict with another transaction.
    pub retries: u64,
    /// Median latency of New-Order in milliseconds.
    pub new_order_latency_ms_p50: f64,
    /// 99th percentile of the latency of New-Order in milliseconds.
    pub new_order_latency_ms_p99: f64,
}

/// Runs the benchmark.
///
/// # Errors
/// [`OltpError`] if the database cannot be started or loaded, a transaction fails and cannot be retried, or
/// `interrupt` is set.
pub fn measure(asked: &Asked, interrupt: &Arc<AtomicBool>) -> Result<Figures, OltpError> {
    let settings = Settings {
        buffer_pool: Some(asked.settings.buffer_pool.unwrap_or(BUFFER_POOL)),
        ..asked.settings.clone()
    };
    // Socket paths have a short limit, and the path of the data may be long.
    let (data, run) = (own(&asked.directory)?, own(&std::env::temp_dir())?);
    let places = Places { data: inside(&data, "data")?, log: None, run: inside(&run, "run")? };
    let mut instance = instance::start(&settings, &places, interrupt)?;
    let figures = ask(asked, &settings, &*instance, interrupt)
        .map_err(|seen| instance::why(std::slice::from_mut(&mut instance), seen))?;
    instance.stop()?;
    Ok(figures)
}

/// Loads the database and runs the terminals.
fn ask(
    asked: &Asked,
    settings: &Settings,
    instance: &dyn Instance,
    interrupt: &AtomicBool,
) -> Result<Figures, OltpError> {
    let database = instance.database();
    let scale = Scale::warehouses(asked.warehouses);
    let begin = Instant::now();
    database.load(&scale, asked.seed, interrupt, &|_| {})?;
    let load_s = begin.elapsed().as_secs_f64();
    let load = Load {
        terminals: asked.terminals,
        clock: &WallClock::start(),
        think: false,
        interval: Nanos::from_millis(u64::from(asked.seconds) * 1000),
        seed: asked.seed,
        interrupt,
    };
    let (mut seconds, mut new_orders, mut retries, mut latency) = (0.0, 0, 0, Latency::default());
    let part = Part { database: &*database, scale: &scale };
    let summary = terminals::run(&[part], &load, &mut |interval| {
        seconds = (interval.end_ns - interval.start_ns) as f64 / 1e9;
        let tally = &interval.kinds[Kind::NewOrder as usize];
        new_orders = tally.committed + tally.rolled_back;
        retries = interval.kinds.iter().map(|kind| kind.retries).sum();
        latency = interval.kinds[Kind::NewOrder as usize].latency.clone();
        Control::Stop
    })?;
    if summary.interrupted {
        return Err(OltpError::Interrupted);
    }
    let version = database.version().to_owned();
    let per_transaction = |value: f64| value / summary.transactions.max(1) as f64;
    let ms = |percent| latency.percentile(percent).get() as f64 / 1e6;
    Ok(Figures {
        engine: settings.engine.name(),
        version,
        warehouses: asked.warehouses,
        terminals: asked.terminals,
        buffer_pool_bytes: settings.buffer_pool.map_or(0, Bytes::get),
        durability: settings.durability.map_or("engine default", |durability| durability.name()),
        load_s,
        seconds,
        transactions: summary.transactions,
        notpm: new_orders as f64 * 60.0 / seconds,
        client_cpu_ms_per_transaction: per_transaction(summary.client_cpu.get() as f64 / 1e6),
        statements_per_transaction: per_transaction(summary.statements as f64),
        retries,
        new_order_latency_ms_p50: ms(50.0),
        new_order_latency_ms_p99: ms(99.0),
    })
}

impl Asked {
    /// Ten warehouses and sixteen terminals for 30 s, in the directory for temporary files.
    pub fn of(engine: Engine) -> Asked {
        Asked {
            settings: Settings { engine, ..Settings::default() },
            warehouses: 10,
            terminals: 16,
            seconds: 30,
            directory: std::env::temp_dir(),
            seed: Seed::new(1),
        }
    }
}

/// Removes the directories of killed processes and creates a new one.
fn own(within: &Path) -> Result<Folder, OltpError> {
    folder::remove_left_over(within);
    Folder::make(within, "bench").map_err(|source| OltpError::Io { path: within.to_owned(), source })
}

/// Creates a subdirectory that other users may traverse, because servers run as users of their own.
fn inside(folder: &Folder, name: &str) -> Result<PathBuf, OltpError> {
    let path = folder.path().join(name);
    let failed = |source| OltpError::Io { path: path.clone(), source };
    std::fs::create_dir(&path).map_err(failed)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, open).map_err(failed)?;
    Ok(path)
}
