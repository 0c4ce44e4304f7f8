//! Layout of the data files: tables and indexes of TPC-C in a B-tree engine, leaf pages only.
//!
//! ```text
//!   items ─ warehouses ─ districts ─ customers ─ stock ─ … ─ indexes ─ (undo) ─┃─ pages added since
//! ```
//!
//! A loaded table is a contiguous range of pages, clustered by key. Added rows fill new pages, which come from
//! extents at the end of the file.
//!
//! # Not modelled
//!
//! Inner B-tree pages. They are a hundredth of all pages and always in memory.

use crate::tpcc::{CUSTOMERS_PER_DISTRICT, DISTRICTS, ITEMS};

/// Number of a page in the data files.
pub(super) type Page = u32;

/// Pages per extent. A table grows by extents, and neighbours are pages of one extent.
pub(super) const EXTENT: u32 = 64;

/// Pages of the undo log, which is a ring.
pub(super) const UNDO: u32 = 1024;

/// Pages of the doublewrite buffer, two extents at the start of the system tablespace. The undo log follows.
pub(super) const DOUBLEWRITE: u32 = 2 * EXTENT;

/// Number of data files: one per table.
pub(super) const FILES: u32 = 9;

/// Overhead of a row in bytes: header, transaction id, roll pointer, lengths (InnoDB, compact format).
const ROW: f64 = 20.0;
/// Overhead of an entry of a secondary index in bytes.
const ENTRY: f64 = 7.0;

/// Fill of pages with ordered and with random insertion (Yao, "On random 2-3 trees", 1978).
const IN_ORDER: f64 = 15.0 / 16.0;
const ANYWHERE: f64 = 0.69;

/// Pages of a table or an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    first: Page,
    rows_per_page: f64,
    /// Rows per warehouse.
    rows: u32,
}

impl Table {
    /// Page of a row, given the warehouse from 0 and the row number within the warehouse.
    #[inline]
    pub(super) fn page(&self, warehouse: u32, row: u32) -> Page {
        let row = f64::from(warehouse) * f64::from(self.rows) + f64::from(row);
        self.first + (row / self.rows_per_page) as Page
    }
    /// Rows per page, with ordered insertion.
    pub(super) fn rows_per_page(&self) -> u32 {
        self.rows_per_page as u32
    }
}

/// Positions of all tables and indexes.
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
    /// Indexes of foreign keys, if enabled: order lines by stock, history by customer.
    pub(super) foreign: Option<(Table, Table)>,
    /// Bytes of a page.
    page: u64,
    undo: Page,
    /// The first page after the load.
    end: Page,
}

impl Layout {
    /// Layout for a number of warehouses. `foreign_keys` adds the indexes of foreign keys.
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
        // Row lengths in bytes, from clause 1.2.1.
        let mut layout = Layout {
            items: table(82.0 + ROW, IN_ORDER, ITEMS, 1),
            warehouses: table(89.0 + ROW, IN_ORDER, 1, warehouses),
            districts: table(95.0 + ROW, IN_ORDER, DISTRICTS, warehouses),
            customers: table(655.0 + ROW, IN_ORDER, customers, warehouses),
            stock: table(306.0 + ROW, IN_ORDER, ITEMS, warehouses),
            orders: table(24.0 + ROW, IN_ORDER, customers, warehouses),
            // Undelivered orders reuse their pages.
            new_orders: table(8.0 + ROW, ANYWHERE, DISTRICTS * NEW_ORDERS, warehouses),
            order_lines: table(54.0 + ROW, IN_ORDER, customers * 10, warehouses),
            customers_by_name: table(28.0 + ENTRY, IN_ORDER, customers, warehouses),
            orders_by_customer: table(13.0 + ENTRY, ANYWHERE, customers, warehouses),
            foreign: foreign_keys.then(|| {
                // No statement uses the index of stock by item.
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
        // History has no key; rows are only appended.
        table(46.0 + ROW, IN_ORDER, customers, warehouses);
        layout.undo = next;
        layout.end = next + UNDO;
        layout
    }

    /// Pages of the load, including the undo log.
    pub(super) fn pages(&self) -> u32 {
        self.end
    }
    /// Position in the system tablespace of a page of the undo log; `None` for other pages.
    pub(super) fn system_page(&self, page: Page) -> Option<Page> {
        (self.undo..self.end).contains(&page).then(|| DOUBLEWRITE + page - self.undo)
    }
    /// Page of the undo record at offset `bytes`.
    pub(super) fn undo(&self, bytes: u64) -> Page {
        self.undo + (bytes / self.page % u64::from(UNDO)) as Page
    }
}

/// Capacity of a district's pages for undelivered orders, in orders. After the load, 900 orders are undelivered.
pub(super) const NEW_ORDERS: u32 = 1_200;

/// Tables that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grows {
    Orders,
    OrderLines,
    History,
    ChangeBuffer,
}

/// Allocation of added pages: each table takes one extent at a time.
#[derive(Debug, Clone)]
pub(super) struct Growth {
    extents: [(Page, Page); 4],
    end: Page,
}

impl Growth {
    pub(super) fn new(layout: &Layout) -> Growth {
        Growth { extents: [(0, 0); 4], end: layout.end }
    }

    /// Allocates a page of a table.
    pub(super) fn page(&mut self, table: Grows) -> Page {
        let (next, end) = &mut self.extents[table as usize];
        if next == end {
            (*next, *end) = (self.end, self.end + EXTENT);
            self.end += EXTENT;
        }
        *next += 1;
        *next - 1
    }

    /// The first unallocated page.
    pub(super) fn end(&self) -> Page {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE;
    use super::*;

    #[test]
    fn a_warehouse_has_the_size_given_in_the_studies() {
        // Published sizes: 9.5 to 11 GB for 100 warehouses and about 100 GB for 1000, with and without indexes of
        // foreign keys.
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
        assert!(layout.foreign.expect("foreign keys are on").1.page(6, 29_999) < layout.undo(0));
        let mut growth = Growth::new(&layout);
        let first = growth.page(Grows::Orders);
        assert_eq!(first, layout.pages());
        assert_eq!(growth.page(Grows::OrderLines), first + EXTENT);
        assert_eq!(growth.page(Grows::Orders), first + 1);
    }
}
