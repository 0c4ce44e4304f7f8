//! A thousand power cuts during random writes, on a flash drive and on a disk. Every promise to the host must be
//! kept.
//!
//! The writer logs the completions it receives, as a database test would. The checker knows nothing of caches. It
//! derives from the log alone which data must survive and which may, so it detects a device that ignores flushes.

mod common;
#[path = "common/disks.rs"]
mod disks;

use common::plain;
use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Bytes, Op, Request, Seed, VirtualTime};
use lowtide_device::DeviceSpec;
use lowtide_device::array::ArraySpec;
use lowtide_device::cache::CacheSpec;
use lowtide_device::disk::spec::WriteCache;
use lowtide_device::flash::spec::Policy;
use lowtide_device::log::LogSpec;
use lowtide_device::power::{Cache, CacheKind, Number, PowerCut, Tear};
use std::collections::BTreeMap;

const CUTS: u64 = 1000;
/// Size of the region that is written, in sectors. It is small, so that many writes overlap.
const SECTORS: u64 = 1024;

fn flash() -> DeviceSpec {
    let mut spec = plain(64, 64, 0.7, Policy::Greedy);
    spec.write_buffer.size = Bytes::kib(64);
    DeviceSpec::Flash(spec).with_cache(CacheKind::Volatile).expect("a buffer may be volatile")
}

fn disk() -> DeviceSpec {
    let mut spec = disks::plain().scaled(100);
    spec.write_cache = Some(WriteCache { size: Bytes::kib(128), honours_flush: true });
    DeviceSpec::Disk(spec)
}

/// A write as seen by the host.
struct Written {
    number: Number,
    first: u64,
    end: u64,
    fua: bool,
    told: Option<VirtualTime>,
}

/// The requests and completions that the host has seen since the last cut.
#[derive(Default)]
struct Log {
    writes: Vec<Written>,
    /// Submission and completion of each flush.
    flushes: Vec<(VirtualTime, Option<VirtualTime>)>,
}

/// The request that a completion belongs to.
#[derive(Clone, Copy)]
enum Of {
    Write(usize),
    Flush(usize),
}

impl Log {
    fn tell(&mut self, of: Of, at: VirtualTime) {
        match of {
            Of::Write(n) => self.writes[n].told = Some(at),
            Of::Flush(n) => self.flushes[n].1 = Some(at),
        }
    }

    /// Returns whether a write must survive a cut at `now`.
    fn promised(&self, write: &Written, now: VirtualTime) -> bool {
        let Some(told) = write.told.filter(|told| *told <= now) else { return false };
        let covers = |(asked, done): &(VirtualTime, Option<VirtualTime>)| {
            *asked >= told && done.is_some_and(|done| done <= now)
        };
        write.fua || self.flushes.iter().any(covers)
    }

    /// Returns the sectors with wrong contents after a cut at `now`. `before` holds the contents at the start of the
    /// log.
    fn broken(
        &self,
        now: VirtualTime,
        before: &[Option<Number>],
        holds: impl Fn(u64) -> Option<Number>,
    ) -> Vec<u64> {
        let promised: Vec<bool> = self.writes.iter().map(|write| self.promised(write, now)).collect();
        let wrong = |sector: &u64| {
            let mut may = vec![before[*sector as usize]];
            for (write, promised) in self.writes.iter().zip(&promised) {
                if (write.first..write.end).contains(sector) {
                    if *promised {
                        may.clear();
                    }
                    may.push(Some(write.number));
                }
            }
            !may.contains(&holds(*sector))
        };
        (0..SECTORS).filter(wrong).collect()
    }
}

/// Totals over a series of cuts.
#[derive(Debug, Default)]
struct Seen {
    promised: u64,
    kept: u64,
    dropped: u64,
    torn: u64,
    broken: u64,
    first_broken: Option<String>,
}

/// Writes at random with up to eight requests in flight, and stops after a random number of requests. Returns the
/// instant at which it stops.
fn write_on(
    device: &mut PowerCut<lowtide_device::AnyDevice>,
    log: &mut Log,
    rng: &mut Rng,
    mut now: VirtualTime,
) -> VirtualTime {
    let mut open: BTreeMap<u64, Of> = BTreeMap::new();
    // Known completions in the future, by instant.
    let mut ahead: BTreeMap<(VirtualTime, u64), Of> = BTreeMap::new();
    for tag in 0..20 + below(rng, 60) {
        while open.len() + ahead.len() >= 8 || (below(rng, 2) == 0 && open.len() + ahead.len() > 0) {
            // The earliest completion, from the known ones or from the device's queue.
            let known = ahead.first_key_value().map(|(key, _)| key.0);
            match (known, device.next_done()) {
                (Some(known), next) if next.is_none_or(|next| known <= next) => {
                    let ((at, _), of) = ahead.pop_first().expect("just seen");
                    now = now.max(at);
                    log.tell(of, at);
                }
                (_, Some(_)) => {
                    if let Some((tag, completion)) = device.finish() {
                        now = now.max(completion.at);
                        log.tell(open.remove(&tag).expect("it was queued"), completion.at);
                    }
                }
                (_, None) => break,
            }
        }
        let (first, count) = (below(rng, SECTORS - 64), 1 + below(rng, 64));
        let (request, of) = match below(rng, 8) {
            0 => {
                log.flushes.push((now, None));
                (Request::flush(), Of::Flush(log.flushes.len() - 1))
            }
            kind => {
                let fua = kind == 1;
                let (number, end) = (device.next_number(), first + count);
                log.writes.push(Written { number, first, end, fua, told: None });
                let request = Request { op: Op::Write { fua }, offset: first * 512, length: count * 512 };
                (request, Of::Write(log.writes.len() - 1))
            }
        };
        match device.begin(now, &request, tag) {
            None => drop(open.insert(tag, of)),
            Some(completion) => {
                assert_eq!(completion.status, Ok(()));
                ahead.insert((completion.at, tag), of);
            }
        }
    }
    now
}

fn cut_often(spec: &DeviceSpec, tear: Tear, seed: u64) -> Seen {
    let seeds = Seed::new(seed);
    let inner = spec.build(seeds).expect("it fits together");
    let mut device = PowerCut::new(inner, spec.cache(), tear, seeds);
    let mut rng = seeds.part("writer", 0).stream();
    let (mut now, mut seen) = (VirtualTime::START, Seen::default());
    let mut before = vec![None; SECTORS as usize];
    for cut in 0..CUTS {
        let mut log = Log::default();
        now = write_on(&mut device, &mut log, &mut rng, now);
        device.power_cut(now);
        // Completions that the host has not seen remain unseen.
        while device.next_done().is_some() {
            device.finish();
        }
        let broken = log.broken(now, &before, |sector| device.holds(sector));
        seen.broken += u64::from(!broken.is_empty());
        if let (Some(sector), None) = (broken.first(), &seen.first_broken) {
            let held = device.holds(*sector);
            seen.first_broken =
                Some(format!("seed {seed}, cut {cut} at {now:?}: sector {sector} holds {held:?}"));
        }
        let loss = device.loss();
        seen.kept += loss.kept.writes;
        seen.dropped += loss.dropped.writes;
        seen.torn += loss.torn.writes;
        seen.promised += log.writes.iter().filter(|write| log.promised(write, now)).count() as u64;
        before = (0..SECTORS).map(|sector| device.holds(sector)).collect();
    }
    seen
}

#[test]
fn what_was_promised_survives_a_thousand_cuts() {
    for (name, spec) in [("flash", flash()), ("disk", disk())] {
        for (tear, seed) in [(Tear::Sector, 1), (Tear::Page, 2)] {
            let seen = cut_often(&spec, tear, seed);
            println!("{name} {tear:?} seed {seed}: {seen:?}");
            assert_eq!(seen.first_broken, None, "{name}");
            assert!(seen.promised > CUTS && seen.dropped > CUTS && seen.torn > CUTS, "{name}: {seen:?}");
        }
    }
}

#[test]
fn a_device_that_lies_is_caught() {
    for (name, spec) in [("flash", flash()), ("disk", disk())] {
        let spec = spec.with_cache(CacheKind::Lying).expect("a volatile cache may lie");
        let seen = cut_often(&spec, Tear::Page, 3);
        println!("{name} lying: {seen:?}");
        assert!(seen.broken > CUTS / 4, "{name}: {seen:?}");
    }
}

#[test]
fn a_protected_device_keeps_all_that_was_acknowledged() {
    let spec = flash().with_cache(CacheKind::Protected).expect("a buffer may be protected");
    let seeds = Seed::new(4);
    let mut device = PowerCut::new(spec.build(seeds).expect("fits"), spec.cache(), Tear::Sector, seeds);
    let mut now = VirtualTime::START;
    for n in 0..200u64 {
        let (sector, number) = (n % 16, device.next_number());
        now = device.submit(now, &Request::write(sector * 512, 512)).at;
        device.power_cut(now);
        assert_eq!(device.holds(sector), Some(number), "write {n}");
    }
}

/// A lying device never waits for its medium. A flash drive is as fast as with a protected buffer, and a disk answers
/// at the speed of its electronics.
#[test]
fn a_lie_takes_no_time() {
    let lying = |spec: DeviceSpec| spec.with_cache(CacheKind::Lying).expect("a volatile cache may lie");
    let build = |spec: &DeviceSpec| spec.build(Seed::new(5)).expect("fits");
    let protected = flash().with_cache(CacheKind::Protected).expect("a buffer may be protected");
    let (mut liar, mut honest, mut volatile) = (build(&lying(flash())), build(&protected), build(&flash()));
    let (mut now, mut slower) = (VirtualTime::START, 0);
    let requests =
        [Request::write(0, 4096), Request { op: Op::Write { fua: true }, ..Request::write(8192, 512) }];
    for request in requests.iter().chain(&[Request::flush()]).cycle().take(300) {
        let told = liar.submit(now, request);
        assert_eq!(told, honest.submit(now, request));
        slower += u64::from(volatile.submit(now, request).at > told.at);
        now = told.at;
    }
    assert!(slower > 150, "a volatile buffer waits for the medium: {slower}");
    let (DeviceSpec::Disk(spec), mut liar) = (disk(), build(&lying(disk()))) else {
        unreachable!("it is a disk")
    };
    for n in 0..100 {
        let request =
            Request { op: Op::Write { fua: true }, ..Request::write(n * 1_000_000_000 % 700_000_000, 512) };
        let told = liar.submit(VirtualTime::from_nanos(n * 1_000_000), &request);
        assert!(told.at.as_nanos() < n * 1_000_000 + spec.interface.overhead.get() + 10_000, "write {n}");
        let told = liar.submit(VirtualTime::from_nanos(n * 1_000_000), &Request::flush());
        assert_eq!(told.at.as_nanos(), n * 1_000_000 + spec.interface.overhead.get(), "flush {n}");
    }
}

#[test]
fn each_device_tells_its_cache() {
    let volatile = |size, honours_flush| Cache::Volatile { size, honours_flush };
    assert_eq!(flash().cache(), volatile(Bytes::kib(64), true));
    assert_eq!(disk().cache(), volatile(Bytes::kib(128), true));
    assert_eq!(DeviceSpec::Disk(disks::plain()).cache(), Cache::Protected);
    let array = |member: DeviceSpec, battery| {
        let cache = "{ size = '1MiB', latency = '10us' }";
        let own = if battery { format!("write-cache = {cache}") } else { String::new() };
        let text = format!("level = 'stripe-of-mirrors'\nlatency = '1us'\nrequest = '1us'\n{own}");
        let parameters = toml::from_str(&text).expect("an array's parameters");
        DeviceSpec::Array(ArraySpec { parameters, members: vec![member; 4] })
    };
    assert_eq!(array(flash(), false).cache(), volatile(Bytes::kib(128), true), "two groups of two copies");
    assert_eq!(array(flash(), true).cache(), Cache::Protected);
    let lying = array(flash(), true).with_cache(CacheKind::Lying).expect("its members may lie");
    assert_eq!(lying.cache(), volatile(Bytes::kib(128), false), "members lie to the controller, too");
    let both = CacheSpec {
        parameters: toml::from_str("mode = 'write-back'").expect("a cache's parameters"),
        flash: Box::new(flash()),
        backing: Box::new(disk().with_cache(CacheKind::Lying).expect("a volatile cache may lie")),
    };
    assert_eq!(DeviceSpec::Cache(both).cache(), volatile(Bytes::kib(192), false));
    let log = |over: DeviceSpec| {
        let parameters = toml::from_str("segment = '1MiB'").expect("a log's parameters");
        DeviceSpec::Log(LogSpec { parameters, over: Box::new(over) })
    };
    let Cache::Volatile { size: between_checkpoints, honours_flush: true } =
        log(DeviceSpec::Disk(disks::plain())).cache()
    else {
        panic!("what is in the layer is lost");
    };
    assert!(between_checkpoints <= Bytes::gib(1), "{between_checkpoints}");
    let Cache::Volatile { size, honours_flush: true } = log(flash()).cache() else { panic!("so it is here") };
    assert_eq!(size, Bytes::mib(4) + Bytes::kib(64), "its own, and the drive's");
    let lying = log(flash()).with_cache(CacheKind::Lying).expect("the drive beneath may lie");
    assert_eq!(lying.cache().kind(), CacheKind::Lying, "and so does the layer, then");
    let error = log(flash()).with_cache(CacheKind::Protected).expect_err("what is in the layer is lost");
    assert_eq!(
        error.to_string(),
        "cache: cannot be protected here: the device as described is always volatile"
    );
    let error = DeviceSpec::Disk(disks::plain()).with_cache(CacheKind::Lying).expect_err("it has none");
    assert_eq!(error.to_string(), "cache: cannot be lying here: the device as described is always protected");
    let error = "volatil".parse::<CacheKind>().expect_err("no word").to_string();
    assert_eq!(
        error,
        "`volatil` is no kind of cache: protected, volatile or lying; did you mean `volatile`?"
    );
}
