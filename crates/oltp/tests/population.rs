//! Tests of the rows of a load against clause 4.3.3: number, values, order, and equality for equal seeds.
//!
//! The tests use no database. Consistency conditions check loaded databases.

use lowtide_core::Seed;
use lowtide_engines::tpcc::population::{count, write};
use lowtide_engines::tpcc::{DISTRICTS, Scale, TabSeparated, Table};
use std::collections::{BTreeMap, BTreeSet};

const SEED: u64 = 42;

fn text(table: Table, warehouse: u32, scale: &Scale, seed: u64) -> String {
    let mut lines = TabSeparated::new(Vec::new());
    write(table, warehouse, scale, Seed::new(seed), &mut lines).expect("memory takes everything");
    String::from_utf8(lines.finish().expect("memory takes everything")).expect("ASCII")
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split('\t').collect()).collect()
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("seed {SEED}: `{text}` is a number"))
}

/// The values of a column as numbers.
fn column(table: Table, name: &str, rows: &[Vec<&str>]) -> Vec<i64> {
    let at = table.columns().iter().position(|column| column.name == name).expect("a column");
    rows.iter().map(|row| number(row[at])).collect()
}

#[test]
fn a_warehouse_has_the_rows_that_the_specification_says() {
    let scale = Scale::warehouses(1);
    for table in Table::ALL {
        let text = text(table, 1, &scale, SEED);
        let rows = rows(&text);
        let said = match table {
            Table::Item | Table::Stock => 100_000,
            Table::Warehouse => 1,
            Table::District => 10,
            Table::Customer | Table::History | Table::Orders => 30_000,
            Table::NewOrder => 9_000,
            // An order has 10 lines on average. The variance of 5 to 15 lines is 10, so the standard deviation of the
            // sum is 548.
            Table::OrderLine => {
                assert!(rows.len().abs_diff(300_000) < 5 * 548, "seed {SEED}: {}", rows.len());
                rows.len()
            }
        };
        assert_eq!(rows.len(), said, "{}", table.name());
        if table != Table::OrderLine {
            assert_eq!(count(table, &scale), said as u64, "{}", table.name());
        }
        assert!(rows.iter().all(|row| row.len() == table.columns().len()), "{}", table.name());
        assert!(!text.contains('\\') || matches!(table, Table::Orders | Table::OrderLine));
    }
}

#[test]
fn rows_come_in_the_order_of_the_key_and_no_key_twice() {
    let scale = Scale { warehouses: 3..=4, customers: 100, items: 500 };
    for table in Table::ALL.into_iter().filter(|table| !table.key().is_empty()) {
        let text = text(table, 4, &scale, SEED);
        let rows = rows(&text);
        let columns: Vec<Vec<i64>> = table.key().iter().map(|name| column(table, name, &rows)).collect();
        let keys: Vec<Vec<i64>> =
            (0..rows.len()).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "seed {SEED}: {}", table.name());
    }
}

#[test]
fn equal_seeds_give_equal_rows_and_others_do_not() {
    let scale = Scale { warehouses: 1..=2, customers: 50, items: 200 };
    for table in Table::ALL {
        let once = text(table, 2, &scale, SEED);
        assert_eq!(once, text(table, 2, &scale, SEED), "{}", table.name());
        if table != Table::NewOrder {
            assert_ne!(once, text(table, 2, &scale, SEED + 1), "{}", table.name());
            assert_eq!(once == text(table, 1, &scale, SEED), !table.per_warehouse(), "{}", table.name());
        }
    }
}

#[test]
fn customers_bear_each_name_and_their_orders_are_a_permutation() {
    let scale = Scale::warehouses(1);
    let customers = text(Table::Customer, 1, &scale, SEED);
    let customers = rows(&customers);
    let names = |from: usize| customers[from..from + 1_000].iter().map(|row| row[5]).collect::<BTreeSet<_>>();
    assert_eq!(names(0).len(), 1_000);
    assert_eq!((customers[0][5], customers[999][5]), ("BARBARBAR", "EINGEINGEING"));
    assert!(names(1_000).len() < 1_000);
    let bad = customers.iter().filter(|row| row[13] == "BC").count();
    // The expected number is 3 000 of 30 000, with a standard deviation of 52.
    assert!(bad.abs_diff(3_000) < 260, "seed {SEED}: {bad}");
    assert_eq!(column(Table::Customer, "c_balance", &customers).iter().sum::<i64>(), -1_000 * 30_000);

    let orders = text(Table::Orders, 1, &scale, SEED);
    for district in rows(&orders).chunks(3_000) {
        let all: BTreeSet<i64> = column(Table::Orders, "o_c_id", district).into_iter().collect();
        assert_eq!((all.len(), all.first(), all.last()), (3_000, Some(&1), Some(&3_000)), "seed {SEED}");
        let delivered = district.iter().take_while(|row| row[5] != "\\N").count();
        assert_eq!(delivered, 2_100);
        assert!(district[delivered..].iter().all(|row| row[5] == "\\N"));
    }
}

#[test]
fn orders_have_the_lines_they_say_and_only_delivered_ones_have_dates() {
    let scale = Scale { warehouses: 7..=7, customers: 300, items: 1_000 };
    let (orders, lines) = (text(Table::Orders, 7, &scale, SEED), text(Table::OrderLine, 7, &scale, SEED));
    let mut counted: BTreeMap<(i64, i64), (i64, bool)> = BTreeMap::new();
    for line in rows(&lines) {
        let dated = line[6] != "\\N";
        let entry = counted.entry((number(line[1]), number(line[0]))).or_insert((0, dated));
        entry.0 += 1;
        assert_eq!(entry.1, dated);
        let amount = number(line[8]);
        assert!(if dated { amount == 0 } else { (1..=999_999).contains(&amount) }, "seed {SEED}: {amount}");
        assert!((1..=1_000).contains(&number(line[4])) && line[5] == "7" && line[7] == "5");
    }
    assert_eq!(counted.len(), DISTRICTS as usize * 300);
    for order in rows(&orders) {
        let (count, dated) = counted[&(number(order[1]), number(order[0]))];
        assert_eq!((number(order[6]), order[5] != "\\N"), (count, dated), "seed {SEED}: {order:?}");
    }
}
