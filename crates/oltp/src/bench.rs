//! What a database does on this machine with a load of terminals, and what the client costs: `lowtide bench oltp`.
//!
//! A database of our own in a new directory, loaded, asked for a while without thinking, and removed. Not here: steady
//! states, preparation and drives: those are experiments.

use crate::terminals::{self, Load, Part, WallClock};
use crate::{Folder, Instance, OltpError, Places, folder, instance};
use lowtide_core::{Bytes, Control, Latency, Nanos, Seed};
use lowtide_engines::tpcc::{Kind, Scale};
use lowtide_engines::{Engine, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Memory for pages, where nothing else is asked for.
const BUFFER_POOL: Bytes = Bytes::gib(1);

/// What is measured.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The database and its settings; without a buffer pool it has 1 GiB.
    pub settings: Settings,
    /// Warehouses.
    pub warehouses: u32,
    /// Terminals, which ask again at once.
    pub terminals: u32,
    /// How long they ask.
    pub seconds: u32,
    /// Where the data lie, in a directory that is made and removed.
    pub directory: PathBuf,
    /// Where rows and inputs come from.
    pub seed: Seed,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Figures {
    /// The name of the engine.
    pub engine: &'static str,
    /// What it calls itself, with its version.
    pub version: String,
    /// Warehouses.
    pub warehouses: u32,
    /// Terminals.
    pub terminals: u32,
    /// Memory for pages.
    pub buffer_pool_bytes: u64,
    /// What a commit waits for: `engine default`, or what was asked for.
    pub durability: &'static str,
    /// Seconds that rows, keys and writing them took.
    pub load_s: f64,
    /// Seconds that terminals asked.
    pub seconds: f64,
    /// Transactions that ended.
    pub transactions: u64,
    /// New orders that came to their end, committed or rolled back because they had to be (clause 5.4.2), per minute.
    pub notpm: f64,
    /// Milliseconds of processor time of the terminals' threads per transaction.
    pub client_cpu_ms_per_transaction: f64,
    /// Statements, or batches of them, per transaction.
    pub statements_per_transaction: f64,
    /// Attempts that met another transaction and were made again.
    pub retries: u64,
    /// The median latency of New-Order in milliseconds.
    pub new_order_latency_ms_p50: f64,
    /// The latency in milliseconds that 99 of 100 New-Orders did not exceed.
    pub new_order_latency_ms_p99: f64,
}

/// Measures.
///
/// # Errors
/// [`OltpError`] where the database cannot be started or loaded, a transaction fails for good, or `interrupt` is set.
pub fn measure(asked: &Asked, interrupt: &Arc<AtomicBool>) -> Result<Figures, OltpError> {
    let settings = Settings {
        buffer_pool: Some(asked.settings.buffer_pool.unwrap_or(BUFFER_POOL)),
        ..asked.settings.clone()
    };
    // Paths of sockets are short, and those of data may not be.
    let (data, run) = (own(&asked.directory)?, own(&std::env::temp_dir())?);
    let places = Places { data: inside(&data, "data")?, log: None, run: inside(&run, "run")? };
    let mut instance = instance::start(&settings, &places, interrupt)?;
    let figures = ask(asked, &settings, &*instance, interrupt)
        .map_err(|seen| instance::why(std::slice::from_mut(&mut instance), seen))?;
    instance.stop()?;
    Ok(figures)
}

/// Loads a database, and asks it.
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
    /// Ten warehouses and sixteen terminals for half a minute, in the directory for temporary files.
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

/// A directory of our own, where killed ones left nothing.
fn own(within: &Path) -> Result<Folder, OltpError> {
    folder::remove_left_over(within);
    Folder::make(within, "bench").map_err(|source| OltpError::Io { path: within.to_owned(), source })
}

/// Servers run as users of their own, who have to pass.
fn inside(folder: &Folder, name: &str) -> Result<PathBuf, OltpError> {
    let path = folder.path().join(name);
    let failed = |source| OltpError::Io { path: path.clone(), source };
    std::fs::create_dir(&path).map_err(failed)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, open).map_err(failed)?;
    Ok(path)
}
