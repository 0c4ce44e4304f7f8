//! Runs every kind of setting through a few hundred cuts, and tests deliberate faults of the filesystem.

use super::*;
use crate::{Journal, Promise};
use lowtide_core::Seed;
use lowtide_device::power::CacheKind;
use lowtide_engines::{Durability, Engine};

const SEED: u64 = 1;

fn setting(durability: Durability, cache: CacheKind, barrier: bool) -> Setting {
    let (engine, journal, filesystem) = (Engine::Sqlite, Journal::Wal, None);
    Setting { engine, durability, journal, filesystem, barrier, cache }
}

fn asked() -> Asked {
    let device = "intel-320-160gb".to_owned();
    Asked { device, scale: 16, cuts: None, seed: Seed::new(SEED), keep: None }
}

fn through(setting: Setting, cuts: u64) -> Row {
    let row = run(&setting, &asked(), cuts, &AtomicBool::new(false)).expect("a valid setting");
    assert_eq!(row.cuts, cuts, "seed {SEED}: {row:?}");
    assert!(row.acknowledged > cuts, "seed {SEED}: too few transactions: {row:?}");
    assert!(row.recovery.mean_s() > Some(0.0), "seed {SEED}: {row:?}");
    row
}

#[test]
fn databases_lose_what_their_promises_allow() {
    use CacheKind::{Lying, Protected, Volatile};
    let full = |cache, barrier| setting(Durability::Full, cache, barrier);
    let rollback = Setting { journal: Journal::Rollback, ..full(Protected, true) };
    for (setting, promise, cuts) in [
        (full(Protected, true), Promise::All, 200),
        (full(Protected, false), Promise::All, 200),
        (full(Volatile, true), Promise::All, 200),
        (setting(Durability::Second, Protected, true), Promise::Older, 200),
        (setting(Durability::Second, Volatile, true), Promise::Older, 200),
        // The removal of the journal is not synced.
        (rollback, Promise::Older, 300),
        (setting(Durability::None, Protected, true), Promise::Nothing, 200),
        (full(Lying, true), Promise::Nothing, 200),
        (full(Volatile, false), Promise::Nothing, 200),
    ] {
        let row = through(setting, cuts);
        assert_eq!(row.setting.promise(), promise);
        let (is_lost, is_corrupt) = (row.lost > 0, row.corrupt > 0);
        let expected = (promise != Promise::All, promise == Promise::Nothing);
        assert_eq!((is_lost, is_corrupt), expected, "seed {SEED}: {row:?}");
        assert!(row.oldest_lost.is_some() || promise == Promise::All, "seed {SEED}: {row:?}");
    }
}

#[test]
fn equal_seeds_give_equal_rows_and_others_do_not() {
    let setting = setting(Durability::Full, CacheKind::Lying, true);
    let row = through(setting, 60);
    assert_eq!(row, through(setting, 60));
    let other = Asked { seed: Seed::new(SEED + 1), ..asked() };
    let other = run(&setting, &other, 60, &AtomicBool::new(false)).expect("a valid setting");
    assert_ne!(row.acknowledged, other.acknowledged);
}

#[test]
fn a_filesystem_that_ignores_syncs_is_detected() {
    let setting = setting(Durability::Full, CacheKind::Protected, true);
    let mut filesystem = made(&setting, &asked()).expect("a valid setting");
    filesystem.forgets_syncs = true;
    let rounds = Rounds::begin(&setting, &asked(), filesystem).expect("a loaded database");
    let row = rounds.run(100, &AtomicBool::new(false)).expect("no interrupt");
    assert!(row.lost > 0 && !row.kept(), "seed {SEED}: {row:?}");
}

#[test]
fn damage_is_counted_with_an_empty_ledger() {
    let setting = setting(Durability::None, CacheKind::Lying, true);
    let filesystem = made(&setting, &asked()).expect("a valid setting");
    let mut rounds = Rounds::begin(&setting, &asked(), filesystem).expect("a loaded database");
    rounds.round(Some(5));
    assert_eq!(rounds.row.cuts, 1, "seed {SEED}");
    // The state after a lookup that found no transactions.
    (rounds.ledger, rounds.cut) = (Ledger::default(), None);
    rounds.host.lock().restore(&[]);
    rounds.round(Some(5));
    assert_eq!(rounds.row.corrupt, 1, "seed {SEED}: {:?}", rounds.row);
}

#[test]
fn invalid_settings_and_interrupts_are_errors() {
    let setting = setting(Durability::Full, CacheKind::Protected, true);
    let volatile = Setting { cache: CacheKind::Volatile, ..setting };
    for (setting, device, fault) in [
        (setting, "intel-320-160g", "did you mean `intel-320-160gb`"),
        (volatile, "cloud-gp3-3000", "always protected"),
    ] {
        let asked = Asked { device: device.to_owned(), scale: 1, ..asked() };
        let error = run(&setting, &asked, 1, &AtomicBool::new(false)).expect_err(fault);
        assert!(error.to_string().contains(fault), "{error}");
    }
    let interrupted = run(&setting, &asked(), 10, &AtomicBool::new(true));
    assert!(matches!(interrupted, Err(PowercutError::Interrupted)));
}
