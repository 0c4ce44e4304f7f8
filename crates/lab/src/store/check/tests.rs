//! Tests that invalid parts are refused with the reason, and that the store does not change by a byte.

use super::super::fixture::{INTERVAL_NS, intervals, plan};
use super::super::writer::write;
use super::super::{About, CellEnd, Entry};
use super::*;
use lowtide_core::Nanos;
use lowtide_record::Predicted;
use lowtide_record::analysis::{Estimate, Verdict};
use std::path::PathBuf;

/// A part with four cells: 0 is pending, 1 is done, 2 failed, and 3 was spared.
fn part(path: &Path) {
    let mut store = Store::open(path).expect("a new store");
    let campaign = store.begin(&plan(4, 1), &About::default()).expect("begins");
    let (from_ns, to_ns) = (0, 2 * INTERVAL_NS);
    let verdict = Verdict::Steady(Estimate { mean: 5.0, half_width: 0.1, from_ns, to_ns, batches: 16 });
    let ends = [
        Entry::Took(1, Nanos::from_secs(30)),
        Entry::End(1, CellEnd::Done { verdict, wear: vec![(1, 2)] }),
        Entry::End(2, CellEnd::Failed("it did not answer".to_owned())),
        Entry::Predicted(3, Predicted { level: 5.0, low: 4.0, high: 6.0 }),
    ];
    let all = intervals(1).chain(ends);
    all.for_each(|entry| write(store.tables(), campaign, &entry).expect("writes"));
}

/// SQL statements that make a part invalid, and the reason for which it is refused.
const INVALID: &[(&str, &str)] = &[
    ("DELETE FROM interval; DELETE FROM histogram", "cell 1: it is done but has no intervals"),
    ("UPDATE cell SET verdict = NULL", "cell 1: it is done but has no verdict"),
    ("UPDATE cell SET failure = 'why' WHERE cell = 1", "cell 1: it is done but has a reason for failure"),
    ("UPDATE cell SET verdict = '{' WHERE cell = 1", "cell 1: verdict: EOF"),
    (
        "UPDATE cell SET verdict = replace(verdict, '5.0', '-5.0') WHERE cell = 1",
        "cell 1: its level is negative or not a number",
    ),
    (
        "UPDATE cell SET verdict = replace(verdict, '20000000000', '90000000000') WHERE cell = 1",
        "cell 1: its steady window is not within its measurement",
    ),
    ("UPDATE cell SET wear = 'x' WHERE cell = 1", "cell 1: wear: expected value"),
    ("UPDATE cell SET status = 'finished' WHERE cell = 1", "cell 1: its status `finished` is not"),
    (
        "UPDATE cell SET status = 'pending' WHERE cell = 1",
        "cell 1: it has a verdict but was not measured to the end",
    ),
    ("UPDATE cell SET failure = NULL WHERE cell = 2", "cell 2: it failed without a reason"),
    ("DELETE FROM predicted", "cell 3: it was spared but has no predicted level"),
    ("UPDATE predicted SET level_mib_per_s = 9", "cell 3: its predicted level lies outside"),
    (
        "UPDATE interval SET writes = -1 WHERE start_ns = 0",
        "cell 1: the interval at 0 s has a negative number",
    ),
    ("UPDATE interval SET write_bytes = -4096 WHERE start_ns = 0", "has a negative number"),
    ("UPDATE interval SET read_bytes = 4096 WHERE start_ns = 0", "has bytes but no operations"),
    (
        "UPDATE interval SET writes = 42 WHERE start_ns = 0",
        "the interval at 0 s counts 42 of `write`, but the histogram has 41",
    ),
    ("UPDATE interval SET reads = 3 WHERE start_ns = 0", "counts operations but has no histogram of them"),
    (
        "DELETE FROM histogram WHERE start_ns > 0",
        "the interval at 10 s counts operations but has no histogram",
    ),
    (
        "UPDATE histogram SET hdr = x'00' WHERE start_ns = 0",
        "cell 1: the histogram of `write` at 0 s does not decode",
    ),
    (
        "UPDATE histogram SET hdr = substr(hdr, 1, length(hdr) - 1) WHERE start_ns > 0",
        "the histogram of `write` at 10 s does not decode",
    ),
    (
        "UPDATE histogram SET hdr = CAST(substr(hdr, 1, 24) || x'7fffffffffffffff' || substr(hdr, 33) AS BLOB)",
        "does not decode",
    ),
    (
        "UPDATE histogram SET op = 'trim' WHERE start_ns = 0",
        "has a histogram of the unknown operation `trim`",
    ),
    ("UPDATE histogram SET op = 'payment' WHERE start_ns = 0", "`payment`"),
    (
        "UPDATE interval SET write_p50_ns = write_p50_ns - 1 WHERE start_ns = 0",
        "has latencies of `write` that differ from its histogram",
    ),
    (
        "UPDATE interval SET write_mean_ns = write_mean_ns * 1.01",
        "has latencies of `write` that differ from its histogram",
    ),
    ("UPDATE interval SET write_mean_ns = 9e999", "has impossible latencies"),
    ("UPDATE interval SET read_p50_ns = 7", "has impossible latencies"),
    (
        "DELETE FROM interval WHERE start_ns = 10000000000; DELETE FROM histogram WHERE start_ns = 10000000000",
        "the interval at 20 s does not begin at the end of the previous interval, at 10 s",
    ),
    (
        "DELETE FROM interval WHERE start_ns = 0; DELETE FROM histogram WHERE start_ns = 0",
        "the interval at 10 s does not begin at the end of the previous interval, at 0 s",
    ),
    (
        "UPDATE interval SET end_ns = end_ns + 1 WHERE start_ns = 0",
        "does not begin at the end of the previous interval",
    ),
    ("UPDATE interval SET end_ns = 0 WHERE start_ns = 0", "the interval at 0 s ends before it begins"),
    ("UPDATE interval SET counters = '[' WHERE start_ns = 0", "cell 1: counters: EOF"),
    ("UPDATE interval SET writes = x'00' WHERE start_ns = 0", "Invalid column type Blob"),
    (
        "UPDATE cell SET cell = 77 WHERE cell = 1; UPDATE interval SET cell = 77; UPDATE histogram SET cell = 77; UPDATE device_time SET cell = 77",
        "cell 77: it does not match",
    ),
    ("UPDATE cell SET cell = -1 WHERE cell = 0", "Integer -1 out of range"),
    ("UPDATE cell SET threads = 9 WHERE cell = 1", "cell 1: it does not match"),
    (
        "UPDATE cell SET factors = '[[\"threads\",\"9\",\"count\"]]' WHERE cell = 1",
        "cell 1: it does not match",
    ),
    ("UPDATE cell SET factors = '[[\"threads\",\"2\"]]' WHERE cell = 1", "cell 1: "),
    ("UPDATE cell SET data_bytes = 4096 WHERE cell = 0", "cell 0: it does not match"),
    (
        "UPDATE cell SET written_before_bytes = -1 WHERE cell = 1",
        "cell 1: its `written_before_bytes` is negative",
    ),
    ("UPDATE device_time SET took_ns = -1", "cell 1: its `took_ns` is negative"),
    (
        "INSERT INTO gap SELECT id, 1, 5, -3, 'stopped' FROM campaign",
        "cell 1: a gap of -3 ns at 5 ns, `stopped`",
    ),
    ("INSERT INTO gap SELECT id, 1, 5, 3, 'bored' FROM campaign", "cell 1: a gap of 3 ns at 5 ns, `bored`"),
    ("UPDATE campaign SET seed = 2", "seed"),
    ("UPDATE campaign SET scale = 2", "scale"),
    ("UPDATE campaign SET experiment = replace(experiment, '1min', '2min')", "experiment"),
    ("UPDATE campaign SET device = replace(device, 'i', 'j')", "device"),
    ("UPDATE campaign SET plan = plan || 'x'", ""),
    ("UPDATE cell SET campaign = 7 WHERE cell = 0", "table `cell` has rows of a missing campaign"),
    (
        "INSERT INTO environment VALUES (7, 0, 'kernel', '6.1')",
        "table `environment` has rows of a missing campaign",
    ),
    ("UPDATE interval SET campaign = 7 WHERE start_ns = 0", "table `interval` has rows of a missing cell"),
    (
        "UPDATE histogram SET start_ns = 1 WHERE start_ns = 0",
        "cell 1: table `histogram` has rows of a missing interval",
    ),
    (
        "INSERT INTO transactions VALUES (1, 1, 0, 'payment', 1, 0, 0, 1.0, 1, 1, 1, 1, 1)",
        "cell 1: it has transactions but no database",
    ),
    (
        "CREATE TRIGGER t AFTER INSERT ON cell BEGIN DELETE FROM campaign; END",
        "it has an unexpected trigger `t`",
    ),
    ("CREATE VIEW v AS SELECT * FROM cell", "it has an unexpected view `v`"),
    (
        "DROP TABLE environment; CREATE VIEW environment AS SELECT 1 AS campaign, 0 AS position, 'k' AS key, 'v' AS value",
        "it has an unexpected view `environment`",
    ),
    ("CREATE TABLE more (x)", "it has an unexpected table `more`"),
    ("CREATE INDEX i ON cell (hex(status))", "it has an unexpected index `i`"),
    (
        "ALTER TABLE cell ADD COLUMN more TEXT AS (hex(status))",
        "table `cell` does not have the columns of a store",
    ),
    ("DROP TABLE predicted", "table `predicted` is missing"),
    ("UPDATE cell SET failure = CAST(x'ff' AS TEXT) WHERE cell = 2", "cell 2: "),
    ("INSERT INTO environment VALUES (1, 90, 'k', CAST(x'ff' AS TEXT))", ""),
    ("PRAGMA application_id = 7", "it is a database of another program"),
    ("PRAGMA user_version = 9", "it has format 9, and this version writes format 5"),
];

/// SQL statements whose fault is detected only if the campaign is known.
const INVALID_FOR_JOIN: &[(&str, &str)] = &[
    ("UPDATE campaign SET version = '0.0.0'", "the version of its campaign differs from the store's"),
    (
        "INSERT INTO campaign SELECT 2, name, title, experiment, target, device, seed, scale, version, started_at, command, plan, resolved FROM campaign",
        "this store has 2",
    ),
];

/// Damage to the bytes of a part.
const BYTES: [fn(&mut Vec<u8>); 3] = [
    |bytes| {
        let at = bytes.len() - 8192;
        bytes[at..].fill(0xa5);
    },
    |bytes| bytes.truncate(bytes.len() - 4096),
    |bytes| *bytes = b"SQLite format 4, or so they say".repeat(200),
];

fn change(part: &Path, statements: &str) {
    let connection = Connection::open(part).expect("opens");
    connection.execute_batch("PRAGMA foreign_keys = OFF").expect("turns them off");
    connection.execute_batch(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
}

/// The bytes of a store and of its write-ahead log.
fn bytes(path: &Path) -> Vec<Vec<u8>> {
    let read = |suffix: &str| std::fs::read(PathBuf::from(format!("{}{suffix}", path.display())));
    vec![read("").expect("reads"), read("-wal").unwrap_or_default()]
}

/// Symptom: cells that were never measured counted as done, and one bad histogram made a campaign unreadable.
/// Cause: the contents of parts were copied unchecked. Fix: parts are checked first.
#[test]
fn invalid_parts_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    part(&at("good.db"));
    let mut store = Store::open(&at("all.db")).expect("a new store");
    let campaign = store.adopt(&at("good.db")).expect("the part is good");
    store
        .connection
        .execute_batch(
            "UPDATE cell SET status = 'pending', verdict = NULL, wear = NULL, failure = NULL;
        DELETE FROM interval; DELETE FROM histogram; DELETE FROM device_time; DELETE FROM predicted;",
        )
        .expect("resets the cells");
    let mut wrong = Vec::new();
    let good = std::fs::read(at("good.db")).expect("reads");
    let sql = |cases: &'static [(&str, &str)], join_only| {
        cases.iter().map(move |(statements, reason)| (Ok(*statements), *reason, join_only))
    };
    let damage = BYTES.iter().map(|damage| (Err(damage), "", false));
    let cases: Vec<_> = sql(INVALID, false).chain(sql(INVALID_FOR_JOIN, true)).chain(damage).collect();
    for (number, (fault, reason, join_only)) in cases.iter().enumerate() {
        let bad = at(&format!("bad-{number}.db"));
        let mut bytes_of_part = good.clone();
        if let Err(damage) = fault {
            damage(&mut bytes_of_part);
        }
        std::fs::write(&bad, bytes_of_part).expect("writes");
        if let Ok(statements) = fault {
            change(&bad, statements);
        }
        let name = fault.unwrap_or("damaged bytes");
        let before = bytes(&at("all.db"));
        let mut refused = |how: &str, done: Result<(), StoreError>| match done {
            Ok(()) => wrong.push(format!("{name}: {how} accepts it")),
            Err(error) if !error.is_of_part() || !error.to_string().contains(reason) => {
                wrong.push(format!("{name}: {how} fails with: {error} ({error:?})"));
            }
            Err(_) => {}
        };
        refused("join", store.join(&bad, campaign).map(drop));
        if !join_only {
            let other = at(&format!("merged-{number}.db"));
            refused("adopt", Store::open(&other).expect("a new store").adopt(&bad).map(drop));
            refused("merge", store.merge(std::slice::from_ref(&bad)).map(drop));
            let left = Store::open_existing(&other).expect("a store").campaigns().expect("reads");
            assert_eq!(left, [], "{name}: a campaign was added");
        }
        assert!(bytes(&at("all.db")) == before, "{name}: the store has changed");
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let gained = store.join(&at("good.db"), campaign).expect("joins");
    assert_eq!(gained, [1]);
    let cells = store.load(campaign).expect("reads").cells;
    let statuses: Vec<Status> = cells.iter().map(|cell| cell.status).collect();
    assert_eq!(statuses, [Status::Pending, Status::Done, Status::Failed, Status::Spared]);
}

/// Symptom: one histogram that did not decode made a campaign unreadable. Cause: the error of a cell was returned as
/// the error of the campaign. Fix: the cell is reported as damaged, and measured again.
#[test]
fn a_damaged_cell_leaves_the_others_readable_and_is_measured_again() {
    let harms = [
        "UPDATE histogram SET hdr = x'00' WHERE start_ns = 0",
        "UPDATE interval SET counters = '['",
        "UPDATE interval SET writes = x'00'",
        "UPDATE cell SET verdict = '{' WHERE cell = 1",
        "UPDATE cell SET step = CAST(x'ff' AS TEXT) WHERE cell = 1",
    ];
    for harm in harms {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.db");
        part(&path);
        change(&path, harm);
        let mut store = Store::open(&path).expect("opens");
        let cells = store.load(1).expect("reads the other cells").cells;
        assert_eq!(cells[1].status, Status::Damaged, "{harm}");
        assert!(cells[1].failure.is_some() && cells[1].rows.is_empty());
        assert_eq!((cells.len(), cells[2].status), (4, Status::Failed), "{harm}");
        let (_, done) = store.resume(&plan(4, 1)).expect("resumes");
        assert_eq!(done, [false; 4], "{harm}");
    }
}

/// Recognises files in an experiment, so that an untrusted part never makes a plan read a file.
#[test]
fn files_named_in_an_experiment_are_recognised() {
    for (line, names) in [
        ("target.device = 'intel-320-160gb'", false),
        ("target.device = 'sas-15k-73gb:shallow+mtron-32gb'", false),
        ("target.device = 'x.toml'", true),
        ("target.device = 'x.toml:fast'", true),
        ("target.device = 'mtron-32gb+x.toml:fast'", true),
        ("target.device = ['mtron-32gb', { data = 'mtron-32gb', log = 'x.toml' }]", true),
        ("sweep = { device = { data = './x.toml', mode = 'fast' } }", true),
        ("sweep = { log_device = ['mtron-32gb', 'x.toml:fast'] }", true),
        ("workload.trace = 'x'", true),
    ] {
        let table: toml::Table = line.parse().expect("TOML");
        assert_eq!(table.iter().any(|(key, value)| super::names_files(key, value)), names, "{line}");
    }
}
