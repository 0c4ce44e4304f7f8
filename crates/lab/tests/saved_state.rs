//! Tests saved states: every device of the catalogue, scaled down, is saved with requests in flight and restored. The
//! original and the restored device must then behave identically.

use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Bytes, Completion, Counters, Op, Request, Seed, Tag, VirtualTime};
use lowtide_device::{AnyDevice, DeviceSpec, state};
use lowtide_files::device::{self, Device, Listed};
use std::collections::BTreeSet;

/// The device, scaled down to about 600 MiB if its description allows.
fn small(spec: &DeviceSpec) -> DeviceSpec {
    let most = Bytes::mib(600).get();
    let factor = spec.capacity().get().div_ceil(most);
    let factors = (0..8).map(|n| factor >> n).take_while(|factor| *factor > 1);
    let scaled = factors.map(|factor| spec.scaled(factor)).find(|scaled| scaled.validate().is_ok());
    scaled.unwrap_or_else(|| spec.clone())
}

/// A host with several requests in flight, which can be cloned at any step.
#[derive(Clone)]
struct Host {
    rng: Rng,
    now: VirtualTime,
    asked: Tag,
    open: BTreeSet<Tag>,
    heard: Vec<(Tag, Completion)>,
}

impl Host {
    fn new(seed: u64) -> Self {
        let rng = Seed::new(seed).part("host", 0).stream();
        Host { rng, now: VirtualTime::START, asked: 0, open: BTreeSet::new(), heard: Vec::new() }
    }

    /// Submits one request or receives one completion.
    fn step(&mut self, device: &mut AnyDevice) {
        let next = device.next_done();
        if let Some(next) = next
            && (self.open.len() >= 16 || below(&mut self.rng, 3) == 0)
        {
            self.now = self.now.max(next);
            if let Some((tag, completion)) = device.finish() {
                assert!(self.open.remove(&tag), "{tag} was open");
                self.now = self.now.max(completion.at);
                self.heard.push((tag, completion));
            }
            return;
        }
        let request = self.request(device.capacity().get());
        let gap = below(&mut self.rng, 200_000);
        // Never later than the device's next completion.
        let later = VirtualTime::from_nanos(self.now.as_nanos() + gap);
        self.now = next.map_or(later, |next| later.min(next)).max(self.now);
        self.asked += 1;
        match device.begin(self.now, &request, self.asked) {
            None => drop(self.open.insert(self.asked)),
            Some(completion) => self.heard.push((self.asked, completion)),
        }
    }

    fn request(&mut self, capacity: u64) -> Request {
        let rng = &mut self.rng;
        // Half of the requests go to a sixteenth of the capacity, so that some data is accessed again.
        let range = if below(rng, 2) == 0 { capacity } else { capacity / 16 };
        let length = 4096 << below(rng, 5);
        let offset = below(rng, (range - length) / 4096) * 4096;
        let op = match below(rng, 32) {
            0 => Op::Flush,
            1 => Op::Trim,
            2 => Op::WriteZeroes,
            3 => Op::Write { fua: true },
            4..=12 => Op::Read,
            _ => Op::Write { fua: false },
        };
        Request { op, offset, length }
    }
}

/// The externally visible state of a device.
fn seen(device: &AnyDevice) -> (Counters, Vec<u32>, Option<VirtualTime>) {
    (device.counters(), device.erase_counts(), device.next_done())
}

#[test]
fn every_device_goes_on_where_it_was_saved() {
    let mut cleaned = 0;
    for Listed { device: Device { name, spec, .. }, .. } in device::catalogue() {
        let spec = small(spec);
        let seed = Seed::new(11);
        let mut device = spec.build(seed).expect("it fits together");
        let mut host = Host::new(7);
        // Flash is overwritten one and a half times first, so that cleaning starts.
        if device.raw_capacity().is_some() {
            let (capacity, chunk) = (device.capacity().get(), 1 << 18);
            let random = |n: u64| n * 2_654_435_761 % (capacity / chunk);
            for n in (0..capacity / chunk).chain((0..capacity / chunk / 2).map(random)) {
                host.now = device.submit(host.now, &Request::write(n * chunk, chunk)).at;
            }
            cleaned += u64::from(device.counters().gc_moved_bytes > 0);
        }
        for _ in 0..4000 {
            host.step(&mut device);
        }
        for round in 0..3 {
            let mut bytes = Vec::new();
            state::save(&mut bytes, &spec, seed, host.now, device.as_ref()).expect("it can be saved");
            let mut rest = &bytes[..];
            let restored = state::restore(&mut rest, &spec).expect(name);
            assert_eq!((rest.len(), restored.seed, restored.now), (0, seed, host.now), "{name}");
            let mut other = restored.device;
            assert_eq!(seen(&other), seen(&device), "{} in round {round}", name);
            let mut twin = host.clone();
            for step in 0..1500 {
                host.step(&mut device);
                twin.step(&mut other);
                assert_eq!(twin.heard.last(), host.heard.last(), "{} in round {round}, step {step}", name);
            }
            if round == 1 {
                device.power_cut(host.now);
                other.power_cut(host.now);
                host.open.clear();
                twin.open.clear();
                assert_eq!(device.next_done(), other.next_done());
                while device.next_done().is_some() {
                    assert_eq!(device.finish(), other.finish());
                }
            }
            assert_eq!(seen(&other), seen(&device), "{} after round {round}", name);
            // The restored device continues, so that any lost state would accumulate.
            (device, host) = (other, twin);
        }
    }
    assert!(cleaned > 20, "flash drives clean before they are saved: {cleaned} do");
}
