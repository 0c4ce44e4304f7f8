//! What a transaction does, statement by statement: which tables it locks how, which blocks and pages it reads and changes ([`Work`]).
//!
//! Leaves out which those are: `contents`.

use super::layout::{BLOCKS_PER_PAGE, Block, File, Page, index_of, rows_of};
use crate::tpcc::Table;

/// How a statement locks a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Beside others that read, and one that inserts.
    Read,
    /// At the end of the file, beside those that read.
    Insert,
    /// Alone.
    Write,
}

/// What is done with a block or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// A block of an index is needed in the key cache.
    Key,
    /// A block is made there.
    NewKey,
    /// Pages are read, one after the other.
    Read,
    /// A part of a page is written: what else is in it must be there.
    Write,
}

/// One thing that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) act: Act,
    /// Whose page is written.
    pub(super) file: File,
    /// How many pages are read.
    pub(super) count: u16,
    /// The block of a key, else the first page.
    pub(super) place: u32,
}

/// A statement: its locks and steps end where those of the next begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) locks_end: usize,
    pub(super) steps_end: usize,
}

/// What a transaction does.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) statements: Vec<Statement>,
    pub(super) locks: Vec<(Table, Mode)>,
    pub(super) steps: Vec<Step>,
    pub(super) rolled_back: bool,
    /// Blocks of indexes that the statement changes, which are written at its end.
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

    /// Begins a statement on a table; on more than one with [`Work::also`], in the order of tables.
    pub(super) fn begin(&mut self, table: Table, mode: Mode) {
        self.locks.push((table, mode));
    }
    pub(super) fn also(&mut self, table: Table, mode: Mode) {
        self.locks.push((table, mode));
    }

    /// Ends it. What it changed in the index of `table` is written to the file, and with it the header, which counts rows
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

    /// Looks a key up.
    pub(super) fn key(&mut self, block: Block) {
        self.steps.push(Step { act: Act::Key, file: 0, count: 1, place: block });
    }
    /// Changes a block; `made` where there was none.
    pub(super) fn change_key(&mut self, block: Block, made: bool) {
        let act = if made { Act::NewKey } else { Act::Key };
        self.steps.push(Step { act, file: 0, count: 1, place: block });
        self.changed.push(block);
    }
    /// Reads pages of rows.
    pub(super) fn read(&mut self, (page, count): (Page, u32)) {
        self.steps.push(Step { act: Act::Read, file: 0, count: count as u16, place: page });
    }
    /// Writes pages of rows of a table.
    pub(super) fn write_rows(&mut self, table: Table, (page, count): (Page, u32)) {
        (page..page + count).for_each(|page| self.write(rows_of(table), page));
    }
    /// Writes a page.
    pub(super) fn write(&mut self, file: File, page: Page) {
        self.wrote = true;
        self.steps.push(Step { act: Act::Write, file, count: 1, place: page });
    }
}
