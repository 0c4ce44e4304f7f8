//! The clocks of a live drive ([`Time`]): the drive's clock stops during a pause, and the model's clock may run
//! ahead.
//!
//! The server's clock is in `lowtide_host::clock`.

use lowtide_core::VirtualTime;

/// The timing of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Answers with the model's latency as the client sees it: the transport time is subtracted.
    RealTime {
        /// Transport time of a request and its answer, in nanoseconds.
        transport_ns: u64,
    },
    /// Answers without delay. The model's own clock advances batch by batch.
    NoDelay,
}

/// The clocks of a drive.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pace: Pace,
    /// The model's clock at `origin_ns` of the drive's clock.
    base_ns: u64,
    origin_ns: u64,
    /// Total length of the pauses.
    paused_ns: u64,
    /// Start of the current pause, on the server's clock.
    paused_since: Option<u64>,
    /// The latest time of the model's clock, which never goes back.
    floor_ns: u64,
}

impl Time {
    /// The clocks for a model whose clock shows `base`.
    pub(super) fn new(pace: Pace, base: VirtualTime) -> Time {
        let base_ns = base.as_nanos();
        Time { pace, base_ns, origin_ns: 0, paused_ns: 0, paused_since: None, floor_ns: base_ns }
    }

    /// Changes the pace. The model's clock continues from its current time.
    pub(super) fn take_pace(&mut self, pace: Pace, server_ns: u64) {
        (self.base_ns, self.origin_ns) = (self.model_at(server_ns).as_nanos(), self.at(server_ns));
        self.pace = pace;
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self.pace, Pace::RealTime { .. })
    }

    /// Converts the server's clock to the drive's, which stops during a pause.
    pub(super) fn at(&self, server_ns: u64) -> u64 {
        self.paused_since.unwrap_or(server_ns).saturating_sub(self.paused_ns)
    }

    /// Converts the drive's clock to the server's; `None` during a pause.
    pub(super) fn on_server(&self, drive_ns: u64) -> Option<u64> {
        self.paused_since.is_none().then(|| drive_ns + self.paused_ns)
    }

    /// The model's time for a request that arrives now on the server's clock.
    pub(super) fn model_at(&mut self, server_ns: u64) -> VirtualTime {
        if self.is_real() {
            self.floor_ns =
                self.floor_ns.max(self.base_ns + self.at(server_ns).saturating_sub(self.origin_ns));
        }
        VirtualTime::from_nanos(self.floor_ns)
    }

    /// Advances the model's clock, unless it is already later.
    pub(super) fn advance_to(&mut self, at: VirtualTime) {
        self.floor_ns = self.floor_ns.max(at.as_nanos());
    }

    /// The model's clock.
    pub(super) fn model(&self) -> VirtualTime {
        VirtualTime::from_nanos(self.floor_ns)
    }

    /// The time on the drive's clock at which to answer a request that the model completes at `at`.
    pub(super) fn release(&self, at: VirtualTime) -> u64 {
        let transport_ns = match self.pace {
            Pace::RealTime { transport_ns } => transport_ns,
            Pace::NoDelay => 0,
        };
        (self.origin_ns + at.as_nanos().saturating_sub(self.base_ns)).saturating_sub(transport_ns)
    }

    pub(super) fn pause(&mut self, server_ns: u64) {
        self.paused_since.get_or_insert(server_ns);
    }

    pub(super) fn resume(&mut self, server_ns: u64) {
        if let Some(since) = self.paused_since.take() {
            self.paused_ns += server_ns.saturating_sub(since);
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_delays_answers_and_the_model_does_not_notice() {
        let mut time = Time::new(Pace::RealTime { transport_ns: 10 }, VirtualTime::from_nanos(1000));
        assert_eq!(time.model_at(100), VirtualTime::from_nanos(1100));
        let release = time.release(VirtualTime::from_nanos(1180));
        assert_eq!(time.on_server(release), Some(170), "the transport time is subtracted");
        time.pause(120);
        assert_eq!((time.on_server(release), time.model_at(500)), (None, VirtualTime::from_nanos(1120)));
        time.resume(620);
        assert_eq!(time.on_server(release), Some(670));
        assert_eq!(time.model_at(640), VirtualTime::from_nanos(1140));
        time.advance_to(VirtualTime::from_nanos(1150));
        assert_eq!(time.model_at(641), VirtualTime::from_nanos(1150), "the clock never goes back");
    }

    #[test]
    fn the_models_clock_continues_when_the_pace_changes() {
        let real = Pace::RealTime { transport_ns: 10 };
        for (server_ns, model_ns) in [(5000, 70), (50, 90_000)] {
            let mut time = Time::new(Pace::NoDelay, VirtualTime::START);
            time.advance_to(VirtualTime::from_nanos(model_ns));
            time.take_pace(real, server_ns);
            assert_eq!(time.model_at(server_ns), VirtualTime::from_nanos(model_ns), "{server_ns}");
            assert_eq!(time.model_at(server_ns + 5), VirtualTime::from_nanos(model_ns + 5), "{server_ns}");
            assert_eq!(time.release(VirtualTime::from_nanos(model_ns + 30)), server_ns + 20, "{server_ns}");
            time.take_pace(Pace::NoDelay, server_ns + 100);
            assert_eq!(
                time.model_at(server_ns + 900),
                VirtualTime::from_nanos(model_ns + 100),
                "{server_ns}"
            );
        }
    }

    #[test]
    fn without_delay_the_model_has_its_own_clock() {
        let mut time = Time::new(Pace::NoDelay, VirtualTime::START);
        assert_eq!(time.model_at(1 << 40), VirtualTime::START);
        time.advance_to(VirtualTime::from_nanos(500));
        assert_eq!(
            (time.model_at(0), time.model()),
            (VirtualTime::from_nanos(500), VirtualTime::from_nanos(500))
        );
    }
}
