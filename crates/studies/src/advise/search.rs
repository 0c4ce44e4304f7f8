//! Bisection for the highest fill at which a device meets a rate, and for the smallest sufficient memory.
//!
//! Both assume that the rate falls as data grow or memory shrinks. The trials are in `trial`.

/// Bisection steps above a fill that meets the rate.
const HALVINGS_ABOVE: usize = 3;
/// Bisection steps below a fill that does not meet the rate. Here a coarser answer suffices.
const HALVINGS_BELOW: usize = 2;
/// If a device does not meet the rate, it is tried again at this share of the requested fill.
const MUCH_EMPTIER: f64 = 0.25;

/// The highest fill at which a device meets a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UpTo {
    /// The largest share of the capacity that met the rate, and the smallest share that did not, if any.
    Fill(f64, Option<f64>),
    /// Even a quarter of the data does not meet the rate.
    Never,
}

impl UpTo {
    /// In words: `meets it up to 83 % full`.
    pub fn words(self) -> String {
        match self {
            UpTo::Fill(fill, _) if fill >= 1.0 => "meets it when it is full, too".to_owned(),
            UpTo::Fill(fill, _) => format!("meets it up to {} % full", (fill * 100.0).floor()),
            UpTo::Never => "does not meet it with a quarter of the data either".to_owned(),
        }
    }

    /// The largest share of the capacity that met the rate.
    pub fn fill(self) -> Option<f64> {
        match self {
            UpTo::Fill(fill, _) => Some(fill),
            UpTo::Never => None,
        }
    }
}

/// Finds the highest fill at which a device meets the rate. `met` states whether it does at `fill`.
pub(super) fn up_to<E>(
    fill: f64,
    met: bool,
    mut meets: impl FnMut(f64) -> Result<bool, E>,
) -> Result<UpTo, E> {
    let (mut low, mut high, halvings) = if met {
        if fill >= 1.0 || meets(1.0)? {
            return Ok(UpTo::Fill(1.0, None));
        }
        (fill, 1.0, HALVINGS_ABOVE)
    } else {
        let emptier = fill * MUCH_EMPTIER;
        if !meets(emptier)? {
            return Ok(UpTo::Never);
        }
        (emptier, fill, HALVINGS_BELOW)
    };
    for _ in 0..halvings {
        let middle = f64::midpoint(low, high);
        if meets(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(UpTo::Fill(low, Some(high)))
}

/// Index of the first of `count` steps that suffices. All later steps must suffice, too. `None` if no step suffices.
pub(super) fn first_enough<E>(
    count: usize,
    mut enough: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let (mut from, mut to) = (0, count);
    while from < to {
        let middle = usize::midpoint(from, to);
        if enough(middle)? {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    Ok((from < count).then_some(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(fill: f64, limit: f64) -> (UpTo, usize) {
        let mut asked = 0;
        let meets = |at: f64| {
            asked += 1;
            Ok::<bool, Infallible>(at <= limit)
        };
        (up_to(fill, fill <= limit, meets).expect("nothing fails"), asked)
    }

    #[test]
    fn the_limit_lies_between_what_was_met_and_what_was_not() {
        for limit in [0.21, 0.4, 0.55, 0.61, 0.7, 0.85, 0.99] {
            let (UpTo::Fill(low, Some(high)), asked) = found(0.6, limit) else {
                panic!("{limit} is between")
            };
            assert!(low <= limit && limit < high && high - low <= 0.12, "{limit}: {low} to {high}");
            assert!(asked <= 4, "{limit}: {asked} trials");
        }
        assert_eq!(found(0.6, 1.0), (UpTo::Fill(1.0, None), 1));
        assert_eq!(found(0.6, 0.1), (UpTo::Never, 1));
    }

    #[test]
    fn the_smallest_step_that_is_enough_is_found_in_few_trials() {
        for first in 0..=5 {
            let mut asked = 0;
            let enough = |at: usize| {
                asked += 1;
                Ok::<bool, Infallible>(at >= first)
            };
            assert_eq!(first_enough(5, enough).expect("nothing fails"), (first < 5).then_some(first));
            assert!(asked <= 3, "{first}: {asked}");
        }
    }
}
