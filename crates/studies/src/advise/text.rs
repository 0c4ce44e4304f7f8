//! The experiment of a trial, as a file that anybody can run.
//!
//! Not here: running it (`trial`).

use super::question::{Asked, BlockLoad, Question, TpccLoad, WORKING_SET_ACCESS, warehouses};
use lowtide_core::Bytes;

/// The longest that a level is waited for: the largest models take days to be written as often as it needs.
const LONGEST: &str = "1000h";

/// What of a trial changes from one to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setup {
    /// Bytes of data.
    pub data: Bytes,
    /// Memory of the database.
    pub pool: Option<Bytes>,
    /// When it ends.
    pub end: End,
}

/// When a trial ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    /// When the level is known so well, as a share of it.
    Steady(f64),
    /// After so many seconds: a database that grows all the time is never quite steady.
    Seconds(u64),
}

/// The experiment: one cell.
pub(super) fn text(question: &Question, target: &str, setup: &Setup) -> String {
    let mut text = format!(
        "name = \"advised\"\ntitle = {}\n\n[target]\ndevice = {}\n\n[before-each-cell]\npurge = \"secure-erase\"\n\
         fill = \"{}\"\n\n",
        quoted(&format!("{} on {target}", what(question))),
        quoted(target),
        match question.asked {
            Asked::Block(_) => "sequential",
            // Transactions would take long to use up free NAND.
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

/// The redo log: a sixteenth of the data, from 128 MiB to 4 GiB.
pub(super) fn log_size(data: Bytes) -> Bytes {
    (data / 16).clamp(Bytes::mib(128), Bytes::gib(4)).align_down(Bytes::mib(1))
}

/// Page writes a second that the server takes the device for: ten for each new order that is asked for, 200 at least.
pub(super) fn io_capacity(load: &TpccLoad) -> u32 {
    (load.per_minute / 60.0 * 10.0).clamp(200.0, 1e6) as u32
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
