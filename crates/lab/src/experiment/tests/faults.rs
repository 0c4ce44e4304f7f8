//! Tests that every single fault is reported on its line, together with the accepted input.

use super::{bad, with};

/// The replaced line of the valid experiment, the fault, the message, and the accepted input.
type Fault = (&'static str, &'static str, &'static str, &'static str);
/// The fault, the message, and the accepted input.
type Added = (&'static str, &'static str, &'static str);

const LENGTH: &str = "duration = \"1h\"";
const BLOCK: &str = "block = \"16KiB\"";
const PATTERN: &str = "pattern = \"random-write\"";
const SIZES: &str = "file_size = [\"10GiB\", \"20GiB\"]";
const DEVICE: &str = "device = \"intel-320-160gb\"";
const NAME: &str = "name = \"small\"";

#[rustfmt::skip]
const IN_PLACE_OF: &[Fault] = &[
    (LENGTH, "duration = '0s'", "`duration`: no time at all", "above 0"),
    (LENGTH, "duration = '1GiB'", "`1GiB` is not a span of time", "use one of ns"),
    (LENGTH, "requests = 0", "`requests`: 0 requests", "from 1"),
    (LENGTH, "requests = '5'", "takes a whole number", "requests = 4"),
    (LENGTH, "requests = 5\nmax = '1h'", "`max` belongs to `until`", "until"),
    (LENGTH, "until = 'stedy'", "unknown condition `stedy`: did you mean `steady`?", "steady"),
    (LENGTH, "until = 'steady'\nprecision = 2", "2 is not a precision", "0.015"),
    (LENGTH, "", "a workload without an end", "duration = \"1h\""),
    (BLOCK, "block = '0B'", "a block of no bytes", "a multiple of 512"),
    (BLOCK, "block = '1000B'", "1kB is not a multiple of 512 bytes", "a multiple of 512"),
    (BLOCK, "", "`block` is missing in [workload]", "block = \"16KiB\""),
    (BLOCK, "blocks = []", "`blocks`: not a list of two or more", "share = 0.7"),
    (BLOCK, "blocks = ['4KiB', { size = '8KiB', share = 0.5 }]", "`blocks` takes a table, not a string", "{"),
    (BLOCK, "blocks = [{ size = '4KiB', share = 0.5 }, { size = '8KiB', share = 0.4 }]", "`blocks`: shares that sum to 0.9", "sum to 1"),
    (BLOCK, "blocks = [{ size = '4KiB', share = 0.5 }, { size = '4096B', share = 0.5 }]", "`blocks`: 4KiB is listed twice", "each size once"),
    (BLOCK, "blocks = [{ size = '4KiB', share = 50 }, { size = '8KiB', share = 0.5 }]", "`share`: 50 is not a share", "between 0 and 1"),
    (BLOCK, "blocks = [{ size = '4KiB', share = 0.5 }, { size = '1000B', share = 0.5 }]", "1kB is not a multiple of 512 bytes", "a multiple of 512"),
    (BLOCK, "blocks = [{ size = '4KiB', share = 0.5 }, { share = 0.5 }]", "`size` is missing", "size = \"4KiB\""),
    (BLOCK, "blocks = [{ size = '4KiB', shar = 0.5 }, { size = '8KiB', share = 0.5 }]", "unknown key `shar`: did you mean `share`?", "size, share"),
    (BLOCK, "block = '4KiB'\nblocks = [{ size = '4KiB', share = 0.5 }, { size = '8KiB', share = 0.5 }]", "two block sizes: `block` and `blocks`", "remove"),
    (PATTERN, "pattern = 'random'", "a mixed pattern without `mix`", "mix = 0.83"),
    (PATTERN, "pattern = 'random'\nmix = 1.5", "`mix`: 1.5 is not a share", "from 0 to 1"),
    (SIZES, "utilisation = [0.5, 0]", "`utilisation`: 0 is not such a share", "up to 1"),
    (SIZES, "utilisation = 1.1", "1.1 is not such a share", "up to 1"),
    (SIZES, "utilisation = 0.5\nfile_size = '1GiB'", "two sizes of the data", "remove one"),
    (SIZES, "partition = '0B'", "a partition of no bytes", "120GB"),
    (SIZES, "idle = { from = '1s', to = '5s', step = '0s' }", "a step of nothing", "above 0"),
    (SIZES, "idle = '1GiB'", "`1GiB` is not a span of time", "use one of ns"),
    (SIZES, "file_size = []", "a factor without levels", "a list"),
    (SIZES, "file_size = ['1GiB', '1024MiB']", "1GiB is listed twice", "[repeat]"),
    (SIZES, "file_size = { from = '2GiB', to = '1GiB', step = '1GiB' }", "ends before it begins", "`from`"),
    (SIZES, "file_size = { from = '1GiB', to = '2GiB', step = '0B' }", "a step of nothing", "above 0"),
    (SIZES, "file_size = { from = '1GiB', to = '2GiB', factor = 1 }", "1 does not grow", "above 1"),
    (SIZES, "file_size = { from = '1GiB', to = '2GiB' }", "without `step` or `factor`", "factor = 2"),
    (SIZES, "file_size = { from = '1GiB', to = '2GiB', step = '1B' }", "more than 10000 levels", "larger step"),
    (SIZES, "file_size = { from = '1GiB', step = '1GiB' }", "`to` is missing", "to = "),
    (SIZES, "file_size = { from = '1GiB', too = '2GiB' }", "unknown key `too`: did you mean `to`?", "a range"),
    (SIZES, "block = '4KiB'", "`block` is given twice", "in [sweep]"),
    (SIZES, "pattern = { from = 1, to = 2, step = 1 }", "a range of names", "a list of names"),
    (DEVICE, "", "a target without anything to test", "exactly one of"),
    (DEVICE, "device = []", "a list of no devices", "name of a device"),
    (DEVICE, "device = ['a', 'a']", "`a` is listed twice", "once"),
    (DEVICE, "device = { log = 'a' }", "`data` is missing", "data = \"intel-320-160gb\""),
    (DEVICE, "device = { data = 'a', lgo = 'b' }", "unknown key `lgo`: did you mean `log`?", "valid keys of a device: data, mode, log"),
    (DEVICE, "device = { data = 'a+b', log = 'c' }", "`a+b` is two devices", "one device"),
    (DEVICE, "device = { data = 'a:x', mode = 'y' }", "`data` has the mode `x` already", "one mode"),
    (DEVICE, "device = { data = './a', mode = 'y' }", "`./a` is a path without an ending", "`.toml`"),
    (DEVICE, "device = ['sas-15k-73gb:shallow', { data = 'sas-15k-73gb', mode = 'shallow' }]", "`sas-15k-73gb-shallow` is listed twice", "once"),
    (NAME, "", "`name` is missing", "my-experiment"),
    (NAME, "name = ''", "`name`: an empty string", "my-experiment"),
    (NAME, "name = 'x'\nsource = 'published/e99'", "unknown study `e99`", "e01"),
];

#[rustfmt::skip]
const IN_WORKLOAD: &[Added] = &[
    ("interval = '0s'", "`interval`: no time at all", "above 0"),
    ("interval = '2h'", "2h is longer than the whole measurement, 1h", "up to 1h"),
    ("requests = 5", "two ends: `requests` and `duration`", "requests = 1000000"),
    ("utilisation = 0.5", "two sizes of the data", "remove one"),
    ("until = 'steady'", "two ends: `until` and `duration`", "max = \"4h\""),
    ("max = '2h'", "`max` belongs to `until`", "until"),
    ("threads = 0", "`threads`: 0 is out of range", "from 1"),
    ("threads = -1", "`threads`: -1 is below 0", "from 1"),
    ("threads = '4'", "takes a whole number, not a string", "threads = 4"),
    ("file_size = '1GiB'", "`file_size` is given twice", "in [sweep]"),
    ("zipf = 0", "`zipf`: 0 is not an exponent", "above 0"),
    ("zipf = nan", "`zipf`: not a finite number", "zipf = "),
    ("zipf = 1.1\nhot-cold = { data = 0.2, access = 0.8 }", "two distributions", "remove"),
    ("hot-cold = { data = 0.2 }", "`access` is missing", "access = 0.8"),
    ("hot-cold = { data = 1.2, access = 0.8 }", "1.2 is not a share", "0.2"),
    ("zones = [{ data = 0.2, access = 0.8 }, { data = 0.8, access = 0.1 }]", "`zones`: shares of the accesses that sum to 0.9", "sum to 1"),
    ("zones = [{ data = 0.2, access = 0.8 }, { data = 0.7, access = 0.2 }]", "`zones`: shares of the data that sum to 0.9", "sum to 1"),
    ("zones = { data = 0.2, access = 0.8 }", "`zones`: not a list of two or more", "access = 0.2"),
    ("zipf = 1.1\nzones = [{ data = 0.2, access = 0.8 }, { data = 0.8, access = 0.2 }]", "two distributions: `zipf` and `zones`", "remove"),
    ("streams = 4", "`streams` belongs to sequential patterns", "remove"),
    ("mix = 0.5", "`mix` with a pattern that only reads", "random-mixed"),
    ("rate = 0", "`rate`: 0 is not a rate", "above 0"),
    ("arrival = 'poisson'", "an open loop without `rate`", "rate = 1000"),
    ("rate = 9\narrival = 'closed'", "`rate` with a closed loop", "poisson"),
];

#[rustfmt::skip]
const OTHER_TABLES: &[Added] = &[
    ("[before-each-cell]\nlayout = { reserve = 1.0 }", "`reserve`: 1 is not a share", "below 1"),
    ("[before-each-cell]\nlayout = { reserve = -0.1 }", "`reserve`: -0.1 is not a share", "below 1"),
    ("[before-each-cell]\nlayout = { files = 0 }", "`files`: 0 is not a count", "from 1"),
    ("[before-each-cell]\nlayout = { files = 2000000 }", "10GiB is smaller than a block of 16KiB", "2000000 files"),
    ("[before-each-cell]\nlayout = { partition = '0B' }", "a partition of no bytes", "120GB"),
    ("[before-each-cell]\nlayout = { mkfs_trims = true }", "did you mean `mkfs-trims`?", "files, mkfs-trims"),
    ("[before-each-cell]\npurge = 'secure_erase'", "did you mean `secure-erase`?", "none, trim"),
    ("[repeat]\ntimes = 0", "`times`: 0 is not a count", "from 1"),
    ("[repeat]\nseed = -1", "a seed below 0", "from 0"),
    ("[repeat]\norder = 'shuffle'", "did you mean `shuffled`?", "interleaved"),
    ("[[step]]\nfill = 'random'", "`name` is missing in [[step]]", "second pass"),
    ("[[step]]\nname = 'a'\n[[step]]\nname = 'a'", "a second step of this name", "of its own"),
    ("[[published]]\nstudy = 'e2'\nline = 1\nmeasure = 'start'", "unknown study `e2`", "studies: e01"),
    ("[[published]]\nstudy = 'e02'\nline = 8\nmeasure = 'settled'\nform = 'drop-percent'", "`against` is missing", "the cells it is held against"),
    ("[[published]]\nstudy = 'e02'\nline = 8\nmeasure = 'drop-percent'", "unknown measure `drop-percent`", "stable-by, elapsed"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nagainst = {}", "`against` with the form `value`", "form = \"ratio\""),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nform = 'rato'", "did you mean `ratio`?", "value, ratio, percent"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nof = 'p96'", "unknown quantity `p96`", "throughput, iops, new-orders, mean-latency"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nof = 'iops'", "the unit MiB/s does not fit `mean` of `iops`", "req/s"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'elapsed'", "the unit MiB/s does not fit the measure `elapsed`", "given in us, ms, s"),
    ("[[published]]\nstudy = 'e02'\nline = 8\nmeasure = 'mean'", "the unit % does not fit `mean` of `throughput`", "`form = \"percent\"`"),
    ("[[published]]\nstudy = 'e08'\nline = 1\nmeasure = 'mean'", "the unit new-order tx/min does not fit", "MiB/s"),
    ("[[published]]\nstudy = 'e02'\nline = 9\nmeasure = 'stable-by'\nof = 'p95'", "`of` with `stable-by`, which is a time", "another measure"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nwhere = { repetition = 0 }", "`repetition`: 0 is not a count", "from 1"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nwhere = { repetition = [] }", "no repetition at all", "a list of them"),
    ("[[published]]\nstudy = 'e02'\nline = 8\nmeasure = 'mean'\nform = 'percent'\nagainst = {}\nagainst-step = 'x'", "unknown step `x`", "none"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean-after'", "`after` is missing", "2500s"),
    ("[[published]]\nstudy = 'e02'\nline = 1\nmeasure = 'start'\nafter = '1s'", "`after` with `start`", "another measure"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nstep = 'x'", "unknown step `x`", "none"),
    ("[[published]]\nstudy = 'e02'\nline = 6\nmeasure = 'mean'\nwhere = { size = 1 }", "unknown factor `size`", "depth"),
];

/// A valid claim. A fault replaces one of its lines or is appended.
const CLAIM: &str = "[[claim]]\nname = 'a-b'\nsays = 'so'\nstudy = 'e02'\nmeasure = 'mean'";

#[rustfmt::skip]
const IN_CLAIM: &[Added] = &[
    ("", "a claim without a check", "order = \"falling\""),
    ("at-least = 3\nat-most = 2", "2 is below `at-least`, 3", "at least as large"),
    ("at-least = 'x'", "`at-least` takes a number", "at-least = 1.5"),
    ("order = 'up'", "unknown order `up`", "falling, rising"),
    ("order = 'rising'\ntolerance = 1.5", "1.5 is not a share", "0.03"),
    ("at-least = 1\ntolerance = 0.1", "`tolerance` belongs to `order`", "falling"),
    ("at-least = 1\neach = true", "`each` with the form `value`", "form = \"ratio\""),
    ("order = 'rising'\nform = 'ratio'\nagainst = {}", "`order` of one number", "each = true"),
    ("at-least = 1\nunit = 'ms'", "the unit ms does not fit `mean` of `throughput`", "MB/s"),
    ("at-least = 1\nleft-out = 'elsewhere'", "`elsewhere` is no document", "docs/"),
    ("at-least = 1\natmost = 2", "unknown key `atmost`: did you mean `at-most`?", "tolerance"),
];

#[rustfmt::skip]
const EXCUSES: &[Added] = &[
    ("[[not-compared]]\nstudy = 'e02'\nlines = []\nwhy = 'x'", "`lines`: no row at all", "[1, 2]"),
    ("[[not-compared]]\nstudy = 'e02'\nlines = 1\nwhy = 'x'", "`lines`: not a list of rows", "[1, 2]"),
    ("[[not-compared]]\nstudy = 'e02'\nlines = [99]\nwhy = 'x'", "has no row 99", "from 1 to 10"),
    ("[[not-compared]]\nstudy = 'e02'\nlines = [1]", "`why` is missing", "why = "),
    ("[[claim]]\nname = 'A b'\nsays = 'so'\nstudy = 'e02'\nmeasure = 'mean'\nat-least = 1", "`A b` is not the name of a claim", "single hyphens"),
];

fn check(line: &str, fault: &str, says: &str, accepts: &str) {
    let told = bad(&with(line, fault));
    let words: Vec<&str> = told.split_whitespace().filter(|word| *word != "│").collect();
    let unwrapped = words.join(" ");
    assert!(unwrapped.contains(says), "{fault}\nshould say: {says}\n{told}");
    assert!(unwrapped.contains(accepts), "{fault}\nshould accept: {accepts}\n{told}");
    assert_eq!(
        told.matches("[small.toml:").count(),
        1,
        "{fault}\nshould be told once, with its place\n{told}"
    );
}

#[test]
fn a_faulty_line_is_told() {
    for (line, fault, says, accepts) in IN_PLACE_OF {
        check(line, fault, says, accepts);
    }
}

#[test]
fn a_faulty_key_of_the_workload_is_told() {
    for (fault, says, accepts) in IN_WORKLOAD {
        check(BLOCK, &format!("{BLOCK}\n{fault}"), says, accepts);
    }
}

#[test]
fn a_faulty_table_is_told() {
    for (fault, says, accepts) in OTHER_TABLES {
        check("[sweep]", &format!("{fault}\n\n[sweep]"), says, accepts);
    }
}

#[test]
fn a_faulty_claim_or_excuse_is_told() {
    for (fault, says, accepts) in IN_CLAIM {
        check("[sweep]", &format!("{CLAIM}\n{fault}\n\n[sweep]"), says, accepts);
    }
    for (fault, says, accepts) in EXCUSES {
        check("[sweep]", &format!("{fault}\n\n[sweep]"), says, accepts);
    }
}

#[test]
fn claims_have_names_of_their_own() {
    let twice = format!("{CLAIM}\nat-least = 1\n{CLAIM}\nat-least = 2");
    check("[sweep]", &format!("{twice}\n\n[sweep]"), "a second claim of this name", "of its own");
}
