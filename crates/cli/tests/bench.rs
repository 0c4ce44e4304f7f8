//! `lowtide bench`: the figures have the documented names, and no file of the user is lost.

mod common;

use common::Lab;

#[test]
#[ignore = "simulates a drive of 160 GiB: ten seconds and more"]
fn simulate_says_how_many_host_writes_a_processor_second_serves() {
    let figures = Lab::new().json("bench simulate --seed 1");
    let rate = figures["host_writes_per_cpu_second"].as_f64().expect("the figure is there");
    assert!(rate > 0.0, "{figures}");
}

#[test]
fn engine_reports_its_cost() {
    let figures = Lab::new().json("bench engine --file data --size 4MiB --seconds 1");
    assert!(figures.is_object(), "{figures}");
}

#[test]
fn oltp_reports_new_orders_and_leaves_nothing() {
    let lab = Lab::new();
    let figures = lab.json(
        "bench oltp --engine sqlite --warehouses 1 --terminals 2 --seconds 1 --durability none --directory .",
    );
    for name in ["load_s", "notpm", "client_cpu_ms_per_transaction", "statements_per_transaction"] {
        assert!(figures[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {figures}");
    }
    assert_eq!((figures["retries"].as_u64(), figures["durability"].as_str()), (Some(0), Some("none")));
    let left = lab.names();
    assert!(!left.iter().any(|name| name.contains("bench")), "{left:?}");
}

#[test]
fn logdisk_keeps_a_file_of_the_user() {
    let lab = Lab::new();
    lab.write("mine.dat", "not to be lost");
    lab.refuses("bench logdisk --file mine.dat", 1, &["mine.dat", "exists"]);
    assert_eq!(lab.read("mine.dat"), "not to be lost");
}
