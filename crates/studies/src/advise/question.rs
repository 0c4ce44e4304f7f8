//! The question to `advise`: data, load, required rate, budget and required life.
//!
//! The devices are in `candidate`.

use lowtide_core::{Bytes, Nanos};
use lowtide_engines::model::{self, ModelSettings};
use lowtide_engines::{Engine, Settings};
use lowtide_report::number::significant;
use std::collections::BTreeMap;

/// Share of the accesses that go to the working set.
pub const WORKING_SET_ACCESS: f64 = 0.9;

/// A question to `advise`.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Bytes of data.
    pub data: Bytes,
    /// The load and its required rate.
    pub asked: Asked,
    /// Limit on the price of device and memory together, in US dollars.
    pub budget_usd: Option<f64>,
    /// Years that the device must last. The cost per year spreads the price over no more than these.
    pub years: f64,
    /// Price of a GB of memory, in US dollars.
    pub memory_usd_per_gb: f64,
    /// Prices in US dollars by device name. They override the prices of the device files.
    pub prices: BTreeMap<String, f64>,
    /// Names or paths of devices. If empty, all suitable devices of the catalogue.
    pub devices: Vec<String>,
    /// The share of the time during which the load runs.
    pub busy: f64,
    /// The seed of every random choice.
    pub seed: u64,
    /// The divisor for devices and data in simulations. If `None`, one is chosen for each device.
    pub scale: Option<u64>,
}

/// A load and its required rate.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Random requests of one size.
    Block(BlockLoad),
    /// TPC-C on a modelled database.
    Tpcc(TpccLoad),
}

/// A load of random requests of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockLoad {
    /// Required rate, in `unit`.
    pub rate: f64,
    /// The unit of the rate.
    pub unit: Unit,
    /// The share of reads, from 0 to 1.
    pub reads: f64,
    /// Bytes per request.
    pub block: Bytes,
    /// Requests in flight.
    pub depth: u32,
    /// Bytes that receive [`WORKING_SET_ACCESS`] of the accesses. If `None`, accesses are uniform.
    pub working_set: Option<Bytes>,
}

/// TPC-C on a modelled database.
#[derive(Debug, Clone, PartialEq)]
pub struct TpccLoad {
    /// Required New-Order transactions per minute.
    pub per_minute: f64,
    /// Terminals, without think time.
    pub terminals: u32,
    /// Processor cores of the server.
    pub cores: u32,
    /// Processor time per transaction.
    pub cpu: Nanos,
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// MiB written per second.
    MibPerS,
    /// Requests per second.
    Requests,
    /// New orders per minute.
    NewOrders,
}

impl Unit {
    /// The unit for people: `MiB/s`.
    pub const fn word(self) -> &'static str {
        match self {
            Unit::MibPerS => "MiB/s",
            Unit::Requests => "requests/s",
            Unit::NewOrders => "new orders/min",
        }
    }
    /// The unit in JSON keys and CSV columns.
    pub const fn key(self) -> &'static str {
        match self {
            Unit::MibPerS => "mib_per_s",
            Unit::Requests => "requests_per_s",
            Unit::NewOrders => "notpm",
        }
    }
    /// The counted items, for a price per million.
    pub const fn counted(self) -> &'static str {
        match self {
            Unit::MibPerS | Unit::Requests => "requests",
            Unit::NewOrders => "new orders",
        }
    }
}

/// A contradiction or an invalid value in a question.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QuestionError {
    /// The working set is larger than the data.
    #[error("a working set of {set} is more than the {data} of data")]
    WorkingSet {
        /// The working set.
        set: Bytes,
        /// The data.
        data: Bytes,
    },
    /// A working set is given for TPC-C, which has its own.
    #[error(
        "what TPC-C touches follows from its warehouses, and they from --data: it takes no --working-set"
    )]
    TpccWorkingSet,
    /// The data are smaller than one warehouse.
    #[error("{data} of data are less than a warehouse of TPC-C, which takes {warehouse}")]
    Warehouse {
        /// The data.
        data: Bytes,
        /// Bytes of one warehouse.
        warehouse: Bytes,
    },
    /// The data hold too few requests for a simulation.
    #[error("{data} of data hold fewer than {least} requests of {block}")]
    LittleData {
        /// The data.
        data: Bytes,
        /// Least number of requests.
        least: u64,
        /// Bytes per request.
        block: Bytes,
    },
    /// The request size is not a multiple of 512 bytes.
    #[error("requests of {block}: devices take multiples of 512 bytes")]
    Block {
        /// Bytes per request.
        block: Bytes,
    },
    /// The load has no writes.
    #[error(
        "a load of reads alone does not wear a device: --reads below 100 %, or see `lowtide run` for what it reads"
    )]
    OnlyReads,
}

impl QuestionError {
    /// A remedy, for the user.
    pub const fn advice(&self) -> &'static str {
        match self {
            QuestionError::WorkingSet { .. } => {
                "a working set up to the size of the data, such as `--working-set 20GB`"
            }
            QuestionError::TpccWorkingSet => {
                "leave it out, or ask for requests: `--requests 3000/s --reads 70%`"
            }
            QuestionError::Warehouse { .. } => "more data, such as `--data 10GB`",
            QuestionError::LittleData { .. } => "more data, or smaller requests with `--block`",
            QuestionError::Block { .. } => "a block such as `--block 16KiB`",
            QuestionError::OnlyReads => "a share such as `--reads 70%`",
        }
    }
}

/// Least number of requests that the data must hold.
const LEAST_REQUESTS: u64 = 4096;

impl Question {
    /// Checks the question.
    ///
    /// # Errors
    /// [`QuestionError`] for the first contradiction or invalid value.
    pub fn check(&self) -> Result<(), QuestionError> {
        match &self.asked {
            Asked::Block(load) => {
                if let Some(set) = load.working_set.filter(|set| *set > self.data) {
                    return Err(QuestionError::WorkingSet { set, data: self.data });
                }
                if load.block == Bytes::ZERO || !load.block.get().is_multiple_of(512) {
                    return Err(QuestionError::Block { block: load.block });
                }
                if self.data.get() / load.block.get().max(1) < LEAST_REQUESTS {
                    let (data, block) = (self.data, load.block);
                    return Err(QuestionError::LittleData { data, least: LEAST_REQUESTS, block });
                }
                if load.reads >= 1.0 { Err(QuestionError::OnlyReads) } else { Ok(()) }
            }
            Asked::Tpcc(_) if warehouses(self.data) == 0 => {
                Err(QuestionError::Warehouse { data: self.data, warehouse: loaded(1) })
            }
            Asked::Tpcc(_) => Ok(()),
        }
    }

    /// The required rate, in [`Question::unit`].
    pub fn rate(&self) -> f64 {
        match &self.asked {
            Asked::Block(load) => load.rate,
            Asked::Tpcc(load) => load.per_minute,
        }
    }

    /// The unit of the rate.
    pub fn unit(&self) -> Unit {
        match &self.asked {
            Asked::Block(load) => load.unit,
            Asked::Tpcc(_) => Unit::NewOrders,
        }
    }

    /// The required rate in requests or New-Order transactions per second.
    pub fn per_second(&self) -> f64 {
        match &self.asked {
            Asked::Block(load) => match load.unit {
                Unit::MibPerS => load.rate * Bytes::mib(1).get() as f64 / load.block.get() as f64,
                _ => load.rate,
            },
            Asked::Tpcc(load) => load.per_minute / 60.0,
        }
    }

    /// The required rate for people: `19.1 MiB/s`.
    pub fn rate_words(&self) -> String {
        format!("{} {}", significant(self.rate()), self.unit().word())
    }
}

/// A modelled engine with default settings, for the size of a warehouse.
fn plain() -> ModelSettings {
    ModelSettings::of(&Settings { engine: Engine::InnodbModel, ..Settings::default() })
        .expect("the defaults are right")
}

/// Bytes of `warehouses` loaded warehouses.
pub(super) fn loaded(warehouses: u32) -> Bytes {
    model::loaded(&plain(), warehouses)
}

/// The largest number of warehouses that fits in `data`.
pub(super) fn warehouses(data: Bytes) -> u32 {
    let settings = plain();
    let bytes = |warehouses: u32| model::loaded(&settings, warehouses);
    let (few, many) = (bytes(1), bytes(1001));
    if data < few {
        return 0;
    }
    // Warehouses have the same size, apart from rounding to whole extents. Hence an estimate, then a correction.
    let each = (many - few).get() as f64 / 1000.0;
    let about = 1.0 + (data - few).get() as f64 / each;
    let mut most = about.min(f64::from(u32::MAX / 1024)) as u32 + 1;
    while most > 1 && bytes(most) > data {
        most -= 1;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouses_are_as_many_as_fit() {
        for gb in [1, 10, 100, 1000] {
            let data = Bytes::new(gb * 1_000_000_000);
            let most = warehouses(data);
            assert!(loaded(most) <= data && loaded(most + 1) > data, "{gb} GB: {most}");
        }
        assert_eq!(warehouses(Bytes::mib(50)), 0);
    }

    #[test]
    fn a_rate_of_bytes_is_so_many_requests() {
        let load = BlockLoad {
            rate: 20.0,
            unit: Unit::MibPerS,
            reads: 0.0,
            block: Bytes::kib(16),
            depth: 32,
            working_set: None,
        };
        let question = super::super::row::tests::question(Asked::Block(load.clone()));
        assert_eq!(question.per_second(), 1280.0);
        let set = Some(Bytes::new(200_000_000_000));
        let wrong = Question {
            asked: Asked::Block(BlockLoad { working_set: set, ..load.clone() }),
            ..question.clone()
        };
        assert!(matches!(wrong.check(), Err(QuestionError::WorkingSet { .. })));
        let wrong = Question { asked: Asked::Block(BlockLoad { reads: 1.0, ..load }), ..question };
        assert_eq!(wrong.check(), Err(QuestionError::OnlyReads));
    }
}
