//! Order-Status and Stock-Level: the read-only transactions.
//!
//! The results are read and discarded.

use super::{Quoted, TpccSession, column};
use crate::{Failure, Outcome};
use lowtide_engines::tpcc::{OrderStatus, StockLevel, Who};

/// The columns of a customer that Order-Status reads.
const CUSTOMER: &str = "SELECT c_id, c_first, c_middle, c_last, c_balance FROM customer";

impl TpccSession {
    /// Clause 2.6: a customer's balance and the lines of the last order. One round trip by number, two by last name.
    pub(super) fn order_status(&mut self, asked: &OrderStatus) -> Result<Outcome, Failure> {
        let (warehouse, district) = (asked.warehouse, asked.district);
        self.say(format_args!("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"));
        self.say(format_args!("START TRANSACTION READ ONLY"));
        match &asked.who {
            Who::Number(id) => {
                let key = format_args!("c_w_id = {warehouse} AND c_d_id = {district} AND c_id = {id}");
                self.say(format_args!("{CUSTOMER} WHERE {key}"));
                self.last_order(warehouse, district, *id)?;
            }
            Who::LastName(name) => {
                let name = Quoted(name);
                let named = format_args!("c_w_id = {warehouse} AND c_d_id = {district} AND c_last = {name}");
                self.say(format_args!("{CUSTOMER} WHERE {named} ORDER BY c_first"));
                let mut ids = Vec::new();
                self.ask(|_, row| {
                    ids.push(column(&row, 0)?);
                    Ok(())
                })?;
                let id = Self::middle(ids, &asked.who)?;
                self.last_order(warehouse, district, id)?;
            }
        }
        Ok(Outcome::Committed)
    }
    fn last_order(&mut self, warehouse: u32, district: u32, customer: u32) -> Result<(), Failure> {
        self.say(format_args!(
            "SELECT o_id INTO @o FROM orders WHERE o_w_id = {warehouse} AND o_d_id = {district} \
             AND o_c_id = {customer} ORDER BY o_id DESC LIMIT 1"
        ));
        self.say(format_args!(
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
             WHERE o_w_id = {warehouse} AND o_d_id = {district} AND o_id = @o"
        ));
        self.say(format_args!(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id = @o"
        ));
        self.say(format_args!("COMMIT"));
        Ok(self.ask_only()?)
    }
    /// Clause 2.8: counts the items of the district's last 20 orders that are low in stock. One round trip.
    pub(super) fn stock_level(&mut self, asked: &StockLevel) -> Result<Outcome, Failure> {
        let StockLevel { warehouse, district, threshold } = asked;
        self.say(format_args!("START TRANSACTION READ ONLY"));
        self.say(format_args!(
            "SELECT d_next_o_id INTO @next FROM district WHERE d_w_id = {warehouse} AND d_id = {district}"
        ));
        self.say(format_args!(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line STRAIGHT_JOIN stock \
             ON s_w_id = {warehouse} AND s_i_id = ol_i_id AND s_quantity < {threshold} \
             WHERE ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id >= @next - 20 AND ol_o_id < @next"
        ));
        self.say(format_args!("COMMIT"));
        self.ask_only()?;
        Ok(Outcome::Committed)
    }
}
