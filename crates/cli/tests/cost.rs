//! `lowtide cost`: its numbers for campaigns and for the published table, and its refusals.

mod common;

use common::{Lab, READS, assert_says};

/// [`READS`] with one thread at three sizes.
fn sizes() -> String {
    let reads = READS.replace("\"reads\"", "\"sizes\"").replace("threads = 4\nfile_size = \"20GiB\"\n", "");
    reads + "\n[sweep]\nfile_size = [\"20GiB\", \"40GiB\", \"80GiB\"]\n"
}

fn lab() -> Lab {
    let lab = Lab::with(&[
        ("sizes.toml", &sizes()),
        ("prices.csv", "name,usd\nintel-320-160gb,300\n"),
        ("prices.toml", "intel-320-160gb = 300\n"),
    ]);
    lab.ok("run ./sizes.toml --scale 1/256");
    lab
}

#[test]
fn dollars_follow_from_price_size_and_level() {
    let lab = lab();
    let ask = |prices: &str, floor: &str| lab.json(&format!("cost sizes --prices {prices} --floor {floor}"));
    let answer = ask("prices.csv", "1MiB/s");
    assert_eq!(answer, ask("prices.toml", "1MiB/s"));
    let rows = answer["tables"]["sizes"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for (row, gib) in rows.iter().zip([20.0, 40.0, 80.0]) {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        // Sizes are those of the experiment, although the campaign was scaled.
        assert_eq!(number("data_bytes"), gib * 1_073_741_824.0);
        assert!((number("usd_per_gb") - 300.0 / (gib * 1.073_741_824)).abs() < 1e-9, "{row}");
        assert!((number("usd_per_iops") - 300.0 / number("iops")).abs() < 1e-9, "{row}");
        assert!((number("usd_per_mib_per_s") - 300.0 / number("settled_mib_per_s")).abs() < 1e-9, "{row}");
    }
    // Every size keeps 1 MiB/s, and none keeps 10 GiB/s.
    let floor = &answer["tables"]["floor"]["rows"][0];
    assert_eq!(floor["usable_bytes"], rows[2]["data_bytes"], "{floor}");
    assert_eq!(floor["how"], "largest size measured; more may fit");
    let never = ask("prices.csv", "10GiB/s");
    assert_eq!(never["tables"]["floor"]["rows"][0]["how"], "no measured size keeps it");
    // A floor between the levels of two sizes gives a size between them.
    let level = |row: usize| rows[row]["settled_mib_per_s"].as_f64().expect("settled");
    assert!(level(1) > level(2), "more data than the map cache reaches: {rows:?}");
    let middle = ask("prices.csv", &format!("{:.6}MiB/s", f64::midpoint(level(1), level(2))));
    let data = middle["tables"]["floor"]["rows"][0]["usable_bytes"].as_f64().expect("it fits");
    assert!((data / 1_073_741_824.0 - 60.0).abs() < 0.01, "{middle}");
}

#[test]
fn every_format_is_printed_and_tables_fit_a_terminal() {
    let lab = lab();
    for arguments in ["--published e10", "1 --prices prices.csv --floor 5MiB/s"] {
        let ask = |format: &str| lab.ok(&format!("cost {arguments} --format {format}"));
        let table = ask("table");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(ask("csv").lines().count() > 1);
        assert!(ask("markdown").lines().any(|line| line.starts_with("| ")));
        assert!(lab.json(&format!("cost {arguments}")).is_object());
    }
}

/// Rows 2 to 4, 6 to 8 and 10 to 12 of `published/e10`.
#[test]
fn the_published_table_is_computed_again() {
    let lab = Lab::new();
    lab.prints("cost --published e10", &["3 of 3 devices"]);
    let answer = lab.json("cost --published e10");
    let rows = answer["tables"]["published"]["rows"].as_array().expect("rows");
    for (row, (gb, tpm)) in rows.iter().zip([(5.2, 4.8), (12.1, 27.0), (30.0, 3.6)]) {
        assert_eq!((&row["published_usd_per_gb"], &row["published_tpm_per_usd"]), (&gb.into(), &tpm.into()));
        for (key, printed) in [("usd_per_gb", gb), ("tpm_per_usd", tpm)] {
            let cut = row[key].as_f64().expect("a number") - printed;
            assert!((0.0..0.4).contains(&cut), "{key}: {row}");
        }
    }
    lab.refuses("cost --published e99", 2, &["`e99`", "`--published e10`"]);
}

#[test]
fn missing_stores_and_prices_are_reported() {
    let lab = Lab::new();
    lab.refuses("cost 1", 2, &["there is no store lowtide.db", "run an experiment first"]);
    lab.refuses("cost", 2, &["<RUN>"]);
    let lab = self::lab();
    lab.write("bad.csv", "intel-320-160gb,cheap\n");
    lab.refuses("cost sizes --prices bad.csv", 2, &["line 1: `cheap` is not a price"]);
    lab.refuses("cost sizes --prices absent.csv", 2, &["absent.csv", "No such file"]);
    lab.refuses("cost size --prices prices.csv", 2, &["did you mean `sizes`?"]);
    for floor in ["100", "100MiB", "1DWPD"] {
        lab.refuses(&format!("cost sizes --floor {floor}"), 2, &["such as `"]);
    }
}

#[test]
fn without_a_list_the_price_of_the_device_file_is_used() {
    let lab = lab();
    let file = lab.ok("devices show intel-320-160gb");
    let named = |price: &str| {
        let lines = file.lines().filter(|line| !line.starts_with("price-usd"));
        lines
            .collect::<Vec<_>>()
            .join("\n")
            .replacen("[flash]", &format!("{price}\n[flash]"), 1)
            .replace("\"intel-320-160gb\"", "\"my-drive\"")
    };
    lab.write("own.toml", named(""));
    lab.write("sizes.toml", sizes().replace("intel-320-160gb", "./own.toml").replace("\"sizes\"", "\"own\""));
    lab.ok("run ./sizes.toml --scale 1/256");
    lab.write("none.csv", "my-drives,300\n");
    let says = ["no price of my-drive is known; the list has `my-drives`", "my-drive,390"];
    lab.refuses("cost own --prices none.csv", 2, &says);
    lab.write("own.toml", named("price-usd = 250"));
    lab.ok("run ./sizes.toml --scale 1/256");
    lab.prints("cost own", &["Prices: my-drive $250"]);
    // A list takes precedence over the file.
    lab.write("list.csv", "my-drive,100\n");
    lab.prints("cost own --prices list.csv", &["Prices: my-drive $100"]);
    // Two devices in one table, each with its own price.
    lab.write("both.csv", "my-drive,100\nintel-320-160gb,300\n");
    let both = lab.ok("cost own sizes --prices both.csv --floor 1MiB/s");
    assert_says(&both, &["my-drive $100", "intel-320-160gb $300", "a usable GB costs"]);
    assert!(both.lines().all(|line| line.chars().count() <= 80), "{both}");
}
