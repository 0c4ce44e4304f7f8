//! Sinks for the rows of a load: the trait, and an implementation that writes lines of text.

use crate::tpcc::{LOADED_AT, Table};
use std::io::{self, Write};

/// A sink for the rows of a table, value by value, in the order of [`Table::columns`].
pub trait Rows {
    /// Error of the sink.
    type Error;
    /// Adds a whole number.
    fn int(&mut self, value: i64);
    /// Adds ASCII text without tabs, newlines and backslashes.
    fn text(&mut self, value: &str);
    /// Adds a null.
    fn null(&mut self);
    /// Adds the time of the load ([`LOADED_AT`]).
    fn time(&mut self);
    /// Ends a row.
    ///
    /// # Errors
    /// The error of the sink. The caller must not add another row after an error.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// Tab-separated lines with `\N` for null: the default input format of PostgreSQL's `COPY` and of `LOAD DATA`
/// in MariaDB and MySQL.
#[derive(Debug)]
pub struct TabSeparated<W> {
    line: Vec<u8>,
    to: W,
}

/// Bytes buffered for one write.
const GATHER: usize = 256 << 10;

impl<W: Write> TabSeparated<W> {
    /// Creates a sink that writes to `to` in large chunks.
    pub fn new(to: W) -> Self {
        TabSeparated { line: Vec::with_capacity(GATHER + 4096), to }
    }
    /// Writes the buffered lines and returns the destination.
    ///
    /// # Errors
    /// The error of the write.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.write_all(&self.line)?;
        Ok(self.to)
    }
}

impl<W: Write> Rows for TabSeparated<W> {
    type Error = io::Error;
    #[inline]
    fn int(&mut self, value: i64) {
        self.line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.line.push(b'\t');
    }
    #[inline]
    fn text(&mut self, value: &str) {
        self.line.extend_from_slice(value.as_bytes());
        self.line.push(b'\t');
    }
    fn null(&mut self) {
        self.line.extend_from_slice(b"\\N\t");
    }
    fn time(&mut self) {
        self.line.extend_from_slice(LOADED_AT.as_bytes());
        self.line.push(b'\t');
    }
    fn end(&mut self) -> io::Result<()> {
        if let Some(last) = self.line.last_mut() {
            *last = b'\n';
        }
        if self.line.len() >= GATHER {
            self.to.write_all(&self.line)?;
            self.line.clear();
        }
        Ok(())
    }
}

/// Column names of a table, comma-separated, for `INSERT INTO` and `COPY`.
pub fn column_list(table: Table) -> String {
    table.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}
