//! Every kind of setting through a few hundred cuts, and the machinery broken on purpose.

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
    let row = run(&setting, &asked(), cuts, &AtomicBool::new(false)).expect("it can be made");
    assert_eq!(row.cuts, cuts, "seed {SEED}: {row:?}");
    assert!(row.acknowledged > cuts, "seed {SEED}: hardly anything was done: {row:?}");
    assert!(row.recovery.mean_s() > Some(0.0), "seed {SEED}: {row:?}");
    row
}

#[test]
fn durable_settings_on_an_honest_drive_lose_nothing() {
    for (cache, barrier) in
        [(CacheKind::Protected, true), (CacheKind::Protected, false), (CacheKind::Volatile, true)]
    {
        let row = through(setting(Durability::Full, cache, barrier), 200);
        assert_eq!(row.setting.promise(), Promise::All);
        assert_eq!((row.lost, row.corrupt), (0, 0), "seed {SEED}: {row:?}");
    }
}

#[test]
fn relaxed_settings_on_an_honest_drive_lose_the_newest_and_are_never_corrupt() {
    for cache in [CacheKind::Protected, CacheKind::Volatile] {
        let row = through(setting(Durability::Second, cache, true), 200);
        assert_eq!(row.setting.promise(), Promise::Older);
        assert!(row.lost > 0 && row.corrupt == 0, "seed {SEED}: {row:?}");
        assert!(row.oldest_lost.is_some());
    }
}

#[test]
fn without_syncs_with_a_lying_cache_or_without_barriers_transactions_are_lost_and_databases_corrupt() {
    for (durability, cache, barrier) in [
        (Durability::None, CacheKind::Protected, true),
        (Durability::Full, CacheKind::Lying, true),
        (Durability::Full, CacheKind::Volatile, false),
    ] {
        let row = through(setting(durability, cache, barrier), 200);
        assert_eq!(row.setting.promise(), Promise::Nothing);
        assert!(row.lost > 0 && row.corrupt > 0, "seed {SEED}: {row:?}");
    }
}

#[test]
fn a_rollback_journal_whose_removal_is_not_synced_takes_a_commit_back() {
    let setting =
        Setting { journal: Journal::Rollback, ..setting(Durability::Full, CacheKind::Protected, true) };
    let row = through(setting, 300);
    assert!(row.lost > 0 && row.corrupt == 0, "seed {SEED}: {row:?}");
}

#[test]
fn equal_seeds_give_equal_rows_and_others_do_not() {
    let setting = setting(Durability::Full, CacheKind::Lying, true);
    let row = through(setting, 60);
    assert_eq!(row, through(setting, 60));
    let other = Asked { seed: Seed::new(SEED + 1), ..asked() };
    let other = run(&setting, &other, 60, &AtomicBool::new(false)).expect("it can be made");
    assert_ne!(row.acknowledged, other.acknowledged);
}

#[test]
fn a_filesystem_that_forgets_syncs_is_found_out() {
    let setting = setting(Durability::Full, CacheKind::Protected, true);
    let mut filesystem = made(&setting, &asked()).expect("it can be made");
    filesystem.forgets_syncs = true;
    let rounds = Rounds::begin(&setting, &asked(), filesystem).expect("it is loaded");
    let row = rounds.run(100, &AtomicBool::new(false)).expect("nobody interrupts");
    assert!(row.lost > 0 && !row.kept(), "seed {SEED}: {row:?}");
}

#[test]
fn damage_after_all_was_lost_and_seen_is_counted() {
    let setting = setting(Durability::None, CacheKind::Lying, true);
    let filesystem = made(&setting, &asked()).expect("it can be made");
    let mut rounds = Rounds::begin(&setting, &asked(), filesystem).expect("it is loaded");
    rounds.round(Some(5));
    assert_eq!(rounds.row.cuts, 1, "seed {SEED}");
    // It was looked at, and nothing of the ledger was left.
    (rounds.ledger, rounds.cut) = (Ledger::default(), None);
    rounds.host.lock().restore(&[]);
    rounds.round(Some(5));
    assert_eq!(rounds.row.corrupt, 1, "seed {SEED}: {:?}", rounds.row);
}

#[test]
fn what_cannot_be_is_told() {
    let setting = setting(Durability::Full, CacheKind::Protected, true);
    let asked = |device: &str, scale| Asked { device: device.to_owned(), scale, ..self::asked() };
    let wrong =
        |asked| run(&setting, &asked, 1, &AtomicBool::new(false)).expect_err("it cannot be").to_string();
    assert!(wrong(asked("intel-320-160g", 1)).contains("did you mean `intel-320-160gb`"));
    let volatile = Setting { cache: CacheKind::Volatile, ..setting };
    let told = run(&volatile, &asked("cloud-gp3-3000", 1), 1, &AtomicBool::new(false))
        .expect_err("always protected");
    assert!(told.to_string().contains("always protected"), "{told}");
    let interrupted = run(&setting, &self::asked(), 10, &AtomicBool::new(true));
    assert!(matches!(interrupted, Err(PowercutError::Interrupted)));
}
