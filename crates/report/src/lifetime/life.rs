//! What a reading, or two, say of the years left.
//!
//! ```text
//!   used share u:     left = host bytes so far × (1 − u) / u     × WA so far / WA lately
//!   cycles and NAND:  left = (raw × cycles − NAND bytes so far)  / WA lately
//!   years           = left / host bytes a day / 365
//! ```
//!
//! Drives tell u in whole percent and not how they round, so it is taken to be off by up to one. Not here: when the
//! drive was switched off: a day is 24 power-on hours, unless the user says what is written a day.

use crate::lifetime::endurance::{Endurance, Span, years};
use crate::lifetime::rate::WriteRate;
use lowtide_core::Bytes;
use lowtide_lab::smart::{Media, Reading};

/// How far the share of the life that is used may be off, in percent.
const ROUNDING: f64 = 1.0;

/// A stretch of a drive's life.
#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    /// `since new` or `between the readings`.
    pub name: &'static str,
    /// Power-on hours.
    pub hours: Option<f64>,
    /// Bytes the host wrote.
    pub host_bytes: Option<f64>,
    /// Bytes the NAND took.
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

/// What is left of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// Since new, and between the readings where there are two.
    pub periods: Vec<Period>,
    /// Host bytes a day from now on.
    pub bytes_per_day: Option<f64>,
    /// Host bytes left; the higher end is infinite where no more than one percent is used.
    pub host_bytes_left: Option<Span>,
    /// Years left.
    pub years_left: Option<Span>,
    /// What that rests on: `20 % of its life is used, the drive says`.
    pub basis: Option<String>,
}

/// Why two readings do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifeError {
    /// A counter is smaller than before.
    #[error("{what} went back between the readings")]
    WentBack {
        /// Which.
        what: &'static str,
    },
    /// They are of different drives.
    #[error("the readings are of different drives: {now}, and {since} before")]
    Models {
        /// The model now.
        now: String,
        /// The model then.
        since: String,
    },
}

impl Life {
    /// What is left, going on as between `since` and `now` or else as ever, or at `rate`.
    ///
    /// # Errors
    /// [`LifeError`] where the readings do not go together.
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
        Some((now, since)) if now < since => Err(LifeError::WentBack { what }),
        pair => Ok(pair.map(|(now, since)| now - since)),
    };
    let media = |pick: fn(&Media) -> f64| (now.media.as_ref().map(pick), since.media.as_ref().map(pick));
    let (host, nand) = (media(|media| media.host), media(|media| media.nand));
    let hours = grown("the power-on time", now.power_on_hours, since.power_on_hours)?;
    let host_bytes = grown("what the host wrote", now.host_bytes, since.host_bytes)?;
    let host = grown("what the host wrote", host.0, host.1)?.filter(|host| *host > 0.0);
    let nand = grown("what the NAND took", nand.0, nand.1)?;
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
    Some((span, format!("{percent} % of its life is used, the drive says")))
}

#[cfg(test)]
mod tests;
