//! Payment (clause 2.5): one round trip by customer number, two by last name.
//!
//! All payments of a warehouse's terminals change the warehouse's row. It is updated last, to keep its lock short.

use super::{Quoted, TpccSession, column};
use crate::{Failure, Outcome};
use lowtide_engines::tpcc::{Payment, Who};

impl TpccSession {
    pub(super) fn payment(&mut self, payment: &Payment) -> Result<Outcome, Failure> {
        let Payment { warehouse, district, customer_warehouse, customer_district, amount, .. } = payment;
        self.say(format_args!("START TRANSACTION"));
        let customer = match &payment.who {
            Who::Number(id) => *id,
            Who::LastName(name) => {
                self.say(format_args!(
                    "SELECT c_id FROM customer WHERE c_w_id = {customer_warehouse} \
                     AND c_d_id = {customer_district} AND c_last = {} ORDER BY c_first",
                    Quoted(name)
                ));
                let mut ids = Vec::new();
                self.ask(|_, row| {
                    ids.push(column(&row, 0)?);
                    Ok(())
                })?;
                Self::middle(ids, &payment.who)?
            }
        };
        // Customers with bad credit have the payment written into their data.
        self.say(format_args!(
            "UPDATE customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, \
             c_payment_cnt = c_payment_cnt + 1, c_data = IF(c_credit = 'BC', \
             LEFT(CONCAT('{customer} {customer_district} {customer_warehouse} {district} {warehouse} {amount} ', \
             c_data), 500), c_data) \
             WHERE c_w_id = {customer_warehouse} AND c_d_id = {customer_district} AND c_id = {customer}"
        ));
        self.say(format_args!(
            "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
             c_credit, c_credit_lim, c_discount, c_balance, IF(c_credit = 'BC', LEFT(c_data, 200), '') \
             FROM customer WHERE c_w_id = {customer_warehouse} AND c_d_id = {customer_district} \
             AND c_id = {customer}"
        ));
        self.say(format_args!(
            "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             SELECT {customer}, {customer_district}, {customer_warehouse}, {district}, {warehouse}, NOW(), {amount}, \
             CONCAT(w_name, '    ', d_name) FROM warehouse, district \
             WHERE w_id = {warehouse} AND d_w_id = {warehouse} AND d_id = {district}"
        ));
        for (table, prefix, key) in [
            ("district", 'd', format_args!("d_w_id = {warehouse} AND d_id = {district}")),
            ("warehouse", 'w', format_args!("w_id = {warehouse}")),
        ] {
            self.say(format_args!("UPDATE {table} SET {prefix}_ytd = {prefix}_ytd + {amount} WHERE {key}"));
            self.say(format_args!(
                "SELECT {prefix}_name, {prefix}_street_1, {prefix}_street_2, {prefix}_city, {prefix}_state, \
                 {prefix}_zip FROM {table} WHERE {key}"
            ));
        }
        self.say(format_args!("COMMIT"));
        self.ask_only()?;
        Ok(Outcome::Committed)
    }
}
