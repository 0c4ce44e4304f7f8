//! Tests of comparisons for databases: new orders per minute, transaction latencies, and device throughput.

use super::*;
use lowtide_lab::experiment::Experiment;
use lowtide_record::analysis::Estimate;
use lowtide_record::{Done, Oltp, Transactions};

/// The campaign of the other tests with transactions: in each second as many New-Orders end as MiB are written. One
/// of the New-Orders is rolled back. Each takes 1 ms times the MiB of its second.
fn asked(text: &str) -> Campaign {
    let mut campaign = campaign(text, 1);
    for cell in &mut campaign.cells {
        cell.oltp = Some(Box::default());
        for row in std::sync::Arc::make_mut(&mut cell.rows) {
            let latency = std::mem::take(&mut row.write);
            let mut transactions = Transactions::default();
            transactions.kinds[0] = Done { committed: row.writes - 1, rolled_back: 1, retries: 3, latency };
            row.transactions = Some(Box::new(transactions));
        }
    }
    assert_eq!(campaign.cells[0].oltp, Some(Box::new(Oltp::default())));
    campaign
}

fn of_claim(keys: &str, asked: impl Fn(&str) -> Campaign) -> Checked {
    let only = "where = { file_size = \"10GiB\", repetition = 1 }";
    let text = format!("{HEAD}\n[[claim]]\nname = \"c\"\nsays = \"so\"\nstudy = \"e08\"\n{keys}\n{only}");
    claims(&asked(&text), &latency).expect("it parses").remove(0)
}

fn is(keys: &str, number: f64) {
    let check = format!("{keys}\nat-least = {}\nat-most = {}", number * 0.999, number * 1.001);
    let claim = of_claim(&check, asked);
    assert!(claim.holds, "{keys}: {number} wanted, {claim:?}");
}

#[test]
fn new_orders_are_counted_by_the_minute() {
    is("measure = 'start'\nof = 'new-orders'", 80.0 * 60.0);
    is("measure = 'level'\nof = 'new-orders'", 50.0 * 60.0);
    is("measure = 'minimum'\nof = 'new-orders'\nunit = 'tx/s'", 50.0);
    // The throughput is the device's, the latency is the terminals'.
    is("measure = 'mean'\nof = 'throughput'", 60.0);
    is("measure = 'mean'\nof = 'mean-latency'", 62.5);
}

#[test]
fn the_settled_level_of_a_database_is_no_throughput() {
    let steady = |text: &str| {
        let mut campaign = asked(text);
        let (from_ns, to_ns) = (2 * SECOND, 4 * SECOND);
        let estimate = Estimate { mean: 2990.0, half_width: 10.0, from_ns, to_ns, batches: 2 };
        campaign.cells[0].verdict = Some(Verdict::Steady(estimate));
        campaign
    };
    let orders = of_claim("measure = 'settled'\nof = 'new-orders'\nat-least = 2990\nat-most = 2990", steady);
    assert!(orders.holds, "{orders:?}");
    let bytes = of_claim("measure = 'settled'\nof = 'throughput'\nat-least = 50\nat-most = 50", steady);
    assert!(bytes.holds, "{bytes:?}");
}

#[test]
fn a_block_device_has_no_new_orders() {
    let none = of_claim("measure = 'level'\nof = 'new-orders'\nat-least = 0", |text| campaign(text, 1));
    assert!(!none.holds && none.found.contains("the cell ran no database"), "{none:?}");
}

#[test]
fn published_transactions_stand_beside_measured_ones() {
    let published = "[[published]]\nstudy = \"e08\"\nline = 1\nmeasure = \"level\"\nof = \"new-orders\"\n\
                     where = { file_size = \"10GiB\", repetition = 1 }";
    let campaign = asked(&format!("{HEAD}\n{published}"));
    let found = comparisons(&campaign, &latency).expect("it parses").remove(0);
    assert_eq!((found.model, found.unit.as_str()), (Some(3000.0), "new-order tx/min"));
    assert_eq!((found.quantity, found.cell), (Quantity::Settled, Some(0)));
    let text = format!("{HEAD}\n{}", published.replace("of = \"new-orders\"\n", ""));
    let error = Experiment::parse("t.toml", &text, &[]).expect_err("the unit is not one of throughput");
    let shown = format!("{error:?}");
    assert!(shown.contains("does not fit") && shown.contains("new-orders"), "{shown}");
}
