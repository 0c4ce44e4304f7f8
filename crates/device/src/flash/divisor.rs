//! Division of 32-bit numbers by a constant ([`Divisor`]), which a drive does several times per request.
//!
//! It uses a multiplication, which takes a fifth of the time of a division.

use serde::{Deserialize, Serialize};

/// Divides by a number, exactly.
///
/// The quotient `⌊n / d⌋` of 32-bit numbers is the upper half of `n · ⌈2⁶⁴ / d⌉` (D. Lemire, O. Kaser and N. Kurz,
/// "Faster remainder by direct computation", Software: Practice and Experience 49, 2019).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Divisor {
    by: u32,
    /// `⌈2⁶⁴ / by⌉`; 0 for a division by one.
    reciprocal: u64,
}

impl Divisor {
    /// A divisor `by`, which must not be 0.
    pub(super) fn new(by: u32) -> Self {
        assert!(by > 0, "nothing divides by zero");
        Divisor { by, reciprocal: (u64::MAX / u64::from(by)).wrapping_add(1) }
    }

    #[inline]
    pub(super) fn divide(self, number: u32) -> u32 {
        if self.reciprocal == 0 {
            return number;
        }
        ((u128::from(self.reciprocal) * u128::from(number)) >> 64) as u32
    }

    /// The divisor.
    pub(super) fn by(self) -> u32 {
        self.by
    }

    /// The smallest multiple of the divisor that is greater than a number.
    #[inline]
    pub(super) fn multiple_above(self, number: u32) -> u32 {
        (self.divide(number) + 1) * self.by
    }

    #[inline]
    pub(super) fn remainder(self, number: u32) -> u32 {
        number - self.divide(number) * self.by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_the_range_divide() {
        for by in [1, 2, 3, 7, 512, 65_537, u32::MAX - 1, u32::MAX] {
            for number in [0, 1, by - 1, by, by.saturating_add(1), u32::MAX - 1, u32::MAX] {
                assert_eq!(Divisor::new(by).divide(number), number / by, "{number} / {by}");
                assert_eq!(Divisor::new(by).remainder(number), number % by, "{number} % {by}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_number_divides(number: u32, by in 1u32..) {
            prop_assert_eq!(Divisor::new(by).divide(number), number / by);
            prop_assert_eq!(Divisor::new(by).remainder(number), number % by);
        }
    }
}
