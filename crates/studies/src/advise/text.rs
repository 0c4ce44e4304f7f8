//! Writes the experiment file of a trial, which `lowtide run` accepts as well.
//!
//! Module `trial` runs the experiment.

use super::question::{Asked, BlockLoad, Question, TpccLoad, WORKING_SET_ACCESS, warehouses};
use lowtide_core::Bytes;

/// Maximum duration of a trial. Large models take days of virtual time until they settle.
const LONGEST: &str = "1000h";

/// The parameters of a trial that vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setup {
    /// Bytes of data.
    pub data: Bytes,
    /// Memory of the database.
    pub pool: Option<Bytes>,
    /// The end of the trial.
    pub end: End,
}

/// When a trial ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    /// Ends when the relative uncertainty of the level is at most this.
    Steady(f64),
    /// After this many seconds: a database that keeps growing never settles.
    Seconds(u64),
}

/// The text of the experiment.
pub(super) fn text(question: &Question, target: &str, setup: &Setup) -> String {
    let mut text = format!(
        "name = \"advised\"\ntitle = {}\n\n[target]\ndevice = {}\n\n[before-each-cell]\npurge = \"secure-erase\"\n\
         fill = \"{}\"\n\n",
        quoted(&format!("{} on {target}", what(question))),
        quoted(target),
        match question.asked {
            Asked::Block(_) => "sequential",
            // Transactions alone would take long to use up the erased blocks.
            Asked::Tpcc(_) => "aged",
        }
    );
    text += &match &question.asked {
        Asked::Block(load) => block(load, setup),
        Asked::Tpcc(load) => tpcc(load, setup),
    };
    text + &match setup.end {
        End::Steady(precision) => {
            format!("until = \"steady\"\nmax = \"{LONGEST}\"\nprecision = {precision}\ninterval = \"10s\"\n")
        }
        End::Seconds(seconds) => {
            format!("duration = \"{seconds}s\"\ninterval = \"{}s\"\n", (seconds / 200).max(1))
        }
    }
}

/// The load in words.
pub(super) fn what(question: &Question) -> String {
    match &question.asked {
        Asked::Block(load) if load.reads > 0.0 => {
            format!("random requests of {}, {} % reads", load.block, (load.reads * 100.0).round())
        }
        Asked::Block(load) => format!("random writes of {}", load.block),
        Asked::Tpcc(_) => format!("TPC-C with {} warehouses", warehouses(question.data)),
    }
}

fn block(load: &BlockLoad, setup: &Setup) -> String {
    let pattern = match load.reads > 0.0 {
        true => format!("pattern = \"random-mixed\"\nmix = {}\n", load.reads),
        false => "pattern = \"random-write\"\n".to_owned(),
    };
    let set = load.working_set.filter(|set| *set < setup.data).map_or_else(String::new, |set| {
        let share = set.get() as f64 / setup.data.get() as f64;
        format!("hot-cold = {{ data = {share}, access = {WORKING_SET_ACCESS} }}\n")
    });
    let (bytes, size, threads) = (load.block.get(), setup.data, load.depth);
    format!("[workload]\n{pattern}block = \"{bytes}B\"\nfile_size = \"{size}\"\nthreads = {threads}\n{set}")
}

fn tpcc(load: &TpccLoad, setup: &Setup) -> String {
    let TpccLoad { terminals, cores, cpu, .. } = load;
    let pool = setup.pool.expect("a database has memory");
    format!(
        "[oltp]\nengine = \"innodb-model\"\nwarehouses = {}\nterminals = {terminals}\nbuffer_pool = \"{pool}\"\n\
         log_size = \"{}\"\nio_capacity = {}\noptions = {{ cores = \"{cores}\", cpu = \"{cpu}\" }}\n",
        warehouses(setup.data),
        log_size(setup.data),
        io_capacity(load),
    )
}

/// Size of the redo log: a sixteenth of the data, from 128 MiB to 4 GiB.
pub(super) fn log_size(data: Bytes) -> Bytes {
    (data / 16).clamp(Bytes::mib(128), Bytes::gib(4)).align_down(Bytes::mib(1))
}

/// The server's `io_capacity` in page writes per second: ten times the required New-Order rate, but at least 200.
pub(super) fn io_capacity(load: &TpccLoad) -> u32 {
    (load.per_minute / 60.0 * 10.0).clamp(200.0, 1e6) as u32
}

/// Quotes a string for TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
