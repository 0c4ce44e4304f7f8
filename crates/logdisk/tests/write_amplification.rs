//! Write amplification at several fills, compared with the closed form of the literature, whose values `closed_form`
//! tests.

use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Nanos, Request, Seed, VirtualTime};
use lowtide_logdisk::closed_form::by_age;
use lowtide_logdisk::disk::Running;
use lowtide_logdisk::{BLOCK, LogDevice, Options};

/// A device with a latency of one microsecond.
#[derive(Debug)]
struct Quick(u64);

impl BlockDevice for Quick {
    fn capacity(&self) -> Bytes {
        Bytes::new(self.0)
    }
    fn submit(&mut self, now: VirtualTime, _: &Request) -> Completion {
        Completion { at: now + Nanos::from_micros(1), status: Ok(()) }
    }
    fn idle_until(&mut self, _: VirtualTime) {}
    fn power_cut(&mut self, _: VirtualTime) {}
    fn secure_erase(&mut self) {}
    fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// Measures the slots written per block of the host at a fill. Returns them with the live share of the usable slots.
fn measured(bytes: u64, fill: f64) -> (f64, f64) {
    let options = Options { segment: 1 << 20, reserve: 0.02 };
    let mut device = LogDevice::new(Quick(bytes), options, Running::default()).expect("made");
    // Free, reserved and open segments are not usable.
    let (segments, slots) =
        (device.geometry().segments - device.kept_free() - 12, device.geometry().data_slots());
    let used = f64::from(segments) * f64::from(slots);
    let live = (used * fill) as u64;
    assert!(live <= u64::from(device.geometry().blocks), "it fits");
    let mut rng = Seed::new(1).part("uniform", live).stream();
    let mut now = VirtualTime::START;
    let mut write = |device: &mut LogDevice<Quick>, lba: u64| {
        let done = device.submit(now, &Request::write(lba * BLOCK as u64, BLOCK as u64));
        assert_eq!(done.status, Ok(()));
        now = done.at;
    };
    (0..live).for_each(|lba| write(&mut device, lba));
    (0..4 * live).for_each(|_| write(&mut device, below(&mut rng, live)));
    let before = device.log_counters();
    (0..live).for_each(|_| write(&mut device, below(&mut rng, live)));
    let after = device.log_counters();
    let host = (after.host_blocks - before.host_blocks) as f64;
    let all = host
        + (after.moved_blocks - before.moved_blocks) as f64
        + (after.map_pages - before.map_pages) as f64;
    (all / host, live as f64 / used)
}

#[test]
fn write_amplification_matches_the_closed_form() {
    for fill in [0.5, 0.7, 0.85] {
        let (found, share) = measured(512 << 20, fill);
        let expected = by_age(share);
        println!("fill {fill}: {found:.3}, closed form {expected:.3}");
        assert!((found / expected - 1.0).abs() < 0.1, "fill {fill}: {found}, expected {expected}");
    }
}
