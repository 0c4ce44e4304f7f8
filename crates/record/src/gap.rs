//! The text for a gap in a measurement.
//!
//! Not here: how a gap is noticed (`lowtide_host::clock`).

use lowtide_core::measure::{Cause, Gap};

/// A gap in words, without a full stop; its position is in time of the measurement.
pub fn gap_in_words(gap: &Gap) -> String {
    let at = gap.at_ns / 1_000_000_000;
    let (what, why) = match gap.cause {
        Cause::Stopped => ("stopped", "SIGSTOP or Ctrl-Z"),
        Cause::Suspended => ("suspended", "the machine slept"),
    };
    format!(
        "{what} for {:.1} s at {:02}:{:02}:{:02} ({why}): that time and the requests in flight then are left out; the drive \
         rested meanwhile, and may have cleaned itself",
        gap.length.as_secs_f64(),
        at / 3600,
        at / 60 % 60,
        at % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Nanos;

    #[test]
    fn a_gap_says_how_long_it_was_and_when() {
        let gap = |cause| Gap { at_ns: 3_665_900_000_000, length: Nanos::from_millis(12_340), cause };
        let told = gap_in_words(&gap(Cause::Stopped));
        assert!(told.starts_with("stopped for 12.3 s at 01:01:05 (SIGSTOP or Ctrl-Z): that time"), "{told}");
        let told = gap_in_words(&gap(Cause::Suspended));
        assert!(
            told.starts_with("suspended for 12.3 s at 01:01:05 (the machine slept): that time"),
            "{told}"
        );
    }
}
