//! Faults that violate each consistency condition on purpose, for the tests of every engine.
//!
//! They apply to a freshly loaded database, and each one is undone.

use crate::check;
use crate::{Database, OltpError};
use lowtide_engines::tpcc::Scale;
use std::collections::BTreeSet;

/// A deliberate fault.
struct Fault {
    /// Clause of the condition that the fault is meant to violate.
    clause: &'static str,
    /// Clauses of the conditions that the fault inevitably violates too.
    also: &'static [&'static str],
    /// Statements that cause the fault, each with its inverse.
    changes: Vec<Change>,
}

/// A statement and its inverse.
type Change = (String, String);

/// Result of a fault.
#[derive(Debug)]
pub struct Tried {
    /// Clause of the condition that the fault was meant to violate.
    pub clause: &'static str,
    /// Clauses of all conditions that the fault should violate.
    pub expected: BTreeSet<&'static str>,
    /// Clauses of the conditions that were violated.
    pub broken: BTreeSet<&'static str>,
}

/// Causes one fault after another in a freshly loaded database, runs the checks, and undoes the fault.
///
/// # Errors
/// [`OltpError`] if a statement fails.
pub fn try_each(database: &dyn Database, scale: &Scale) -> Result<Vec<Tried>, OltpError> {
    let try_one = |fault: Fault| {
        fault.changes.iter().try_for_each(|(breaks, _)| database.execute(breaks))?;
        let checked = check::all(database, scale)?;
        fault.changes.iter().try_for_each(|(_, repairs)| database.execute(repairs))?;
        let broken = checked.iter().filter(|condition| condition.broken != 0).map(|it| it.clause).collect();
        let expected = fault.also.iter().copied().chain([fault.clause]).collect();
        Ok(Tried { clause: fault.clause, expected, broken })
    };
    faults(scale).into_iter().map(try_one).collect()
}

fn faults(scale: &Scale) -> Vec<Fault> {
    let warehouse = scale.warehouses.end();
    // The last order but one is undelivered, and so are its neighbours.
    let undelivered = scale.customers - 1;
    let customer = format!("c_w_id = {warehouse} AND c_d_id = 1 AND c_id = 1");
    let district = format!("d_w_id = {warehouse} AND d_id = 1");
    let order = |number: u32| format!("o_w_id = {warehouse} AND o_d_id = 1 AND o_id = {number}");
    let line =
        |order: u32| format!("ol_w_id = {warehouse} AND ol_d_id = 1 AND ol_o_id = {order} AND ol_number = 1");
    let date = format!("(SELECT o_entry_d FROM orders WHERE {})", order(1));
    vec![
        fault("3.3.2.1", &["3.3.2.8"], [add("warehouse", "w_ytd", 1, &format!("w_id = {warehouse}"))]),
        fault("3.3.2.2", &[], [add("district", "d_next_o_id", 1, &district)]),
        fault("3.3.2.3", &["3.3.2.5", "3.3.2.11"], [deliver(*warehouse, undelivered)]),
        fault("3.3.2.4", &[], [line_of_no_order(*warehouse, &line(0))]),
        fault("3.3.2.5", &["3.3.2.7"], [set("orders", "o_carrier_id", ["1", "NULL"], &order(undelivered))]),
        fault(
            "3.3.2.6",
            &[],
            [add("orders", "o_ol_cnt", 1, &order(1)), add("orders", "o_ol_cnt", -1, &order(2))],
        ),
        fault("3.3.2.7", &[], [set("order_line", "ol_delivery_d", ["NULL", &date], &line(1))]),
        fault("3.3.2.8", &[], [pay(*warehouse, 0, 1)]),
        fault("3.3.2.9", &[], [pay(*warehouse, 1, 1), pay(*warehouse, 0, -1)]),
        fault(
            "3.3.2.10",
            &[],
            [add("customer", "c_balance", 1, &customer), add("customer", "c_ytd_payment", -1, &customer)],
        ),
        fault("3.3.2.11", &[], [add("customer", "c_delivery_cnt", 1, &customer)]),
        fault("3.3.2.12", &[], [add("customer", "c_ytd_payment", 1, &customer)]),
        fault("rows", &[], [item_too_many(scale.items + 1)]),
        fault("stock", &[], [add("stock", "s_ytd", 1, &format!("s_w_id = {warehouse} AND s_i_id = 1"))]),
    ]
}

fn fault<const N: usize>(clause: &'static str, also: &'static [&'static str], changes: [Change; N]) -> Fault {
    Fault { clause, also, changes: changes.into() }
}

/// Sets a column to the first value, and back to the second.
fn set(table: &str, column: &str, values: [&str; 2], rows: &str) -> Change {
    values.map(|value| format!("UPDATE {table} SET {column} = {value} WHERE {rows}")).into()
}

/// Adds to a column, and subtracts again.
fn add(table: &str, column: &str, by: i32, rows: &str) -> Change {
    let sums = [format!("{column} + ({by})"), format!("{column} - ({by})")];
    set(table, column, sums.each_ref().map(String::as_str), rows)
}

/// Removes an order from the undelivered orders, and inserts it again.
fn deliver(warehouse: u32, order: u32) -> Change {
    (
        format!("DELETE FROM new_order WHERE no_w_id = {warehouse} AND no_d_id = 1 AND no_o_id = {order}"),
        format!("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ({warehouse}, 1, {order})"),
    )
}

/// Inserts an order line of order 0, which does not exist. `rows` selects the line for removal.
fn line_of_no_order(warehouse: u32, rows: &str) -> Change {
    (
        format!(
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
             ol_quantity, ol_amount, ol_dist_info) VALUES ({warehouse}, 1, 0, 1, 1, {warehouse}, 5, 0, 'fault')"
        ),
        format!("DELETE FROM order_line WHERE {rows}"),
    )
}

/// Inserts an item that no order contains.
fn item_too_many(number: u32) -> Change {
    (
        format!(
            "INSERT INTO item (i_id, i_im_id, i_name, i_price, i_data) VALUES ({number}, 1, 'fault', 100, 'fault')"
        ),
        format!("DELETE FROM item WHERE i_id = {number}"),
    )
}

/// Inserts a payment of customer 0, who does not exist. District 0 does not exist either.
fn pay(warehouse: u32, district: u32, amount: i32) -> Change {
    (
        format!(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             SELECT 0, 0, {warehouse}, {district}, {warehouse}, max(h_date), {amount}, 'fault' FROM history"
        ),
        "DELETE FROM history WHERE h_c_id = 0".to_owned(),
    )
}
