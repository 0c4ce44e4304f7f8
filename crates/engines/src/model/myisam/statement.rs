//! Statements of a transaction: the tables that they lock, and the blocks and pages that they access
//! ([`Work`]).

use super::layout::{BLOCKS_PER_PAGE, Block, File, Page, index_of, rows_of};
use crate::tpcc::Table;

/// Lock mode of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Shared with readers and one insert.
    Read,
    /// Insert at the end of the file, concurrent with readers.
    Insert,
    /// Exclusive.
    Write,
}

/// Access to a block or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Use an index block through the key cache.
    Key,
    /// Create a block in the key cache.
    NewKey,
    /// Read contiguous pages.
    Read,
    /// Write part of a page. The other contents of the page must be in memory.
    Write,
}

/// One access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) act: Act,
    /// File of a written page.
    pub(super) file: File,
    /// Number of pages read.
    pub(super) count: u16,
    /// Block of a key, or first page.
    pub(super) place: u32,
}

/// A statement: its end indices in the lists of locks and steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) locks_end: usize,
    pub(super) steps_end: usize,
}

/// The statements of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) statements: Vec<Statement>,
    pub(super) locks: Vec<(Table, Mode)>,
    pub(super) steps: Vec<Step>,
    pub(super) rolled_back: bool,
    /// Index blocks changed by the current statement. They are written at its end.
    changed: Vec<Block>,
    wrote: bool,
}

impl Work {
    pub(super) fn clear(&mut self) {
        self.statements.clear();
        self.locks.clear();
        self.steps.clear();
        self.rolled_back = false;
    }

    /// Adds a table to the current statement. Tables must be added in table order, which is the lock order.
    pub(super) fn begin(&mut self, table: Table, mode: Mode) {
        self.locks.push((table, mode));
    }

    /// Ends the statement. Writes the changed index blocks of `table` and the header with the row count
    /// (`flush_key_blocks` and `mi_state_info_write` in `mi_lock_database`).
    pub(super) fn end(&mut self, table: Table, header: Page) {
        let file = index_of(table);
        let mut pages: Vec<Page> = self.changed.drain(..).map(|block| block / BLOCKS_PER_PAGE).collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            self.write(file, page);
        }
        if std::mem::take(&mut self.wrote) {
            self.write(file, header);
            self.wrote = false;
        }
        self.statements.push(Statement { locks_end: self.locks.len(), steps_end: self.steps.len() });
    }

    /// Uses the block of a key.
    pub(super) fn key(&mut self, block: Block) {
        self.steps.push(Step { act: Act::Key, file: 0, count: 1, place: block });
    }
    /// Changes a block, or creates it if `created`.
    pub(super) fn change_key(&mut self, block: Block, created: bool) {
        let act = if created { Act::NewKey } else { Act::Key };
        self.steps.push(Step { act, file: 0, count: 1, place: block });
        self.changed.push(block);
    }
    /// Reads data pages.
    pub(super) fn read(&mut self, (page, count): (Page, u32)) {
        self.steps.push(Step { act: Act::Read, file: 0, count: count as u16, place: page });
    }
    /// Writes data pages of a table.
    pub(super) fn write_rows(&mut self, table: Table, (page, count): (Page, u32)) {
        (page..page + count).for_each(|page| self.write(rows_of(table), page));
    }
    /// Writes a page.
    pub(super) fn write(&mut self, file: File, page: Page) {
        self.wrote = true;
        self.steps.push(Step { act: Act::Write, file, count: 1, place: page });
    }
}
