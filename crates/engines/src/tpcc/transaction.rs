//! The five transactions and their inputs (clause 2).

/// The kinds of transaction, in the order of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Enters an order. The benchmark's metric counts these transactions.
    NewOrder,
    /// Pays, and updates the totals of district and warehouse.
    Payment,
    /// Reads a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of every district.
    Delivery,
    /// Counts the items of recent orders whose stock is below a threshold.
    StockLevel,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
    /// Name, such as `new-order`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }
}

/// A transaction with its inputs. Warehouses, districts, customers and items are numbered from 1; amounts are
/// in cents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transaction {
    /// Clause 2.4.
    NewOrder(NewOrder),
    /// Clause 2.5.
    Payment(Payment),
    /// Clause 2.6.
    OrderStatus(OrderStatus),
    /// Clause 2.7.
    Delivery(Delivery),
    /// Clause 2.8.
    StockLevel(StockLevel),
}

impl Transaction {
    /// Kind of the transaction.
    pub fn kind(&self) -> Kind {
        match self {
            Transaction::NewOrder(_) => Kind::NewOrder,
            Transaction::Payment(_) => Kind::Payment,
            Transaction::OrderStatus(_) => Kind::OrderStatus,
            Transaction::Delivery(_) => Kind::Delivery,
            Transaction::StockLevel(_) => Kind::StockLevel,
        }
    }
}

/// Inputs of New-Order. One order in a hundred has a last item that does not exist, so the order must be rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// Home warehouse of the terminal.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Customer.
    pub customer: u32,
    /// Order lines, 5 to 15. Several lines may have the same item.
    pub lines: Vec<Line>,
}

/// An order line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Item number. In the last line of an order to be rolled back, one more than the number of items.
    pub item: u32,
    /// The warehouse that supplies the item.
    pub supply: u32,
    /// Quantity, 1 to 10.
    pub quantity: u32,
}

impl NewOrder {
    /// Returns true if the home warehouse supplies all lines.
    pub fn all_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply == self.warehouse)
    }
}

/// Identification of a customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// By number.
    Number(u32),
    /// By last name. Of the n customers with this name, ordered by first name, the customer at position n/2 (rounded
    /// up) is meant.
    LastName(String),
}

/// Inputs of Payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Home warehouse of the terminal.
    pub warehouse: u32,
    /// District of the payment.
    pub district: u32,
    /// The customer's warehouse.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u32,
    /// The customer.
    pub who: Who,
    /// Amount in cents, 100 to 500 000.
    pub amount: i64,
}

/// Inputs of Order-Status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderStatus {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// The customer.
    pub who: Who,
}

/// Inputs of Delivery, for all districts of a warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Warehouse.
    pub warehouse: u32,
    /// Carrier, 1 to 10.
    pub carrier: u32,
}

/// Inputs of Stock-Level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockLevel {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Threshold of the stock, 10 to 20.
    pub threshold: u32,
}
