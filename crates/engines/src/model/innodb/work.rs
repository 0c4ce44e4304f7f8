//! The pages that each transaction reads and changes, and the bytes that it logs ([`Work`]).
//!
//! Inputs come from the benchmark (`tpcc`), and [`Facts`] holds the contents of the database. The accesses follow the
//! statements that lowtide sends to real databases.

use super::layout::{Grows, Growth, Layout, NEW_ORDERS, Page};
use crate::model::ModelLoad;
use crate::model::facts::{Facts, district, page_at};
use crate::tpcc::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction, Who,
};

/// Access to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Read.
    Read,
    /// Change.
    Change,
    /// Create the page without reading it.
    Create,
    /// Add an entry to a secondary index. The entry can wait in the change buffer.
    Add,
}

/// One access to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) page: Page,
    pub(super) act: Act,
}

/// The accesses of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) steps: Vec<Step>,
    /// Bytes of log records.
    pub(super) log: u64,
    /// Row locks held until the end, in the order in which they are taken.
    pub(super) locks: [Option<u32>; 2],
    pub(super) rolled_back: bool,
}

/// Bytes of log per changed row, per added row (in addition to the bytes of the row), and per transaction, including
/// undo records. Fitted to the log volume of MariaDB 10.11 for this mix (`docs/models/oltp.md`).
const LOG_CHANGE: u64 = 420;
const LOG_ADD: u64 = 240;
const LOG_END: u64 = 300;
/// Bytes of undo per changed row. An added row takes half as much.
const UNDO_RECORD: u64 = 70;

/// Pages added for a district.
#[derive(Debug, Clone, Default)]
struct District {
    order_pages: Vec<Page>,
    line_pages: Vec<Page>,
}

/// The contents of the database that decide which pages are accessed.
#[derive(Debug)]
pub(super) struct Contents {
    layout: Layout,
    growth: Growth,
    facts: Facts,
    districts: Vec<District>,
    history: (Page, u32),
    undo_bytes: u64,
}

impl Contents {
    pub(super) fn new(load: &ModelLoad, foreign_keys: bool, page: u64) -> Contents {
        let layout = Layout::new(load.warehouses, foreign_keys, page);
        let mut growth = Growth::new(&layout);
        let history = (growth.page(Grows::History), 0);
        let districts = vec![District::default(); (load.warehouses * DISTRICTS) as usize];
        Contents { layout, growth, facts: Facts::new(load), districts, history, undo_bytes: 0 }
    }

    /// Number of allocated pages, which is the length of the data files.
    pub(super) fn pages(&self) -> u32 {
        self.growth.end()
    }

    /// Position of a page in the system tablespace; `None` for other pages.
    pub(super) fn system_page(&self, page: Page) -> Option<Page> {
        self.layout.system_page(page)
    }
    /// Pages of the load.
    pub(super) fn loaded(&self) -> u32 {
        self.layout.pages()
    }
    /// Allocates a page for the change buffer.
    pub(super) fn change_buffer_page(&mut self) -> Page {
        self.growth.page(Grows::ChangeBuffer)
    }

    /// Sets `work` to the accesses of a transaction.
    pub(super) fn work(&mut self, transaction: &Transaction, work: &mut Work) {
        work.steps.clear();
        (work.log, work.locks, work.rolled_back) = (LOG_END, [None; 2], false);
        let undo = self.undo_bytes;
        match transaction {
            Transaction::NewOrder(order) => self.new_order(order, work),
            Transaction::Payment(payment) => self.payment(payment, work),
            Transaction::OrderStatus(status) => self.order_status(status, work),
            Transaction::Delivery(delivery) => self.delivery(delivery, work),
            Transaction::StockLevel(level) => self.stock_level(level, work),
        }
        if work.log == LOG_END {
            work.log = 0;
            return;
        }
        let (first, last) = (self.layout.undo(undo), self.layout.undo(self.undo_bytes));
        for page in if first == last { vec![first] } else { vec![first, last] } {
            work.steps.push(Step { page, act: Act::Create });
        }
    }

    fn read(&self, work: &mut Work, page: Page) {
        work.steps.push(Step { page, act: Act::Read });
    }
    fn change(&mut self, work: &mut Work, page: Page) {
        work.steps.push(Step { page, act: Act::Change });
        work.log += LOG_CHANGE;
        self.undo_bytes += UNDO_RECORD;
    }
    fn add(&mut self, work: &mut Work, page: Page, bytes: u64) {
        work.steps.push(Step { page, act: Act::Change });
        work.log += LOG_ADD + bytes;
        self.undo_bytes += UNDO_RECORD / 2;
    }
    fn add_to_index(&mut self, work: &mut Work, page: Page) {
        work.steps.push(Step { page, act: Act::Add });
        work.log += LOG_ADD;
    }

    fn new_order(&mut self, order: &NewOrder, work: &mut Work) {
        let (w, d) = (order.warehouse - 1, order.district - 1);
        let customer = d * CUSTOMERS_PER_DISTRICT + order.customer - 1;
        work.locks = [Some(lock_of_district(w, d)), None];
        work.rolled_back = order.lines.last().is_some_and(|line| line.item > crate::tpcc::ITEMS);
        self.read(work, self.layout.warehouses.page(w, 0));
        self.change(work, self.layout.districts.page(w, d));
        self.read(work, self.layout.customers.page(w, customer));
        let number = self.facts.orders(district(w, d));
        if !work.rolled_back {
            let items = order.lines.iter().map(|line| line.item - 1);
            self.facts.order(district(w, d), order.customer - 1, items);
        }
        let (page, created) = self.order_page(w, d, number);
        self.add_row(work, page, created, 24);
        let page = self.new_order_page(w, d, number);
        self.add(work, page, 8);
        let page = self.layout.orders_by_customer.page(w, customer);
        self.add_to_index(work, page);
        for line in &order.lines {
            let (supply, item) = (line.supply - 1, line.item.min(crate::tpcc::ITEMS) - 1);
            self.read(work, self.layout.items.page(0, item));
            let stock = self.layout.stock.page(supply, item);
            self.change(work, stock);
        }
        // The lines of an order are contiguous.
        let (page, created) = self.line_page(w, d, number);
        self.add_row(work, page, created, 54);
        for line in &order.lines {
            work.log += LOG_ADD + 54;
            self.undo_bytes += UNDO_RECORD / 2;
            if let Some((by_stock, _)) = self.layout.foreign {
                // The index is sorted by item, and an item occupies about 1/100,000 of it.
                let row = (line.item.min(crate::tpcc::ITEMS) - 1) * 3;
                let page = by_stock.page(line.supply - 1, row);
                self.add_to_index(work, page);
            }
        }
    }

    fn payment(&mut self, payment: &Payment, work: &mut Work) {
        let (w, d) = (payment.warehouse - 1, payment.district - 1);
        work.locks = [Some(lock_of_warehouse(w)), Some(lock_of_district(w, d))];
        let page = self.layout.warehouses.page(w, 0);
        self.change(work, page);
        let page = self.layout.districts.page(w, d);
        self.change(work, page);
        let (cw, cd) = (payment.customer_warehouse - 1, payment.customer_district - 1);
        let customer = self.customer(work, cw, cd, &payment.who, false);
        let page = self.layout.customers.page(cw, customer);
        self.change(work, page);
        let (page, rows) = self.history;
        self.add_row(work, page, rows == 0, 46);
        self.history.1 += 1;
        if self.history.1 == 230 {
            self.history = (self.growth.page(Grows::History), 0);
        }
        if let Some((_, by_customer)) = self.layout.foreign {
            let page = by_customer.page(cw, customer);
            self.add_to_index(work, page);
        }
    }

    /// Finds a customer and adds the pages read. For a last name, these are the index entries and, if `all`, all
    /// matching rows.
    fn customer(&mut self, work: &mut Work, w: u32, d: u32, who: &Who, all: bool) -> u32 {
        let first = d * CUSTOMERS_PER_DISTRICT;
        let name = match who {
            Who::LastName(name) => name,
            Who::Number(number) => {
                let customer = first + number - 1;
                self.read(work, self.layout.customers.page(w, customer));
                return customer;
            }
        };
        let (bearers, at) = self.facts.bearers(district(w, d), name);
        let entry = (at * f64::from(CUSTOMERS_PER_DISTRICT)) as u32;
        self.read(work, self.layout.customers_by_name.page(w, first + entry));
        if all {
            for bearer in &bearers {
                self.read(work, self.layout.customers.page(w, first + bearer));
            }
        }
        // First names are random, so any of the customers can be the middle customer. The choice is constant for each
        // district.
        first + bearers[district(w, d) as usize % bearers.len()]
    }

    fn order_status(&mut self, status: &OrderStatus, work: &mut Work) {
        let (w, d) = (status.warehouse - 1, status.district - 1);
        let customer = self.customer(work, w, d, &status.who, true);
        self.read(work, self.layout.orders_by_customer.page(w, customer));
        let number = self.facts.last_order(district(w, d), customer % CUSTOMERS_PER_DISTRICT);
        self.read_order(work, w, d, number);
    }

    fn read_order(&mut self, work: &mut Work, w: u32, d: u32, number: u32) {
        let (page, _) = self.order_page(w, d, number);
        self.read(work, page);
        let (page, _) = self.line_page(w, d, number);
        self.read(work, page);
    }

    fn delivery(&mut self, delivery: &Delivery, work: &mut Work) {
        let w = delivery.warehouse - 1;
        for d in 0..DISTRICTS {
            let Some((number, customer)) = self.facts.deliver(district(w, d)) else { continue };
            let page = self.new_order_page(w, d, number);
            self.change(work, page);
            let (page, _) = self.order_page(w, d, number);
            self.change(work, page);
            let (page, _) = self.line_page(w, d, number);
            self.change(work, page);
            // The order has ten lines.
            work.log += 9 * LOG_CHANGE;
            self.undo_bytes += 9 * UNDO_RECORD;
            let page = self.layout.customers.page(w, d * CUSTOMERS_PER_DISTRICT + customer);
            self.change(work, page);
        }
    }

    fn stock_level(&mut self, level: &StockLevel, work: &mut Work) {
        let (w, d) = (level.warehouse - 1, level.district - 1);
        self.read(work, self.layout.districts.page(w, d));
        let last = self.facts.orders(district(w, d));
        let mut page = Page::MAX;
        for number in last - 20..last {
            let (next, _) = self.line_page(w, d, number);
            if next != page {
                self.read(work, next);
                page = next;
            }
        }
        for items in self.facts.recent_items(district(w, d)) {
            for item in items {
                self.read(work, self.layout.stock.page(w, item));
            }
        }
    }

    /// Adds a row to a page that is filled in order.
    fn add_row(&mut self, work: &mut Work, page: Page, created: bool, bytes: u64) {
        self.add(work, page, bytes);
        if created && let Some(step) = work.steps.last_mut() {
            step.act = Act::Create;
        }
    }

    /// Returns the page of an order, and `true` if the order creates the page.
    fn order_page(&mut self, w: u32, d: u32, number: u32) -> (Page, bool) {
        if number < CUSTOMERS_PER_DISTRICT {
            return (self.layout.orders.page(w, d * CUSTOMERS_PER_DISTRICT + number), false);
        }
        let per_page = self.layout.orders.rows_per_page();
        let at = (number - CUSTOMERS_PER_DISTRICT) / per_page;
        let pages = &mut self.districts[district(w, d) as usize].order_pages;
        page_at(pages, at, || self.growth.page(Grows::Orders))
    }

    /// Returns the page of an order's lines, and `true` if the order creates the page.
    fn line_page(&mut self, w: u32, d: u32, number: u32) -> (Page, bool) {
        if number < CUSTOMERS_PER_DISTRICT {
            return (self.layout.order_lines.page(w, (d * CUSTOMERS_PER_DISTRICT + number) * 10), false);
        }
        let per_page = self.layout.order_lines.rows_per_page() / 10;
        let at = (number - CUSTOMERS_PER_DISTRICT) / per_page;
        let pages = &mut self.districts[district(w, d) as usize].line_pages;
        page_at(pages, at, || self.growth.page(Grows::OrderLines))
    }

    /// Page of an undelivered order. A district's undelivered orders are a queue, so their pages form a ring.
    fn new_order_page(&self, w: u32, d: u32, number: u32) -> Page {
        self.layout.new_orders.page(w, d * NEW_ORDERS + number % NEW_ORDERS)
    }
}

fn lock_of_warehouse(w: u32) -> u32 {
    w * (DISTRICTS + 1)
}
fn lock_of_district(w: u32, d: u32) -> u32 {
    w * (DISTRICTS + 1) + 1 + d
}

/// Number of row locks.
pub(super) fn locks(warehouses: u32) -> u32 {
    warehouses * (DISTRICTS + 1)
}
