//! New-Order (clause 2.4): one round trip reads everything and locks the stock, a second one writes everything.
//!
//! Every order of a district changes the district's row, so that row is locked only in the second round trip.

use super::{List, TpccSession, column};
use crate::{Failure, Outcome};
use lowtide_engines::tpcc::NewOrder;
use std::fmt::Write;

/// The lines of an order and the data read for them. Reused between orders.
#[derive(Default)]
pub(super) struct Lines {
    /// In the order of the input.
    lines: Vec<Found>,
    /// Indices into `lines`, by supplying warehouse and item, so that lines with the same item are adjacent.
    sorted: Vec<usize>,
}

#[derive(Default, Clone)]
struct Found {
    item: u32,
    supply: u32,
    quantity: u32,
    /// Number of earlier lines with the same item of the same warehouse.
    before: usize,
    /// In cents; `None` until the item is found.
    price: Option<i64>,
    /// The district's text from the stock row; empty until that row is found.
    dist: String,
}

impl Lines {
    fn set(&mut self, order: &NewOrder) {
        let count = order.lines.len();
        self.lines.resize_with(count.max(self.lines.len()), Found::default);
        self.lines.truncate(count);
        for (found, line) in self.lines.iter_mut().zip(&order.lines) {
            (found.item, found.supply, found.quantity) = (line.item, line.supply, line.quantity);
            found.price = None;
            found.dist.clear();
        }
        self.sorted.clear();
        self.sorted.extend(0..count);
        let lines = &mut self.lines;
        self.sorted.sort_by_key(|line| (lines[*line].supply, lines[*line].item));
        let mut last = None;
        let mut before = 0;
        for line in &self.sorted {
            let key = (lines[*line].supply, lines[*line].item);
            before = if last == Some(key) { before + 1 } else { 0 };
            lines[*line].before = before;
            last = Some(key);
        }
    }
    /// Groups the lines by supplying warehouse, in ascending order.
    fn by_supply(&self) -> impl Iterator<Item = &[usize]> {
        self.sorted.chunk_by(|a, b| self.lines[*a].supply == self.lines[*b].supply)
    }
}

impl TpccSession {
    pub(super) fn new_order(&mut self, order: &NewOrder) -> Result<Outcome, Failure> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.set(order);
        let outcome = self.enter(order, &mut lines);
        self.lines = lines;
        outcome
    }
    fn enter(&mut self, order: &NewOrder, lines: &mut Lines) -> Result<Outcome, Failure> {
        let NewOrder { warehouse, district, customer, .. } = order;
        self.read_and_lock(order, lines)?;
        if let Some(line) = lines.lines.iter().find(|line| line.price.is_some() && line.dist.is_empty()) {
            let Found { item, supply, .. } = line;
            return Err(Failure::Refused(format!("item {item} is not in the stock of warehouse {supply}")));
        }
        let found = lines.lines.iter().filter(|line| line.price.is_some()).count();
        let complete = found == lines.lines.len();
        if found == 0 || (!complete && !self.transactions) {
            self.say(format_args!("ROLLBACK"));
            self.ask_only()?;
            return Ok(Outcome::RolledBack);
        }
        self.say(format_args!(
            "UPDATE district SET d_next_o_id = LAST_INSERT_ID(d_next_o_id) + 1 \
             WHERE d_w_id = {warehouse} AND d_id = {district}"
        ));
        let (count, local) = (order.lines.len(), u8::from(order.all_local()));
        self.say(format_args!(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
             VALUES (LAST_INSERT_ID(), {district}, {warehouse}, {customer}, NOW(), NULL, {count}, {local})"
        ));
        self.insert_lines(order, lines);
        self.say(format_args!(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (LAST_INSERT_ID(), {district}, {warehouse})"
        ));
        self.update_stock(order, lines);
        self.say(format_args!("{}", if complete { "COMMIT" } else { "ROLLBACK" }));
        self.ask_only()?;
        Ok(if complete { Outcome::Committed } else { Outcome::RolledBack })
    }
    /// The first round trip: reads taxes, the customer and the items, and reads and locks the stock.
    fn read_and_lock(&mut self, order: &NewOrder, lines: &mut Lines) -> Result<(), Failure> {
        let NewOrder { warehouse, district, customer, .. } = order;
        self.say(format_args!("START TRANSACTION"));
        self.say(format_args!(
            "SELECT c_discount, c_last, c_credit, w_tax, d_tax FROM warehouse, district, customer \
             WHERE w_id = {warehouse} AND d_w_id = {warehouse} AND d_id = {district} \
             AND c_w_id = {warehouse} AND c_d_id = {district} AND c_id = {customer}"
        ));
        let items = List(order.lines.iter().map(|line| line.item));
        self.say(format_args!("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({items})"));
        for of_one in lines.by_supply() {
            let supply = lines.lines[of_one[0]].supply;
            let items = List(of_one.iter().map(|line| lines.lines[*line].item));
            self.say(format_args!(
                "SELECT s_i_id, s_dist_{district:02}, s_w_id, s_quantity, s_data FROM stock \
                 WHERE s_w_id = {supply} AND s_i_id IN ({items}) FOR UPDATE"
            ));
        }
        let mut known = false;
        self.ask(|statement, row| {
            match statement {
                1 => known = true,
                2 => {
                    let (item, price) = (column::<u32>(&row, 0)?, column(&row, 1)?);
                    lines
                        .lines
                        .iter_mut()
                        .filter(|line| line.item == item)
                        .for_each(|line| line.price = Some(price));
                }
                _ => {
                    let (item, supply) = (column::<u32>(&row, 0)?, column::<u32>(&row, 2)?);
                    let dist: String = column(&row, 1)?;
                    let same =
                        lines.lines.iter_mut().filter(|line| (line.item, line.supply) == (item, supply));
                    same.for_each(|line| dist.clone_into(&mut line.dist));
                }
            }
            Ok(())
        })?;
        if known {
            Ok(())
        } else {
            Err(Failure::Refused(format!(
                "there is no customer {customer} of district {district} of warehouse {warehouse}"
            )))
        }
    }
    fn insert_lines(&mut self, order: &NewOrder, lines: &Lines) {
        let NewOrder { warehouse, district, .. } = order;
        self.say(format_args!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info) VALUES"
        ));
        let mut comma = ' ';
        for (number, line) in (1..).zip(&lines.lines) {
            let Found { item, supply, quantity, price: Some(price), ref dist, .. } = *line else { continue };
            let amount = i64::from(quantity) * price;
            // Writing to a string cannot fail.
            let _ = write!(
                self.batch,
                "{comma}(LAST_INSERT_ID(),{district},{warehouse},{number},{item},{supply},NULL,{quantity},{amount},{})",
                super::Quoted(dist)
            );
            comma = ',';
        }
    }
    /// Adds one statement per supplying warehouse, and one more per repetition of an item: a statement changes a row
    /// only once.
    fn update_stock(&mut self, order: &NewOrder, lines: &Lines) {
        for of_one in lines.by_supply() {
            for time in 0.. {
                let wanted = of_one.iter().map(|line| &lines.lines[*line]);
                let wanted: Vec<&Found> =
                    wanted.filter(|line| line.before == time && line.price.is_some()).collect();
                let Some(first) = wanted.first() else { break };
                let supply = first.supply;
                let remote = u8::from(supply != order.warehouse);
                let quantity = Quantities(&wanted);
                let items = List(wanted.iter().map(|line| line.item));
                // Assignments are evaluated from left to right: the third uses the result of the second.
                self.say(format_args!(
                    "UPDATE stock SET s_ytd = s_ytd + {quantity}, s_quantity = s_quantity - {quantity}, \
                     s_quantity = s_quantity + IF(s_quantity < 10, 91, 0), s_order_cnt = s_order_cnt + 1, \
                     s_remote_cnt = s_remote_cnt + {remote} WHERE s_w_id = {supply} AND s_i_id IN ({items})"
                ));
            }
        }
    }
}

/// An SQL expression for the quantity of a row's item.
struct Quantities<'a>(&'a [&'a Found]);

impl std::fmt::Display for Quantities<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let [line] = self.0 {
            return write!(f, "{}", line.quantity);
        }
        f.write_str("CASE s_i_id")?;
        for line in self.0 {
            write!(f, " WHEN {} THEN {}", line.item, line.quantity)?;
        }
        f.write_str(" END")
    }
}
