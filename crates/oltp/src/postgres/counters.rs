//! The statistics of PostgreSQL as one list of counters.
//!
//! The views and their columns differ between versions, so the server is asked for them. All numeric columns
//! are read, except identifiers.
//!
//! # Not measured
//! Wait events (`pg_stat_activity`): they are samples, not sums.
//!
//! Source: PostgreSQL documentation, chapter "Monitoring Database Activity".

use super::connection::Connection;
use super::error::PgError;
use crate::{Counter, CounterUnit};

/// A view: its name, an expression over `it` that identifies a row, and a filter of its rows.
struct View {
    name: &'static str,
    row: &'static str,
    only: &'static str,
}

const fn view(name: &'static str) -> View {
    View { name, row: "NULL", only: "true" }
}

/// `pg_stat_io` exists since version 16. `pg_stat_checkpointer` was split from `pg_stat_bgwriter` in version
/// 17.
const VIEWS: [View; 8] = [
    View { name: "pg_stat_database", row: "NULL", only: "datname = current_database()" },
    view("pg_stat_bgwriter"),
    view("pg_stat_checkpointer"),
    view("pg_stat_wal"),
    View {
        name: "pg_stat_io",
        row: "concat_ws(' ', it.backend_type, it.object, it.context)",
        only: "coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(fsyncs, 0) > 0",
    },
    View { name: "pg_stat_user_tables", row: "it.relname", only: "schemaname = 'lowtide'" },
    View { name: "pg_statio_user_tables", row: "it.relname", only: "schemaname = 'lowtide'" },
    View { name: "pg_stat_user_indexes", row: "it.indexrelname", only: "schemaname = 'lowtide'" },
];

/// Numeric columns that are not counters.
const NAMES: [&str; 4] = ["datid", "relid", "indexrelid", "op_bytes"];

/// Reads all counters.
pub(super) fn read(connection: &mut Connection) -> Result<Vec<Counter>, PgError> {
    let there = connection.simple(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relname LIKE 'pg\\_stat%'",
    )?;
    let mut counters = Vec::new();
    for view in VIEWS {
        if !there.iter().flatten().flatten().any(|name| name == view.name) {
            continue;
        }
        let View { name: from, row, only } = view;
        let rows = connection.simple(&format!(
            "SELECT {row}, key, value FROM (SELECT * FROM {from} WHERE {only}) AS it, \
             LATERAL jsonb_each_text(to_jsonb(it)) ORDER BY 1, 2"
        ))?;
        for row in rows {
            let [row, Some(column), Some(value)] = &row[..] else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            if NAMES.contains(&column.as_str()) {
                continue;
            }
            let (unit, factor) = unit(column);
            let name = row.as_ref().map_or_else(|| column.clone(), |row| format!("{row}.{column}"));
            counters.push(Counter { from, name, unit, value: value * factor });
        }
    }
    Ok(counters)
}

/// Unit of a column, and the factor that converts its value. PostgreSQL's times are in milliseconds.
fn unit(column: &str) -> (CounterUnit, f64) {
    match column {
        "numbackends" | "n_live_tup" | "n_dead_tup" | "n_mod_since_analyze" | "n_ins_since_vacuum" => {
            (CounterUnit::Level, 1.0)
        }
        _ if column.ends_with("_time") => (CounterUnit::Nanoseconds, 1e6),
        _ if column.ends_with("_bytes") => (CounterUnit::Bytes, 1.0),
        _ => (CounterUnit::Count, 1.0),
    }
}
