//! A token bucket: a base rate, and credits for more than the base rate, up to a peak rate.
//!
//! The caller defines a token: a request or a byte.

use serde::{Deserialize, Serialize};

/// A token bucket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bucket {
    /// Tokens per second that the bucket gains.
    base: f64,
    /// Tokens per second that may be taken while there are credits.
    peak: f64,
    most: f64,
    credits: f64,
    /// End of the last take, and the time at which `credits` was computed.
    busy_ns: u64,
}

impl Bucket {
    /// A full bucket of `most` credits.
    pub(super) fn new(base: u64, peak: u64, most: u64) -> Self {
        let (base, peak, most) = (base as f64, peak.max(base) as f64, most as f64);
        Bucket { base, peak, most, credits: most, busy_ns: 0 }
    }

    /// The credits at `now_ns`, if no tokens are taken until then.
    pub(super) fn credits(&self, now_ns: u64) -> f64 {
        let seconds = now_ns.saturating_sub(self.busy_ns) as f64 / 1e9;
        (self.credits + seconds * self.base).min(self.most)
    }

    /// Takes `tokens` after all earlier takes. Returns the end in nanoseconds.
    ///
    /// A take lasts at least `tokens / peak`, and the bucket gains tokens meanwhile. Tokens beyond the credits wait
    /// for the base rate.
    pub(super) fn take(&mut self, now_ns: u64, tokens: u64) -> u64 {
        let begin_ns = self.busy_ns.max(now_ns);
        let held = self.credits(begin_ns);
        let tokens = tokens as f64;
        let at_peak = tokens / self.peak;
        let lacking = (tokens - held - at_peak * self.base).max(0.0);
        let seconds = at_peak + lacking / self.base;
        self.busy_ns = begin_ns + (seconds * 1e9).round() as u64;
        self.credits = (held + seconds * self.base - tokens).clamp(0.0, self.most);
        self.busy_ns
    }
}
