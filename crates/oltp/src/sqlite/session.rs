//! A session: chooses the connection of a transaction, and begins and ends the transaction.
//!
//! The statements in between are in `transactions`.

use super::database::{Counts, Shared};
use super::transactions::{self, Statements};
use crate::{Failure, Outcome, Session};
use lowtide_engines::tpcc::Transaction;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The session of a terminal.
pub(super) struct SqliteSession {
    shared: Arc<Shared>,
    /// Connection for reading; `None` if the writer is the only connection.
    reader: Option<Connection>,
    statements: u64,
}

impl SqliteSession {
    pub(super) fn new(shared: Arc<Shared>, reader: Option<Connection>) -> Self {
        SqliteSession { shared, reader, statements: 0 }
    }
}

impl Session for SqliteSession {
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        let sent = &mut self.statements;
        let only_reads = matches!(transaction, Transaction::OrderStatus(_) | Transaction::StockLevel(_));
        if let Some(reader) = self.reader.as_ref().filter(|_| only_reads) {
            return whole(&mut Statements::new(reader, sent), "BEGIN", transaction, None);
        }
        let writer = self.shared.writer();
        let closed = || Failure::Lost("the database is closed".to_owned());
        let mut statements = Statements::new(writer.as_ref().ok_or_else(closed)?, sent);
        let (begin, counts) = match only_reads {
            true => ("BEGIN", None),
            false => ("BEGIN IMMEDIATE", Some(&self.shared.counts)),
        };
        whole(&mut statements, begin, transaction, counts)
    }
    fn statements(&self) -> u64 {
        self.statements
    }
}

/// Runs a transaction and commits it or rolls it back. A failed transaction has no effect.
fn whole(
    statements: &mut Statements<'_>,
    begin: &str,
    transaction: &Transaction,
    counts: Option<&Counts>,
) -> Result<Outcome, Failure> {
    statements.execute(begin, [])?;
    let outcome = transactions::run(statements, transaction);
    let ended = match outcome {
        Ok(Outcome::Committed | Outcome::Delivered { .. }) => {
            let began = Instant::now();
            let committed = statements.execute("COMMIT", []);
            if let Some(counts) = counts {
                Counts::add_since(&counts.committing_ns, began);
                counts.commits.fetch_add(u64::from(committed.is_ok()), Ordering::Relaxed);
            }
            committed.map_err(Failure::from).and(outcome)
        }
        Ok(Outcome::RolledBack) | Err(_) => outcome,
    };
    // After some errors SQLite has already rolled back.
    if statements.in_transaction() {
        let rolled_back = statements.execute("ROLLBACK", []);
        if let Some(counts) = counts {
            counts.rollbacks.fetch_add(1, Ordering::Relaxed);
        }
        return ended.and_then(|outcome| rolled_back.map(|_| outcome).map_err(Failure::from));
    }
    ended
}
