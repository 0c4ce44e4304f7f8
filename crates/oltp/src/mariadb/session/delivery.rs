//! Delivery (clause 2.7): delivers the oldest order of each district in two round trips.
//!
//! All ten districts are one transaction, as clause 2.7.4 allows.
//!
//! # Not modelled
//! The queue of deferred deliveries and its result file.

use super::{TpccSession, column};
use crate::{Failure, Outcome};
use lowtide_engines::tpcc::{DISTRICTS, Delivery};
use std::fmt::Write;

/// Time limit in seconds for the lock against other deliveries of the warehouse, on engines without transactions.
const WAIT: u32 = 50;

impl TpccSession {
    pub(super) fn delivery(&mut self, delivery: &Delivery) -> Result<Outcome, Failure> {
        if self.transactions {
            return self.deliver(delivery);
        }
        let warehouse = delivery.warehouse;
        self.say(format_args!("SELECT GET_LOCK('lowtide delivery {warehouse}', {WAIT})"));
        let outcome = self.deliver(delivery);
        self.batch.clear();
        // No effect if this session does not hold the lock.
        self.say(format_args!("DO RELEASE_LOCK('lowtide delivery {warehouse}')"));
        let released = self.ask_only();
        let outcome = outcome?;
        released?;
        Ok(outcome)
    }
    fn deliver(&mut self, delivery: &Delivery) -> Result<Outcome, Failure> {
        let Delivery { warehouse, carrier } = delivery;
        self.say(format_args!("START TRANSACTION"));
        for district in 1..=DISTRICTS {
            self.say(format_args!(
                "SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = {warehouse} AND no_d_id = {district} \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            ));
        }
        let mut oldest: Vec<(u32, u32)> = Vec::with_capacity(DISTRICTS as usize);
        // On engines without transactions the first statement takes the lock; its answer is 1 if the lock was taken.
        let (locks, mut alone) = (!self.transactions, self.transactions);
        self.ask(|statement, row| {
            if locks && statement == 0 {
                alone = column::<Option<i64>>(&row, 0)? == Some(1);
            } else {
                oldest.push((column(&row, 0)?, column(&row, 1)?));
            }
            Ok(())
        })?;
        if !alone {
            return Err(Failure::Conflict(format!("another delivery of warehouse {warehouse} goes on")));
        }
        if !oldest.is_empty() {
            self.change(*warehouse, *carrier, &oldest);
        }
        self.say(format_args!("COMMIT"));
        self.ask_only()?;
        Ok(Outcome::Delivered { skipped: DISTRICTS - oldest.len() as u32 })
    }
    /// Adds the statements that change these orders to the batch.
    fn change(&mut self, warehouse: u32, carrier: u32, oldest: &[(u32, u32)]) {
        let those = |district: &str, order: &str| {
            let mut text = String::with_capacity(32 * oldest.len());
            for (index, (d, o)) in oldest.iter().enumerate() {
                let or = if index > 0 { " OR " } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(text, "{or}{district} = {d} AND {order} = {o}");
            }
            text
        };
        let orders = those("o_d_id", "o_id");
        let lines = those("ol_d_id", "ol_o_id");
        let new = those("no_d_id", "no_o_id");
        self.say(format_args!("DELETE FROM new_order WHERE no_w_id = {warehouse} AND ({new})"));
        self.say(format_args!(
            "UPDATE orders SET o_carrier_id = {carrier} WHERE o_w_id = {warehouse} AND ({orders})"
        ));
        self.say(format_args!(
            "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = {warehouse} AND ({lines})"
        ));
        self.say(format_args!(
            "UPDATE (SELECT o_d_id, o_c_id, SUM(ol_amount) AS amount FROM orders STRAIGHT_JOIN order_line \
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
             WHERE o_w_id = {warehouse} AND ({orders}) GROUP BY o_d_id, o_c_id) AS delivered \
             STRAIGHT_JOIN customer ON c_w_id = {warehouse} AND c_d_id = o_d_id AND c_id = o_c_id \
             SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1"
        ));
    }
}
