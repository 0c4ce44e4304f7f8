//! The index blocks and data pages that each transaction accesses ([`Contents`]).
//!
//! Inputs come from the benchmark (`tpcc`), and [`Facts`] holds the contents of the database. As in the procedures of
//! DBT-2, each row has its own statement, and each statement takes its own locks.
//!
//! # Not modelled
//!
//! Query results, and interleaving of the lines of concurrent orders.

use super::layout::{Block, Growing, Growth, Index, Layout, NEW_ORDERS, Page, index_of};
use super::statement::{Mode, Work};
use crate::model::ModelLoad;
use crate::model::facts::{Facts, UNDELIVERED, district, page_at};
use crate::tpcc::{
    CUSTOMERS_PER_DISTRICT, DISTRICTS, Delivery, ITEMS, NewOrder, OrderStatus, Payment, StockLevel, Table,
    Transaction, Who,
};
use std::collections::VecDeque;

/// Mean number of lines of an order.
const LINES: u32 = 10;

/// Positions of an added order: its row and its lines.
#[derive(Debug, Clone, Copy)]
struct AddedOrder {
    row: u32,
    first_line: u32,
    lines: u32,
}

/// State of a district.
#[derive(Debug, Clone, Default)]
struct District {
    added: Vec<AddedOrder>,
    order_blocks: Vec<Block>,
    line_blocks: Vec<Block>,
    /// Rows of undelivered orders.
    undelivered: VecDeque<u32>,
}

/// The contents of the database that decide which blocks and pages are accessed.
#[derive(Debug)]
pub(super) struct Contents {
    layout: Layout,
    growth: Growth,
    facts: Facts,
    districts: Vec<District>,
    orders: Growing,
    new_orders: Growing,
    lines: Growing,
    history: Growing,
    /// Positions of deleted rows in `new_order`. The most recently deleted position is reused first.
    deleted: Vec<u32>,
}

impl Contents {
    pub(super) fn new(load: &ModelLoad) -> Contents {
        let layout = Layout::new(load.warehouses);
        let growing = |table| Growing::new(&layout, table);
        let district = |number| District {
            undelivered: (number * UNDELIVERED..(number + 1) * UNDELIVERED).collect(),
            ..District::default()
        };
        Contents {
            growth: Growth::new(&layout),
            facts: Facts::new(load),
            districts: (0..load.warehouses * DISTRICTS).map(district).collect(),
            orders: growing(Table::Orders),
            new_orders: growing(Table::NewOrder),
            lines: growing(Table::OrderLine),
            history: growing(Table::History),
            deleted: Vec::new(),
            layout,
        }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Returns true if a page has never been written.
    pub(super) fn is_empty(&self, page: Page) -> bool {
        self.growth.is_empty(page)
    }
    /// Records a write to a page.
    pub(super) fn write(&mut self, page: Page) {
        self.growth.write(page);
    }

    /// Replaces `work` by the statements of a transaction.
    pub(super) fn work(&mut self, transaction: &Transaction, work: &mut Work) {
        work.clear();
        match transaction {
            Transaction::NewOrder(order) => self.new_order(order, work),
            Transaction::Payment(payment) => self.payment(payment, work),
            Transaction::OrderStatus(status) => self.order_status(status, work),
            Transaction::Delivery(delivery) => self.delivery(delivery, work),
            Transaction::StockLevel(level) => self.stock_level(level, work),
        }
    }

    fn primary(&self, table: Table) -> Index {
        self.layout.primary[table as usize]
    }
    fn end(&self, work: &mut Work, table: Table) {
        work.end(table, self.layout.header(table));
    }

    /// Adds a statement that reads a row by its key.
    fn select(&self, work: &mut Work, table: Table, mode: Mode, w: u32, row: u32) {
        work.begin(table, mode);
        self.find(work, table, w, row);
        self.end(work, table);
    }
    /// Adds a statement that reads a row by its key and writes the row.
    fn update(&self, work: &mut Work, table: Table, w: u32, row: u32) {
        work.begin(table, Mode::Write);
        let pages = self.find(work, table, w, row);
        work.write_rows(table, pages);
        self.end(work, table);
    }
    fn find(&self, work: &mut Work, table: Table, w: u32, row: u32) -> (Page, u32) {
        work.key(self.primary(table).block(w, row));
        let rows = &self.layout.rows[table as usize];
        let pages = rows.pages(w * self.primary(table).keys + row, 1);
        work.read(pages);
        pages
    }

    fn new_order(&mut self, order: &NewOrder, work: &mut Work) {
        let (w, d) = (order.warehouse - 1, order.district - 1);
        let customer = d * CUSTOMERS_PER_DISTRICT + order.customer - 1;
        work.rolled_back = order.lines.last().is_some_and(|line| line.item > ITEMS);
        self.select(work, Table::Warehouse, Mode::Read, w, 0);
        // `FOR UPDATE` takes a write lock.
        self.select(work, Table::District, Mode::Write, w, d);
        self.update(work, Table::District, w, d);
        self.select(work, Table::Customer, Mode::Read, w, customer);
        let number = self.facts.orders(district(w, d));
        let row = self.insert_order(work, w, d, number, customer);
        self.insert_new_order(work, w, d, number);
        let first_line = self.lines.count();
        for (at, line) in order.lines.iter().enumerate() {
            let (supply, item) = (line.supply - 1, line.item.min(ITEMS) - 1);
            self.select(work, Table::Item, Mode::Read, 0, item);
            if line.item > ITEMS {
                break;
            }
            self.select(work, Table::Stock, Mode::Read, supply, item);
            self.update(work, Table::Stock, supply, item);
            self.insert_line(work, w, d, number, at as u32);
        }
        let lines = self.lines.count() - first_line;
        self.district_mut(w, d).added.push(AddedOrder { row, first_line, lines });
        // MyISAM cannot roll back, so the order remains.
        let items = order.lines.iter().map(|line| line.item - 1).filter(|item| *item < ITEMS);
        self.facts.order(district(w, d), order.customer - 1, items);
    }

    fn insert_order(&mut self, work: &mut Work, w: u32, d: u32, number: u32, customer: u32) -> u32 {
        work.begin(Table::Orders, Mode::Insert);
        let row = self.append(work, Table::Orders);
        let (block, created) = self.order_block(w, d, number);
        work.change_key(block, created);
        work.change_key(self.layout.orders_by_customer.block(w, customer), false);
        self.end(work, Table::Orders);
        row
    }

    /// Inserts a row into `new_order`. A deleted position is reused before the file grows; reuse needs an exclusive
    /// lock.
    fn insert_new_order(&mut self, work: &mut Work, w: u32, d: u32, number: u32) {
        let mode = if self.deleted.is_empty() { Mode::Insert } else { Mode::Write };
        work.begin(Table::NewOrder, mode);
        let row = match self.deleted.pop() {
            Some(row) => {
                self.new_orders
                    .pages(row, 1, &mut |page, count| work.write_rows(Table::NewOrder, (page, count)));
                row
            }
            None => self.append(work, Table::NewOrder),
        };
        work.change_key(self.new_order_block(w, d, number), false);
        self.end(work, Table::NewOrder);
        self.district_mut(w, d).undelivered.push_back(row);
    }

    fn insert_line(&mut self, work: &mut Work, w: u32, d: u32, number: u32, at: u32) {
        work.begin(Table::OrderLine, Mode::Insert);
        self.append(work, Table::OrderLine);
        let (block, created) = self.line_block(w, d, number, at.min(LINES - 1));
        work.change_key(block, created);
        self.end(work, Table::OrderLine);
    }

    /// Appends a row to a file.
    fn append(&mut self, work: &mut Work, table: Table) -> u32 {
        let rows = match table {
            Table::Orders => &mut self.orders,
            Table::NewOrder => &mut self.new_orders,
            Table::OrderLine => &mut self.lines,
            _ => &mut self.history,
        };
        let file = super::layout::rows_of(table);
        rows.add(&mut self.growth, &mut |page| work.write(file, page))
    }

    fn payment(&mut self, payment: &Payment, work: &mut Work) {
        let (w, d) = (payment.warehouse - 1, payment.district - 1);
        self.select(work, Table::Warehouse, Mode::Read, w, 0);
        self.update(work, Table::Warehouse, w, 0);
        self.select(work, Table::District, Mode::Read, w, d);
        self.update(work, Table::District, w, d);
        let (cw, cd) = (payment.customer_warehouse - 1, payment.customer_district - 1);
        let customer = self.customer(work, cw, cd, &payment.who);
        self.update(work, Table::Customer, cw, customer);
        work.begin(Table::History, Mode::Insert);
        self.append(work, Table::History);
        self.end(work, Table::History);
    }

    /// Finds a customer. Adds the statements of the search.
    fn customer(&mut self, work: &mut Work, w: u32, d: u32, who: &Who) -> u32 {
        let first = d * CUSTOMERS_PER_DISTRICT;
        let customer = match who {
            Who::Number(number) => first + number - 1,
            Who::LastName(name) => {
                // The query returns the first match by first name. The index contains all columns of the query.
                let (bearers, at) = self.facts.bearers(district(w, d), name);
                let entry = (at * f64::from(CUSTOMERS_PER_DISTRICT)) as u32;
                work.begin(Table::Customer, Mode::Read);
                work.key(self.layout.customers_by_name.block(w, first + entry));
                self.end(work, Table::Customer);
                // First names are random, so any of the customers can be the first match. The choice is constant for
                // each district.
                first + bearers[district(w, d) as usize % bearers.len()]
            }
        };
        self.select(work, Table::Customer, Mode::Read, w, customer);
        customer
    }

    fn order_status(&mut self, status: &OrderStatus, work: &mut Work) {
        let (w, d) = (status.warehouse - 1, status.district - 1);
        let customer = self.customer(work, w, d, &status.who);
        let number = self.facts.last_order(district(w, d), customer % CUSTOMERS_PER_DISTRICT);
        work.begin(Table::Orders, Mode::Read);
        work.key(self.layout.orders_by_customer.block(w, customer));
        self.order_row(w, d, number, &mut |pages| work.read(pages));
        self.end(work, Table::Orders);
        work.begin(Table::OrderLine, Mode::Read);
        self.find_lines(work, w, d, number);
        self.end(work, Table::OrderLine);
    }

    fn delivery(&mut self, delivery: &Delivery, work: &mut Work) {
        let w = delivery.warehouse - 1;
        for d in 0..DISTRICTS {
            let ordered = self.facts.deliver(district(w, d));
            let number = ordered.map_or_else(|| self.facts.orders(district(w, d)), |(number, _)| number);
            work.begin(Table::NewOrder, Mode::Read);
            work.key(self.new_order_block(w, d, number));
            self.end(work, Table::NewOrder);
            let Some((_, customer)) = ordered else { continue };
            let row =
                self.district_mut(w, d).undelivered.pop_front().expect("an undelivered order has a row");
            work.begin(Table::NewOrder, Mode::Write);
            work.change_key(self.new_order_block(w, d, number), false);
            self.new_orders.pages(row, 1, &mut |page, count| work.write_rows(Table::NewOrder, (page, count)));
            self.end(work, Table::NewOrder);
            self.deleted.push(row);
            for mode in [Mode::Read, Mode::Write] {
                work.begin(Table::Orders, mode);
                let (block, _) = self.order_block(w, d, number);
                work.key(block);
                self.order_row(w, d, number, &mut |pages| work.read(pages));
                if mode == Mode::Write {
                    self.order_row(w, d, number, &mut |pages| work.write_rows(Table::Orders, pages));
                }
                self.end(work, Table::Orders);
            }
            for mode in [Mode::Write, Mode::Read] {
                work.begin(Table::OrderLine, mode);
                self.find_lines(work, w, d, number);
                if mode == Mode::Write {
                    self.line_rows(w, d, number, &mut |pages| work.write_rows(Table::OrderLine, pages));
                }
                self.end(work, Table::OrderLine);
            }
            self.update(work, Table::Customer, w, d * CUSTOMERS_PER_DISTRICT + customer);
        }
    }

    /// Adds one statement over three tables, which are locked in table order.
    fn stock_level(&mut self, level: &StockLevel, work: &mut Work) {
        let (w, d) = (level.warehouse - 1, level.district - 1);
        self.select(work, Table::District, Mode::Read, w, d);
        work.begin(Table::Stock, Mode::Read);
        work.begin(Table::OrderLine, Mode::Read);
        let last = self.facts.orders(district(w, d));
        let recent: Vec<Vec<u32>> = self.facts.recent_items(district(w, d)).collect();
        for (number, items) in (last - recent.len() as u32..last).zip(recent) {
            self.find_lines(work, w, d, number);
            for item in items {
                self.find(work, Table::Stock, w, item);
            }
        }
        self.end(work, Table::OrderLine);
    }

    /// Reads the lines of an order by their keys.
    fn find_lines(&mut self, work: &mut Work, w: u32, d: u32, number: u32) {
        let (first, _) = self.line_block(w, d, number, 0);
        let (last, _) = self.line_block(w, d, number, LINES - 1);
        work.key(first);
        if last != first {
            work.key(last);
        }
        self.line_rows(w, d, number, &mut |pages| work.read(pages));
    }

    fn order_row(&self, w: u32, d: u32, number: u32, each: &mut dyn FnMut((Page, u32))) {
        let row = match number.checked_sub(CUSTOMERS_PER_DISTRICT) {
            None => district(w, d) * CUSTOMERS_PER_DISTRICT + number,
            Some(added) => self.district(w, d).added[added as usize].row,
        };
        self.orders.pages(row, 1, &mut |page, count| each((page, count)));
    }
    fn line_rows(&self, w: u32, d: u32, number: u32, each: &mut dyn FnMut((Page, u32))) {
        let (first, lines) = match number.checked_sub(CUSTOMERS_PER_DISTRICT) {
            None => ((district(w, d) * CUSTOMERS_PER_DISTRICT + number) * LINES, LINES),
            Some(added) => {
                let order = self.district(w, d).added[added as usize];
                (order.first_line, order.lines)
            }
        };
        if lines > 0 {
            self.lines.pages(first, lines, &mut |page, count| each((page, count)));
        }
    }

    fn district(&self, w: u32, d: u32) -> &District {
        &self.districts[district(w, d) as usize]
    }
    fn district_mut(&mut self, w: u32, d: u32) -> &mut District {
        &mut self.districts[district(w, d) as usize]
    }

    /// Returns the block with the key of an order, and `true` if the order creates the block.
    fn order_block(&mut self, w: u32, d: u32, number: u32) -> (Block, bool) {
        let index = self.primary(Table::Orders);
        let Some(added) = number.checked_sub(CUSTOMERS_PER_DISTRICT) else {
            return (index.block(w, d * CUSTOMERS_PER_DISTRICT + number), false);
        };
        let blocks = &mut self.districts[district(w, d) as usize].order_blocks;
        let file = index_of(Table::Orders);
        page_at(blocks, added / index.added_per_block, || self.growth.block(file))
    }
    /// Returns the block with the key of an order line, and `true` if the line creates the block.
    fn line_block(&mut self, w: u32, d: u32, number: u32, line: u32) -> (Block, bool) {
        let index = self.primary(Table::OrderLine);
        let Some(added) = number.checked_sub(CUSTOMERS_PER_DISTRICT) else {
            return (index.block(w, (d * CUSTOMERS_PER_DISTRICT + number) * LINES + line), false);
        };
        let blocks = &mut self.districts[district(w, d) as usize].line_blocks;
        let file = index_of(Table::OrderLine);
        page_at(blocks, (added * LINES + line) / index.added_per_block, || self.growth.block(file))
    }
    /// Block with the key of an undelivered order. A district's undelivered orders are a queue, so their blocks form
    /// a ring.
    fn new_order_block(&self, w: u32, d: u32, number: u32) -> Block {
        self.primary(Table::NewOrder).block(w, d * NEW_ORDERS + number % NEW_ORDERS)
    }
}
