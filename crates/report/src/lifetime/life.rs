//! The remaining life of a drive, from one or two readings of its counters.
//!
//! ```text
//!   used share u:     left = host bytes so far × (1 − u) / u     × WA so far / WA lately
//!   cycles and NAND:  left = (raw × cycles − NAND bytes so far)  / WA lately
//!   years           = left / host bytes a day / 365
//! ```
//!
//! Drives report u in whole percent with unknown rounding, so u is assumed to be off by at most one percent.
//!
//! # Not handled
//!
//! Times without power: a day is 24 power-on hours, unless the user gives the bytes written per day.

use crate::lifetime::endurance::{Endurance, Span, years};
use crate::lifetime::rate::WriteRate;
use lowtide_core::Bytes;
use lowtide_lab::smart::{Media, Reading};

/// The largest error of the used share of the life, in percent.
const ROUNDING: f64 = 1.0;

/// A period of a drive's life.
#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    /// `since new` or `between the readings`.
    pub name: &'static str,
    /// Power-on hours.
    pub hours: Option<f64>,
    /// Bytes the host wrote.
    pub host_bytes: Option<f64>,
    /// Bytes written to the NAND.
    pub nand_bytes: Option<f64>,
    /// NAND bytes per host byte.
    pub write_amplification: Option<f64>,
}

impl Period {
    /// Host bytes per 24 power-on hours.
    pub fn host_bytes_per_day(&self) -> Option<f64> {
        Some(self.host_bytes? / self.hours.filter(|hours| *hours > 0.0)? * 24.0)
    }
}

/// The remaining life of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// The time since new, and the time between the readings if there are two.
    pub periods: Vec<Period>,
    /// Host bytes per day from now on.
    pub bytes_per_day: Option<f64>,
    /// Remaining host bytes. The upper end is infinite if at most one percent of the life is used.
    pub host_bytes_left: Option<Span>,
    /// Remaining years.
    pub years_left: Option<Span>,
    /// The basis of the result: `the drive reports 20 % of its life used`.
    pub basis: Option<String>,
}

/// The reason why two readings cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifeError {
    /// A counter decreased.
    #[error("{what} decreased between the readings")]
    Decreased {
        /// The counter.
        what: &'static str,
    },
    /// The readings are of different drives.
    #[error("the readings are of different drives: {now}, but {since} before")]
    Models {
        /// The model now.
        now: String,
        /// The earlier model.
        since: String,
    },
}

impl Life {
    /// The remaining life at `rate`, or else at the rate between `since` and `now`, or else at the mean rate since
    /// new.
    ///
    /// # Errors
    /// [`LifeError`] if the readings cannot be compared.
    pub fn new(
        now: &Reading,
        since: Option<&Reading>,
        rate: Option<WriteRate>,
        endurance: Option<Endurance>,
    ) -> Result<Life, LifeError> {
        let mut periods = vec![since_new(now)];
        if let Some(since) = since {
            periods.push(between(now, since)?);
        }
        let (whole, last) = (&periods[0], &periods[periods.len() - 1]);
        let capacity = Bytes::new(now.capacity.unwrap_or(0.0) as u64);
        let bytes_per_day = match rate {
            Some(WriteRate::Dwpd(_)) if capacity == Bytes::ZERO => None,
            Some(rate) => Some(rate.bytes_per_day(capacity)),
            None => last.host_bytes_per_day().filter(|bytes| *bytes > 0.0),
        };
        let by_cycles = endurance.and_then(|endurance| by_cycles(endurance, whole, last));
        let left = by_cycles.or_else(|| by_share(now.used_percent?, whole, last));
        let (host_bytes_left, basis) = left.unzip();
        let years_left =
            host_bytes_left.zip(bytes_per_day).map(|(left, per_day)| left.map(|bytes| years(bytes, per_day)));
        Ok(Life { bytes_per_day, host_bytes_left, years_left, basis, periods })
    }
}

fn since_new(now: &Reading) -> Period {
    let media = now.media.filter(|media| media.host > 0.0);
    Period {
        name: "since new",
        hours: now.power_on_hours,
        host_bytes: now.host_bytes,
        nand_bytes: now.nand_bytes(),
        write_amplification: media.map(|media| media.nand / media.host),
    }
}

fn between(now: &Reading, since: &Reading) -> Result<Period, LifeError> {
    if let (Some(now), Some(since)) = (&now.model, &since.model)
        && now != since
    {
        return Err(LifeError::Models { now: now.clone(), since: since.clone() });
    }
    let grown = |what, now: Option<f64>, since: Option<f64>| match now.zip(since) {
        Some((now, since)) if now < since => Err(LifeError::Decreased { what }),
        pair => Ok(pair.map(|(now, since)| now - since)),
    };
    let media = |pick: fn(&Media) -> f64| (now.media.as_ref().map(pick), since.media.as_ref().map(pick));
    let (host, nand) = (media(|media| media.host), media(|media| media.nand));
    let hours = grown("the power-on time", now.power_on_hours, since.power_on_hours)?;
    let host_bytes = grown("the host bytes", now.host_bytes, since.host_bytes)?;
    let host = grown("the host bytes", host.0, host.1)?.filter(|host| *host > 0.0);
    let nand = grown("the NAND bytes", nand.0, nand.1)?;
    let write_amplification = nand.zip(host).map(|(nand, host)| nand / host);
    let nand_bytes = host_bytes.zip(write_amplification).map(|(host, ratio)| host * ratio);
    Ok(Period { name: "between the readings", hours, host_bytes, nand_bytes, write_amplification })
}

fn by_cycles(endurance: Endurance, whole: &Period, last: &Period) -> Option<(Span, String)> {
    let (nand, ratio) = whole.nand_bytes.zip(last.write_amplification.or(whole.write_amplification))?;
    let cycles = Span { low: endurance.cycles.fewest().into(), high: endurance.cycles.most().into() };
    let left = cycles.map(|cycles| (endurance.raw.get() as f64 * cycles - nand).max(0.0) / ratio);
    Some((left, format!("{} cycles of {} of NAND", endurance.cycles, endurance.raw)))
}

fn by_share(percent: f64, whole: &Period, last: &Period) -> Option<(Span, String)> {
    let host = whole.host_bytes?;
    let worse =
        whole.write_amplification.zip(last.write_amplification).map_or(1.0, |(whole, last)| whole / last);
    let left = |used: f64| match used {
        used if used <= 0.0 => f64::INFINITY,
        used => host * (100.0 - used).max(0.0) / used * worse,
    };
    let span = Span { low: left(percent + ROUNDING), high: left(percent - ROUNDING) };
    Some((span, format!("the drive reports {percent} % of its life used")))
}

#[cfg(test)]
mod tests;
