//! The five transactions as SQLite statements (clauses 2.4.2 to 2.8.2).
//!
//! Every column that the specification requires is read; columns that only a terminal would show are discarded. The
//! module `session` begins and ends the transactions.

use crate::{Failure, Outcome};
use lowtide_engines::tpcc::{
    DISTRICTS, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction, Who,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use std::sync::LazyLock;

/// A connection, its prepared statements, and the number of statements sent.
pub(super) struct Statements<'a> {
    connection: &'a Connection,
    sent: &'a mut u64,
}

impl<'a> Statements<'a> {
    pub(super) fn new(connection: &'a Connection, sent: &'a mut u64) -> Self {
        Statements { connection, sent }
    }
    pub(super) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }
    /// Runs a statement; returns the number of changed rows.
    pub(super) fn execute(&mut self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        *self.sent += 1;
        self.connection.prepare_cached(sql)?.execute(params)
    }
    /// Reads every column of the only row.
    fn row<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        take: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        *self.sent += 1;
        self.connection.prepare_cached(sql)?.query_row(params, |row| {
            read(row)?;
            take(row)
        })
    }
    /// Reads every column of all rows.
    fn rows<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        *self.sent += 1;
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params, |row| {
            read(row)?;
            take(row)
        })?;
        rows.collect()
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<()> {
    (0..row.as_ref().column_count()).try_for_each(|column| row.get_ref(column).map(drop))
}

/// Runs the statements between the begin and the end of a transaction.
pub(super) fn run(db: &mut Statements<'_>, transaction: &Transaction) -> Result<Outcome, Failure> {
    match transaction {
        Transaction::NewOrder(it) => new_order(db, it),
        Transaction::Payment(it) => payment(db, it),
        Transaction::OrderStatus(it) => order_status(db, it),
        Transaction::Delivery(it) => delivery(db, it),
        Transaction::StockLevel(it) => stock_level(db, it),
    }
}

/// For each district, the statement that takes an item from stock. Each district has its own column for the text of
/// its orders (clause 2.4.2.2).
static TAKE_STOCK: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sql = |district| {
        format!(
            "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= ?3 + 10 THEN s_quantity - ?3 \
             ELSE s_quantity - ?3 + 91 END, s_ytd = s_ytd + ?3, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + ?4 WHERE s_w_id = ?1 AND s_i_id = ?2 \
             RETURNING s_dist_{district:02}, s_quantity, s_data"
        )
    };
    (1..=DISTRICTS).map(sql).collect()
});

fn new_order(db: &mut Statements<'_>, order: &NewOrder) -> Result<Outcome, Failure> {
    let NewOrder { warehouse, district, customer, lines } = order;
    db.row("SELECT w_tax FROM warehouse WHERE w_id = ?", [warehouse], |_| Ok(()))?;
    let number: i64 = db.row(
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? \
         RETURNING d_next_o_id - 1, d_tax",
        [warehouse, district],
        |row| row.get(0),
    )?;
    db.row(
        "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        [warehouse, district, customer],
        |_| Ok(()),
    )?;
    db.execute(
        "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES (?, ?, ?, ?, unixepoch(), NULL, ?, ?)",
        params![warehouse, district, number, customer, lines.len() as i64, order.all_local()],
    )?;
    db.execute(
        "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
        params![warehouse, district, number],
    )?;
    for (line, position) in lines.iter().zip(1..) {
        let price: Option<i64> = db
            .row("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", [line.item], |row| row.get(0))
            .optional()?;
        let Some(price) = price else { return Ok(Outcome::RolledBack) };
        let remote = line.supply != *warehouse;
        let text: String = db.row(
            &TAKE_STOCK[*district as usize - 1],
            params![line.supply, line.item, line.quantity, remote],
            |row| row.get(0),
        )?;
        db.execute(
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
             ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)",
            params![
                warehouse,
                district,
                number,
                position,
                line.item,
                line.supply,
                line.quantity,
                i64::from(line.quantity) * price,
                text
            ],
        )?;
    }
    Ok(Outcome::Committed)
}

fn payment(db: &mut Statements<'_>, payment: &Payment) -> Result<Outcome, Failure> {
    let Payment { warehouse, district, customer_warehouse, customer_district, who, amount } = payment;
    let warehouse_name: String = db.row(
        "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ? \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
        params![amount, warehouse],
        |row| row.get(0),
    )?;
    let district_name: String = db.row(
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ? \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
        params![amount, warehouse, district],
        |row| row.get(0),
    )?;
    let customer = customer(db, *customer_warehouse, *customer_district, who)?;
    // For customers with bad credit, the payment is prepended to their data (clause 2.5.2.2).
    let note = format!(
        "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {}.{:02}|",
        amount / 100,
        amount % 100
    );
    db.row(
        "UPDATE customer SET c_balance = c_balance - ?1, c_ytd_payment = c_ytd_payment + ?1, \
         c_payment_cnt = c_payment_cnt + 1, \
         c_data = CASE c_credit WHEN 'BC' THEN substr(?2 || c_data, 1, 500) ELSE c_data END \
         WHERE c_w_id = ?3 AND c_d_id = ?4 AND c_id = ?5 \
         RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit, c_credit_lim, c_discount, c_balance, \
         CASE c_credit WHEN 'BC' THEN substr(c_data, 1, 200) END",
        params![amount, note, customer_warehouse, customer_district, customer],
        |_| Ok(()),
    )?;
    db.execute(
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES (?, ?, ?, ?, ?, unixepoch(), ?, ? || '    ' || ?)",
        params![
            customer,
            customer_district,
            customer_warehouse,
            district,
            warehouse,
            amount,
            warehouse_name,
            district_name
        ],
    )?;
    Ok(Outcome::Committed)
}

fn order_status(db: &mut Statements<'_>, status: &OrderStatus) -> Result<Outcome, Failure> {
    let OrderStatus { warehouse, district, who } = status;
    let customer = customer(db, *warehouse, *district, who)?;
    db.row(
        "SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        params![warehouse, district, customer],
        |_| Ok(()),
    )?;
    let order: i64 = db.row(
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
         ORDER BY o_id DESC LIMIT 1",
        params![warehouse, district, customer],
        |row| row.get(0),
    )?;
    db.rows(
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
        params![warehouse, district, order],
        |_| Ok(()),
    )?;
    Ok(Outcome::Committed)
}

fn delivery(db: &mut Statements<'_>, delivery: &Delivery) -> Result<Outcome, Failure> {
    let Delivery { warehouse, carrier } = delivery;
    let mut skipped = 0;
    for district in 1..=DISTRICTS {
        let oldest: Option<i64> = db
            .row(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1",
                [*warehouse, district],
                |row| row.get(0),
            )
            .optional()?;
        let Some(order) = oldest else {
            skipped += 1;
            continue;
        };
        let place = params![warehouse, district, order];
        db.execute("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", place)?;
        let customer: i64 = db.row(
            "UPDATE orders SET o_carrier_id = ?4 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3 RETURNING o_c_id",
            params![warehouse, district, order, carrier],
            |row| row.get(0),
        )?;
        db.execute(
            "UPDATE order_line SET ol_delivery_d = unixepoch() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            place,
        )?;
        let amount: i64 = db.row(
            "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            place,
            |row| row.get(0),
        )?;
        db.execute(
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            params![amount, warehouse, district, customer],
        )?;
    }
    Ok(Outcome::Delivered { skipped })
}

fn stock_level(db: &mut Statements<'_>, level: &StockLevel) -> Result<Outcome, Failure> {
    let StockLevel { warehouse, district, threshold } = level;
    let next: i64 = db.row(
        "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
        [warehouse, district],
        |row| row.get(0),
    )?;
    // CROSS JOIN makes SQLite join the tables in the written order.
    db.row(
        "SELECT count(DISTINCT s_i_id) FROM order_line CROSS JOIN stock \
         WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id >= ?3 - 20 AND ol_o_id < ?3 \
         AND s_w_id = ?1 AND s_i_id = ol_i_id AND s_quantity < ?4",
        params![warehouse, district, next, threshold],
        |_| Ok(()),
    )?;
    Ok(Outcome::Committed)
}

/// The number of a customer. Of the customers with a last name, sorted by first name, it is the one at position n/2,
/// rounded up (clause 2.5.2.2).
fn customer(db: &mut Statements<'_>, warehouse: u32, district: u32, who: &Who) -> Result<i64, Failure> {
    let name = match who {
        Who::Number(number) => return Ok(i64::from(*number)),
        Who::LastName(name) => name,
    };
    let all: Vec<i64> = db.rows(
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        params![warehouse, district, name],
        |row| row.get(0),
    )?;
    let middle = all.len().div_ceil(2).checked_sub(1);
    let nobody = || format!("no customer of district {district} of warehouse {warehouse} is called {name}");
    middle.map(|at| all[at]).ok_or_else(|| Failure::Refused(nobody()))
}
