//! Known parameters, in the syntax of `--fix KEY=VALUE`.
//!
//! Limits that depend on the capacity and on the family are in `limits`.

use super::{COST_UNIT, FitError};
use lowtide_core::suggest::nearest;
use lowtide_core::{Bytes, Nanos};
use lowtide_device::flash::spec::Policy;

const KEYS: [&str; 5] = ["raw", "write-cost", "gc-cost", "policy", "map-reach"];
const POLICIES: &str = "greedy, fifo, random, d-choices=N with N from 1 to 64";
/// Maximum N of `d-choices=N`.
const MOST_CHOICES: u32 = 64;
/// Maximum time to write or move a [`COST_UNIT`].
const LONGEST: Nanos = Nanos::from_secs(1);

/// Known parameters, which are not fitted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Fixed {
    /// Raw NAND in bytes.
    pub raw: Option<f64>,
    /// Seconds per written byte.
    pub write: Option<f64>,
    /// Seconds per moved byte.
    pub moved: Option<f64>,
    /// The policy that chooses the victim blocks.
    pub policy: Option<Policy>,
    /// Bytes of data that the map cache covers.
    pub reach: Option<f64>,
}

impl Fixed {
    /// Reads `KEY=VALUE` pairs.
    ///
    /// # Errors
    /// [`FitError::Setting`] with the pair and the accepted values.
    pub fn parse(pairs: &[String]) -> Result<Fixed, FitError> {
        let mut fixed = Fixed::default();
        for pair in pairs {
            fixed.set(pair).map_err(|why| FitError::Setting(format!("--fix {pair}: {why}")))?;
        }
        Ok(fixed)
    }

    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let bytes = || match value.parse::<Bytes>() {
            Ok(Bytes::ZERO) => Err("write a size above 0, such as `512GiB`".to_owned()),
            Ok(size) => Ok(size.get() as f64),
            Err(why) => Err(why.to_string()),
        };
        let cost = || {
            let time = value.parse::<Nanos>().map_err(|why| why.to_string())?;
            if time > LONGEST {
                return Err(format!("a cost is the time of {COST_UNIT}, and {LONGEST} at most"));
            }
            Ok(time.as_secs_f64() / COST_UNIT.get() as f64)
        };
        match key {
            "raw" => self.raw = Some(bytes()?),
            "write-cost" => {
                let cost = cost()?;
                if cost <= 0.0 {
                    return Err("writing takes time: write a cost above 0, such as `3.7us`".to_owned());
                }
                self.write = Some(cost);
            }
            "gc-cost" => self.moved = Some(cost()?),
            "map-reach" => self.reach = Some(bytes()?),
            "policy" => {
                self.policy = Some(policy(value).ok_or_else(|| format!("policies are {POLICIES}"))?);
            }
            _ => {
                let near =
                    nearest(key, KEYS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(format!("there is no key `{key}`{near} Keys are {}", KEYS.join(", ")));
            }
        }
        Ok(())
    }
}

fn policy(text: &str) -> Option<Policy> {
    match text {
        "greedy" => Some(Policy::Greedy),
        "fifo" => Some(Policy::Fifo),
        "random" => Some(Policy::Random),
        _ => {
            let choices = text.strip_prefix("d-choices=")?.parse().ok()?;
            (1..=MOST_CHOICES).contains(&choices).then_some(Policy::DChoices(choices))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_and_faults_name_the_pair_and_what_is_accepted() {
        let read =
            |pairs: &[&str]| Fixed::parse(&pairs.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let all =
            read(&["raw=512GiB", "write-cost=4096ns", "gc-cost=0s", "policy=d-choices=2", "map-reach=10GiB"])
                .expect("all are known");
        assert_eq!(all.raw, Some((512u64 << 30) as f64));
        assert!((all.write.expect("given") - 1e-9).abs() < 1e-18);
        assert_eq!((all.moved, all.policy), (Some(0.0), Some(Policy::DChoices(2))));
        for (pair, told) in [
            ("raw=0B", "above 0"),
            ("raw=512", "a unit is missing"),
            ("raw", "write a number and a unit"),
            ("write-cost=0s", "above 0"),
            ("write-cost=2s", "1s at most"),
            ("gc-cost=1e300s", "is not a span of time"),
            ("map-reach=0B", "above 0"),
            ("policy=greddy", "greedy, fifo"),
            ("policy=d-choices=0", "from 1 to 64"),
            ("policy=d-choices=4294967295", "from 1 to 64"),
            ("wirte-cost=1us", "did you mean `write-cost`?"),
            ("", "Keys are raw"),
        ] {
            let error = read(&[pair]).expect_err(pair).to_string();
            assert!(error.contains(told) && error.contains(&format!("--fix {pair}")), "{pair}: {error}");
        }
    }
}
