//! The time of a drive that is served live ([`Time`]): it stands still while the drive is paused, and may run ahead.
//!
//! Not here: the wall clock, which is the loop's.

use lowtide_core::VirtualTime;

/// When requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When the model says so. A client sees an answer later than it was sent, by the way there and back; that much, in
    /// nanoseconds, is taken off.
    RealTime {
        /// What a request and its answer take on their way.
        transport_ns: u64,
    },
    /// At once. The model's time then is what it would have taken, one batch of requests after another.
    NoDelay,
}

/// The drive's own clock.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pace: Pace,
    /// What the model's clock showed, and the drive's, when both began to run together.
    base_ns: u64,
    origin_ns: u64,
    /// How long it stood still, on the loop's clock.
    paused_ns: u64,
    paused_since: Option<u64>,
    /// The model has been asked for this instant, and goes back to none before it.
    floor_ns: u64,
}

impl Time {
    /// A clock that goes on from `base`.
    pub(super) fn new(pace: Pace, base: VirtualTime) -> Time {
        let base_ns = base.as_nanos();
        Time { pace, base_ns, origin_ns: 0, paused_ns: 0, paused_since: None, floor_ns: base_ns }
    }

    /// Takes another pace at an instant of the loop. The model goes on from where it is.
    pub(super) fn take_pace(&mut self, pace: Pace, loop_ns: u64) {
        (self.base_ns, self.origin_ns) = (self.of_model(loop_ns).as_nanos(), self.at(loop_ns));
        self.pace = pace;
    }

    pub(super) fn is_real(&self) -> bool {
        matches!(self.pace, Pace::RealTime { .. })
    }

    /// The drive's instant at an instant of the loop; the same while it is paused.
    pub(super) fn at(&self, loop_ns: u64) -> u64 {
        self.paused_since.unwrap_or(loop_ns).saturating_sub(self.paused_ns)
    }

    /// The loop's instant of an instant of the drive; `None` while it is paused.
    pub(super) fn on_loop(&self, drive_ns: u64) -> Option<u64> {
        self.paused_since.is_none().then(|| drive_ns + self.paused_ns)
    }

    /// The instant at which the model takes a request that came at an instant of the loop.
    pub(super) fn of_model(&mut self, loop_ns: u64) -> VirtualTime {
        if self.is_real() {
            self.floor_ns = self.floor_ns.max(self.base_ns + self.at(loop_ns).saturating_sub(self.origin_ns));
        }
        VirtualTime::from_nanos(self.floor_ns)
    }

    /// The model has gone to an instant.
    pub(super) fn went_to(&mut self, at: VirtualTime) {
        self.floor_ns = self.floor_ns.max(at.as_nanos());
    }

    /// The model's instant, as far as it has gone.
    pub(super) fn model(&self) -> VirtualTime {
        VirtualTime::from_nanos(self.floor_ns)
    }

    /// The drive's instant at which something that the model completes then is answered.
    pub(super) fn release(&self, at: VirtualTime) -> u64 {
        let transport_ns = match self.pace {
            Pace::RealTime { transport_ns } => transport_ns,
            Pace::NoDelay => 0,
        };
        (self.origin_ns + at.as_nanos().saturating_sub(self.base_ns)).saturating_sub(transport_ns)
    }

    pub(super) fn pause(&mut self, loop_ns: u64) {
        self.paused_since.get_or_insert(loop_ns);
    }

    pub(super) fn resume(&mut self, loop_ns: u64) {
        if let Some(since) = self.paused_since.take() {
            self.paused_ns += loop_ns.saturating_sub(since);
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
    fn a_pause_moves_all_that_is_due_and_the_model_does_not_notice() {
        let mut time = Time::new(Pace::RealTime { transport_ns: 10 }, VirtualTime::from_nanos(1000));
        assert_eq!(time.of_model(100), VirtualTime::from_nanos(1100));
        let release = time.release(VirtualTime::from_nanos(1180));
        assert_eq!(time.on_loop(release), Some(170), "what the way takes is taken off");
        time.pause(120);
        assert_eq!((time.on_loop(release), time.of_model(500)), (None, VirtualTime::from_nanos(1120)));
        time.resume(620);
        assert_eq!(time.on_loop(release), Some(670));
        assert_eq!(time.of_model(640), VirtualTime::from_nanos(1140));
        time.went_to(VirtualTime::from_nanos(1150));
        assert_eq!(time.of_model(641), VirtualTime::from_nanos(1150), "never back");
    }

    #[test]
    fn a_model_that_ran_ahead_or_behind_goes_on_from_where_it_is() {
        let real = Pace::RealTime { transport_ns: 10 };
        for (loop_ns, model_ns) in [(5000, 70), (50, 90_000)] {
            let mut time = Time::new(Pace::NoDelay, VirtualTime::START);
            time.went_to(VirtualTime::from_nanos(model_ns));
            time.take_pace(real, loop_ns);
            assert_eq!(time.of_model(loop_ns), VirtualTime::from_nanos(model_ns), "{loop_ns}");
            assert_eq!(time.of_model(loop_ns + 5), VirtualTime::from_nanos(model_ns + 5), "{loop_ns}");
            assert_eq!(time.release(VirtualTime::from_nanos(model_ns + 30)), loop_ns + 20, "{loop_ns}");
            time.take_pace(Pace::NoDelay, loop_ns + 100);
            assert_eq!(time.of_model(loop_ns + 900), VirtualTime::from_nanos(model_ns + 100), "{loop_ns}");
        }
    }

    #[test]
    fn without_delay_the_time_is_the_models_own() {
        let mut time = Time::new(Pace::NoDelay, VirtualTime::START);
        assert_eq!(time.of_model(1 << 40), VirtualTime::START);
        time.went_to(VirtualTime::from_nanos(500));
        assert_eq!(
            (time.of_model(0), time.model()),
            (VirtualTime::from_nanos(500), VirtualTime::from_nanos(500))
        );
    }
}
