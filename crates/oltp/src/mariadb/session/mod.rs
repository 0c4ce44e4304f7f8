//! A terminal's session: the five transactions as batches of statements, one round trip per batch.
//!
//! Statements are text, and one packet holds several. New-Order takes two round trips, and a Payment by customer
//! number takes one; prepared statements would take one round trip each. Columns that a terminal would show are read
//! and discarded.
//!
//! **Isolation.** Clause 3.4 requires that the transactions other than Stock-Level be serialisable. Sessions run at
//! READ COMMITTED, which avoids gap locks and thus most deadlocks. That level is enough because New-Order, Payment
//! and Delivery lock every row that they read and others change (the next order number, quantities, balances, the
//! oldest new order). Rows that nobody changes (names, prices, taxes, order lines) are read without locks.
//! Order-Status takes no locks and runs at REPEATABLE READ: one snapshot for all its statements. Locks are taken in a
//! fixed order: stock by warehouse and item, then district; customers, then district, then warehouse.
//!
//! **Engines without transactions** get the same statements. Every change is relative and in one statement, and items
//! are looked up before anything is written, so an order that must be rolled back leaves nothing behind. A lost
//! connection may leave an incomplete order. A named lock serialises the deliveries of a warehouse.

mod delivery;
mod new_order;
mod payment;
mod queries;

use super::errors::{failure, sql};
use super::server::WatchedConn;
use crate::{Failure, OltpError, Outcome, Session};
use lowtide_engines::Engine;
use lowtide_engines::tpcc::{Transaction, Who};
use mysql::Row;
use mysql::prelude::{FromValue, Queryable};
use std::fmt::Write;

/// A connection, with buffers that it reuses between transactions.
pub(super) struct TpccSession {
    conn: WatchedConn,
    /// The statements of the next batch.
    batch: String,
    statements: u64,
    /// Whether the engine can roll back.
    transactions: bool,
    lines: new_order::Lines,
}

impl TpccSession {
    pub(super) fn new(mut conn: WatchedConn, engine: Engine) -> Result<TpccSession, OltpError> {
        conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            .map_err(sql("opening a session"))?;
        Ok(TpccSession {
            conn,
            batch: String::with_capacity(8 << 10),
            statements: 0,
            transactions: engine.has_transactions(),
            lines: new_order::Lines::default(),
        })
    }
    /// Adds a statement to the batch.
    fn say(&mut self, statement: std::fmt::Arguments<'_>) {
        if !self.batch.is_empty() {
            self.batch.push(';');
        }
        // Writing to a string cannot fail.
        let _ = self.batch.write_fmt(statement);
    }
    /// Sends the batch. Calls `hear` with every row and the index of its statement.
    fn ask(&mut self, mut hear: impl FnMut(usize, Row) -> mysql::Result<()>) -> mysql::Result<()> {
        self.statements += 1;
        let result = self.conn.query_iter(self.batch.as_str());
        let outcome = result.and_then(|mut result| {
            let mut number = 0;
            while let Some(mut set) = result.iter() {
                for row in &mut set {
                    hear(number, row?)?;
                }
                number += 1;
            }
            Ok(())
        });
        self.batch.clear();
        outcome
    }
    /// Sends the batch and ignores its rows.
    fn ask_only(&mut self) -> mysql::Result<()> {
        self.ask(|_, _| Ok(()))
    }
    /// Rolls back a transaction that failed.
    fn give_up(&mut self, failure: Failure) -> Failure {
        self.batch.clear();
        if matches!(failure, Failure::Lost(_)) {
            return failure;
        }
        self.say(format_args!("ROLLBACK"));
        match self.ask_only() {
            Ok(()) => failure,
            Err(error) => Failure::Lost(format!("{failure}; and rolling back: {error}")),
        }
    }
    /// The customer's number: of the customers with a last name, sorted by first name, the middle one.
    fn middle(mut ids: Vec<u32>, who: &Who) -> Result<u32, Failure> {
        match (ids.len(), who) {
            (0, Who::LastName(name)) => {
                Err(Failure::Refused(format!("there is no customer `{name}` in the district")))
            }
            (0, Who::Number(id)) => {
                Err(Failure::Refused(format!("there is no customer {id} in the district")))
            }
            (count, _) => Ok(ids.swap_remove((count - 1) / 2)),
        }
    }
}

impl Session for TpccSession {
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        let outcome = match transaction {
            Transaction::NewOrder(order) => self.new_order(order),
            Transaction::Payment(payment) => self.payment(payment),
            Transaction::OrderStatus(asked) => self.order_status(asked),
            Transaction::Delivery(delivery) => self.delivery(delivery),
            Transaction::StockLevel(asked) => self.stock_level(asked),
        };
        outcome.map_err(|failure| self.give_up(failure))
    }
    fn statements(&self) -> u64 {
        self.statements
    }
}

impl From<mysql::Error> for Failure {
    fn from(error: mysql::Error) -> Failure {
        failure(error)
    }
}

/// Reads a column.
fn column<T: FromValue>(row: &Row, index: usize) -> mysql::Result<T> {
    match row.get_opt(index) {
        Some(Ok(value)) => Ok(value),
        _ => Err(mysql::Error::FromRowError(row.clone())),
    }
}

/// Text as an SQL literal.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('\'')?;
        for c in self.0.chars() {
            if matches!(c, '\'' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('\'')
    }
}

/// Numbers separated by commas.
struct List<I>(I);

impl<I: Iterator<Item = u32> + Clone> std::fmt::Display for List<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut digits = itoa::Buffer::new();
        for (index, number) in self.0.clone().enumerate() {
            if index > 0 {
                f.write_char(',')?;
            }
            f.write_str(digits.format(number))?;
        }
        Ok(())
    }
}
