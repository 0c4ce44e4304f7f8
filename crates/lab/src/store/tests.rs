//! Tests of adaptive campaigns in stores (reading, resuming, merging, joining), and of older formats.
//!
//! Campaigns that measure every cell are tested in `join` and by the tests of the command line.

use super::fixture::{self, intervals};
use super::writer::write;
use super::*;
use lowtide_core::measure::{Cause, Gap};
use lowtide_core::rng::unit;
use lowtide_core::{Nanos, Seed};
use lowtide_record::analysis::{Estimate, Verdict};
use lowtide_record::fact::SPARED;
use lowtide_record::{Campaign, Predicted, Status};

/// A plan of five cells, adaptive if `precision` is given.
fn plan(precision: Option<f64>) -> Plan {
    let mut plan = fixture::plan(5, 1);
    plan.identity_suffix = precision.map_or(String::new(), |share| format!("\nadaptive, precision {share}"));
    plan
}

fn steady(mean: f64) -> Verdict {
    Verdict::Steady(Estimate { mean, half_width: mean / 77.0, from_ns: 1, to_ns: 2, batches: 16 })
}

/// The entries of a done cell whose device time is `seconds`.
fn done(cell: u32, seconds: u64) -> impl Iterator<Item = Entry> {
    let end = CellEnd::Done { verdict: steady(f64::from(cell) + 0.1), wear: Vec::new() };
    intervals(cell).chain([Entry::Took(cell, Nanos::from_secs(seconds)), Entry::End(cell, end)])
}

/// A store with one campaign. The `measured` cells are done, and the `predicted` cells have `level`.
fn store(path: &Path, measured: &[u32], predicted: &[u32], level: f64) -> Store {
    let mut store = Store::open(path).expect("a new store");
    let campaign = store.begin(&plan(Some(0.05)), &About::default()).expect("begins");
    let mut entries: Vec<Entry> = measured.iter().flat_map(|cell| done(*cell, 60)).collect();
    let of = Predicted { level, low: level * 0.97, high: level * 1.03 };
    entries.extend(predicted.iter().map(|cell| Entry::Predicted(*cell, of)));
    if !predicted.is_empty() {
        entries.push(Entry::Fact(SPARED.to_owned(), format!("at {level}")));
    }
    entries.iter().for_each(|entry| write(store.tables(), campaign, entry).expect("writes"));
    store
}

fn only(store: &Store) -> Campaign {
    let all = store.campaigns().expect("reads back");
    assert_eq!(all.len(), 1, "one campaign");
    store.load(all[0].id).expect("reads back")
}

/// The status of each cell as a letter, the predicted levels, and the facts about them.
fn summary(store: &Store) -> (String, Vec<f64>, Vec<String>) {
    let campaign = only(store);
    let letter = |status| match status {
        Status::Pending => '.',
        Status::Done => 'd',
        Status::Failed => 'f',
        Status::Spared => 'p',
        Status::Damaged => 'x',
    };
    let facts = campaign.environment.into_iter().filter(|(name, _)| name == SPARED);
    (
        campaign.cells.iter().map(|cell| letter(cell.status)).collect(),
        campaign.cells.iter().filter_map(|cell| cell.predicted).map(|it| it.level).collect(),
        facts.map(|(_, text)| text).collect(),
    )
}

#[test]
fn every_level_reads_back_exactly() {
    const SEED: u64 = 3;
    println!("seed {SEED}");
    let mut rng = Seed::new(SEED).part("levels", 0).stream();
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(&folder.path().join("all.db")).expect("a new store");
    let campaign = store.begin(&plan(None), &About::default()).expect("begins");
    for _ in 0..400 {
        let verdict = steady(10f64.powf(4.0 * unit(&mut rng)));
        let end = CellEnd::Done { verdict: verdict.clone(), wear: Vec::new() };
        write(store.tables(), campaign, &Entry::End(0, end)).expect("writes");
        let read: Option<String> = store
            .connection
            .query_row("SELECT verdict FROM cell WHERE campaign = ?1 AND cell = 0", [campaign], |row| {
                row.get(0)
            })
            .expect("exists");
        let read: Verdict = serde_json::from_str(&read.expect("it is done")).expect("it is a verdict");
        assert_eq!(read, verdict);
    }
}

#[test]
fn resuming_removes_predictions_and_their_fact() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = store(&folder.path().join("all.db"), &[0, 1], &[2, 3, 4], 5.0);
    assert_eq!(summary(&store), ("ddppp".to_owned(), vec![5.0; 3], vec!["at 5".to_owned()]));
    let (_, measured) = store.resume(&plan(Some(0.05))).expect("exists");
    assert_eq!(measured, [true, true, false, false, false]);
    assert_eq!(summary(&store), ("dd...".to_owned(), vec![], vec![]));
    assert_eq!(only(&store).cells[0].took, Some(Nanos::from_secs(60)));
}

#[test]
fn a_campaign_of_another_precision_is_reported_with_the_options_that_resume_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut begun = store(&folder.path().join("all.db"), &[0], &[], 1.0);
    let mut fails = |precision, wanted: [&str; 2], advice: &str| {
        let error = begun.resume(&plan(precision)).expect_err("another precision");
        wanted.iter().for_each(|wanted| assert!(error.to_string().contains(wanted), "{error}"));
        let help = miette::Diagnostic::help(&error).expect("advice").to_string();
        assert!(help.starts_with(advice), "{help}");
    };
    let was = "begun with `--adaptive --precision 5%`";
    fails(
        Some(0.007),
        [was, "this is with `--adaptive --precision 0.7%`"],
        "resume it with `--adaptive --precision 5%`",
    );
    fails(None, [was, "this is without `--adaptive`"], "resume it with `--adaptive --precision 5%`");
    let mut whole = Store::open(&folder.path().join("whole.db")).expect("a new store");
    whole.begin(&plan(None), &About::default()).expect("begins");
    let error = whole.resume(&plan(Some(0.05))).expect_err("it is not adaptive");
    assert!(error.to_string().contains("begun without `--adaptive`"), "{error}");
    let other = Plan { seed: Seed::new(2), ..plan(None) };
    assert!(matches!(whole.resume(&other), Err(StoreError::NothingToResume { .. })));
}

#[test]
fn a_merge_keeps_the_predictions_of_a_part_that_measured_all_cells() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let make = |name: &str, measured: &[u32], predicted: &[u32], level| {
        drop(store(&at(name), measured, predicted, level));
    };
    // A campaign was copied (`before`) and continued in both copies.
    make("a.db", &[0, 1, 2], &[3, 4], 5.0);
    make("b.db", &[0, 1, 3], &[2, 4], 6.0);
    make("before.db", &[0, 1], &[], 0.0);
    make("early.db", &[0, 1], &[2, 3, 4], 7.0);
    let merged = |inputs: &[&str]| {
        let output = at(&format!("{}.db", inputs.concat()));
        for input in inputs {
            merge(&[at(input)], &output).expect("merges");
        }
        summary(&Store::open_existing(&output).expect("exists"))
    };
    let of_a = ("dddpp".to_owned(), vec![5.0; 2], vec!["at 5".to_owned()]);
    for inputs in [["a.db", "before.db"], ["before.db", "a.db"], ["a.db", "early.db"], ["early.db", "a.db"]] {
        assert_eq!(merged(&inputs), of_a, "{inputs:?}");
    }
    for inputs in [["a.db", "b.db"], ["b.db", "a.db"]] {
        assert_eq!(merged(&inputs), ("dddd.".to_owned(), vec![], vec![]), "{inputs:?}");
    }
    assert_eq!(merged(&["a.db", "a.db"]), of_a);
}

#[test]
fn joining_copies_device_time_and_predictions() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    drop(store(&at("begun.db"), &[], &[], 0.0));
    drop(store(&at("one.db"), &[0], &[], 0.0));
    drop(store(&at("two.db"), &[1, 2], &[3, 4], 5.0));
    let mut all = Store::open(&at("all.db")).expect("a new store");
    let campaign = all.adopt(&at("begun.db")).expect("adopts");
    assert_eq!(all.join(&at("one.db"), campaign).expect("joins"), [0]);
    assert_eq!(all.join(&at("two.db"), campaign).expect("joins"), [1, 2]);
    assert_eq!(summary(&all), ("dddpp".to_owned(), vec![5.0; 2], vec!["at 5".to_owned()]));
    let took: Vec<_> = only(&all).cells.iter().map(|cell| cell.took).collect();
    let minute = Some(Nanos::from_secs(60));
    assert_eq!(took, [minute, minute, minute, None, None]);
    // Pending cells of an extracted part have no device time.
    all.extract(campaign, &[1, 4], &at("part.db")).expect("extracts");
    let part = Store::open_existing(&at("part.db")).expect("a store");
    assert_eq!(summary(&part).0, ".d..p");
    let took: Vec<_> = only(&part).cells.iter().map(|cell| cell.took).collect();
    assert_eq!(took, [None, minute, None, None, None]);
}

#[test]
fn gaps_are_copied_with_their_cell_and_removed_when_it_is_measured_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let gap = |at_ns, cause| Gap { at_ns, length: Nanos::from_secs(70), cause };
    let gaps = vec![gap(5, Cause::Stopped), gap(4_000_000_000, Cause::Suspended)];
    let one = store(&at("one.db"), &[0], &[], 0.0);
    let entries = gaps.iter().rev().flat_map(|gap| [Entry::Gap(0, *gap), Entry::Gap(1, *gap)]);
    entries.for_each(|entry| write(one.tables(), 1, &entry).expect("writes"));
    assert_eq!(only(&one).cells[0].gaps, gaps);
    drop(one);
    drop(store(&at("two.db"), &[2], &[], 0.0));
    let mut all = Store::open(&at("all.db")).expect("a new store");
    all.merge(&[at("one.db"), at("two.db")]).expect("merges");
    let of = |store: &Store| only(store).cells.iter().map(|cell| cell.gaps.len()).collect::<Vec<_>>();
    assert_eq!((of(&all), &only(&all).cells[0].gaps), (vec![2, 2, 0, 0, 0], &gaps));
    // The second cell of the part was not measured to the end.
    let mut one = Store::open(&at("one.db")).expect("a store");
    assert_eq!(of(&one), [2, 2, 0, 0, 0]);
    one.resume(&plan(Some(0.05))).expect("resumes");
    assert_eq!(of(&one), [2, 0, 0, 0, 0]);
}

/// Older formats, each with the tables that it lacks.
const OLDER: [(i32, &[&str]); 4] = [
    (4, &[]),
    (3, &["gap"]),
    (2, &["gap", "device_time", "predicted"]),
    (1, &["gap", "device_time", "predicted", "oltp", "transactions"]),
];

/// A store of an older format, with a campaign in which the given cells are done.
fn older(path: &Path, (format, lacking): (i32, &[&str]), measured: &[u32]) {
    let older = store(path, measured, &[], 0.0);
    for table in lacking {
        older.connection.execute_batch(&format!("DROP TABLE {table}")).expect("drops");
    }
    let without_kinds = "ALTER TABLE campaign DROP COLUMN resolved; UPDATE cell SET factors =
        (SELECT json_group_array(json_array(value ->> 0, value ->> 1)) FROM json_each(cell.factors))";
    older.connection.execute_batch(without_kinds).expect("removes kinds");
    older.connection.pragma_update(None, "user_version", format).expect("sets the format");
}

/// Symptom: a part of an older format did not match its own campaign. Cause: factors were compared as stored, and
/// older formats store no kinds. Fix: factors are converted first.
#[test]
fn parts_and_stores_of_older_formats_are_joined() {
    let folder = tempfile::tempdir().expect("a folder");
    for form in OLDER {
        let at = |name: &str| folder.path().join(format!("{name}-{}.db", form.0));
        older(&at("old"), form, &[0, 2]);
        older(&at("begun"), form, &[]);
        drop(store(&at("new"), &[1], &[], 0.0));
        drop(store(&at("all"), &[], &[], 0.0));
        let mut all = Store::open(&at("all")).expect("a store");
        assert_eq!(all.join(&at("old"), 1).expect("an older part joins"), [0, 2], "format {}", form.0);
        assert_eq!(summary(&all).0, "d.d..");
        let mut all = Store::open(&at("begun")).expect("a store");
        assert_eq!(all.join(&at("new"), 1).expect("a newer part joins"), [1], "format {}", form.0);
        assert_eq!(all.join(&at("old"), 1).expect("an older part joins"), [0, 2], "format {}", form.0);
        assert_eq!(summary(&all).0, "ddd..");
    }
}

#[test]
fn stores_of_older_formats_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    for form @ (format, _) in OLDER {
        let (old, new) =
            (folder.path().join(format!("{format}.db")), folder.path().join(format!("of-{format}.db")));
        older(&old, form, &[0, 2]);
        let (mut merged, results) = merge(std::slice::from_ref(&old), &new).expect("merges");
        assert_eq!((results[0].cells, results[0].new), (2, true), "format {format}");
        assert_eq!(summary(&merged).0, "d.d..", "format {format}");
        assert_eq!(only(&merged).cells[0].took.is_some(), format >= schema::CURVES);
        drop(store(&folder.path().join(format!("more-{format}.db")), &[1], &[], 0.0));
        merged.merge(&[folder.path().join(format!("more-{format}.db"))]).expect("merges a newer store");
        assert_eq!(summary(&merged).0, "ddd..", "format {format}");
        assert_eq!(schema::version(&merged.connection).expect("has a format"), schema::KINDS);
        assert_eq!(
            schema::version(&Store::open_existing(&old).expect("a store").connection),
            Ok(format),
            "the input has not changed"
        );
    }
}

/// Symptom: the resolved experiment of a part could differ from its text. Cause: the JSON was copied. Fix: the JSON
/// is made again from the text, and the text is compared with the plan.
#[test]
fn the_resolved_experiment_of_a_part_is_made_from_its_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let resolved = |store: &Store| only(store).resolved;
    let part = store(&at("part.db"), &[0], &[], 0.0);
    let honest = resolved(&part);
    assert!(honest.is_some());
    let copies = |name: &str| {
        let adopted = at(&format!("adopted-{name}.db"));
        Store::open(&adopted).expect("a new store").adopt(&at("part.db")).expect("adopts");
        let (merged, _) = merge(&[at("part.db")], &at(&format!("merged-{name}.db"))).expect("merges");
        [resolved(&Store::open_existing(&adopted).expect("a store")), resolved(&merged)]
    };
    assert_eq!(copies("honest"), [honest.clone(), honest.clone()]);
    for (name, value) in [("empty", "'{}'"), ("other", "replace(resolved, '4KiB', '0B')"), ("none", "NULL")] {
        part.connection
            .execute_batch(&format!("UPDATE campaign SET resolved = {value}"))
            .expect("has a format");
        assert_ne!(resolved(&part), honest, "{name}");
        assert_eq!(copies(name), [honest.clone(), honest.clone()], "{name}");
    }
}

/// A column that an older store lacks reads as zero, and is added when the store is opened for writing.
#[test]
fn a_missing_column_of_intervals_reads_as_zero_and_is_added() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.db");
    let older = store(&path, &[0], &[], 0.0);
    let before = only(&older);
    let text = "ALTER TABLE interval DROP COLUMN write_bytes; PRAGMA user_version = 4";
    older.connection.execute_batch(text).expect("drops");
    drop(older);
    let read = |store: &Store| {
        only(store).cells[0].rows.iter().map(|it| (it.writes, it.write_bytes)).collect::<Vec<_>>()
    };
    let wanted: Vec<(u64, u64)> = before.cells[0].rows.iter().map(|row| (row.writes, 0)).collect();
    assert!(!wanted.is_empty() && before.cells[0].rows.iter().all(|row| row.write_bytes > 0));
    assert_eq!(read(&Store::open_existing(&path).expect("a store")), wanted);
    let newer = Store::open(&path).expect("a store");
    assert_eq!(schema::version(&newer.connection), Ok(schema::KINDS));
    assert_eq!(read(&newer), wanted);
    done(1, 60).for_each(|entry| write(newer.tables(), 1, &entry).expect("has all columns"));
}

/// Symptom: a damaged part of an older format was merged, with zeros for a missing column. Cause: an older part could
/// lack any column. Fix: an older part can lack only columns that a later format added.
#[test]
fn a_part_of_an_older_format_has_the_columns_of_its_format() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, change) in [
        "ALTER TABLE interval DROP COLUMN writes",
        "ALTER TABLE interval DROP COLUMN counters",
        "ALTER TABLE transactions DROP COLUMN committed",
        "ALTER TABLE campaign DROP COLUMN title",
        "ALTER TABLE cell DROP COLUMN wear",
        "ALTER TABLE gap DROP COLUMN length_ns",
    ]
    .iter()
    .enumerate()
    {
        let at = |name: &str| folder.path().join(format!("{name}-{number}.db"));
        older(&at("old"), OLDER[0], &[0]);
        let connection = Connection::open(at("old")).expect("opens");
        connection.execute_batch(change).expect("drops");
        drop(connection);
        let table = change.split(' ').nth(2).expect("a table");
        let wanted = format!("table `{table}` does not have the columns of a store");
        let outcome = |done: Result<(), StoreError>| {
            done.map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
        };
        let merged = outcome(merge(&[at("old")], &at("new")).map(drop));
        assert!(merged.contains(&wanted), "{change}: {merged}");
        let adopted = outcome(Store::open(&at("adopted")).expect("a new store").adopt(&at("old")).map(drop));
        assert!(adopted.contains(&wanted), "{change}: {adopted}");
    }
}

/// Symptom: two programs that opened an old store at once failed. Cause: the list of missing columns was read before
/// the transaction began. Fix: the list is read in the transaction.
#[test]
fn a_store_upgraded_by_another_program_meanwhile_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.db");
    older(&path, OLDER[1], &[0]);
    let other = Connection::open(&path).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("begins");
    let opening = std::thread::spawn({
        let path = path.clone();
        move || {
            let connection = Connection::open(&path).expect("opens");
            schema::prepare(&connection, &path).map(|_| connection)
        }
    });
    // Long enough for the other thread to find an old store and wait. The result is the same if the thread is slower.
    std::thread::sleep(std::time::Duration::from_millis(300));
    schema::migrate(&other, Some(OLDER[1].0)).expect("upgrades");
    other.execute_batch("COMMIT").expect("commits");
    let connection = opening.join().expect("no panic").expect("opens");
    assert_eq!(schema::version(&connection), Ok(schema::KINDS));
    assert_eq!(only(&Store::open(&path).expect("opens")).cells[0].factors[0].name, "threads");
}

/// The factors of a damaged cell remain readable, even in an older format.
#[test]
fn a_damaged_cell_of_an_older_format_has_its_factors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.db");
    older(&path, OLDER[0], &[0]);
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch("UPDATE cell SET verdict = '{' WHERE cell = 0").expect("exists");
    let cells = only(&Store::open_existing(&path).expect("a store")).cells;
    assert_eq!((cells[0].status, cells[1].status), (Status::Damaged, Status::Pending));
    let levels: Vec<&str> = cells[..2].iter().map(|cell| cell.factors[0].level.as_str()).collect();
    assert_eq!(levels, ["1", "2"]);
}
