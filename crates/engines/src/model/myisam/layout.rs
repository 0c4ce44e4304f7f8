//! Layout of the files: rows (`.MYD`) in load order, and indexes (`.MYI`) with leaf blocks only.
//!
//! ```text
//!   item.MYD ─ item.MYI ─ warehouse.MYD ─ … ─ order_line.MYI ─┃─ extents added to growing files
//!              └ header page ─ primary key ─ secondary index
//! ```
//!
//! Sources: "MyISAM Storage Engine" and "MyISAM Table Storage Formats", MySQL 5.1 Reference Manual;
//! `mi_create.c`, `mi_dynrec.c`, `mi_write.c`. A table without VARCHAR columns has rows of fixed length;
//! other tables have dynamic rows.
//!
//! # Not modelled
//!
//! Fragmentation of dynamic rows that have grown. Prefix compression of text keys. Inner index blocks, which are a
//! thirtieth of all blocks and always in memory.

use super::{BLOCK, PAGE};
use crate::model::facts::UNDELIVERED;
use crate::tpcc::{CUSTOMERS_PER_DISTRICT, Column, DISTRICTS, ITEMS, Table, Type};
use std::collections::BTreeSet;

/// Number of a page in the files. `Block` is the number of an index block; a page has four blocks.
pub(super) type Page = u32;
pub(super) type Block = u32;
/// Number of a file. Each table has two files: rows and index.
pub(super) type File = u8;

pub(super) const FILES: usize = 2 * Table::ALL.len();
pub(super) const BLOCKS_PER_PAGE: u32 = (PAGE / BLOCK) as u32;

/// Pages by which a growing file is extended.
const EXTENT: u32 = 256;

/// Bytes of the row pointer in a key (`myisam_data_pointer_size`).
const POINTER: f64 = 6.0;
/// Bytes of the header of an index block.
const HEADER: f64 = 2.0;

/// Fill of blocks with ordered and with random insertion. If a block and its neighbour are full, the keys of
/// two blocks are spread over three (`_mi_balance_page`). Ordered insertion in the middle of the index leaves
/// a fill of two thirds; random insertion leaves 2 ln(3/2) (Küspert, "Storage utilization in B*-trees with a
/// generalized overflow technique", 1983).
const IN_ORDER: f64 = 1.0;
pub(super) const ADDED: f64 = 2.0 / 3.0;
const ANYWHERE: f64 = 0.81;

/// Capacity of a district's part of the index of undelivered orders, in keys.
pub(super) const NEW_ORDERS: u32 = 1_200;

/// Number of the file with a table's rows. `index_of` returns the number of the file with its indexes.
pub(super) fn rows_of(table: Table) -> File {
    2 * table as File
}
pub(super) fn index_of(table: Table) -> File {
    2 * table as File + 1
}

/// Bytes of a column. Text has the mean length of the load (clause 4.3.3).
fn width(column: &Column) -> f64 {
    match column.holds {
        Type::Small => 2.0,
        Type::Int => 4.0,
        Type::Long | Type::Time => 8.0,
        Type::Char(length) => f64::from(length),
        Type::Text(_) => {
            1.0 + match column.name {
                "i_name" => 19.0,
                "i_data" | "s_data" => 38.0,
                "w_name" | "d_name" => 8.0,
                "c_first" | "c_last" => 12.0,
                "c_data" => 401.0,
                "h_data" => 18.0,
                // Streets and cities.
                _ => 15.0,
            }
        }
    }
}

/// Bytes of a row.
fn row_bytes(table: Table) -> u64 {
    let columns = table.columns();
    let bytes: f64 = columns.iter().map(width).sum();
    match columns.iter().any(|column| matches!(column.holds, Type::Text(_))) {
        // A header of 4 bytes and a bit per nullable column, rounded up to a multiple of 4.
        true => (bytes as u64 + 4 + columns.len().div_ceil(8) as u64).next_multiple_of(4),
        // One byte of null bits and the mark of a deleted row.
        false => bytes as u64 + 1,
    }
}

/// Maximum number of keys in a block.
fn keys_of_block(table: Table, columns: &[&str]) -> f64 {
    let all = table.columns().iter().filter(|column| columns.contains(&column.name));
    ((BLOCK as f64 - HEADER) / (all.map(width).sum::<f64>() + POINTER)).floor()
}

/// A contiguous range of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    first: Page,
    pub(super) bytes: u64,
    pub(super) count: u32,
}

impl Rows {
    /// First page and number of pages of `rows` rows, starting at `row`.
    #[inline]
    pub(super) fn pages(&self, row: u32, rows: u32) -> (Page, u32) {
        let at = u64::from(row) * self.bytes;
        let (first, last) = (at / PAGE, (at + u64::from(rows) * self.bytes - 1) / PAGE);
        (self.first + first as u32, (last - first) as u32 + 1)
    }
}

/// Leaf blocks of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index {
    first: Block,
    blocks: u32,
    keys_per_block: f64,
    /// Keys per block with ordered insertion after the load.
    pub(super) added_per_block: u32,
    /// Keys per warehouse.
    pub(super) keys: u32,
}

impl Index {
    /// Block of a key, given the warehouse from 0 and the key number within the warehouse.
    #[inline]
    pub(super) fn block(&self, warehouse: u32, key: u32) -> Block {
        let key = f64::from(warehouse) * f64::from(self.keys) + f64::from(key);
        self.first + (key / self.keys_per_block) as Block
    }
}

/// Positions of all tables and indexes.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) rows: [Rows; Table::ALL.len()],
    /// Page of the header of each index file.
    headers: [Page; Table::ALL.len()],
    pub(super) primary: [Index; Table::ALL.len()],
    pub(super) customers_by_name: Index,
    pub(super) orders_by_customer: Index,
    end: Page,
}

impl Layout {
    pub(super) fn new(warehouses: u32) -> Layout {
        let mut next = 0;
        let customers = DISTRICTS * CUSTOMERS_PER_DISTRICT;
        // Rows and keys per warehouse. The index of undelivered orders has spare space.
        let count = |table| match table {
            Table::Item | Table::Stock => (ITEMS, ITEMS),
            Table::Warehouse => (1, 1),
            Table::District => (DISTRICTS, DISTRICTS),
            Table::Customer | Table::Orders => (customers, customers),
            Table::History => (customers, 0),
            Table::NewOrder => (DISTRICTS * UNDELIVERED, DISTRICTS * NEW_ORDERS),
            Table::OrderLine => (customers * 10, customers * 10),
        };
        let index = |table: Table, columns: &[&str], fill: f64, keys: u32, count: u32, next: &mut Page| {
            let room = keys_of_block(table, columns);
            let keys_per_block = (room * fill).floor();
            let blocks = (f64::from(keys) * f64::from(count) / keys_per_block).ceil() as u32;
            let first = *next * BLOCKS_PER_PAGE;
            *next += blocks.div_ceil(BLOCKS_PER_PAGE);
            Index { first, blocks, keys_per_block, added_per_block: (room * ADDED) as u32, keys }
        };
        let mut further = Vec::new();
        let all = Table::ALL.map(|table| {
            let warehouses = if table.per_warehouse() { warehouses } else { 1 };
            let (rows, keys) = count(table);
            let rows = Rows { first: next, bytes: row_bytes(table), count: rows * warehouses };
            next += (u64::from(rows.count) * rows.bytes).div_ceil(PAGE) as u32;
            let header = next;
            next += 1;
            let fill = if table == Table::NewOrder { ADDED } else { IN_ORDER };
            let primary = index(table, table.key(), fill, keys, warehouses, &mut next);
            for other in table.indexes() {
                let fill = if table == Table::Orders { ANYWHERE } else { IN_ORDER };
                further.push(index(table, other.columns, fill, keys, warehouses, &mut next));
            }
            (rows, header, primary)
        });
        Layout {
            rows: all.map(|it| it.0),
            headers: all.map(|it| it.1),
            primary: all.map(|it| it.2),
            customers_by_name: further[0],
            orders_by_customer: further[1],
            end: next,
        }
    }

    /// Pages of the load.
    pub(super) fn pages(&self) -> u32 {
        self.end
    }
    /// Page of the header of a table's indexes.
    pub(super) fn header(&self, table: Table) -> Page {
        self.headers[table as usize]
    }
    /// All index blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> + Clone + '_ {
        let further = [self.customers_by_name, self.orders_by_customer];
        self.primary.into_iter().chain(further).flat_map(|index| index.first..index.first + index.blocks)
    }
}

/// Allocation of added pages: each file takes one extent at a time.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    extents: [(Page, Page); FILES],
    /// Pages that have never been written.
    empty: BTreeSet<Page>,
    /// For each index file, the range of unused blocks in its last page.
    blocks: [(Block, Block); FILES],
    end: Page,
}

impl Growth {
    pub(super) fn new(layout: &Layout) -> Growth {
        Growth { extents: [(0, 0); FILES], empty: BTreeSet::new(), blocks: [(0, 0); FILES], end: layout.end }
    }

    /// Allocates a page of a file.
    pub(super) fn page(&mut self, file: File) -> Page {
        let (next, end) = &mut self.extents[file as usize];
        if next == end {
            (*next, *end) = (self.end, self.end + EXTENT);
            self.end += EXTENT;
        }
        *next += 1;
        self.empty.insert(*next - 1);
        *next - 1
    }
    /// Returns true if a page has never been written and is therefore not on the device.
    pub(super) fn is_empty(&self, page: Page) -> bool {
        self.empty.contains(&page)
    }
    /// Records a write to a page.
    pub(super) fn write(&mut self, page: Page) {
        self.empty.remove(&page);
    }

    /// Allocates a block of an index.
    pub(super) fn block(&mut self, file: File) -> Block {
        let (next, end) = self.blocks[file as usize];
        if next == end {
            let first = self.page(file) * BLOCKS_PER_PAGE;
            self.blocks[file as usize] = (first + 1, first + BLOCKS_PER_PAGE);
            return first;
        }
        self.blocks[file as usize].0 += 1;
        next
    }
}

/// Rows of a growing table: loaded rows and added rows.
#[derive(Debug, Clone)]
pub(super) struct Growing {
    file: File,
    loaded: Rows,
    added: u32,
    pages: Vec<Page>,
}

impl Growing {
    pub(super) fn new(layout: &Layout, table: Table) -> Growing {
        Growing { file: rows_of(table), loaded: layout.rows[table as usize], added: 0, pages: Vec::new() }
    }

    /// Number of rows.
    pub(super) fn count(&self) -> u32 {
        self.loaded.count + self.added
    }

    /// Calls `each` with the page runs of `rows` rows, starting at `row`. A run is a first page and a number of
    /// contiguous pages.
    pub(super) fn pages(&self, row: u32, rows: u32, each: &mut dyn FnMut(Page, u32)) {
        if row < self.loaded.count {
            let (page, count) = self.loaded.pages(row, rows);
            return each(page, count);
        }
        let at = u64::from(row - self.loaded.count) * self.loaded.bytes;
        let (first, last) = (at / PAGE, (at + u64::from(rows) * self.loaded.bytes - 1) / PAGE);
        let pages = &self.pages[first as usize..=(last as usize).min(self.pages.len() - 1)];
        pages.chunk_by(|one, next| *one + 1 == *next).for_each(|run| each(run[0], run.len() as u32));
    }

    /// Appends a row. Calls `each` with the pages of the row. Returns the row's number.
    pub(super) fn add(&mut self, growth: &mut Growth, each: &mut dyn FnMut(Page)) -> u32 {
        let at = u64::from(self.added) * self.loaded.bytes;
        for page in at / PAGE..=(at + self.loaded.bytes - 1) / PAGE {
            if page as usize >= self.pages.len() {
                self.pages.push(growth.page(self.file));
            }
            each(self.pages[page as usize]);
        }
        self.added += 1;
        self.count() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_keys_have_the_lengths_of_the_formats() {
        // Fixed: the widths of the columns and one byte.
        assert_eq!(row_bytes(Table::Orders), 4 + 2 + 4 + 4 + 8 + 2 + 2 + 2 + 1);
        assert_eq!(row_bytes(Table::OrderLine), 4 + 2 + 4 + 2 + 4 + 4 + 8 + 2 + 4 + 24 + 1);
        assert_eq!(row_bytes(Table::NewOrder), 11);
        // Dynamic: below the maximum of clause 1.2.1.
        assert!((540..600).contains(&row_bytes(Table::Customer)), "{}", row_bytes(Table::Customer));
        assert!((296..320).contains(&row_bytes(Table::Stock)), "{}", row_bytes(Table::Stock));
        // (1024 - 2) / (4 + 4 + 6)
        assert_eq!(keys_of_block(Table::Stock, Table::Stock.key()), 73.0);
    }

    #[test]
    fn the_size_of_a_warehouse_is_that_of_its_rows_and_keys() {
        let mib =
            |warehouses| (u64::from(Layout::new(warehouses).pages()) * PAGE) as f64 / f64::from(1 << 20);
        let each = (mib(100) - mib(50)) / 50.0;
        assert!((74.0..76.0).contains(&each), "{each} MiB");
        let layout = Layout::new(100);
        let keys = layout.blocks().count() as f64 * BLOCK as f64 / f64::from(1 << 20) / 100.0;
        assert!((9.0..10.0).contains(&keys), "{keys} MiB");
    }

    #[test]
    fn files_do_not_overlap_and_grow_at_the_end() {
        let layout = Layout::new(7);
        let mut last = 0;
        for (rows, header) in layout.rows.iter().zip(layout.headers) {
            assert!(rows.first >= last && rows.pages(rows.count - 1, 1).0 < header, "{rows:?}");
            last = header;
        }
        let by_customer = layout.orders_by_customer;
        assert!(by_customer.block(6, 29_999) < layout.header(Table::NewOrder) * BLOCKS_PER_PAGE);
        assert!(layout.primary[Table::Orders as usize].block(6, 29_999) < by_customer.first);
        let mut growth = Growth::new(&layout);
        let mut orders = Growing::new(&layout, Table::Orders);
        let mut pages = Vec::new();
        let row = orders.add(&mut growth, &mut |page| pages.push(page));
        assert_eq!((row, pages.as_slice()), (7 * 30_000, [layout.pages()].as_slice()));
        assert!(growth.is_empty(layout.pages()));
        growth.write(layout.pages());
        assert!(!growth.is_empty(layout.pages()));
        let index = index_of(Table::Orders);
        let blocks: Vec<Block> = (0..5).map(|_| growth.block(index)).collect();
        let first = (layout.pages() + EXTENT) * BLOCKS_PER_PAGE;
        assert_eq!(blocks, (first..first + 5).collect::<Vec<_>>());
        // A page holds 141 rows of 29 bytes and a part of the next row.
        (1..142).for_each(|_| assert!(orders.add(&mut growth, &mut |_| ()) > row));
        let mut seen = Vec::new();
        orders.pages(row + 141, 1, &mut |page, count| seen.push((page, count)));
        assert_eq!(seen, [(layout.pages(), 2)]);
    }
}
