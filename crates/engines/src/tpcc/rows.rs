//! Where the rows of a load go: a sink, and the one that writes them as lines of text.
//!
//! Leaves out which rows there are (`population`) and the sinks of engines.

use crate::tpcc::{LOADED_AT, Table};
use std::io::{self, Write};

/// Takes the rows of a table, value by value, in the order of [`Table::columns`].
pub trait Rows {
    /// Why a row cannot be taken.
    type Error;
    /// A whole number.
    fn int(&mut self, value: i64);
    /// Text of ASCII, never with a tab, a newline or a backslash.
    fn text(&mut self, value: &str);
    /// Nothing.
    fn null(&mut self);
    /// The time of the load ([`LOADED_AT`]).
    fn time(&mut self);
    /// The end of a row.
    ///
    /// # Errors
    /// Where the row cannot be taken; then no further row comes.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// Lines of values with tabs between them, `\N` for null: what `COPY` of PostgreSQL and `LOAD DATA` of MariaDB and MySQL
/// read without further options.
#[derive(Debug)]
pub struct TabSeparated<W> {
    line: Vec<u8>,
    to: W,
}

/// So much is written at once.
const GATHER: usize = 256 << 10;

impl<W: Write> TabSeparated<W> {
    /// Lines that are written to `to`, many at a time.
    pub fn new(to: W) -> Self {
        TabSeparated { line: Vec::with_capacity(GATHER + 4096), to }
    }
    /// Writes what is still here, and gives back where it went.
    ///
    /// # Errors
    /// Those of writing.
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

/// The columns of a table, with commas between them: what `INSERT INTO` and `COPY` take.
pub fn column_list(table: Table) -> String {
    table.columns().iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}
