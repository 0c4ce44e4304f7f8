//! Import of the output of fio (every format) and sysbench, and export of jobs for fio.
//!
//! The oracles are the programs' own totals and percentiles. If a program is missing, its test is skipped; with
//! `LOWTIDE_REQUIRE_REAL=1` it fails. No number depends on the speed of the machine.
#![allow(clippy::print_stdout)]

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, assert_says};
use loopback::skipped;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::process::{Command, Output};

/// Width of one of fio's latency bins, as a share of the value.
const BIN: f64 = 1.0 / 64.0;

/// Runs a program in the lab's directory; `None`, with a message, if it is missing.
fn real(lab: &Lab, program: &str, arguments: &str) -> Option<Output> {
    match Command::new(program).args(arguments.split_whitespace()).current_dir(lab.path("")).output() {
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {arguments}\n{error}");
            Some(output)
        }
        Err(error) => {
            skipped(&format!("{program} cannot be run: {error}"));
            None
        }
    }
}

/// Runs fio on a file of 8 MiB in the lab, with a fixed seed.
fn fio(lab: &Lab, more: &str) -> Option<Output> {
    real(lab, "fio", &format!("--filename=data --size=8m --ioengine=psync --randseed=1 --thread {more}"))
}

/// The first JSON value of a file, after any lines of text.
fn json(lab: &Lab, file: &str) -> Json {
    let text = lab.read(file);
    let text = &text[text.find("\n{").map_or(0, |at| at + 1)..];
    let first = serde_json::Deserializer::from_str(text).into_iter().next();
    first.expect("an object").expect("JSON")
}

/// The last campaign of the store, as exported.
fn exported(lab: &Lab) -> Json {
    lab.json("store export")
}

/// Asserts that a cell has as many requests and bytes in each direction as fio's job.
fn assert_totals(cell: &Json, job: &Json, what: &str) {
    for direction in ["read", "write"] {
        let fio = &job[direction];
        let ours = [sum(cell, &format!("{direction}s")), sum(cell, &format!("{direction}_bytes"))];
        let theirs = ["total_ios", "io_bytes"].map(|key| fio[key].as_u64().expect("a count"));
        assert_eq!(ours, theirs, "{what}: {direction}");
    }
}

/// The sum of a column over the intervals of a cell.
fn sum(cell: &Json, column: &str) -> u64 {
    let intervals = cell["intervals"].as_array().expect("intervals");
    intervals.iter().map(|interval| interval[column].as_u64().expect("a count")).sum()
}

#[test]
fn totals_and_percentiles_of_fio_come_back_from_every_json_format() {
    let lab = Lab::new();
    for format in ["json", "json+", "normal,json"] {
        let jobs = format!(
            "--output-format={format} --output=out.json --name=one --rw=randread --number_ios=3000 \
             --name=two --stonewall --rw=randrw --bs=8k --number_ios=2000 --numjobs=2 --group_reporting"
        );
        if fio(&lab, &jobs).is_none() {
            return;
        }
        lab.ok("store import out.json");
        let (found, expected) = (exported(&lab), json(&lab, "out.json"));
        let (cells, jobs) =
            (found["cells"].as_array().expect("cells"), expected["jobs"].as_array().expect("jobs"));
        assert_eq!(cells.len(), jobs.len());
        for (cell, job) in cells.iter().zip(jobs) {
            assert_totals(cell, job, format);
            for direction in ["read", "write"] {
                let fio = &job[direction];
                let ours = &cell["intervals"][0][format!("{direction}_latency")];
                for (key, percent) in
                    [("ns_p50", "50.000000"), ("ns_p95", "95.000000"), ("ns_p99", "99.000000")]
                {
                    let Some(theirs) = fio["clat_ns"]["percentile"][percent].as_f64() else { continue };
                    let ours = ours[key].as_f64().expect("a latency");
                    assert!(
                        (ours / theirs - 1.0).abs() <= BIN,
                        "{format} {direction} {key}: {ours} against {theirs}"
                    );
                }
            }
            let reason = cell["verdict"]["no_steady_state"].as_str().expect("one number is no steady state");
            assert!(reason.starts_with("one number"), "{reason}");
        }
        let environment = ["\"fio\": \"fio-", "\"option bs (pattern random-mixed"];
        lab.prints("store show 1 --format json", &environment);
    }
    lab.ok("report");
    lab.prints("compare 1 2", &["no cell in common in which both settled"]);
}

#[test]
fn logs_of_single_requests_hold_exactly_what_fio_counted() {
    let lab = Lab::new();
    let job = "--write_bw_log=j --write_iops_log=j --write_lat_log=j --log_offset=1 \
               --name=j --rw=randrw --bs=4k --number_ios=5000 --output-format=json --output=o.json";
    if fio(&lab, job).is_none() {
        return;
    }
    lab.ok("store import j_bw.1.log j_iops.1.log j_lat.1.log j_clat.1.log j_slat.1.log");
    let (found, job) = (exported(&lab), json(&lab, "o.json")["jobs"][0].clone());
    let cell = &found["cells"][0];
    assert_totals(cell, &job, "logs");
    for direction in ["read", "write"] {
        // The log has the exact latency of each request, rounded to three digits in lowtide's histograms.
        let longest = cell["intervals"].as_array().expect("intervals").iter();
        let longest = longest
            .filter_map(|it| it[format!("{direction}_latency")]["ns_max"].as_f64())
            .fold(0.0, f64::max);
        let theirs = job[direction]["lat_ns"]["max"].as_f64().expect("a latency");
        assert!((longest / theirs - 1.0).abs() < 0.001, "{direction}: {longest} against {theirs}");
    }
}

#[test]
fn averaged_logs_and_histograms_become_a_series_with_the_same_sums() {
    let lab = Lab::new();
    let job = "--write_bw_log=j --write_iops_log=j --write_lat_log=j --write_hist_log=j \
               --log_avg_msec=100 --log_hist_msec=200 --log_hist_coarseness=2 \
               --name=j --rw=randrw --bs=4k --time_based --runtime=2 --output-format=json --output=o.json";
    if fio(&lab, job).is_none() {
        return;
    }
    lab.ok("store import j_bw.1.log j_iops.1.log j_lat.1.log j_clat_hist.1.log --size 8MiB");
    let (found, job) = (exported(&lab), json(&lab, "o.json")["jobs"][0].clone());
    let cell = &found["cells"][0];
    let rows = cell["intervals"].as_array().expect("intervals");
    assert!(rows.len() > 5, "{} rows", rows.len());
    let lengths: Vec<u64> = rows[..rows.len() - 1]
        .iter()
        .map(|row| row["end_ns"].as_u64().expect("ns") - row["start_ns"].as_u64().expect("ns"))
        .collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let columns = |file: &str| -> Vec<Vec<u64>> {
        let line = |line: &str| line.split(',').map(|text| text.trim().parse().expect("a number")).collect();
        lab.read(file).lines().map(line).collect()
    };
    for (at, direction) in [(0, "read"), (1, "write")] {
        let mut before = 0;
        let mut bytes = 0.0;
        for line in columns("j_bw.1.log").iter().filter(|line| line[2] == at) {
            bytes += (line[1] * 1024 * (line[0] - before)) as f64 / 1000.0;
            before = line[0];
        }
        let ours = sum(cell, &format!("{direction}_bytes")) as f64;
        assert!((ours - bytes).abs() <= 1.0, "{direction}: {ours} against {bytes}");
        // fio's own count includes the time after the last entry.
        let theirs = job[direction]["io_bytes"].as_f64().expect("bytes");
        assert!(ours <= theirs * 1.1, "{direction}: {ours} against {theirs} of the whole run");
        let counted: u64 = columns("j_clat_hist.1.log")
            .iter()
            .filter(|line| line[1] == at)
            .flat_map(|line| line[3..].to_vec())
            .sum();
        let window = cell[format!("{direction}_latency_ns_counts")].as_array().expect("buckets");
        let kept: u64 = window.iter().map(|bucket| bucket[1].as_u64().expect("a count")).sum();
        assert!(kept > 0 && kept <= counted, "{direction}: {kept} of {counted} in the last quarter");
    }
    let reason = cell["verdict"]["no_steady_state"].as_str();
    assert!(reason.is_none_or(|reason| !reason.starts_with("one number")), "{reason:?}");
    lab.refuses("store import j_iops.1.log", 2, &["nothing says how much data was moved", "_bw"]);
}

#[test]
fn a_trace_of_fio_is_replayed_request_by_request() {
    let lab = Lab::new();
    let job = "--name=j --rw=randrw --bs=4k,8k --number_ios=400 --fsync=50 --write_iolog=io.log \
               --output-format=json --output=o.json";
    if fio(&lab, job).is_none() {
        return;
    }
    let job = json(&lab, "o.json")["jobs"][0].clone();
    lab.write(
        "replay.toml",
        "name = \"replay\"\ntarget.device = \"intel-320-160gb\"\n[workload]\ntrace = \"io.log\"\ninterval = \"10ms\"\n",
    );
    lab.make_directory("here");
    let fast = "--set pace=as-fast-as-possible --set depth=4";
    for more in ["", fast, "--target dir:here", &format!("--target dir:here {fast}")] {
        lab.ok(&format!("run ./replay.toml {more}"));
        let found = exported(&lab);
        let cell = &found["cells"][0];
        assert_eq!(sum(cell, "errors"), 0, "{more}");
        assert_totals(cell, &job, more);
    }
    assert_eq!(common::names(&lab.path("here")), [""; 0], "the files are removed");
    // A replay in virtual time is deterministic, and a trace replaces the experiment's own load.
    let export = |store: &str| {
        lab.ok(&format!("run ./reads.toml --set workload.trace=io.log --store {store}"));
        lab.exports(store)
    };
    assert_eq!(export("a.db"), export("b.db"));
    let says = ["the trace reaches up to byte", "1MiB of data", "wrap = true"];
    lab.refuses("run ./replay.toml --set file_size=1MiB --store c.db", 2, &says);
    lab.ok("run ./replay.toml --set file_size=1MiB --set wrap=true");
    lab.write(
        "old.log",
        "fio version 2 iolog\ndata add\ndata open\ndata read 0 4096\ndata write 4096 8192\ndata close\n",
    );
    let says = ["all requests of the trace have the same time", "as-fast-as-possible"];
    lab.refuses("run ./replay.toml --set trace=old.log --store c.db", 2, &says);
    // fio reads version 2 in the same way.
    let job = "--name=j --read_iolog=old.log --output-format=json --output=old.json --ioengine=psync";
    real(&lab, "fio", job);
    let job = json(&lab, "old.json")["jobs"][0].clone();
    lab.ok(&format!("run ./replay.toml --set trace=old.log {fast}"));
    let cell = exported(&lab)["cells"][0].clone();
    for direction in ["read", "write"] {
        assert_eq!(
            sum(&cell, &format!("{direction}_bytes")),
            job[direction]["io_bytes"].as_u64().expect("bytes")
        );
    }
}

#[test]
fn fio_accepts_and_runs_what_is_exported_for_it() {
    let lab = Lab::new();
    if fio(&lab, "--name=j --rw=write --bs=1m --output=o").is_none() {
        return;
    }
    let names = lab.ok("experiments list");
    let names: Vec<&str> = names.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut parsed = 0;
    // `replay` needs a trace of the user.
    let own = names.iter().filter(|name| **name != "replay");
    for name in own.filter(|name| lab.run(&format!("experiments show {name}")).status.success()) {
        let job = lab.run(&format!("store export --format fio --experiment {name} --output job.fio"));
        if !job.status.success() {
            assert_says(&String::from_utf8_lossy(&job.stderr), &["no requests that fio could make"]);
            continue;
        }
        real(&lab, "fio", "--parse-only job.fio");
        parsed += 1;
    }
    assert!(parsed > 10, "{parsed} experiments of {names:?}");

    lab.write(
        "small.toml",
        "name = \"small\"\ntarget.directory = \".\"\n[workload]\npattern = \"random-mixed\"\nmix = 0.7\nblock = \"8KiB\"\n\
         file_size = \"4MiB\"\nrequests = 2000\nthreads = 2\n[sweep]\ndepth = [1, 4]\n",
    );
    lab.ok("run ./small.toml");
    let job = lab.ok("store export --format fio");
    assert_eq!(job, lab.ok("store export --format fio --experiment ./small.toml"));
    lab.write(
        "small.fio",
        job.replace("ioengine=io_uring", "ioengine=psync").replace("direct=1", "direct=0"),
    );
    real(&lab, "fio", "--output-format=json+ --output=small.json small.fio");
    lab.ok("store import small.json");
    let found = exported(&lab);
    let cells = found["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2, "a cell each");
    for (cell, depth) in cells.iter().zip(["1", "4"]) {
        assert_eq!(
            cell["factors"],
            serde_json::json!([["depth", depth]]),
            "the same factor as in the experiment"
        );
        assert_eq!(sum(cell, "reads") + sum(cell, "writes"), 2000);
        assert_eq!(sum(cell, "read_bytes") + sum(cell, "write_bytes"), 2000 * 8192);
        assert_eq!((cell["threads"].as_u64(), cell["data_bytes"].as_u64()), (Some(2), Some(4 << 20)));
        let share = cell["read_share"].as_f64().expect("a share");
        assert!((share - 0.7).abs() < 0.05, "{share}");
    }
    lab.refuses("store export --format fio", 2, &["was imported"]);
}

#[test]
fn totals_and_series_of_sysbench_are_imported() {
    let lab = Lab::new();
    let sysbench = |mode: &str, verb: &str| {
        let options = "--file-total-size=4M --file-num=2 --time=2 --report-interval=1";
        real(&lab, "sysbench", &format!("fileio {options} --file-test-mode={mode} {verb}"))
    };
    if sysbench("rndrd", "prepare").is_none() {
        return;
    }
    for mode in ["rndrd", "rndrw", "seqrewr"] {
        let output = sysbench(mode, "run").expect("it ran before");
        lab.write("sb.txt", &output.stdout);
        let text = String::from_utf8_lossy(&output.stdout);
        let figure = |key: &str| -> f64 {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
            line.trim().trim_end_matches('s').parse().expect(key)
        };
        let seconds = figure("total time:");
        let once: String =
            text.lines().filter(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect();
        lab.write("once.txt", once);
        lab.ok("store import once.txt");
        let cell = exported(&lab)["cells"][0].clone();
        for (direction, key, mib) in
            [("read", "reads/s:", "read, MiB/s:"), ("write", "writes/s:", "written, MiB/s:")]
        {
            let (count, bytes) = (figure(key) * seconds, figure(mib) * seconds * 1024.0 * 1024.0);
            assert!((sum(&cell, &format!("{direction}s")) as f64 - count).abs() <= 1.0, "{mode} {direction}");
            let ours = sum(&cell, &format!("{direction}_bytes")) as f64;
            // Both are printed with two decimals.
            assert!(
                (ours - bytes).abs() <= 0.03 * 1024.0 * 1024.0 + 2.0 * 16_384.0,
                "{mode}: {ours} against {bytes}"
            );
        }
        lab.ok("store import sb.txt");
        let found = exported(&lab);
        let rows = found["cells"][0]["intervals"].as_array().expect("intervals").len();
        let reports = text.lines().filter(|line| line.starts_with('[')).count();
        assert!(reports > 0 && rows == reports, "{mode}: {rows} rows, {reports} reports");
    }
}

#[test]
fn a_refused_import_leaves_nothing_behind() {
    let lab = Lab::new();
    lab.write("a_bw.1.log", "5, 2, 0, 0\n4, 2, 0, 0\n");
    lab.write("good_bw.1.log", "1000, 2, 0, 0\n2000, 2, 0, 0\n");
    let says = ["a_bw.1.log:2: the time goes back from 5 to 4 ms", "per_job_logs=0"];
    lab.refuses("store import good_bw.1.log a_bw.1.log", 2, &says);
    lab.refuses("store import x --kind fio-jsno", 2, &["did you mean `fio-json`?"]);
    lab.ok("store import good_bw.1.log --name good");
    lab.refuses("store import a_bw.1.log", 2, &[]);
    lab.prints("store show", &["good"]);
    let says = ["\"1000 ms\"", "lowtide store import good_bw.1.log --name good"];
    lab.prints("store show good --format json", &says);
}

#[test]
fn fio_makes_requests_of_the_same_sizes() {
    let lab = Lab::new();
    lab.write(
        "sizes.toml",
        "name = \"sizes\"\ntarget.directory = \".\"\n[workload]\npattern = \"random-mixed\"\nmix = 0.4\n\
         blocks = [{ size = \"512B\", share = 0.2 }, { size = \"4KiB\", share = 0.7 }, { size = \"64KiB\", share = 0.1 }]\n\
         zones = [{ data = 0.05, access = 0.5 }, { data = 0.15, access = 0.3 }, { data = 0.8, access = 0.2 }]\n\
         file_size = \"16MiB\"\nrequests = 8000\ninterval = \"10ms\"\n",
    );
    lab.ok("run ./sizes.toml");
    let rows = common::rows(&lab.ok("store export"));
    let sum = |keys: [&str; 2]| -> f64 {
        let number = |row: &BTreeMap<String, String>, key| row[key].parse::<f64>().expect("a number");
        rows.iter().flat_map(|row| keys.map(|key| number(row, key))).sum()
    };
    let (requests, bytes) = (sum(["reads", "writes"]), sum(["read_bytes", "write_bytes"]));
    // The standard deviation of the mean over 8000 requests is 2.3 %.
    let expected = 0.2 * 512.0 + 0.7 * 4096.0 + 0.1 * 65_536.0;
    assert!((bytes / requests / expected - 1.0).abs() < 0.1, "{bytes} bytes in {requests} requests");

    let job = lab.ok("store export --format fio");
    assert_says(&job, &["bssplit=512/20:4096/70:65536/10", "random_distribution=zoned:50/5:30/15:20/80"]);
    lab.write(
        "sizes.fio",
        job.replace("ioengine=io_uring", "ioengine=psync").replace("direct=1", "direct=0"),
    );
    if real(&lab, "fio", "--output-format=json --output=sizes.json sizes.fio").is_none() {
        return;
    }
    let found = json(&lab, "sizes.json");
    let sum = |key: &str| -> f64 {
        ["read", "write"].iter().map(|way| found["jobs"][0][way][key].as_f64().expect("a number")).sum()
    };
    let (requests, bytes) = (sum("total_ios"), sum("io_bytes"));
    assert!((bytes / requests / expected - 1.0).abs() < 0.1, "{bytes} bytes in {requests} requests of fio");
}
