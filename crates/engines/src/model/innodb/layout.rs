//! Which page of the data files holds what: tables and indexes of TPC-C as a B-tree engine stores them, leaf pages only.
//!
//! ```text
//!   items ─ warehouses ─ districts ─ customers ─ stock ─ … ─ indexes ─ (undo) ─┃─ pages that were added since
//! ```
//!
//! A table is as long as its rows, clustered by their keys; rows that are added fill pages of their own, taken from extents at the
//! end of the file. Inner pages are a hundredth of all and always in memory: they are left out.

use crate::tpcc::{CUSTOMERS_PER_DISTRICT, DISTRICTS, ITEMS};

/// A page by its place in the data files.
pub(super) type Page = u32;

/// Pages of an extent: what a growing table takes at a time, and neighbours are looked for in.
pub(super) const EXTENT: u32 = 64;

/// Pages that undo records go round in, until they are purged.
pub(super) const UNDO: u32 = 1024;

/// Pages that are written twice lie first in the system tablespace, in two extents; the undo log follows.
pub(super) const DOUBLEWRITE: u32 = 2 * EXTENT;

/// Data files: one for each table.
pub(super) const FILES: u32 = 9;

/// Bytes that a row takes beside its columns: header, transaction, place in the undo log, lengths (InnoDB, compact format).
const ROW: f64 = 20.0;
/// Bytes that an entry of a secondary index takes beside its columns.
const ENTRY: f64 = 7.0;

/// How full pages are that are filled in order, and those that rows are put into anywhere (Yao, "On random 2-3 trees", 1978).
const IN_ORDER: f64 = 15.0 / 16.0;
const ANYWHERE: f64 = 0.69;

/// Which pages a table or an index has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    first: Page,
    rows_per_page: f64,
    /// Rows of a warehouse.
    rows: u32,
}

impl Table {
    /// The page of a row by its number in a warehouse; warehouses begin at 0.
    #[inline]
    pub(super) fn page(&self, warehouse: u32, row: u32) -> Page {
        let row = f64::from(warehouse) * f64::from(self.rows) + f64::from(row);
        self.first + (row / self.rows_per_page) as Page
    }
    /// Rows of a page, when they come in order.
    pub(super) fn rows_per_page(&self) -> u32 {
        self.rows_per_page as u32
    }
}

/// Where all of it lies.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) items: Table,
    pub(super) warehouses: Table,
    pub(super) districts: Table,
    pub(super) customers: Table,
    pub(super) stock: Table,
    pub(super) orders: Table,
    pub(super) new_orders: Table,
    pub(super) order_lines: Table,
    pub(super) customers_by_name: Table,
    pub(super) orders_by_customer: Table,
    /// Indexes of foreign keys, where there are any: order lines by stock, history by customer.
    pub(super) foreign: Option<(Table, Table)>,
    /// Bytes of a page.
    page: u64,
    undo: Page,
    /// The first page after everything that was loaded.
    end: Page,
}

impl Layout {
    /// The layout of so many warehouses; `foreign_keys` with the indexes that they need.
    pub(super) fn new(warehouses: u32, foreign_keys: bool, page: u64) -> Layout {
        let mut next = 0;
        let mut table = |bytes: f64, fill: f64, rows: u32, count: u32| {
            let rows_per_page = (page as f64 * fill / bytes).floor();
            let pages = (f64::from(rows) * f64::from(count) / rows_per_page).ceil() as u32 + 1;
            let first = next;
            next += pages.next_multiple_of(EXTENT);
            Table { first, rows_per_page, rows }
        };
        let customers = DISTRICTS * CUSTOMERS_PER_DISTRICT;
        // Bytes of rows: clause 1.2.1 of the specification has them for each table.
        let mut layout = Layout {
            items: table(82.0 + ROW, IN_ORDER, ITEMS, 1),
            warehouses: table(89.0 + ROW, IN_ORDER, 1, warehouses),
            districts: table(95.0 + ROW, IN_ORDER, DISTRICTS, warehouses),
            customers: table(655.0 + ROW, IN_ORDER, customers, warehouses),
            stock: table(306.0 + ROW, IN_ORDER, ITEMS, warehouses),
            orders: table(24.0 + ROW, IN_ORDER, customers, warehouses),
            // Undelivered ones go round.
            new_orders: table(8.0 + ROW, ANYWHERE, DISTRICTS * NEW_ORDERS, warehouses),
            order_lines: table(54.0 + ROW, IN_ORDER, customers * 10, warehouses),
            customers_by_name: table(28.0 + ENTRY, IN_ORDER, customers, warehouses),
            orders_by_customer: table(13.0 + ENTRY, ANYWHERE, customers, warehouses),
            foreign: foreign_keys.then(|| {
                // The index of stock by item is never used.
                table(6.0 + ENTRY, IN_ORDER, ITEMS, warehouses);
                (
                    table(14.0 + ENTRY, ANYWHERE, customers * 10, warehouses),
                    table(13.0 + ENTRY, ANYWHERE, customers, warehouses),
                )
            }),
            page,
            undo: 0,
            end: 0,
        };
        // History has no key: it is only ever appended to.
        table(46.0 + ROW, IN_ORDER, customers, warehouses);
        layout.undo = next;
        layout.end = next + UNDO;
        layout
    }

    /// Pages that were loaded, and the undo log.
    pub(super) fn pages(&self) -> u32 {
        self.end
    }
    /// Where a page lies in the system tablespace, after the doublewrite buffer, where it is one of the undo log's.
    pub(super) fn of_system(&self, page: Page) -> Option<Page> {
        (self.undo..self.end).contains(&page).then(|| DOUBLEWRITE + page - self.undo)
    }
    /// The page that undo records go to once `bytes` of them were written.
    pub(super) fn undo(&self, bytes: u64) -> Page {
        self.undo + (bytes / self.page % u64::from(UNDO)) as Page
    }
}

/// Undelivered orders that a district has room for in its pages: 900 after the load.
pub(super) const NEW_ORDERS: u32 = 1_200;

/// Tables that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grows {
    Orders,
    OrderLines,
    History,
    ChangeBuffer,
}

/// Where added pages come from: each table takes an extent at a time.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    extents: [(Page, Page); 4],
    end: Page,
}

impl Growth {
    pub(super) fn new(layout: &Layout) -> Growth {
        Growth { extents: [(0, 0); 4], end: layout.end }
    }

    /// A new page of a table.
    pub(super) fn page(&mut self, table: Grows) -> Page {
        let (next, end) = &mut self.extents[table as usize];
        if next == end {
            (*next, *end) = (self.end, self.end + EXTENT);
            self.end += EXTENT;
        }
        *next += 1;
        *next - 1
    }

    /// The first page that nothing has taken yet.
    pub(super) fn end(&self) -> Page {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;

    #[test]
    fn a_warehouse_is_as_large_as_the_studies_say_of_theirs() {
        // 100 warehouses were 9.5 to 11 GB, 1000 about 100 GB, with indexes of foreign keys and without.
        for (foreign_keys, least, most) in [(false, 80, 100), (true, 92, 112)] {
            let layout = Layout::new(100, foreign_keys, PAGE);
            let mib = (u64::from(layout.pages()) * PAGE / 100) >> 20;
            assert!((least..=most).contains(&mib), "{mib} MiB");
        }
    }

    #[test]
    fn tables_do_not_overlap() {
        let layout = Layout::new(7, true, PAGE);
        let (stock, orders) = (&layout.stock, &layout.orders);
        assert!(stock.page(6, ITEMS - 1) < orders.page(0, 0));
        assert!(layout.customers.page(6, 29_999) < stock.page(0, 0));
        assert!(layout.foreign.expect("asked for").1.page(6, 29_999) < layout.undo(0));
        let mut growth = Growth::new(&layout);
        let first = growth.page(Grows::Orders);
        assert_eq!(first, layout.pages());
        assert_eq!(growth.page(Grows::OrderLines), first + EXTENT);
        assert_eq!(growth.page(Grows::Orders), first + 1);
    }
}
