//! The filesystem against a plain model: synced data survives any cut on a drive that honours flushes.

use super::*;
use lowtide_core::Bytes;
use lowtide_device::power::Cache;
use proptest::prelude::*;

const ROOM: u64 = 1 << 20;

fn host(cache: Cache, barrier: bool, seed: u64) -> Host {
    let known = lowtide_live::Offer { scale: 16, ..lowtide_live::Offer::of("intel-320-160gb") };
    let (model, _) = known.look_up().expect("a known device").model().expect("a valid description");
    let seed = Seed::new(seed);
    Host::new(FileSystem::make(Drive::new(model, cache, ROOM, seed), barrier, seed))
}

/// Cuts the power and restores it.
fn cut(host: &Host) {
    host.lock().power_cut();
    host.lock().power_on(None).expect("valid metadata");
}

/// The contents of a file.
fn all(host: &mut Host, name: &str) -> Option<Vec<u8>> {
    let file = host.open(name, false).ok()?;
    let mut bytes = vec![0; host.size(file).expect("the power is on") as usize];
    assert_eq!(host.read(file, 0, &mut bytes), Ok(bytes.len()));
    host.close(file);
    Some(bytes)
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64, u16, u8),
    Truncate(u64),
    Sync,
    Replace,
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..40_000, 1u16..9_000, any::<u8>()).prop_map(|(at, length, byte)| Step::Write(at, length, byte)),
        1 => (0u64..40_000).prop_map(Step::Truncate),
        2 => Just(Step::Sync),
        1 => Just(Step::Replace),
        1 => Just(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn files_have_the_written_bytes_and_synced_files_survive(
        steps in prop::collection::vec(step(), 1..40),
        volatile in any::<bool>(),
        seed in 0u64..1_000,
    ) {
        let cache = match volatile {
            true => Cache::Volatile { size: Bytes::mib(1), honours_flush: true },
            false => Cache::Protected,
        };
        let mut host = host(cache, true, seed);
        let mut file = host.open("one", true).expect("made");
        // The current contents. `synced` holds the contents at the last sync, unless the file has changed since.
        let (mut plain, mut synced): (Vec<u8>, Option<Vec<u8>>) = (Vec::new(), None);
        for step in steps {
            match step {
                Step::Write(at, length, byte) => {
                    let bytes = vec![byte; length.into()];
                    host.write(file, at, &bytes).expect("there is room");
                    plain.resize(plain.len().max(at as usize + bytes.len()), 0);
                    plain[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                    synced = None;
                }
                Step::Truncate(length) => {
                    host.truncate(file, length).expect("it is on");
                    plain.resize(length as usize, 0);
                    synced = None;
                }
                Step::Sync => {
                    host.sync(file).expect("it is on");
                    synced = Some(plain.clone());
                }
                Step::Replace => {
                    host.close(file);
                    host.delete("one", true).expect("it is there");
                    prop_assert!(!host.exists("one").expect("it is on"));
                    file = host.open("one", true).expect("made");
                    plain.clear();
                    synced = None;
                }
                Step::Cut => {
                    host.lock().power_cut();
                    prop_assert_eq!(host.size(file), Err(FileError::Device));
                    host.lock().power_on(None).expect("valid metadata");
                    let left = all(&mut host, "one");
                    if let Some(synced) = synced.take() {
                        prop_assert_eq!(left.as_ref(), Some(&synced), "seed {}", seed);
                    }
                    file = host.open("one", true).expect("made");
                    plain = left.unwrap_or_default();
                }
            }
            let there = all(&mut host, "one");
            prop_assert_eq!(there.as_ref(), Some(&plain), "seed {}", seed);
        }
    }
}

#[test]
fn bytes_between_the_end_of_a_file_and_a_later_write_are_zero() {
    let seed = 755;
    let mut host = host(Cache::Protected, true, seed);
    let file = host.open("one", true).expect("made");
    host.write(file, 0, &[7; 4_097]).expect("there is room");
    host.sync(file).expect("the power is on");
    host.write(file, 4_097, &[8; 2]).expect("there is room");
    // The page is written back, but the metadata is not committed.
    host.lock().write_all_back(file).expect("the power is on");
    cut(&host);
    let file = host.open("one", true).expect("the file exists");
    assert_eq!(host.size(file), Ok(4_097), "seed {seed}");
    host.write(file, 4_100, &[9]).expect("there is room");
    assert_eq!(all(&mut host, "one").expect("the file exists")[4_096..], [7, 0, 0, 0, 9], "seed {seed}");
}

#[test]
fn a_synced_file_keeps_its_extended_length() {
    let mut host = host(Cache::Protected, true, 5);
    let file = host.open("one", true).expect("made");
    host.write(file, 0, &[7; 10]).expect("there is room");
    host.truncate(file, 9_000).expect("the power is on");
    host.sync(file).expect("the power is on");
    cut(&host);
    let mut expected = vec![0; 9_000];
    expected[..10].fill(7);
    assert_eq!(all(&mut host, "one"), Some(expected));
}

#[test]
fn a_synced_removal_is_durable_and_frees_blocks() {
    let seed = 5;
    let mut host = host(Cache::Protected, true, seed);
    let free = host.lock().free.len();
    for synced in [false, true] {
        let file = host.open("gone", true).expect("made");
        host.write(file, 0, &[7; 50_000]).expect("written");
        host.sync(file).expect("synced");
        host.close(file);
        host.delete("gone", synced).expect("removed");
        cut(&host);
        assert_eq!(host.exists("gone").expect("the power is on"), !synced, "seed {seed}");
    }
    assert_eq!(host.lock().free.len(), free, "the blocks are free");
}

#[test]
fn unsynced_changes_may_be_durable() {
    // A removal, followed by writes to another file, without any sync.
    let gone = |seed| {
        let mut host = host(Cache::Protected, true, seed);
        let file = host.open("gone", true).expect("made");
        host.sync(file).expect("the power is on");
        host.close(file);
        let other = host.open("other", true).expect("made");
        host.sync(other).expect("the power is on");
        host.delete("gone", false).expect("the file exists");
        (0..40).for_each(|at| host.write(other, at, &[1]).expect("there is room"));
        cut(&host);
        !host.exists("gone").expect("the power is on")
    };
    let gone = (0..40).filter(|seed| gone(*seed)).count();
    assert!((5..=35).contains(&gone), "seeds 0 to 39: {gone} times");
}

#[test]
fn the_power_is_cut_at_the_given_event() {
    let mut host = host(Cache::Protected, true, 1);
    host.lock().power_cut();
    host.lock().power_on(Some(3)).expect("valid metadata");
    let file = host.open("new", true).expect("the first event");
    host.write(file, 0, &[1]).expect("the second");
    assert_eq!(host.write(file, 1, &[1]), Err(FileError::Device), "the third");
    assert_eq!(host.open("new", true), Err(FileError::Device));
}
