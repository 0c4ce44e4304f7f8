//! The arguments of `lowtide advise`.
//!
//! `lowtide_studies::advise` checks for arguments that contradict each other.

use super::{Format, rate, scale, share, size, unit, years};
use clap::{ArgGroup, Args};
use lowtide_core::suggest::nearest;
use lowtide_core::{Bytes, Nanos};
use lowtide_report::lifetime::WriteRate;
use lowtide_studies::advise::{Asked, BlockLoad, Question, QuestionError, TpccLoad, Unit};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `advise`: the load, and the required lifetime and budget.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("asked").required(true).args(["writes", "requests", "tpmc"]),
    override_usage = "lowtide advise --data SIZE {--writes|--requests|--tpmc} RATE [OPTIONS]",
    after_help = "lowtide advise --data 100GB --writes 20MB/s --budget 8000\n\
    lowtide advise --data 60GB --requests 3000/s --reads 70% --price intel-320-160gb=299\n\
    lowtide advise --data 50GB --tpmc 10000 --years 3 -o check.toml\n\
    Exits with code 1 if no device meets all requirements."
)]
pub struct AdviseArguments {
    /// Size of the data, such as 100GB
    #[arg(long, value_parser = size)]
    pub data: Bytes,
    /// Random write rate, such as 20MB/s or 1TB/day
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub writes: Option<WriteRate>,
    /// Random requests per second, such as 3000/s
    #[arg(long, value_name = "NUMBER", value_parser = per_second)]
    pub requests: Option<f64>,
    /// Share of requests that are reads [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub reads: Option<f64>,
    /// TPC-C new orders per minute on a modelled database
    #[arg(long, value_name = "NUMBER", value_parser = positive)]
    pub tpmc: Option<f64>,
    /// Size of the data that gets 90 % of the accesses [default: uniform accesses]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub working_set: Option<Bytes>,
    /// Request size [default: 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "tpmc")]
    pub block: Option<Bytes>,
    /// Requests in flight [default: 32]
    #[arg(long, value_name = "NUMBER", conflicts_with = "tpmc", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: Option<u32>,
    /// TPC-C terminals, without think time [default: 32]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub terminals: Option<u32>,
    /// Processors of the database server [default: 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cores: Option<u32>,
    /// Processor time per transaction [default: 500us]
    #[arg(long, value_name = "TIME", value_parser = unit::<Nanos>)]
    pub cpu: Option<Nanos>,
    /// Budget for device and memory, in US dollars
    #[arg(long, value_name = "DOLLARS", value_parser = positive)]
    pub budget: Option<f64>,
    /// Required lifetime in years
    #[arg(long, default_value = "5", value_parser = years)]
    pub years: f64,
    /// Share of time under this load, for wear and cost
    #[arg(long, default_value = "1", value_name = "SHARE", value_parser = busy)]
    pub busy: f64,
    /// Price of memory per GB, in US dollars
    #[arg(long, default_value = "5", value_name = "DOLLARS", value_parser = not_negative)]
    pub memory_price: f64,
    /// Price of a device, such as intel-320-160gb=299 (may be given more than once)
    /// [default: as its file says]
    #[arg(long, value_name = "DEVICE=DOLLARS", value_parser = price)]
    pub price: Vec<(String, f64)>,
    /// Consider only these devices (comma-separated names or files)
    /// [default: all drives, disks and arrays of the catalogue]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    pub device: Vec<String>,
    /// The seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Simulation scale, such as 1/16 [default: chosen for each device]
    #[arg(long, value_parser = scale)]
    pub scale: Option<u64>,
    /// Write an experiment that checks the choice, for `lowtide run`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "table")]
    pub format: Format,
}

impl AdviseArguments {
    /// The question of the arguments.
    ///
    /// # Errors
    /// If options contradict each other.
    pub fn question(&self) -> Result<Question, String> {
        // clap's `requires` does not work for members of the group `asked`, which exclude each other.
        if self.reads.is_some() && self.requests.is_none() {
            return Err("--reads needs --requests".to_owned());
        }
        let of_database = [
            ("--terminals", self.terminals.is_some()),
            ("--cores", self.cores.is_some()),
            ("--cpu", self.cpu.is_some()),
        ];
        if let (None, Some((option, _))) = (self.tpmc, of_database.iter().find(|(_, given)| *given)) {
            return Err(format!("{option} needs --tpmc"));
        }
        if self.tpmc.is_some() && self.working_set.is_some() {
            return Err(QuestionError::TpccWorkingSet.to_string());
        }
        let block = |rate: f64, unit: Unit| {
            Asked::Block(BlockLoad {
                rate,
                unit,
                reads: self.reads.unwrap_or(0.0),
                block: self.block.unwrap_or(Bytes::kib(16)),
                depth: self.depth.unwrap_or(32),
                working_set: self.working_set,
            })
        };
        let asked = match (self.writes, self.requests, self.tpmc) {
            (Some(WriteRate::BytesPerDay(bytes)), ..) => {
                block(bytes / 86_400.0 / Bytes::mib(1).get() as f64, Unit::MibPerS)
            }
            (Some(WriteRate::Dwpd(_)), ..) => {
                let accepted = "write a rate such as `20MB/s` or `1TB/day`";
                return Err(format!(
                    "--writes takes no drive writes per day, which refer to one drive: {accepted}"
                ));
            }
            (_, Some(rate), _) => block(rate, Unit::Requests),
            (_, _, Some(per_minute)) => Asked::Tpcc(TpccLoad {
                per_minute,
                terminals: self.terminals.unwrap_or(32),
                cores: self.cores.unwrap_or(16),
                cpu: self.cpu.unwrap_or(Nanos::from_micros(500)),
            }),
            (None, None, None) => unreachable!("one of them is required"),
        };
        let mut prices = BTreeMap::new();
        for (name, usd) in &self.price {
            if prices.insert(name.clone(), *usd).is_some() {
                return Err(format!("two prices for {name}"));
            }
        }
        Ok(Question {
            data: self.data,
            asked,
            budget_usd: self.budget,
            years: self.years,
            memory_usd_per_gb: self.memory_price,
            prices,
            devices: self.device.clone(),
            busy: self.busy,
            seed: self.seed,
            scale: self.scale,
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = number(text.trim_start_matches('$')).filter(|number| (1e-6..=1e12).contains(number));
    number.ok_or_else(|| "write a number above 0, such as `2000`".to_owned())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = number(text.trim_start_matches('$')).filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| "write dollars per GB, such as `5`".to_owned())
}

/// `3000/s`, `3000`.
fn per_second(text: &str) -> Result<f64, String> {
    let (amount, seconds) = match text.split_once('/') {
        None => (text, 1.0),
        Some((amount, "s")) => (amount, 1.0),
        Some((amount, "min")) => (amount, 60.0),
        Some((amount, "h")) => (amount, 3600.0),
        Some((_, time)) => {
            let near = nearest(time, ["s", "min", "h"]).unwrap_or("s");
            return Err(format!("`{time}` is not a unit of time: write `3000/{near}`"));
        }
    };
    positive(amount).map(|number| number / seconds).map_err(|_| "write a rate such as `3000/s`".to_owned())
}

fn busy(text: &str) -> Result<f64, String> {
    share(text)
        .ok()
        .filter(|share| *share > 0.0)
        .ok_or_else(|| "write a share above 0, such as `0.3`".to_owned())
}

fn price(text: &str) -> Result<(String, f64), String> {
    let accepted = || "write a device and dollars, such as `intel-320-160gb=299`".to_owned();
    let (name, usd) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(accepted)?;
    Ok((name.to_owned(), positive(usd).map_err(|_| accepted())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_prices_parse() {
        assert_eq!(
            (per_second("3000/s"), per_second("3000"), per_second("60/min")),
            (Ok(3000.0), Ok(3000.0), Ok(1.0))
        );
        assert!(per_second("3000/day").is_err() && per_second("x/s").is_err() && per_second("0/s").is_err());
        assert_eq!(price("a=299"), Ok(("a".to_owned(), 299.0)));
        assert_eq!(price("a=$299"), Ok(("a".to_owned(), 299.0)));
        assert!(
            price("a").is_err() && price("=3").is_err() && price("a=0").is_err() && price("a=inf").is_err()
        );
        assert!(busy("0").is_err() && busy("50%") == Ok(0.5));
    }
}
