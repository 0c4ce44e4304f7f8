//! The consistency conditions of clause 3.3.2, and two of our own. All hold whenever no transaction is in progress.
//!
//! Each condition is one query that returns a count, in SQL that all engines share: set operations without loops or
//! common table expressions. If a load had fewer customers than the specification, the expected numbers are scaled
//! with them.
//!
//! The thirteenth condition is about stock: the counters of a stock row must equal the sums over the order lines
//! since the load, whose own lines took nothing from stock. The check of the remaining quantity needs the seed of the
//! load ([`quantities`]); only tests run it.
//!
//! The fourteenth condition checks that rows exist: the other conditions relate rows to each other, and hold in empty
//! tables.
//!
//! The caller decides when to check. In a database that is in use, the conditions may fail because transactions end
//! between the queries.

#[doc(hidden)]
pub mod faults;
mod quantities;

pub use quantities::quantities;

use crate::{Database, OltpError};
use lowtide_engines::tpcc::{Scale, Table, population};

/// A condition, and the number of rows that violate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The equality that must hold.
    pub name: &'static str,
    /// The clause of the specification; `stock` and `rows` are our own.
    pub clause: &'static str,
    /// Rows that violate it: warehouses, districts, orders, customers or stock rows. For `rows`, the number of
    /// missing or surplus rows.
    pub broken: i64,
}

/// Checks every condition, in the order of the specification.
///
/// # Errors
/// [`OltpError`] if a query fails.
pub fn all(database: &dyn Database, scale: &Scale) -> Result<Vec<Condition>, OltpError> {
    let check = |(clause, name, query): &(&'static str, &'static str, String)| {
        Ok(Condition { name, clause, broken: database.number(query)? })
    };
    conditions(scale).iter().map(check).collect()
}

/// Clause, name, and the query that counts violations.
fn conditions(scale: &Scale) -> Vec<(&'static str, &'static str, String)> {
    let customers = scale.customers;
    let delivered = customers - population::undelivered(scale);
    vec![
        (
            "3.3.2.1",
            "w_ytd = sum of d_ytd",
            "SELECT count(*) FROM warehouse
             LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS total FROM district GROUP BY d_w_id) d ON d_w_id = w_id
             WHERE total IS NULL OR total <> w_ytd"
                .to_owned(),
        ),
        (
            "3.3.2.2",
            "d_next_o_id - 1 = newest order = newest undelivered order",
            "SELECT count(*) FROM district
             LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o
             ON o_w_id = d_w_id AND o_d_id = d_id
             LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS undelivered FROM new_order
                        GROUP BY no_w_id, no_d_id) n
             ON no_w_id = d_w_id AND no_d_id = d_id
             WHERE newest IS NULL OR newest <> d_next_o_id - 1 OR undelivered <> d_next_o_id - 1"
                .to_owned(),
        ),
        (
            "3.3.2.3",
            "undelivered orders have no gaps",
            "SELECT count(*) FROM (SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id
                                   HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) broken"
                .to_owned(),
        ),
        (
            "3.3.2.4",
            "sum of o_ol_cnt = order lines of the district",
            "SELECT count(*) FROM district
             LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) o
             ON o_w_id = d_w_id AND o_d_id = d_id
             LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
             ON ol_w_id = d_w_id AND ol_d_id = d_id
             WHERE COALESCE(said, 0) <> COALESCE(found, 0)"
                .to_owned(),
        ),
        (
            "3.3.2.5",
            "an order has no carrier = it is undelivered",
            "SELECT count(*) FROM orders
             LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
             WHERE (o_carrier_id IS NULL AND no_o_id IS NULL)
             OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)"
                .to_owned(),
        ),
        (
            "3.3.2.6",
            "o_ol_cnt = order lines of the order",
            format!("SELECT count(*) FROM {ORDERS_WITH_LINES} WHERE o_ol_cnt <> COALESCE(found, 0)"),
        ),
        (
            "3.3.2.7",
            "order lines have no date = their order has no carrier",
            format!(
                "SELECT count(*) FROM {ORDERS_WITH_LINES}
                 WHERE (o_carrier_id IS NULL AND dated > 0) OR (o_carrier_id IS NOT NULL AND dated < found)"
            ),
        ),
        (
            "3.3.2.8",
            "w_ytd = sum of h_amount",
            "SELECT count(*) FROM warehouse
             LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) h ON h_w_id = w_id
             WHERE COALESCE(paid, 0) <> w_ytd"
                .to_owned(),
        ),
        (
            "3.3.2.9",
            "d_ytd = sum of h_amount",
            "SELECT count(*) FROM district
             LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) h
             ON h_w_id = d_w_id AND h_d_id = d_id
             WHERE COALESCE(paid, 0) <> d_ytd"
                .to_owned(),
        ),
        (
            "3.3.2.10",
            "c_balance = delivered ol_amount - h_amount",
            format!(
                "SELECT count(*) FROM {CUSTOMERS_WITH_DELIVERIES}
                 LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history
                            GROUP BY h_c_w_id, h_c_d_id, h_c_id) h
                 ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
                 WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0)"
            ),
        ),
        (
            "3.3.2.11",
            "orders - undelivered orders = 2100 + deliveries",
            format!(
                "SELECT count(*) FROM
                 (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS deliveries FROM customer GROUP BY c_w_id, c_d_id) c
                 LEFT JOIN (SELECT o_w_id, o_d_id, count(*) AS entered FROM orders GROUP BY o_w_id, o_d_id) o
                 ON o_w_id = c_w_id AND o_d_id = c_d_id
                 LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS undelivered FROM new_order
                            GROUP BY no_w_id, no_d_id) n
                 ON no_w_id = c_w_id AND no_d_id = c_d_id
                 WHERE COALESCE(entered, 0) - COALESCE(undelivered, 0) <> {delivered} + deliveries"
            ),
        ),
        (
            "3.3.2.12",
            "c_balance + c_ytd_payment = delivered ol_amount",
            format!(
                "SELECT count(*) FROM {CUSTOMERS_WITH_DELIVERIES}
                 WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0)"
            ),
        ),
        (
            "stock",
            "what stock counts = what order lines took since the load",
            format!(
                "SELECT count(*) FROM stock
                 LEFT JOIN (SELECT ol_supply_w_id, ol_i_id, sum(ol_quantity) AS taken, count(*) AS times,
                            sum(CASE WHEN ol_supply_w_id <> ol_w_id THEN 1 ELSE 0 END) AS remote
                            FROM order_line WHERE ol_o_id > {customers} GROUP BY ol_supply_w_id, ol_i_id) l
                 ON ol_supply_w_id = s_w_id AND ol_i_id = s_i_id
                 WHERE s_ytd <> COALESCE(taken, 0) OR s_order_cnt <> COALESCE(times, 0)
                 OR s_remote_cnt <> COALESCE(remote, 0) OR s_quantity < 10 OR s_quantity > 100"
            ),
        ),
        ("rows", "the rows of warehouse, district, customer, stock and item are there", rows(scale)),
    ]
}

/// The query that counts missing and surplus rows in the tables of fixed size (clause 1.2.1).
fn rows(scale: &Scale) -> String {
    let tables = [Table::Warehouse, Table::District, Table::Customer, Table::Stock, Table::Item];
    let off = tables.map(|table| {
        let (name, expected) = (table.name(), population::count(table, scale));
        format!("(SELECT ABS(count(*) - {expected}) FROM {name})")
    });
    format!("SELECT {}", off.join(" + "))
}

/// Orders, each with its number of lines (`found`) and of delivered lines (`dated`).
const ORDERS_WITH_LINES: &str = "orders
     LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found, count(ol_delivery_d) AS dated
                FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l
     ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id";

/// Customers, each with the total amount of delivered orders (`delivered`).
const CUSTOMERS_WITH_DELIVERIES: &str = "customer
     LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS delivered FROM orders
                JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) d
     ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id";
