//! Tests of damaged saved states: each is rejected with the right error, and none causes a panic.
//!
//! `crates/lab/tests/saved_state.rs` tests, for every device of the catalogue, that a restored device continues
//! unchanged.

mod common;
#[path = "common/disks.rs"]
mod disks;

use common::plain;
use lowtide_core::rng::below;
use lowtide_core::{BlockDevice, Bytes, Nanos, Request, Seed, StateError, VirtualTime};
use lowtide_device::array::ArraySpec;
use lowtide_device::cache::CacheSpec;
use lowtide_device::fault::Fault;
use lowtide_device::flash::spec::{LogUnits, Policy};
use lowtide_device::log::LogSpec;
use lowtide_device::power::{Cache, PowerCut, Tear};
use lowtide_device::{DeviceSpec, Partition, state};
use proptest::prelude::*;
use std::sync::LazyLock;

const HEADER: usize = 14 + 4 + 8 + 8 + 8 + 4;

fn flash() -> DeviceSpec {
    let mut spec = plain(64, 64, 0.7, Policy::Greedy);
    spec.map.cache = Some(Bytes::kib(8));
    DeviceSpec::Flash(spec)
}

fn logs() -> DeviceSpec {
    let mut spec = plain(128, 64, 0.6, Policy::Greedy);
    spec.log_units = Some(LogUnits { unit: Bytes::kib(512), open: 3 });
    DeviceSpec::Flash(spec)
}

fn disk() -> DeviceSpec {
    DeviceSpec::Disk(disks::file(disks::FILES[0].1).scaled(100))
}

fn array() -> DeviceSpec {
    let text = "level = 'mirror'\nlatency = '1us'\nrequest = '1us'\nwrite-cache = { size = '1MiB', latency = '9us' }";
    DeviceSpec::Array(ArraySpec {
        parameters: toml::from_str(text).expect("an array's parameters"),
        members: vec![flash(), disk()],
    })
}

fn cache() -> DeviceSpec {
    let (flash, backing) = (Box::new(flash()), Box::new(disk()));
    DeviceSpec::Cache(CacheSpec {
        parameters: toml::from_str("mode = 'write-back'").expect("parameters"),
        flash,
        backing,
    })
}

fn volume() -> DeviceSpec {
    let text = "capacity = '1GiB'\niops = 300\nio-size = '16KiB'\nburst = { iops = 3000, credits = 5000 }\nlatency = '1ms'\nlatency-spread = '1ms'";
    DeviceSpec::Volume(toml::from_str(text).expect("a volume"))
}

fn log() -> DeviceSpec {
    let mut spec = plain(256, 256, 0.7, Policy::Greedy);
    spec.write_buffer.protected = false;
    let over = Box::new(DeviceSpec::Flash(spec));
    DeviceSpec::Log(LogSpec { parameters: toml::from_str("segment = '1MiB'").expect("parameters"), over })
}

/// Saves the state of a device after some requests.
fn saved(spec: &DeviceSpec, requests: u64) -> Vec<u8> {
    let mut device = spec.build(Seed::new(1)).expect("it fits together");
    let mut rng = Seed::new(2).part("requests", 0).stream();
    let (blocks, mut now) = (device.capacity().get() / 4096 - 16, VirtualTime::START);
    for tag in 0..requests {
        let (offset, length) = (below(&mut rng, blocks) * 4096, 4096 << below(&mut rng, 4));
        let read = below(&mut rng, 4) == 0;
        let request = if read { Request::read(offset, length) } else { Request::write(offset, length) };
        let answer = device.begin(now, &request, tag);
        now = answer.map_or(now, |completion| completion.at);
    }
    let mut bytes = Vec::new();
    state::save(&mut bytes, spec, Seed::new(1), now, device.as_ref()).expect("it can be saved");
    bytes
}

fn error(bytes: &[u8], spec: &DeviceSpec) -> StateError {
    state::restore(&mut &bytes[..], spec).expect_err("it is not what was saved")
}

/// Returns the contents of the frames, joined.
fn payload(bytes: &[u8]) -> Vec<u8> {
    let (mut at, mut payload) = (HEADER, Vec::new());
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        payload.extend(&bytes[at + 4..at + 4 + length]);
        at += length + 8;
    }
    payload
}

/// Replaces the payload and recomputes the checksums.
fn forged(bytes: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut forged = bytes[..HEADER].to_vec();
    let mut checksum = u32::from_le_bytes(bytes[HEADER - 4..HEADER].try_into().expect("four bytes"));
    for frame in payload.chunks(1 << 20).chain([&[][..]]) {
        let length = (frame.len() as u32).to_le_bytes();
        checksum = crc32c::crc32c_append(crc32c::crc32c_append(checksum, &length), frame);
        forged.extend(length.iter().chain(frame).copied().chain(checksum.to_le_bytes()));
    }
    forged
}

static STATES: LazyLock<Vec<(DeviceSpec, Vec<u8>)>> = LazyLock::new(|| {
    let all = [flash(), disk(), array(), cache(), volume(), log(), logs()];
    all.into_iter().map(|spec| (saved(&spec, 3000), spec)).map(|(bytes, spec)| (spec, bytes)).collect()
});

#[test]
fn what_is_read_ends_with_the_state() {
    for (spec, bytes) in STATES.iter() {
        let mut more = bytes.clone();
        more.extend(b"what comes after");
        let mut rest = &more[..];
        let restored = state::restore(&mut rest, spec).expect("it was saved");
        assert_eq!(rest, b"what comes after");
        let mut again = Vec::new();
        state::save(&mut again, spec, restored.seed, restored.now, restored.device.as_ref()).expect("saved");
        assert_eq!(again.len(), bytes.len(), "{spec:?}");
        assert_eq!(forged(bytes, &payload(bytes)), *bytes, "the test knows the frames");
    }
}

#[test]
fn each_fault_is_told() {
    let (spec, bytes) = &STATES[0];
    let told = |bytes: &[u8]| error(bytes, spec).to_string();
    let foreign = "this is no saved state of a device: it does not begin with `lowtide state`";
    assert_eq!(told(b""), foreign);
    assert_eq!(told(b"SQLite format 3\0 and so on"), foreign);
    assert_eq!(told(&bytes[..20]), "the state is cut short: it ends after 14 bytes");
    let version = [&bytes[..14], &7u32.to_le_bytes(), &bytes[18..]].concat();
    assert_eq!(
        told(&version),
        "the state was saved in version 7 of the format; this lowtide reads version 5"
    );
    let digests = format!("{:016x}, that of this one {:016x}", state::digest(spec), state::digest(&disk()));
    assert_eq!(
        error(bytes, &disk()).to_string(),
        format!("the state is of a device with another description: its digest is {digests}")
    );
    let mut flipped = bytes.clone();
    flipped[30] ^= 1;
    assert_eq!(
        told(&flipped),
        "the state is damaged: the checksum of the section that ends at byte 46 does not match"
    );
    let payload = payload(bytes);
    let nonsense = |payload: &[u8]| told(&forged(bytes, payload));
    assert_eq!(
        nonsense(&payload[..payload.len() - 4]),
        "the state makes no sense: it ends before the device's state does"
    );
    let longer = [&payload[..], b"more"].concat();
    assert_eq!(nonsense(&longer), "the state makes no sense: it holds more than the device's state");
    // The map comes last. Here two units have the same physical address.
    let two = [&payload[..payload.len() - 8], &[9, 0, 0, 0, 9, 0, 0, 0]].concat();
    assert_eq!(
        nonsense(&two),
        "the state makes no sense: two units of the map have one home, or a home that is not there"
    );
    // A length larger than any memory.
    let mut huge = payload;
    huge[..8].fill(0xff);
    assert!(nonsense(&huge).contains("makes no sense"));
}

#[test]
fn filters_save_what_they_filter() {
    let spec = flash();
    let build = || spec.build(Seed::new(1)).expect("fits");
    let half = Bytes::new(build().capacity().get() / 8192 * 4096);
    let mut one = Fault::new(Partition::new(build(), Bytes::kib(64), half).expect("fits"), Seed::new(2));
    let mut other = Fault::new(Partition::new(build(), Bytes::kib(64), half).expect("fits"), Seed::new(2));
    let now = one.submit(VirtualTime::START, &Request::write(0, 1 << 20)).at;
    let mut bytes = Vec::new();
    one.save(&mut bytes).expect("it can be saved");
    other.restore(&mut &bytes[..]).expect("it was saved");
    let later = now + Nanos::from_micros(3);
    assert_eq!(other.submit(later, &Request::flush()), one.submit(later, &Request::flush()));
    let cut = PowerCut::new(build(), Cache::Protected, Tear::Page, Seed::new(1));
    let error = cut.save(&mut Vec::new()).expect_err("it keeps more than it could save");
    assert_eq!(error.to_string(), "this device cannot save its state: it has no saved form");
}

/// A changed layout needs a new version number. Otherwise an old state would be read in the new layout.
#[test]
fn the_layout_is_that_of_its_version() {
    // A log is saved only while it is open.
    let all = [(flash(), 0), (disk(), 0), (array(), 0), (cache(), 0), (volume(), 0), (log(), 0), (logs(), 5)];
    let layouts: Vec<(u32, u32)> = all
        .iter()
        .map(|(spec, requests)| {
            let bytes = saved(spec, *requests);
            (bytes.len() as u32, crc32c::crc32c(&payload(&bytes)))
        })
        .collect();
    let version_5 = [
        (12690, 624661242),
        (166, 4144219489),
        (12852, 3206262848),
        (14922, 1968685562),
        (157, 3206141899),
        // Checkpoints of logs have spans of segments, in a word that was 0 before. Both forms can be read.
        (212065, 2320078755),
        (21746, 807232396),
    ];
    assert_eq!(layouts, version_5, "raise `VERSION` of crates/device/src/state, then what is expected here");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_is_found(which in 0..7usize, place in any::<prop::sample::Index>(), bit in 0..8u8) {
        let (spec, bytes) = &STATES[which];
        let mut damaged = bytes.clone();
        damaged[place.index(bytes.len())] ^= 1 << bit;
        prop_assert!(state::restore(&mut &damaged[..], spec).is_err());
    }

    #[test]
    fn a_cut_is_found(which in 0..7usize, place in any::<prop::sample::Index>()) {
        let (spec, bytes) = &STATES[which];
        let error = error(&bytes[..place.index(bytes.len())], spec);
        prop_assert!(matches!(error, StateError::Short { .. } | StateError::Foreign { .. }), "{error}");
    }

    /// With valid checksums, an error may go undetected, but the state is either read to its end or rejected.
    #[test]
    fn forgeries_are_read_or_refused(
        which in 0..7usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near in any::<bool>(),
    ) {
        let (spec, bytes) = &STATES[which];
        let mut payload = payload(bytes);
        // The payload begins with values. The remainder of a flash drive's payload is a table.
        let range = if near { payload.len().min(2000) } else { payload.len() };
        for (place, value) in changes {
            payload[place.index(range)] = value;
        }
        let _ = state::restore(&mut &forged(bytes, &payload)[..], spec);
    }
}
