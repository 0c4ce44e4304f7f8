//! The result for a candidate: level, lifetime, cost and objections.
//!
//! The choice among candidates is in `choose`.

use super::candidate::{Candidate, Wearing};
use super::question::Question;
use super::search::UpTo;
use super::trial::Trial;
use lowtide_core::Bytes;
use lowtide_report::lifetime::{Span, Wear, YEAR_DAYS, decimal, span_words, years, years_words};
use lowtide_report::number::significant;

const DAY_S: f64 = 86_400.0;
const GB: f64 = 1e9;

/// A candidate with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The device.
    pub candidate: Candidate,
    /// Bytes that the device must hold: the data and, for a database, its log.
    pub data: Bytes,
    /// Its result.
    pub outcome: Outcome,
}

/// The result for a candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The data do not fit. Nothing was simulated.
    TooSmall,
    /// The device alone costs more than the budget. Nothing was simulated.
    TooDear,
    /// Its price is unknown, and a device with a price meets the question. Nothing was simulated.
    PassedOver,
    /// The simulation failed, for this reason.
    Failed(String),
    /// The candidate was simulated.
    Measured(Box<Measured>),
}

/// The figures of a simulated candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The trial at the requested data size. For a database, the trial with the smallest sufficient memory; if none
    /// suffices, with the largest.
    pub trial: Trial,
    /// Memory of the database in bytes, in this trial.
    pub pool: Option<Bytes>,
    /// The highest fill at which the rate is met. `None` if it was not searched.
    pub up_to: Option<UpTo>,
    /// Lifetime at the required rate.
    pub life: Life,
    /// Cost. `None` if the price is unknown.
    pub cost: Option<Cost>,
}

/// The lifetime of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Life {
    /// Years, for the fewest and for the most rated cycles.
    Years(Span),
    /// Writing does not wear the device.
    Wearless,
    /// The lifetime is unknown, for this reason.
    Unknown(&'static str),
}

/// The cost of a candidate, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Price of the device.
    pub device_usd: f64,
    /// Price of the memory.
    pub memory_usd: f64,
    /// Cost per year. The price of the device is spread over its life, but at most over the required years; the price
    /// of the memory over the required years.
    pub usd_per_year: f64,
    /// Cost per million requests or New-Order transactions.
    pub usd_per_million: f64,
}

impl Cost {
    /// Price of device and memory.
    pub fn total_usd(&self) -> f64 {
        self.device_usd + self.memory_usd
    }
}

impl Measured {
    /// Derives lifetime and cost from a trial.
    pub(super) fn new(
        question: &Question,
        candidate: &Candidate,
        trial: Trial,
        pool: Option<Bytes>,
        up_to: Option<UpTo>,
    ) -> Measured {
        let life = life(question, candidate.wearing, &trial);
        let cost = candidate.price_usd.map(|device_usd| cost(question, device_usd, pool, life));
        Measured { trial, pool, up_to, life, cost }
    }
}

/// Bytes that the host writes per day at the required rate.
pub fn written_per_day(question: &Question, trial: &Trial) -> f64 {
    trial.written_per_unit * question.per_second() * DAY_S * question.busy
}

fn life(question: &Question, wearing: Wearing, trial: &Trial) -> Life {
    match (wearing, trial.write_amplification) {
        (Wearing::Never, _) => Life::Wearless,
        (Wearing::Unknown(why), _) => Life::Unknown(why),
        (Wearing::Rated(_), None) => Life::Unknown("nothing was written in the steady window"),
        (Wearing::Rated(endurance), Some(write_amplification)) => {
            let wear = Wear { write_amplification, levelling: 1.0 };
            let per_day = written_per_day(question, trial);
            Life::Years(endurance.host_bytes(wear).map(|bytes| years(bytes, per_day)))
        }
    }
}

fn cost(question: &Question, device_usd: f64, pool: Option<Bytes>, life: Life) -> Cost {
    let memory_usd = pool.map_or(0.0, |pool| pool.get() as f64 / GB * question.memory_usd_per_gb);
    let lasts = match life {
        Life::Years(years) => years.low.min(question.years),
        Life::Wearless | Life::Unknown(_) => question.years,
    };
    let usd_per_year = device_usd / lasts + memory_usd / question.years;
    let units_per_year = question.per_second() * question.busy * DAY_S * YEAR_DAYS;
    Cost { device_usd, memory_usd, usd_per_year, usd_per_million: usd_per_year / units_per_year * 1e6 }
}

impl Life {
    /// The years for people: `4.2`, `2–4`.
    pub fn words(self) -> String {
        match self {
            Life::Years(years) => span_words(years, years_words),
            Life::Wearless => "no wear".to_owned(),
            Life::Unknown(_) => "unknown".to_owned(),
        }
    }
}

impl Row {
    /// The figures, if the candidate was simulated.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::TooSmall | Outcome::TooDear | Outcome::PassedOver | Outcome::Failed(_) => None,
        }
    }

    /// The reasons against the candidate. Empty if it meets the question.
    pub fn objections(&self, question: &Question) -> Vec<String> {
        let dear = |usd: f64| {
            let budget = question.budget_usd.filter(|budget| usd > *budget);
            budget.map(|budget| format!("{} of {} dollars", significant(usd), significant(budget)))
        };
        let measured = match &self.outcome {
            Outcome::TooSmall => {
                let (holds, data) = (self.candidate.capacity(), self.data);
                return vec![format!(
                    "holds {} of {}",
                    decimal(holds.get() as f64),
                    decimal(data.get() as f64)
                )];
            }
            Outcome::TooDear => return self.candidate.price_usd.and_then(dear).into_iter().collect(),
            Outcome::PassedOver => {
                return vec!["no price is known, and one that has a price is enough".to_owned()];
            }
            Outcome::Failed(reason) => return vec![format!("cannot be simulated: {reason}")],
            Outcome::Measured(measured) => measured,
        };
        let mut against: Vec<String> = slow(question, measured).into_iter().collect();
        if let Life::Years(years) = measured.life
            && years.low < question.years
        {
            against.push(format!("lives {} of {} years", measured.life.words(), significant(question.years)));
        }
        against.extend(measured.cost.and_then(|cost| dear(cost.total_usd())));
        against
    }

    /// Closeness to the requirements, from 0 to 1. It is 1 if all are met.
    pub(super) fn nearness(&self, question: &Question) -> f64 {
        let Some(measured) = self.measured() else { return 0.0 };
        let rate = (measured.trial.low / question.rate()).min(1.0);
        let life = match measured.life {
            Life::Years(years) => (years.low / question.years).min(1.0),
            Life::Wearless | Life::Unknown(_) => 1.0,
        };
        let budget = match (question.budget_usd, measured.cost) {
            (Some(budget), Some(cost)) => (budget / cost.total_usd()).min(1.0),
            _ => 1.0,
        };
        rate.max(0.0) * life * budget
    }
}

/// The reason that the rate is not met. `None` if it is met.
fn slow(question: &Question, measured: &Measured) -> Option<String> {
    let (trial, rate) = (&measured.trial, question.rate());
    if trial.meets(rate) {
        return None;
    }
    let asked = format!("of {}", question.rate_words());
    let memory = measured
        .pool
        .map_or_else(String::new, |pool| format!(" with {} of memory", decimal(pool.get() as f64)));
    let level = significant(trial.mean);
    Some(match &trial.unsettled {
        Some(reason) if trial.mean >= rate => format!("no steady level{memory}: {reason}"),
        Some(_) => format!("at most {level} {asked}{memory}"),
        None if trial.mean >= rate => {
            let ends = [trial.low, trial.high].map(significant);
            format!("{level} ({} to {}) {asked}{memory}: not for sure", ends[0], ends[1])
        }
        None => {
            let emptier = match measured.up_to.and_then(UpTo::fill) {
                Some(fill) => format!("; met up to {} % full", (fill * 100.0).floor()),
                None => String::new(),
            };
            format!("{level} {asked}{memory}{emptier}")
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::question::{Asked, BlockLoad, TpccLoad, Unit};
    use super::*;
    use lowtide_core::Nanos;
    use lowtide_report::lifetime::Endurance;
    use std::collections::BTreeMap;

    pub fn question(asked: Asked) -> Question {
        Question {
            data: Bytes::new(100_000_000_000),
            asked,
            budget_usd: Some(2000.0),
            years: 5.0,
            memory_usd_per_gb: 5.0,
            prices: BTreeMap::new(),
            devices: Vec::new(),
            busy: 1.0,
            seed: 1,
            scale: None,
        }
    }

    /// A question with 1000 random writes of 10 kB per second: 10 MB/s, 864 GB per day.
    pub fn writes() -> Question {
        question(Asked::Block(BlockLoad {
            rate: 1000.0,
            unit: Unit::Requests,
            reads: 0.0,
            block: Bytes::new(10_000),
            depth: 32,
            working_set: None,
        }))
    }

    pub fn trial(mean: f64, half: f64) -> Trial {
        Trial {
            mean,
            low: mean - half,
            high: mean + half,
            unsettled: None,
            write_amplification: Some(2.0),
            written_per_unit: 10_000.0,
            experiment: String::new(),
            scale: 1,
            seed: 1,
        }
    }

    pub fn candidate(name: &str, price_usd: Option<f64>, cycles: &str) -> Candidate {
        let mut device = lowtide_files::device::find("intel-320-160gb").expect("in the catalogue");
        device.name = name.to_owned();
        let endurance =
            Endurance { raw: Bytes::new(200_000_000_000), cycles: cycles.parse().expect("cycles") };
        let wearing = Wearing::Rated(endurance);
        Candidate { target: name.to_owned(), device, price_usd, own_price: false, wearing, scale: 1 }
    }

    pub fn row(question: &Question, candidate: Candidate, trial: Trial, pool: Option<Bytes>) -> Row {
        let measured = Measured::new(question, &candidate, trial, pool, None);
        Row { candidate, data: question.data, outcome: Outcome::Measured(Box::new(measured)) }
    }

    #[test]
    fn life_and_dollars_follow_from_what_is_written() {
        let question = writes();
        let row = row(&question, candidate("a", Some(1000.0), "3000..6000"), trial(2000.0, 10.0), None);
        let measured = row.measured().expect("it was");
        // 200 GB × 3000 / 2 = 300 TB; at 864 GB per day, 347 days.
        let Life::Years(years) = measured.life else { panic!("{measured:?}") };
        assert!((years.low - 300e12 / 864e9 / 365.0).abs() < 1e-9 && years.high == 2.0 * years.low);
        let cost = measured.cost.expect("priced");
        assert!((cost.usd_per_year - 1000.0 / years.low).abs() < 1e-9, "{cost:?}");
        // 1000 per second over 347.2 days are 30,000 million requests, for 1000 dollars.
        assert!((cost.usd_per_million - 1000.0 / 30_000.0).abs() < 1e-6, "{cost:?}");
        assert_eq!(row.objections(&question), ["lives 0.951–1.90 of 5 years"]);
        let seldom = Question { busy: 0.1, ..question };
        let row = self::row(&seldom, row.candidate, trial(2000.0, 10.0), None);
        assert_eq!(row.objections(&seldom), Vec::<String>::new());
        assert_eq!(row.measured().and_then(|it| it.cost).expect("priced").usd_per_year, 200.0);
    }

    #[test]
    fn memory_is_paid_for() {
        let load = TpccLoad { per_minute: 6000.0, terminals: 32, cores: 16, cpu: Nanos::from_micros(500) };
        let question = question(Asked::Tpcc(load));
        let pool = Some(Bytes::new(50_000_000_000));
        let candidate = Candidate { wearing: Wearing::Never, ..candidate("a", Some(1800.0), "1") };
        let row = row(&question, candidate, trial(7000.0, 10.0), pool);
        let cost = row.measured().and_then(|it| it.cost).expect("priced");
        assert_eq!((cost.memory_usd, cost.total_usd(), cost.usd_per_year), (250.0, 2050.0, 410.0));
        // 100 per second for a year.
        assert!((cost.usd_per_million - 410.0 / 3153.6).abs() < 1e-9, "{cost:?}");
        assert_eq!(row.objections(&question), ["2050 of 2000 dollars"]);
    }

    #[test]
    fn what_is_too_slow_or_not_sure_is_told() {
        let question = Question { years: 0.5, ..writes() };
        let told =
            |trial: Trial| row(&question, candidate("a", None, "3000"), trial, None).objections(&question);
        assert_eq!(told(trial(1100.0, 10.0)), Vec::<String>::new());
        assert_eq!(told(trial(940.0, 10.0)), ["940 of 1000 requests/s"]);
        assert_eq!(told(trial(1004.0, 10.0)), ["1004 (994 to 1014) of 1000 requests/s: not for sure"]);
        let unsettled = |mean| Trial { unsettled: Some("it falls".to_owned()), ..trial(mean, 0.0) };
        assert_eq!(told(unsettled(2000.0)), ["no steady level: it falls"]);
        assert_eq!(told(unsettled(500.0)), ["at most 500 of 1000 requests/s"]);
    }

    #[test]
    fn what_does_not_fit_or_is_too_dear_is_told_without_a_trial() {
        let question = Question { data: Bytes::new(400_000_000_000), ..writes() };
        let row =
            |outcome| Row { candidate: candidate("a", Some(6300.0), "1"), data: question.data, outcome };
        assert_eq!(row(Outcome::TooSmall).objections(&question), ["holds 160 GB of 400 GB"]);
        assert_eq!(row(Outcome::TooDear).objections(&question), ["6300 of 2000 dollars"]);
    }
}
