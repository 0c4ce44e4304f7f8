//! Parts that no writer leaves: each is refused with its reason, and the store that would take it stays as it
//! was, byte for byte.

use super::super::fixture::{INTERVAL_NS, intervals};
use super::super::writer::write;
use super::super::{About, CellEnd, Entry};
use super::*;
use lowtide_core::Nanos;
use lowtide_record::Predicted;
use lowtide_record::analysis::{Estimate, Verdict};
use std::path::PathBuf;

/// Cell 0 is pending, 1 is done, 2 failed, 3 was spared.
const TEXT: &str = "name = 't'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\n\
    [workload]\npattern = 'random-write'\nblock = '4KiB'\nduration = '1min'\n[sweep]\nthreads = [1, 2, 3, 4]\n";

fn part(path: &Path) {
    let experiment = Experiment::parse("t.toml", TEXT, &[]).expect("valid");
    let plan = Plan::new(experiment, Seed::new(1), 1).expect("plans");
    let mut store = Store::open(path).expect("a new store");
    let campaign = store.begin(&plan, &About::default()).expect("begins");
    let window = (0, 2 * INTERVAL_NS);
    let verdict = Verdict::Steady(Estimate {
        mean: 5.0,
        half_width: 0.1,
        from_ns: window.0,
        to_ns: window.1,
        batches: 16,
    });
    let ends = [
        Entry::Took(1, Nanos::from_secs(30)),
        Entry::End(1, CellEnd::Done { verdict, wear: vec![(1, 2)] }),
        Entry::End(2, CellEnd::Failed("it did not answer".to_owned())),
        Entry::Predicted(3, Predicted { level: 5.0, low: 4.0, high: 6.0 }),
    ];
    let all = intervals(1).chain(ends);
    all.for_each(|entry| write(&store.connection, campaign, &entry).expect("is written"));
}

/// A change to a part.
enum Harm {
    /// SQL statements.
    Sql(&'static str),
    /// Bytes written over the file at an offset from its end.
    Bytes(usize, &'static [u8]),
    /// The file ends this many bytes earlier.
    Cut(u64),
}
use Harm::{Bytes, Cut, Sql};

/// The fault shows only in a store that knows the campaign.
const JOIN_ONLY: bool = true;

/// The changes, and how each is refused.
const CASES: &[(&str, Harm, &str, bool)] = &[
    (
        "done without intervals",
        Sql("DELETE FROM interval; DELETE FROM histogram"),
        "cell 1: it is done, and has no intervals",
        false,
    ),
    (
        "done without a verdict",
        Sql("UPDATE cell SET verdict = NULL"),
        "cell 1: it is done, and has no verdict",
        false,
    ),
    (
        "done and failed",
        Sql("UPDATE cell SET failure = 'why' WHERE cell = 1"),
        "cell 1: it is done, and says why it failed",
        false,
    ),
    (
        "a verdict that is no JSON",
        Sql("UPDATE cell SET verdict = '{' WHERE cell = 1"),
        "cell 1: verdict: EOF",
        false,
    ),
    (
        "a level that is no number",
        Sql("UPDATE cell SET verdict = replace(verdict, '5.0', '-5.0') WHERE cell = 1"),
        "cell 1: its level is not a number",
        false,
    ),
    (
        "a window after the end",
        Sql("UPDATE cell SET verdict = replace(verdict, '20000000000', '90000000000') WHERE cell = 1"),
        "cell 1: its steady window is not one of its measurement",
        false,
    ),
    (
        "wear that is no JSON",
        Sql("UPDATE cell SET wear = 'x' WHERE cell = 1"),
        "cell 1: wear: expected value",
        false,
    ),
    (
        "a status that there is not",
        Sql("UPDATE cell SET status = 'finished' WHERE cell = 1"),
        "cell 1: it is `finished`",
        false,
    ),
    (
        "a verdict before the end",
        Sql("UPDATE cell SET status = 'pending' WHERE cell = 1"),
        "cell 1: it has a verdict, and was not measured to its end",
        false,
    ),
    (
        "a failure without a reason",
        Sql("UPDATE cell SET failure = NULL WHERE cell = 2"),
        "cell 2: it failed, and does not say why",
        false,
    ),
    (
        "spared without a prediction",
        Sql("DELETE FROM predicted"),
        "cell 3: it was spared, and has no predicted level",
        false,
    ),
    (
        "a prediction outside of its interval",
        Sql("UPDATE predicted SET level_mib_per_s = 9"),
        "cell 3: its predicted level lies outside",
        false,
    ),
    (
        "a negative count",
        Sql("UPDATE interval SET writes = -1 WHERE start_ns = 0"),
        "cell 1: the interval at 0 s has a negative number",
        false,
    ),
    (
        "negative bytes",
        Sql("UPDATE interval SET write_bytes = -4096 WHERE start_ns = 0"),
        "has a negative number",
        false,
    ),
    (
        "bytes of no operation",
        Sql("UPDATE interval SET read_bytes = 4096 WHERE start_ns = 0"),
        "moved bytes, and no operation",
        false,
    ),
    (
        "a count that is not the histogram's",
        Sql("UPDATE interval SET writes = 42 WHERE start_ns = 0"),
        "the interval at 0 s counts 42 of `write`, and their histogram 41",
        false,
    ),
    (
        "a count without a histogram",
        Sql("UPDATE interval SET reads = 3 WHERE start_ns = 0"),
        "counts operations, and has no histogram of them",
        false,
    ),
    (
        "a histogram that is not there",
        Sql("DELETE FROM histogram WHERE start_ns > 0"),
        "the interval at 10 s counts operations, and has no histogram",
        false,
    ),
    (
        "a histogram that is none",
        Sql("UPDATE histogram SET hdr = x'00' WHERE start_ns = 0"),
        "cell 1: the histogram of `write` at 0 s does not decode",
        false,
    ),
    (
        "a histogram cut short",
        Sql("UPDATE histogram SET hdr = substr(hdr, 1, length(hdr) - 1) WHERE start_ns > 0"),
        "the histogram of `write` at 10 s does not decode",
        false,
    ),
    (
        "a histogram of other bounds",
        Sql(
            "UPDATE histogram SET hdr = CAST(substr(hdr, 1, 24) || x'7fffffffffffffff' || substr(hdr, 33) AS BLOB)",
        ),
        "does not decode",
        false,
    ),
    (
        "a histogram of nothing known",
        Sql("UPDATE histogram SET op = 'trim' WHERE start_ns = 0"),
        "has a histogram of `trim`",
        false,
    ),
    (
        "a histogram of a transaction",
        Sql("UPDATE histogram SET op = 'payment' WHERE start_ns = 0"),
        "`payment`",
        false,
    ),
    (
        "latencies of another histogram",
        Sql("UPDATE interval SET write_p50_ns = write_p50_ns - 1 WHERE start_ns = 0"),
        "has latencies of `write` that are not those of their histogram",
        false,
    ),
    (
        "a mean of another histogram",
        Sql("UPDATE interval SET write_mean_ns = write_mean_ns * 1.01"),
        "has latencies of `write` that are not those of their histogram",
        false,
    ),
    (
        "an endless mean",
        Sql("UPDATE interval SET write_mean_ns = 9e999"),
        "has latencies that cannot be",
        false,
    ),
    (
        "percentiles that fall",
        Sql("UPDATE interval SET read_p50_ns = 7"),
        "has latencies that cannot be",
        false,
    ),
    (
        "a gap",
        Sql(
            "DELETE FROM interval WHERE start_ns = 10000000000; DELETE FROM histogram WHERE start_ns = 10000000000",
        ),
        "the interval at 20 s does not begin where the one before ends, at 10 s",
        false,
    ),
    (
        "no beginning",
        Sql("DELETE FROM interval WHERE start_ns = 0; DELETE FROM histogram WHERE start_ns = 0"),
        "the interval at 10 s does not begin where the one before ends, at 0 s",
        false,
    ),
    (
        "intervals that overlap",
        Sql("UPDATE interval SET end_ns = end_ns + 1 WHERE start_ns = 0"),
        "does not begin where the one before ends",
        false,
    ),
    (
        "an interval that ends first",
        Sql("UPDATE interval SET end_ns = 0 WHERE start_ns = 0"),
        "the interval at 0 s ends before it begins",
        false,
    ),
    (
        "counters that are no JSON",
        Sql("UPDATE interval SET counters = '[' WHERE start_ns = 0"),
        "cell 1: counters: EOF",
        false,
    ),
    (
        "bytes for a number",
        Sql("UPDATE interval SET writes = x'00' WHERE start_ns = 0"),
        "Invalid column type Blob",
        false,
    ),
    (
        "a cell that is not planned",
        Sql(
            "UPDATE cell SET cell = 77 WHERE cell = 1; UPDATE interval SET cell = 77; UPDATE histogram SET cell = 77; UPDATE device_time SET cell = 77",
        ),
        "cell 77: it is not the cell that",
        false,
    ),
    ("a negative cell", Sql("UPDATE cell SET cell = -1 WHERE cell = 0"), "Integer -1 out of range", false),
    (
        "other threads",
        Sql("UPDATE cell SET threads = 9 WHERE cell = 1"),
        "cell 1: it is not the cell that",
        false,
    ),
    (
        "another factor",
        Sql("UPDATE cell SET factors = '[[\"threads\",\"9\",\"count\"]]' WHERE cell = 1"),
        "cell 1: it is not the cell that",
        false,
    ),
    (
        "a factor without its kind",
        Sql("UPDATE cell SET factors = '[[\"threads\",\"2\"]]' WHERE cell = 1"),
        "cell 1: ",
        false,
    ),
    (
        "other data",
        Sql("UPDATE cell SET data_bytes = 4096 WHERE cell = 0"),
        "cell 0: it is not the cell that",
        false,
    ),
    (
        "negative bytes before",
        Sql("UPDATE cell SET written_before_bytes = -1 WHERE cell = 1"),
        "cell 1: its `written_before_bytes` is negative",
        false,
    ),
    (
        "a negative time",
        Sql("UPDATE device_time SET took_ns = -1"),
        "cell 1: its `took_ns` is negative",
        false,
    ),
    (
        "a gap of less than nothing",
        Sql("INSERT INTO gap SELECT id, 1, 5, -3, 'stopped' FROM campaign"),
        "cell 1: a gap of -3 ns at 5 ns, `stopped`",
        false,
    ),
    (
        "a gap for another reason",
        Sql("INSERT INTO gap SELECT id, 1, 5, 3, 'bored' FROM campaign"),
        "cell 1: a gap of 3 ns at 5 ns, `bored`",
        false,
    ),
    ("another seed", Sql("UPDATE campaign SET seed = 2"), "seed", false),
    ("another scale", Sql("UPDATE campaign SET scale = 2"), "scale", false),
    (
        "another experiment",
        Sql("UPDATE campaign SET experiment = replace(experiment, '1min', '2min')"),
        "experiment",
        false,
    ),
    ("another device", Sql("UPDATE campaign SET device = replace(device, 'i', 'j')"), "device", false),
    (
        "another version",
        Sql("UPDATE campaign SET version = '0.0.0'"),
        "the version of its campaign is another than here",
        JOIN_ONLY,
    ),
    ("another plan", Sql("UPDATE campaign SET plan = plan || 'x'"), "", false),
    (
        "two campaigns",
        Sql(
            "INSERT INTO campaign SELECT 2, name, title, experiment, target, device, seed, scale, version, started_at, command, plan, resolved FROM campaign",
        ),
        "this one has 2",
        JOIN_ONLY,
    ),
    (
        "cells of another campaign",
        Sql("UPDATE cell SET campaign = 7 WHERE cell = 0"),
        "`cell` has rows of a campaign that it has not",
        false,
    ),
    (
        "facts of another campaign",
        Sql("INSERT INTO environment VALUES (7, 0, 'kernel', '6.1')"),
        "`environment` has rows of a campaign that it has not",
        false,
    ),
    (
        "intervals of another campaign",
        Sql("UPDATE interval SET campaign = 7 WHERE start_ns = 0"),
        "`interval` has rows of a cell that it has not",
        false,
    ),
    (
        "histograms of no interval",
        Sql("UPDATE histogram SET start_ns = 1 WHERE start_ns = 0"),
        "cell 1: `histogram` has rows of an interval that it has not",
        false,
    ),
    (
        "transactions of no database",
        Sql("INSERT INTO transactions VALUES (1, 1, 0, 'payment', 1, 0, 0, 1.0, 1, 1, 1, 1, 1)"),
        "cell 1: it has transactions, and no database",
        false,
    ),
    (
        "a trigger",
        Sql("CREATE TRIGGER t AFTER INSERT ON cell BEGIN DELETE FROM campaign; END"),
        "it has the trigger `t`, which no store has",
        false,
    ),
    ("a view", Sql("CREATE VIEW v AS SELECT * FROM cell"), "it has the view `v`, which no store has", false),
    (
        "a view for a table",
        Sql(
            "DROP TABLE environment; CREATE VIEW environment AS SELECT 1 AS campaign, 0 AS position, 'k' AS key, 'v' AS value",
        ),
        "it has the view `environment`",
        false,
    ),
    ("another table", Sql("CREATE TABLE more (x)"), "it has the table `more`, which no store has", false),
    (
        "an index",
        Sql("CREATE INDEX i ON cell (hex(status))"),
        "it has the index `i`, which no store has",
        false,
    ),
    (
        "a computed column",
        Sql("ALTER TABLE cell ADD COLUMN more TEXT AS (hex(status))"),
        "its table `cell` has other columns",
        false,
    ),
    ("no table", Sql("DROP TABLE predicted"), "it has no table `predicted`", false),
    (
        "text that is not UTF-8",
        Sql("UPDATE cell SET failure = CAST(x'ff' AS TEXT) WHERE cell = 2"),
        "cell 2: ",
        false,
    ),
    (
        "a fact that is not UTF-8",
        Sql("INSERT INTO environment VALUES (1, 90, 'k', CAST(x'ff' AS TEXT))"),
        "",
        false,
    ),
    ("something else's", Sql("PRAGMA application_id = 7"), "it is a database of something else", false),
    ("a later format", Sql("PRAGMA user_version = 9"), "it has format 9, this one 5", false),
    ("two pages of noise", Bytes(8192, &[0xa5; 8192]), "", false),
    ("a file cut short", Cut(4096), "", false),
    ("no database", Cut(u64::MAX), "", false),
];

/// A damaged copy of a part.
fn harmed(good: &Path, path: &Path, harm: &Harm) {
    let mut bytes = std::fs::read(good).expect("reads");
    match harm {
        Bytes(from_end, noise) => {
            let at = bytes.len() - from_end;
            bytes[at..at + noise.len()].copy_from_slice(noise);
        }
        Cut(u64::MAX) => bytes = b"SQLite format 4, or so they say".repeat(200),
        Cut(length) => bytes.truncate(bytes.len() - *length as usize),
        Sql(_) => {}
    }
    std::fs::write(path, bytes).expect("writes");
    if let Sql(statements) = harm {
        let connection = Connection::open(path).expect("opens");
        connection.execute_batch("PRAGMA foreign_keys = OFF").expect("they are left alone");
        connection.execute_batch(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }
}

/// The bytes of a store, with the files that SQLite keeps beside it.
fn bytes(path: &Path) -> Vec<Vec<u8>> {
    let beside = |end: &str| std::fs::read(PathBuf::from(format!("{}{end}", path.display())));
    vec![beside("").expect("reads"), beside("-wal").unwrap_or_default()]
}

/// Symptom: cells that were never measured counted as done, and one bad histogram made a campaign unreadable.
/// Cause: the contents of parts were copied unchecked. Fix: parts are checked first.
#[test]
fn parts_that_no_writer_leaves_are_refused_and_nothing_lands() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    part(&at("good.db"));
    let mut taking = Store::open(&at("all.db")).expect("a new store");
    let campaign = taking.adopt(&at("good.db")).expect("the part is good");
    taking
        .connection
        .execute_batch(
            "UPDATE cell SET status = 'pending', verdict = NULL, wear = NULL, failure = NULL;
        DELETE FROM interval; DELETE FROM histogram; DELETE FROM device_time; DELETE FROM predicted;",
        )
        .expect("not begun");
    let mut wrong = Vec::new();
    for (number, (name, harm, reason, join_only)) in CASES.iter().enumerate() {
        let bad = at(&format!("bad-{number}.db"));
        harmed(&at("good.db"), &bad, harm);
        let before = bytes(&at("all.db"));
        let mut refused = |how: &str, done: Result<(), StoreError>| match done {
            Ok(()) => wrong.push(format!("{name}: {how} takes it")),
            Err(error) if !error.is_of_part() || !error.to_string().contains(reason) => {
                wrong.push(format!("{name}: {how} says: {error} ({error:?})"));
            }
            Err(_) => {}
        };
        refused("join", taking.join(&bad, campaign).map(drop));
        if !join_only {
            let other = at(&format!("merged-{number}.db"));
            refused("adopt", Store::open(&other).expect("a new store").adopt(&bad).map(drop));
            refused("merge", taking.merge(std::slice::from_ref(&bad)).map(drop));
            let left = Store::open_existing(&other).expect("a store").campaigns().expect("reads");
            assert_eq!(left, [], "{name}: something landed");
        }
        assert!(bytes(&at("all.db")) == before, "{name}: the store is not as it was");
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
    let came = taking.join(&at("good.db"), campaign).expect("the good one is taken");
    assert_eq!(came, [1]);
    let cells = taking.load(campaign).expect("reads").cells;
    let standing: Vec<Status> = cells.iter().map(|cell| cell.status).collect();
    assert_eq!(standing, [Status::Pending, Status::Done, Status::Failed, Status::Spared]);
}

/// Symptom: one histogram that does not decode made a whole campaign unreadable, for good. Fix: its cell is
/// left out and named, and measured again.
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
        harmed(&path.clone(), &path, &Sql(harm));
        let mut store = Store::open(&path).expect("opens");
        let cells = store.load(1).expect("the others read back").cells;
        assert_eq!(cells[1].status, Status::Damaged, "{harm}");
        assert!(cells[1].failure.is_some() && cells[1].rows.is_empty());
        assert_eq!((cells.len(), cells[2].status), (4, Status::Failed), "{harm}");
        let experiment = Experiment::parse("t.toml", TEXT, &[]).expect("valid");
        let (_, done) =
            store.resume(&Plan::new(experiment, Seed::new(1), 1).expect("plans")).expect("resumes");
        assert_eq!(done, [false; 4], "{harm}");
    }
}

/// A store from elsewhere makes a plan read no file, however its experiment names the device.
#[test]
fn files_in_a_strangers_experiment_are_seen() {
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
