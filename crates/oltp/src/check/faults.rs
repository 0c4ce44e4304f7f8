//! Ways to break each condition on purpose: for the tests of every engine.
//!
//! They are for a database as it was loaded, and each is undone. Leaves out what a check says about data that broke by
//! itself.

use crate::check;
use crate::tpcc::Scale;
use crate::{Database, OltpError};
use std::collections::BTreeSet;

/// A fault.
struct Fault {
    /// The clause of the condition that it breaks.
    clause: &'static str,
    /// Those that it cannot but break with it.
    also: &'static [&'static str],
    breaks: Vec<String>,
    repairs: Vec<String>,
}

/// What a fault did.
#[derive(Debug)]
pub struct Tried {
    /// The clause that it was for.
    pub clause: &'static str,
    /// The clauses that it has to break.
    pub expected: BTreeSet<&'static str>,
    /// The clauses that were broken.
    pub broken: BTreeSet<&'static str>,
}

/// Breaks one condition after the other in a freshly loaded database, and repairs it.
///
/// # Errors
/// [`OltpError`] where a statement fails.
pub fn try_each(database: &dyn Database, scale: &Scale) -> Result<Vec<Tried>, OltpError> {
    let run = |statements: &[String]| statements.iter().try_for_each(|it| database.execute(it));
    let try_one = |fault: Fault| {
        run(&fault.breaks)?;
        let checked = check::all(database, scale)?;
        run(&fault.repairs)?;
        let broken = checked.iter().filter(|condition| condition.broken != 0).map(|it| it.clause).collect();
        let expected = fault.also.iter().copied().chain([fault.clause]).collect();
        Ok(Tried { clause: fault.clause, expected, broken })
    };
    faults(scale).into_iter().map(try_one).collect()
}

fn faults(scale: &Scale) -> Vec<Fault> {
    let warehouse = scale.warehouses.end();
    // The last order but one is not delivered, and there are others before and after it.
    let undelivered = scale.customers - 1;
    let add = |table: &str, column: &str, by: &str, rows: String| {
        let change = |sign| format!("UPDATE {table} SET {column} = {column} {sign} {by} WHERE {rows}");
        (change('+'), change('-'))
    };
    let both = |pairs: &[(String, String)]| {
        let (breaks, repairs) = pairs.iter().cloned().unzip();
        (breaks, repairs)
    };
    let customer = format!("c_w_id = {warehouse} AND c_d_id = 1 AND c_id = 1");
    let order = |id: u32| format!("o_w_id = {warehouse} AND o_d_id = 1 AND o_id = {id}");
    let first_line = format!("ol_w_id = {warehouse} AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1");
    // A payment of nobody; district 0 is none.
    let paid = |district: u32, amount: i32| {
        format!(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
             SELECT 0, 0, {warehouse}, {district}, {warehouse}, max(h_date), {amount}, 'fault' FROM history"
        )
    };
    let unpaid = "DELETE FROM history WHERE h_c_id = 0".to_owned();
    let key = format!("no_w_id = {warehouse} AND no_d_id = 1 AND no_o_id = {undelivered}");

    let one = |clause, also, breaks: String, repairs: String| Fault {
        clause,
        also,
        breaks: vec![breaks],
        repairs: vec![repairs],
    };
    let added = |clause, also, pairs: &[(String, String)]| {
        let (breaks, repairs) = both(pairs);
        Fault { clause, also, breaks, repairs }
    };
    vec![
        added("3.3.2.1", &["3.3.2.8"], &[add("warehouse", "w_ytd", "1", format!("w_id = {warehouse}"))]),
        added(
            "3.3.2.2",
            &[],
            &[add("district", "d_next_o_id", "1", format!("d_w_id = {warehouse} AND d_id = 1"))],
        ),
        one(
            "3.3.2.3",
            &["3.3.2.5", "3.3.2.11"],
            format!("DELETE FROM new_order WHERE {key}"),
            format!(
                "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES ({warehouse}, 1, {undelivered})"
            ),
        ),
        one(
            "3.3.2.4",
            &[],
            format!(
                "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
                 ol_quantity, ol_amount, ol_dist_info) VALUES ({warehouse}, 1, 0, 1, 1, {warehouse}, 5, 0, 'fault')"
            ),
            format!("DELETE FROM order_line WHERE ol_w_id = {warehouse} AND ol_d_id = 1 AND ol_o_id = 0"),
        ),
        one(
            "3.3.2.5",
            &["3.3.2.7"],
            format!("UPDATE orders SET o_carrier_id = 1 WHERE {}", order(undelivered)),
            format!("UPDATE orders SET o_carrier_id = NULL WHERE {}", order(undelivered)),
        ),
        added(
            "3.3.2.6",
            &[],
            &[add("orders", "o_ol_cnt", "1", order(1)), add("orders", "o_ol_cnt", "(-1)", order(2))],
        ),
        one(
            "3.3.2.7",
            &[],
            format!("UPDATE order_line SET ol_delivery_d = NULL WHERE {first_line}"),
            format!(
                "UPDATE order_line SET ol_delivery_d = \
                 (SELECT o_entry_d FROM orders WHERE {}) WHERE {first_line}",
                order(1)
            ),
        ),
        one("3.3.2.8", &[], paid(0, 1), unpaid.clone()),
        Fault { clause: "3.3.2.9", also: &[], breaks: vec![paid(1, 1), paid(0, -1)], repairs: vec![unpaid] },
        added(
            "3.3.2.10",
            &[],
            &[
                add("customer", "c_balance", "1", customer.clone()),
                add("customer", "c_ytd_payment", "(-1)", customer.clone()),
            ],
        ),
        added("3.3.2.11", &[], &[add("customer", "c_delivery_cnt", "1", customer.clone())]),
        added("3.3.2.12", &[], &[add("customer", "c_ytd_payment", "1", customer)]),
        added("stock", &[], &[add("stock", "s_ytd", "1", format!("s_w_id = {warehouse} AND s_i_id = 1"))]),
    ]
}
