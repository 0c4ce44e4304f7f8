//! `lowtide lifetime`: its numbers for a model, a campaign and a real drive, and its refusals.

mod common;

use common::{Lab, assert_says};

fn sample(name: &str) -> String {
    let path = format!("{}/../report/src/lifetime/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The raw NAND of the simulated Intel 320, in GiB, as its file says.
fn raw_gib(lab: &Lab) -> f64 {
    let file = lab.ok("devices show intel-320-160gb");
    let raw = file.split("raw").nth(1).and_then(|rest| rest.split('"').nth(1)).expect("the file has it");
    raw.strip_suffix("GiB").and_then(|gib| gib.parse().ok()).expect("in GiB")
}

fn assert_fits(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_model_lasts_by_its_formula() {
    let lab = Lab::new();
    let rows = |more: &str| {
        let answer = lab.json(&format!("lifetime intel-320-160gb --writes 0.5DWPD --scale 1/64 {more}"));
        answer["tables"]["lifetime"]["rows"].clone()
    };
    let plain = rows("");
    let raw = raw_gib(&lab) * 1_073_741_824.0;
    for row in plain.as_array().expect("rows") {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        let tbw = raw * 3000.0 / (number("write_amplification") * number("wear_levelling"));
        assert!((number("tbw_bytes") / tbw - 1.0).abs() < 1e-12, "{row}");
        assert!((number("years") / (tbw / 80e9 / 365.0) - 1.0).abs() < 1e-12, "{row}");
        assert!((number("dwpd") / (tbw / (5.0 * 365.0 * 160e9)) - 1.0).abs() < 1e-12, "{row}");
    }
    assert_eq!((&plain[0]["writes"], &plain[1]["writes"]), (&"random".into(), &"sequential".into()));
    // The range of published/e13: the ends are a factor of two apart.
    let range = &rows("--cycles 5000..10000")[0];
    assert_eq!(range["years_most"].as_f64(), range["years"].as_f64().map(|years| 2.0 * years), "{range}");
    let levelled = &rows("--wear-levelling 2")[0];
    assert_eq!(levelled["tbw_bytes"].as_f64(), plain[0]["tbw_bytes"].as_f64().map(|bytes| bytes / 2.0));
}

#[test]
fn every_format_is_printed_and_tables_fit_a_terminal() {
    let lab = Lab::new();
    let ask = |more: &str| lab.ok(&format!("lifetime intel-320-160gb --writes 40MiB/s --scale 1/64 {more}"));
    let table = ask("");
    assert_fits(&table);
    let formula = format!("TBW = raw NAND ({}GiB)", raw_gib(&lab));
    assert_says(&table, &["random", "sequential", "simulated at 1/64 of its size", &formula]);
    assert_fits(&ask("--cycles 5000..10000 --fill 80% --reserve 20%"));
    let csv = ask("--format csv");
    assert!(csv.starts_with("writes,write_amplification,wear_levelling,"), "{csv}");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(ask("--format markdown").contains("| sequential |"));
    assert_eq!(ask("--format json"), ask("--format json"), "the same seed, the same bytes");
}

#[test]
fn a_device_file_may_give_a_range() {
    let lab = Lab::new();
    let file = lab.ok("devices show intel-320-160gb");
    let cycles = "pe-cycles       = 3000";
    assert!(file.contains(cycles));
    let with = |value: &str| file.replace(cycles, &format!("pe-cycles = {value}"));
    lab.write("range.toml", with("[5000, 10000]"));
    let ask = "lifetime ./range.toml --writes 1TB/day --scale 1/64";
    lab.prints(ask, &["rated cycles (5000..10000)", "TBW to"]);
    for (value, says) in [
        ("[10000, 5000]", "the fewest first"),
        ("0", "at least 1"),
        ("\"many\"", "a range such as `[5000, 10000]`"),
    ] {
        lab.write("range.toml", with(value));
        lab.refuses(ask, 2, &["./range.toml", says]);
    }
    lab.write("range.toml", file.replace(cycles, ""));
    lab.refuses(ask, 2, &["has no `nand.pe-cycles`", "--cycles 5000..10000"]);
    lab.ok(&format!("{ask} --cycles 3000"));
}

#[test]
fn a_campaign_lasts_by_its_counters() {
    let lab = Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256");
    for what in ["1", "tiny"] {
        let answer = lab.ok(&format!("lifetime {what} --writes 20GB/day"));
        assert_fits(&answer);
        assert_says(
            &answer,
            &["Life of tiny", "file_size 40GiB", "file_size 60GiB", "Wear is taken to be even"],
        );
    }
    let rows = lab.json("lifetime tiny --store lowtide.db --writes 20GB/day");
    let rows = rows["tables"]["lifetime"]["rows"].as_array().expect("rows").clone();
    let shown = lab.json("store show 1");
    for (row, cell) in rows.iter().zip(shown["tables"]["cells"]["rows"].as_array().expect("cells")) {
        assert_eq!(row["write_amplification"], cell["write_amplification"], "{row}\n{cell}");
    }
    lab.ok("run ./reads.toml --scale 1/256");
    lab.refuses("lifetime reads --writes 1GB/day", 2, &["no completed cell with writes"]);
}

#[test]
fn a_real_drive_lasts_by_its_own_counters() {
    let lab = Lab::new();
    let samples =
        ["intel-520", "intel-320", "intel-s3610", "crucial-mx500", "nvme-smartctl", "nvme-smart-log"];
    for name in samples {
        lab.write("now.json", sample(&format!("{name}.json")));
        assert_fits(&lab.ok("lifetime --smart now.json"));
    }
    lab.write("ocp.json", sample("nvme-ocp.json"));
    let says = ["Write amplification since new: 2.50", "8.42–17.2 years left at 1 TB/day"];
    lab.prints("lifetime --smart now.json --smart ocp.json --writes 1TB/day", &says);
    lab.write("320.json", sample("intel-320.json"));
    let wear = lab.ok("lifetime --smart 320.json");
    assert_says(&wear, &["The drive has no counter of NAND writes", "32.3–99 years left at 2.76 GB/day"]);
    lab.write("then.json", sample("intel-520.json"));
    let now = sample("intel-520.json").replace("25000", "25100").replace("320000", "320640");
    lab.write("later.json", now.replace("\"hours\": 10000", "\"hours\": 10024"));
    let between = lab.ok("lifetime --smart later.json --since then.json");
    // The host wrote 640 × 32 MiB, or 20 GiB, in a day; the NAND, 100 GiB.
    assert_says(&between, &["Write amplification between the readings: 5 NAND bytes", "at 21.5 GB/day"]);
    let says = ["decreased between the readings", "`--since` the earlier reading"];
    lab.refuses("lifetime --smart then.json --since later.json", 2, &says);
}

#[test]
fn unusable_readings_are_refused() {
    let log = sample("nvme-smart-log.json");
    let text = "smartctl 7.4 2023-08-01\n";
    let lab = Lab::with(&[("text.json", text), ("empty.json", "{}"), ("log.json", &log)]);
    for (arguments, says) in [
        ("text.json", ["text.json: it is not JSON", "smartctl --json -a"]),
        ("empty.json", ["empty.json: it contains no known counters", ""]),
        ("none.json", ["none.json cannot be read", ""]),
        ("log.json --cycles 3000", ["do not give the drive's capacity", "--raw 256GiB"]),
        ("log.json --writes 1DWPD", ["do not give the drive's capacity", "--writes 40GB/day"]),
    ] {
        lab.refuses(&format!("lifetime --smart {arguments}"), 2, &says);
    }
}

#[test]
fn bad_arguments_say_what_is_accepted() {
    let lab = Lab::new();
    let refused = |arguments: &str, says: &[&str]| lab.refuses(&format!("lifetime {arguments}"), 2, says);
    let accepted = "such as `40MiB/s` or `5TB/day`; or drive writes per day, such as `0.5DWPD`";
    for (rate, says) in [
        ("40MiB", "neither `/` with a time"),
        ("5TB/fortnight", "`fortnight` is not a unit of time"),
        ("40mib/s", "did you mean `40MiB`?"),
        ("0B/s", "there is no wear"),
    ] {
        refused(&format!("intel-320-160gb --writes {rate}"), &[says, accepted]);
    }
    let near = ["did you mean `intel-320-160gb`?", "or a campaign of a store"];
    refused("intel-32-160gb --writes 1TB/day", &near);
    refused("1 --writes 1TB/day", &["there is no store lowtide.db", "run an experiment first"]);
    refused("./none.toml --writes 1TB/day", &["cannot read the device `./none.toml`"]);
    for name in ["sas-15k-73gb", "intel-320-x2-raid0"] {
        let says =
            [&format!("{name} is not a single flash drive") as &str, "for an array one of its members"];
        refused(&format!("{name} --writes 1TB/day"), &says);
    }
    for (more, says) in [
        ("--fill 1.2", "write a share such as `0.8`"),
        ("--reserve x", "write a share such as `0.8`"),
        ("--cycles lots", "a range such as `5000..10000`"),
        ("--warranty 0", "write a number of years"),
        ("--wear-levelling 0.5", "write a factor from 1"),
        ("--block 1000B", "is not a multiple of the logical block"),
        ("--block 16kib", "did you mean `16KiB`?"),
        ("--scale 1/100000", "use a larger share"),
        ("--fill 0", "fewer than 1024 requests"),
    ] {
        refused(&format!("intel-320-160gb --writes 1TB/day {more}"), &[says]);
    }
    refused("intel-320-160gb", &["--writes <RATE>"]);
    refused("--since x.json --writes 1TB/day", &["--smart"]);
}
