//! The arguments of `lowtide bench oltp`, and parsers of names for other arguments.

use super::size;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lowtide_core::{Bytes, Seed};
use lowtide_engines::{Durability, Engine, Settings};
use lowtide_oltp::bench::Asked;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct OltpBenchArguments {
    /// The database; a server is started and stopped automatically
    #[arg(long, default_value = "sqlite", value_parser = engine())]
    engine: Engine,
    /// Warehouses, about 100 MB each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// TPC-C terminals, without think time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=450))]
    terminals: u32,
    /// Duration of the measurement in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Buffer pool size
    #[arg(long, default_value = "1GiB", value_parser = size)]
    buffer_pool: Bytes,
    /// What a commit waits for [default: the engine's own setting]
    #[arg(long, value_parser = named(Durability::NAMES))]
    durability: Option<Durability>,
    /// Directory for the data during the run [default: the directory for temporary files]
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl OltpBenchArguments {
    /// The arguments of the benchmark.
    pub fn asked(&self) -> Asked {
        Asked {
            settings: Settings {
                engine: self.engine,
                buffer_pool: Some(self.buffer_pool),
                durability: self.durability,
                ..Settings::default()
            },
            warehouses: self.warehouses,
            terminals: self.terminals,
            seconds: self.seconds,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            seed: Seed::new(self.seed),
        }
    }
}

/// Parses the name of an engine; `postgres` is short for `postgresql`.
pub(super) fn engine() -> impl TypedValueParser<Value = Engine> {
    let value = |(name, engine): (&'static str, Engine)| match engine {
        Engine::Postgresql => PossibleValue::new(name).alias("postgres"),
        _ => PossibleValue::new(name),
    };
    PossibleValuesParser::new(Engine::NAMES.map(value)).map(|given| {
        let found = Engine::NAMES.into_iter().find(|(name, _)| *name == given);
        found.map_or(Engine::Postgresql, |(_, engine)| engine)
    })
}

/// Parses one of the names in a table.
pub(super) fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(|(name, _)| name)).map(move |given| {
        all.into_iter().find(|(name, _)| *name == given).expect("the parser accepts no other name").1
    })
}
