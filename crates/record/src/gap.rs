//! The text for a gap in a measurement.
//!
//! Gaps are detected in `lowtide_host::clock`.

use lowtide_core::measure::{Cause, Gap};

/// Describes a gap, without a full stop. The position is relative to the start of the measurement.
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
    fn the_text_has_the_length_the_position_and_the_cause() {
        for (cause, begin) in [
            (Cause::Stopped, "stopped for 12.3 s at 01:01:05 (SIGSTOP or Ctrl-Z): that time"),
            (Cause::Suspended, "suspended for 12.3 s at 01:01:05 (the machine slept): that time"),
        ] {
            let gap = Gap { at_ns: 3_665_900_000_000, length: Nanos::from_millis(12_340), cause };
            let text = gap_in_words(&gap);
            assert!(text.starts_with(begin), "{text}");
        }
    }
}
