//! The nine tables (clause 1.3): columns with portable types, keys and indexes.
//!
//! Money is in integer cents and rates are in integer ten-thousandths, so values are exact and equal on every engine.
//! Columns have the order of the specification, and keys begin with the warehouse.
//!
//! # Not modelled
//!
//! Foreign keys, which clause 1.4 leaves to the implementation.

use crate::tpcc::schema::Type::{Char, Int, Long, Small, Text, Time};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// `item`, the only table that is not divided by warehouse.
    Item,
    /// `warehouse`.
    Warehouse,
    /// `district`.
    District,
    /// `customer`.
    Customer,
    /// `history`, which has no key.
    History,
    /// `stock`.
    Stock,
    /// `orders`. The specification's name, `order`, is a keyword of SQL.
    Orders,
    /// `new_order`.
    NewOrder,
    /// `order_line`.
    OrderLine,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Signed integer of 16 bits.
    Small,
    /// Signed integer of 32 bits.
    Int,
    /// Signed integer of 64 bits.
    Long,
    /// ASCII text of exactly this many characters.
    Char(u32),
    /// ASCII text of at most this many characters.
    Text(u32),
    /// Date and time, with a resolution of a second or finer.
    Time,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name in the specification, in lower case.
    pub name: &'static str,
    /// Type of its values.
    pub holds: Type,
    /// `true` if the column is nullable.
    pub null: bool,
}

/// A non-unique secondary index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: &'static str,
    /// Columns, in order.
    pub columns: &'static [&'static str],
}

impl Table {
    /// All tables, in an order suitable for loading.
    pub const ALL: [Table; 9] = [
        Table::Item,
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Stock,
        Table::Orders,
        Table::NewOrder,
        Table::OrderLine,
    ];
    /// Name in every database.
    pub fn name(self) -> &'static str {
        match self {
            Table::Item => "item",
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::Stock => "stock",
            Table::Orders => "orders",
            Table::NewOrder => "new_order",
            Table::OrderLine => "order_line",
        }
    }
    /// Returns true if each row belongs to a warehouse. Only `item` has no warehouse.
    pub fn per_warehouse(self) -> bool {
        self != Table::Item
    }
    /// Columns, in order.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Table::Item => ITEM,
            Table::Warehouse => WAREHOUSE,
            Table::District => DISTRICT,
            Table::Customer => CUSTOMER,
            Table::History => HISTORY,
            Table::Stock => STOCK,
            Table::Orders => ORDERS,
            Table::NewOrder => NEW_ORDER,
            Table::OrderLine => ORDER_LINE,
        }
    }
    /// Columns of the primary key. Empty for `history`.
    pub fn key(self) -> &'static [&'static str] {
        match self {
            Table::Item => &["i_id"],
            Table::Warehouse => &["w_id"],
            Table::District => &["d_w_id", "d_id"],
            Table::Customer => &["c_w_id", "c_d_id", "c_id"],
            Table::History => &[],
            Table::Stock => &["s_w_id", "s_i_id"],
            Table::Orders => &["o_w_id", "o_d_id", "o_id"],
            Table::NewOrder => &["no_w_id", "no_d_id", "no_o_id"],
            Table::OrderLine => &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        }
    }
    /// Secondary indexes.
    pub fn indexes(self) -> &'static [Index] {
        match self {
            Table::Customer => {
                &[Index { name: "customer_by_name", columns: &["c_w_id", "c_d_id", "c_last", "c_first"] }]
            }
            Table::Orders => {
                &[Index { name: "orders_by_customer", columns: &["o_w_id", "o_d_id", "o_c_id", "o_id"] }]
            }
            _ => &[],
        }
    }
}

const fn column(name: &'static str, holds: Type) -> Column {
    Column { name, holds, null: false }
}

const fn nullable(name: &'static str, holds: Type) -> Column {
    Column { name, holds, null: true }
}

const ITEM: &[Column] = &[
    column("i_id", Int),
    column("i_im_id", Int),
    column("i_name", Text(24)),
    column("i_price", Int),
    column("i_data", Text(50)),
];

const WAREHOUSE: &[Column] = &[
    column("w_id", Int),
    column("w_name", Text(10)),
    column("w_street_1", Text(20)),
    column("w_street_2", Text(20)),
    column("w_city", Text(20)),
    column("w_state", Char(2)),
    column("w_zip", Char(9)),
    column("w_tax", Small),
    column("w_ytd", Long),
];

const DISTRICT: &[Column] = &[
    column("d_id", Small),
    column("d_w_id", Int),
    column("d_name", Text(10)),
    column("d_street_1", Text(20)),
    column("d_street_2", Text(20)),
    column("d_city", Text(20)),
    column("d_state", Char(2)),
    column("d_zip", Char(9)),
    column("d_tax", Small),
    column("d_ytd", Long),
    column("d_next_o_id", Int),
];

const CUSTOMER: &[Column] = &[
    column("c_id", Int),
    column("c_d_id", Small),
    column("c_w_id", Int),
    column("c_first", Text(16)),
    column("c_middle", Char(2)),
    column("c_last", Text(16)),
    column("c_street_1", Text(20)),
    column("c_street_2", Text(20)),
    column("c_city", Text(20)),
    column("c_state", Char(2)),
    column("c_zip", Char(9)),
    column("c_phone", Char(16)),
    column("c_since", Time),
    column("c_credit", Char(2)),
    column("c_credit_lim", Long),
    column("c_discount", Small),
    column("c_balance", Long),
    column("c_ytd_payment", Long),
    column("c_payment_cnt", Int),
    column("c_delivery_cnt", Int),
    column("c_data", Text(500)),
];

const HISTORY: &[Column] = &[
    column("h_c_id", Int),
    column("h_c_d_id", Small),
    column("h_c_w_id", Int),
    column("h_d_id", Small),
    column("h_w_id", Int),
    column("h_date", Time),
    column("h_amount", Int),
    column("h_data", Text(24)),
];

const STOCK: &[Column] = &[
    column("s_i_id", Int),
    column("s_w_id", Int),
    column("s_quantity", Small),
    column("s_dist_01", Char(24)),
    column("s_dist_02", Char(24)),
    column("s_dist_03", Char(24)),
    column("s_dist_04", Char(24)),
    column("s_dist_05", Char(24)),
    column("s_dist_06", Char(24)),
    column("s_dist_07", Char(24)),
    column("s_dist_08", Char(24)),
    column("s_dist_09", Char(24)),
    column("s_dist_10", Char(24)),
    column("s_ytd", Int),
    column("s_order_cnt", Int),
    column("s_remote_cnt", Int),
    column("s_data", Text(50)),
];

const ORDERS: &[Column] = &[
    column("o_id", Int),
    column("o_d_id", Small),
    column("o_w_id", Int),
    column("o_c_id", Int),
    column("o_entry_d", Time),
    nullable("o_carrier_id", Small),
    column("o_ol_cnt", Small),
    column("o_all_local", Small),
];

const NEW_ORDER: &[Column] = &[column("no_o_id", Int), column("no_d_id", Small), column("no_w_id", Int)];

const ORDER_LINE: &[Column] = &[
    column("ol_o_id", Int),
    column("ol_d_id", Small),
    column("ol_w_id", Int),
    column("ol_number", Small),
    column("ol_i_id", Int),
    column("ol_supply_w_id", Int),
    nullable("ol_delivery_d", Time),
    column("ol_quantity", Small),
    column("ol_amount", Int),
    column("ol_dist_info", Char(24)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_indexes_are_columns_and_have_the_counts_of_the_specification() {
        for table in Table::ALL {
            let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
            let used = table.key().iter().chain(table.indexes().iter().flat_map(|index| index.columns));
            for name in used {
                assert!(names.contains(name), "{}: {name}", table.name());
            }
        }
        let counts = Table::ALL.map(|table| table.columns().len());
        assert_eq!(counts, [5, 9, 11, 21, 8, 17, 8, 3, 10]);
    }
}
