//! The columns of the answer table that are of databases: which, what was asked, what a transaction cost.
//!
//! Not here: rows (`cells`), and the tables that only databases have.

use super::cells::{Answered, answered as number, layer_amplification, levels, write_amplification};
use crate::answer::Answer;
use crate::databases::{Asked, price_usd};
use crate::number::latency_unit;
use crate::table::{Column, Digits, Value};
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Cell, Oltp, Quantity};

const GIB: f64 = (1u64 << 30) as f64;

/// What the columns mean.
pub(super) fn note(campaign: &Campaign) -> String {
    let mut note = "NOTPM: new orders per minute; all: transactions of all kinds. Read and written: bytes of the device by \
                    transactions, in the same window. Statements and processor time (CPU) are of the whole measurement, \
                    by transactions. Tried again: attempts that met another transaction, by transactions."
        .to_owned();
    if campaign.cells.iter().any(|cell| price_usd(campaign, cell).is_some()) {
        note.push_str(" Dollars are those of the device file.");
    }
    note
}

/// A column of what a database is, and its value, which is known before anything was measured.
type About = (Column, fn(&Cell, &Oltp) -> Value);

/// What a database is; what a factor says is not said again.
pub(super) fn about(factors: &[String]) -> Vec<About> {
    let whole = |key, name| Column::number(key, name, "").digits(Digits::Fixed(0));
    let loaded = Column::number("loaded_bytes", "loaded", "GiB").scaled(1.0 / GIB);
    let all: [About; 4] = [
        (Column::text("database", "database"), |_, it| Value::text(&it.database)),
        (whole("warehouses", "warehouses"), |_, it| positive(f64::from(it.warehouses))),
        (whole("terminals", "terminals"), |cell, _| positive(f64::from(cell.threads))),
        (loaded, |_, it| positive(it.loaded_bytes as f64)),
    ];
    all.into_iter().filter(|(column, _)| !factors.contains(&column.key)).collect()
}

fn positive(number: f64) -> Value {
    Value::number(Some(number).filter(|number| *number > 0.0))
}

/// What was measured of a database, and what a transaction cost.
pub(super) fn answered<'c>(campaign: &'c Campaign, longest_ns: f64) -> Vec<Answered<'c>> {
    let (unit, scale) = latency_unit(longest_ns);
    let asked = |column: Column, of: fn(&Asked<'_>) -> Option<f64>| -> Answered<'c> {
        number(column, move |answer| of(&Asked::of(answer)?))
    };
    let latency = |key, name| Column::number(key, name, unit).scaled(scale);
    let size = |key, name| Column::number(key, name, "KiB").scaled(1.0 / 1024.0);
    let cpu = |key, name| Column::number(key, name, "ms").scaled(1e-6);
    let dollars = |answer: &Answer<'_>| Some(answer.settled?.mean / price_usd(campaign, answer.cell)?);
    let mut columns = Vec::from(levels(Quantity::NewOrders));
    columns.extend([
        asked(Column::number("transactions_per_min", "all", "1/min").digits(Digits::Fixed(0)), |it| {
            Some(it.per_minute())
        }),
        asked(latency("new_order_latency_ns_p95", "New-Order p95"), |it| it.latency_ns(Kind::NewOrder, 95.0)),
        asked(size("read_bytes_per_transaction", "read"), |it| it.per_transaction(it.read_bytes?)),
        asked(size("write_bytes_per_transaction", "written"), |it| it.per_transaction(it.write_bytes?)),
        number(write_amplification(), |answer| answer.write_amplification),
        number(layer_amplification(), |answer| answer.layer_amplification),
        asked(Column::number("statements_per_transaction", "statements", ""), |it| {
            it.per_transaction_of_all(it.oltp.said.statements)
        }),
        asked(
            Column::number("retries_per_transaction", "tried again", "%")
                .scaled(100.0)
                .digits(Digits::Fixed(2)),
            |it| it.retries(),
        ),
        asked(cpu("client_cpu_ns_per_transaction", "client CPU"), |it| {
            it.per_transaction_of_all(it.oltp.said.client_cpu_ns)
        }),
        asked(cpu("server_cpu_ns_per_transaction", "server CPU"), |it| {
            it.per_transaction_of_all(it.oltp.said.server_cpu_ns)
        }),
        number(Column::number("notpm_per_usd", "NOTPM per dollar", ""), dollars),
    ]);
    columns
}
