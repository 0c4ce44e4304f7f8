//! The database columns of the answer table: name, size, rates, and resources per transaction.
//!
//! The rows are in `cells`; the other tables of databases are in `crate::databases`.

use super::cells::{AnswerColumn, answered as number, layer_amplification, levels, write_amplification};
use crate::answer::Answer;
use crate::databases::{Activity, price_usd};
use crate::number::latency_unit;
use crate::table::{Column, Digits, Value};
use lowtide_engines::tpcc::Kind;
use lowtide_record::{Campaign, Cell, Oltp, Quantity};

const GIB: f64 = (1u64 << 30) as f64;

/// The meaning of the columns.
pub(super) fn note(campaign: &Campaign) -> String {
    let mut note = "NOTPM: new orders per minute; all: transactions of all kinds. Read and written: device bytes per \
                    transaction, in the same window. Statements and processor time (CPU) are per transaction of the whole \
                    measurement. Retried: attempts that conflicted with another transaction, per transaction."
        .to_owned();
    if campaign.cells.iter().any(|cell| price_usd(campaign, cell).is_some()) {
        note.push_str(" Prices are from the device file.");
    }
    note
}

/// A column with its value, which is known before the measurement.
type DatabaseColumn = (Column, fn(&Cell, &Oltp) -> Value);

/// The description of a database, without columns that are factors.
pub(super) fn about(factors: &[String]) -> Vec<DatabaseColumn> {
    let loaded = Column::number("loaded_bytes", "loaded", "GiB").scaled(1.0 / GIB);
    let all: [DatabaseColumn; 4] = [
        (Column::text("database", "database"), |_, it| Value::text(&it.database)),
        (Column::count("warehouses", "warehouses"), |_, it| positive(f64::from(it.warehouses))),
        (Column::count("terminals", "terminals"), |cell, _| positive(f64::from(cell.threads))),
        (loaded, |_, it| positive(it.loaded_bytes as f64)),
    ];
    all.into_iter().filter(|(column, _)| !factors.contains(&column.key)).collect()
}

fn positive(number: f64) -> Value {
    Value::number(Some(number).filter(|number| *number > 0.0))
}

/// The measured columns of a database.
pub(super) fn answered<'c>(campaign: &'c Campaign, longest_ns: f64) -> Vec<AnswerColumn<'c>> {
    let (unit, scale) = latency_unit(longest_ns);
    let activity = |column: Column, of: fn(&Activity<'_>) -> Option<f64>| -> AnswerColumn<'c> {
        number(column, move |answer| of(&Activity::of(answer)?))
    };
    let latency = |key, name| Column::number(key, name, unit).scaled(scale);
    let size = |key, name| Column::number(key, name, "KiB").scaled(1.0 / 1024.0);
    let cpu = |key, name| Column::number(key, name, "ms").scaled(1e-6);
    let dollars = |answer: &Answer<'_>| Some(answer.settled?.mean / price_usd(campaign, answer.cell)?);
    let mut columns = Vec::from(levels(Quantity::NewOrders));
    columns.extend([
        activity(Column::number("transactions_per_min", "all", "1/min").digits(Digits::Fixed(0)), |it| {
            Some(it.per_minute())
        }),
        activity(latency("new_order_latency_ns_p95", "New-Order p95"), |it| {
            it.latency_ns(Kind::NewOrder, 95.0)
        }),
        activity(size("read_bytes_per_transaction", "read"), |it| it.per_transaction(it.read_bytes?)),
        activity(size("write_bytes_per_transaction", "written"), |it| it.per_transaction(it.write_bytes?)),
        number(write_amplification(), |answer| answer.write_amplification),
        number(layer_amplification(), |answer| answer.layer_amplification),
        activity(Column::number("statements_per_transaction", "statements", ""), |it| {
            it.per_transaction_of_all(it.oltp.said.statements)
        }),
        activity(Column::percent("retries_per_transaction", "retried").digits(Digits::Fixed(2)), |it| {
            it.retries()
        }),
        activity(cpu("client_cpu_ns_per_transaction", "client CPU"), |it| {
            it.per_transaction_of_all(it.oltp.said.client_cpu_ns)
        }),
        activity(cpu("server_cpu_ns_per_transaction", "server CPU"), |it| {
            it.per_transaction_of_all(it.oltp.said.server_cpu_ns)
        }),
        number(Column::number("notpm_per_usd", "NOTPM per dollar", ""), dollars),
    ]);
    columns
}
