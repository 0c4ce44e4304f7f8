//! The figures that the project promises have their names.

mod common;

use common::Lab;

#[test]
#[ignore = "simulates a drive of 160 GiB: ten seconds and more"]
fn simulate_says_how_many_host_writes_a_processor_second_serves() {
    let text = Lab::new().ok(&["bench", "simulate", "--format", "json", "--seed", "1"]);
    let figures: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    let rate = figures["host_writes_per_cpu_second"].as_f64().expect("the figure is there");
    assert!(rate > 0.0, "{text}");
}

#[test]
fn engine_removes_nothing_and_reports_its_cost() {
    let lab = Lab::new();
    let arguments =
        ["bench", "engine", "--file", "data", "--size", "4MiB", "--seconds", "1", "--format", "json"];
    let figures: serde_json::Value = serde_json::from_str(&lab.ok(&arguments)).expect("one JSON object");
    assert!(figures.is_object(), "{figures}");
}

#[test]
fn oltp_says_how_many_new_orders_there_were_and_leaves_nothing() {
    let lab = Lab::new();
    let arguments = [
        "bench",
        "oltp",
        "--engine",
        "sqlite",
        "--warehouses",
        "1",
        "--terminals",
        "2",
        "--seconds",
        "1",
        "--durability",
        "none",
        "--directory",
        ".",
        "--format",
        "json",
    ];
    let figures: serde_json::Value = serde_json::from_str(&lab.ok(&arguments)).expect("one JSON object");
    for name in ["load_s", "notpm", "client_cpu_ms_per_transaction", "statements_per_transaction"] {
        assert!(figures[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {figures}");
    }
    assert_eq!((figures["retries"].as_u64(), figures["durability"].as_str()), (Some(0), Some("none")));
    let names =
        std::fs::read_dir(lab.path(".")).expect("readable").map(|it| it.expect("readable").file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains("bench")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn logdisk_leaves_a_file_that_is_somebodys() {
    let lab = Lab::new();
    lab.write("mine.dat", "not to be lost");
    let error = lab.refuses(&["bench", "logdisk", "--file", "mine.dat"], 1);
    common::assert_says(&error, &["mine.dat", "exists"]);
    assert_eq!(lab.read("mine.dat"), "not to be lost");
}
