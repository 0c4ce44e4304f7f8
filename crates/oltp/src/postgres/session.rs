//! A terminal's session: the five transactions in as few round trips as possible.
//!
//! New-Order takes two round trips, the others one. A batch of statements is a transaction of its own, so only
//! New-Order needs `BEGIN`.
//!
//! Isolation is READ COMMITTED, PostgreSQL's default. The requirements of clause 3.4 are met for these reasons:
//!
//! - Every value that changes is read in the `UPDATE` that changes it. An `UPDATE` that waited for a row uses the
//!   newest version of that row.
//! - Rows that are only read (item, taxes, discounts, names) never change.
//! - Order-Status is one statement, and a statement sees one state of the database.
//! - An advisory lock serialises the deliveries of a warehouse. Otherwise a delivery could skip an order that another
//!   one has just begun to deliver.
//!
//! All transactions lock rows in the same order (warehouse, district, stock by warehouse and item, customer by
//! district), so deadlocks are unlikely; they are retried.
//!
//! The columns that a terminal would show are fetched and discarded.

use super::connection::{Connection, Row, Statement, Value};
use super::error::{PgError, unexpected};
use super::statements as sql;
use crate::{Failure, Outcome, Session};
use lowtide_engines::tpcc::{
    DISTRICTS, Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Transaction, Who,
};
use std::collections::BTreeMap;

/// A session with its prepared statements.
pub(super) struct Terminal {
    connection: Connection,
    statements: Statements,
    begun: u64,
}

struct Statements {
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    warehouse_tax: Statement,
    customer_discount: Statement,
    items: Statement,
    next_order: Statement,
    enter_order: Statement,
    enter_new_order: Statement,
    /// One statement per district, because each district has its own column in `stock`.
    enter_lines: Vec<Statement>,
    pay_warehouse: Statement,
    pay_district: Statement,
    pay_by_number: Statement,
    pay_by_name: Statement,
    status_by_number: Statement,
    status_by_name: Statement,
    one_delivery: Statement,
    deliver: Statement,
    stock_level: Statement,
}

/// The changes to one row of `stock`, summed over the lines of an order.
#[derive(Default)]
struct Asked {
    quantity: i32,
    lines: i32,
    remote: i32,
}

impl Terminal {
    /// Prepares all statements.
    pub(super) fn new(mut connection: Connection) -> Result<Terminal, PgError> {
        connection.simple(sql::SETTINGS)?;
        let mut prepare = |text: &str| connection.prepare(text);
        let statements = Statements {
            begin: prepare("BEGIN")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            warehouse_tax: prepare(sql::WAREHOUSE_TAX)?,
            customer_discount: prepare(sql::CUSTOMER_DISCOUNT)?,
            items: prepare(sql::ITEMS)?,
            next_order: prepare(sql::NEXT_ORDER)?,
            enter_order: prepare(sql::ENTER_ORDER)?,
            enter_new_order: prepare(sql::ENTER_NEW_ORDER)?,
            enter_lines: (1..=DISTRICTS)
                .map(|district| prepare(&sql::enter_lines(district)))
                .collect::<Result<_, _>>()?,
            pay_warehouse: prepare(sql::PAY_WAREHOUSE)?,
            pay_district: prepare(sql::PAY_DISTRICT)?,
            pay_by_number: prepare(&sql::pay(sql::BY_NUMBER))?,
            pay_by_name: prepare(&sql::pay(sql::BY_NAME))?,
            status_by_number: prepare(&sql::status(sql::BY_NUMBER))?,
            status_by_name: prepare(&sql::status(sql::BY_NAME))?,
            one_delivery: prepare(sql::ONE_DELIVERY)?,
            deliver: prepare(sql::DELIVER)?,
            stock_level: prepare(sql::STOCK_LEVEL)?,
        };
        let begun = connection.round_trips();
        Ok(Terminal { connection, statements, begun })
    }

    fn new_order(&mut self, order: &NewOrder) -> Result<Outcome, PgError> {
        let (db, it) = (&mut self.connection, &self.statements);
        let (warehouse, district) = (int(order.warehouse), small(order.district));
        let (w, d, c) = (Value::Int(warehouse), Value::Small(district), Value::Int(int(order.customer)));
        let mut wanted: Vec<i32> = order.lines.iter().map(|line| int(line.item)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        db.bind(it.begin, &[])?;
        db.bind(it.warehouse_tax, &[w])?;
        db.bind(it.customer_discount, &[w, d, c])?;
        db.bind(it.items, &[Value::Ints(&wanted)])?;
        // Last, because other transactions wait for this row.
        db.bind(it.next_order, &[w, d])?;
        db.send()?;
        let number = one(db.answer(4), "the district")?.int(0)?;
        let number = Value::Int(i32::try_from(number).map_err(|_| unexpected("the number of an order"))?);
        one(db.answer(1), "the warehouse")?;
        one(db.answer(2), "the customer")?;
        let mut prices = BTreeMap::new();
        for row in db.answer(3) {
            prices.insert(row.int(0)?, row.int(1)?);
        }

        // Only lines whose item exists. A missing item causes the rollback at the end.
        let lines = Lines::new(order, |line| prices.get(&i64::from(line.item)).copied());
        let valid = lines.numbers.len() == order.lines.len();
        let count = Value::Small(small(order.lines.len() as u32));
        let local = Value::Small(i16::from(order.all_local()));
        db.bind(it.enter_order, &[number, d, w, c, count, local])?;
        db.bind(it.enter_new_order, &[number, d, w])?;
        let place = (district as usize).saturating_sub(1).min(it.enter_lines.len() - 1);
        let [of, items, quantities, counts, remotes] = lines.asked();
        db.bind(
            it.enter_lines[place],
            &[
                Value::Ints(&of),
                Value::Ints(&items),
                Value::Ints(&quantities),
                Value::Ints(&counts),
                Value::Ints(&remotes),
                number,
                d,
                w,
                Value::Smalls(&lines.numbers),
                Value::Ints(&lines.items),
                Value::Ints(&lines.supplies),
                Value::Smalls(&lines.quantities),
                Value::Ints(&lines.amounts),
            ],
        )?;
        db.bind(if valid { it.commit } else { it.rollback }, &[])?;
        db.send()?;
        if db.answer(2).len() != of.len() {
            return Err(missing("stock"));
        }
        Ok(if valid { Outcome::Committed } else { Outcome::RolledBack })
    }

    fn payment(&mut self, payment: &Payment) -> Result<Outcome, PgError> {
        let (db, it) = (&mut self.connection, &self.statements);
        let (w, d) = (Value::Int(int(payment.warehouse)), Value::Small(small(payment.district)));
        let amount = Value::Long(payment.amount);
        let of = Value::Int(int(payment.customer_warehouse));
        let of_district = Value::Small(small(payment.customer_district));
        let (pay, who) = match &payment.who {
            Who::Number(number) => (it.pay_by_number, Value::Int(int(*number))),
            Who::LastName(name) => (it.pay_by_name, Value::Text(name)),
        };
        db.bind(it.pay_warehouse, &[w, amount])?;
        db.bind(it.pay_district, &[w, d, amount])?;
        db.bind(pay, &[of, of_district, who, amount, w, d])?;
        db.send()?;
        one(db.answer(0), "the warehouse")?;
        one(db.answer(1), "the district")?;
        one(db.answer(2), "the customer")?;
        Ok(Outcome::Committed)
    }

    fn order_status(&mut self, status: &OrderStatus) -> Result<Outcome, PgError> {
        let (db, it) = (&mut self.connection, &self.statements);
        let (statement, who) = match &status.who {
            Who::Number(number) => (it.status_by_number, Value::Int(int(*number))),
            Who::LastName(name) => (it.status_by_name, Value::Text(name)),
        };
        let (w, d) = (Value::Int(int(status.warehouse)), Value::Small(small(status.district)));
        db.bind(statement, &[w, d, who])?;
        db.send()?;
        if db.answer(0).is_empty() {
            return Err(missing("the customer's order"));
        }
        Ok(Outcome::Committed)
    }

    fn delivery(&mut self, delivery: &Delivery) -> Result<Outcome, PgError> {
        let (db, it) = (&mut self.connection, &self.statements);
        let (w, carrier) = (Value::Int(int(delivery.warehouse)), Value::Small(small(delivery.carrier)));
        db.bind(it.one_delivery, &[w])?;
        db.bind(it.deliver, &[w, carrier])?;
        db.send()?;
        let delivered = db.answer(1).len() as u32;
        Ok(Outcome::Delivered { skipped: DISTRICTS.saturating_sub(delivered) })
    }

    fn stock_level(&mut self, level: &StockLevel) -> Result<Outcome, PgError> {
        let (db, it) = (&mut self.connection, &self.statements);
        let (w, d) = (Value::Int(int(level.warehouse)), Value::Small(small(level.district)));
        db.bind(it.stock_level, &[w, d, Value::Small(small(level.threshold))])?;
        db.send()?;
        one(db.answer(0), "the count")?.int(0)?;
        Ok(Outcome::Committed)
    }
}

impl Session for Terminal {
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        let result = match transaction {
            Transaction::NewOrder(order) => self.new_order(order),
            Transaction::Payment(payment) => self.payment(payment),
            Transaction::OrderStatus(status) => self.order_status(status),
            Transaction::Delivery(delivery) => self.delivery(delivery),
            Transaction::StockLevel(level) => self.stock_level(level),
        };
        result.map_err(|error| {
            if self.connection.in_transaction() && !matches!(error, PgError::Lost(_)) {
                // If this fails the connection is lost, and the next transaction reports that.
                let _ = self.connection.simple("ROLLBACK");
            }
            error.failure()
        })
    }
    fn statements(&self) -> u64 {
        self.connection.round_trips() - self.begun
    }
}

/// The lines of an order as columns, without the lines whose item does not exist.
#[derive(Default)]
struct Lines {
    numbers: Vec<i16>,
    items: Vec<i32>,
    supplies: Vec<i32>,
    quantities: Vec<i16>,
    amounts: Vec<i32>,
    stock: BTreeMap<(i32, i32), Asked>,
}

impl Lines {
    fn new(order: &NewOrder, price: impl Fn(&Line) -> Option<i64>) -> Lines {
        let mut lines = Lines::default();
        for (number, line) in (1..).zip(&order.lines) {
            let Some(price) = price(line) else { continue };
            let (supply, item) = (int(line.supply), int(line.item));
            lines.numbers.push(number);
            lines.items.push(item);
            lines.supplies.push(supply);
            lines.quantities.push(small(line.quantity));
            let amount = price * i64::from(line.quantity);
            lines.amounts.push(i32::try_from(amount).unwrap_or(i32::MAX));
            let asked = lines.stock.entry((supply, item)).or_default();
            asked.quantity += int(line.quantity);
            asked.lines += 1;
            asked.remote += i32::from(line.supply != order.warehouse);
        }
        lines
    }

    /// The changes to the rows of `stock`, as columns, in the order in which the rows are locked.
    fn asked(&self) -> [Vec<i32>; 5] {
        let mut columns: [Vec<i32>; 5] = Default::default();
        for ((supply, item), asked) in &self.stock {
            let row = [*supply, *item, asked.quantity, asked.lines, asked.remote];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        columns
    }
}

/// Converts a number of the benchmark. One that does not fit becomes -1, which matches no row.
fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(-1)
}

fn small(value: u32) -> i16 {
    i16::try_from(value).unwrap_or(-1)
}

fn one<'a>(rows: &'a [Row], what: &str) -> Result<&'a Row, PgError> {
    rows.first().ok_or_else(|| missing(what))
}

/// The error for a missing row: the database is not loaded, or has fewer warehouses.
fn missing(what: &str) -> PgError {
    let message = format!("{what} is not in the database: is it loaded for these warehouses?");
    PgError::Refused { code: "02000".to_owned(), message }
}
