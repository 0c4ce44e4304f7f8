//! The five transactions, and their inputs (clause 2).
//!
//! Leaves out how inputs are chosen, and what a database does with them.

/// The kinds of transaction, in the order of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Enters an order; the benchmark counts these.
    NewOrder,
    /// Pays, and says so at the district and the warehouse.
    Payment,
    /// Asks for a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of every district.
    Delivery,
    /// Counts items of recent orders that are short.
    StockLevel,
}

impl Kind {
    /// All of them, in order.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
    /// Its name: `new-order`.
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

/// A transaction with its inputs. Numbers of warehouses, districts, customers and items begin at 1; amounts are in
/// cents.
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
    /// Its kind.
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

/// Inputs of New-Order. One order in a hundred names, as its last item, one that does not exist: it has to be
/// rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Customer.
    pub customer: u32,
    /// 5 to 15 lines. The same item may stand in several.
    pub lines: Vec<Line>,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Item; one more than there are where the order is to be rolled back.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supply: u32,
    /// 1 to 10.
    pub quantity: u32,
}

impl NewOrder {
    /// Whether all lines are supplied by the home warehouse.
    pub fn all_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply == self.warehouse)
    }
}

/// How a customer is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// By number.
    Number(u32),
    /// By last name: of those who bear it, sorted by first name, the one at position n/2 rounded up.
    LastName(String),
}

/// Inputs of Payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// District, where it is paid.
    pub district: u32,
    /// The customer's warehouse.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u32,
    /// The customer.
    pub who: Who,
    /// Cents, 100 to 500 000.
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
    /// 1 to 10.
    pub carrier: u32,
}

/// Inputs of Stock-Level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockLevel {
    /// Warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// 10 to 20.
    pub threshold: u32,
}
