//! The tables as PostgreSQL statements, and the schema that holds them.
//!
//! A mark identifies the schema as lowtide's; a schema without it is never touched. Tablespaces are inside the data
//! directory (`pg_tblspc`), so a copy of the directory is complete. Tables and their indexes are assigned to
//! tablespaces round-robin, largest first. The rows come from `tpcc::population`.

use super::connection::Connection;
use super::error::PgError;
use crate::OltpError;
use lowtide_engines::tpcc::{Table, Type};
use std::fmt::Write;

/// The schema of all tables.
pub(super) const NAME: &str = "lowtide";

/// The comment that marks the schema as lowtide's.
const MARK: &str = "made by lowtide";

/// The tables and the approximate size of a row as text, those with the most bytes first.
pub(super) const BY_SIZE: [(Table, u64); 9] = [
    (Table::OrderLine, 70),
    (Table::Stock, 318),
    (Table::Customer, 580),
    (Table::History, 62),
    (Table::Orders, 42),
    (Table::Item, 70),
    (Table::NewOrder, 12),
    (Table::District, 110),
    (Table::Warehouse, 110),
];

/// Creates the schema, after dropping that of an earlier load with all its tables.
///
/// # Errors
/// [`OltpError`] if there is a schema of that name that lowtide did not make, or a statement fails.
pub(super) fn make(connection: &mut Connection, tablespaces: u32) -> Result<(), OltpError> {
    let mut run = |statement: &str| {
        connection.simple(statement).map_err(|error| error.sql(format!("making the schema `{NAME}`")))
    };
    let rows = run(&format!(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = '{NAME}'"
    ))?;
    if let Some(row) = rows.first() {
        if row.first().and_then(Option::as_deref) != Some(MARK) {
            return Err(OltpError::Invalid(format!(
                "the database has a schema `{NAME}` that lowtide did not make: rename it, or name another database"
            )));
        }
        run(&format!("DROP SCHEMA {NAME} CASCADE"))?;
    }
    run(&format!("CREATE SCHEMA {NAME}; COMMENT ON SCHEMA {NAME} IS '{MARK}'"))?;
    let there = run("SELECT spcname FROM pg_tablespace")?;
    let there = |name: &str| there.iter().flatten().flatten().any(|it| it == name);
    for number in 0..tablespaces {
        let name = tablespace(number);
        if !there(&name) {
            run("SET allow_in_place_tablespaces = on")?;
            run(&format!("CREATE TABLESPACE {name} LOCATION ''"))?;
        }
    }
    Ok(())
}

/// Creates a table without keys. Its tablespace becomes the session's default, so later indexes use it too.
pub(super) fn make_table(connection: &mut Connection, table: Table, tablespaces: u32) -> Result<(), PgError> {
    if tablespaces > 0 {
        let place = BY_SIZE.iter().position(|(it, _)| *it == table).unwrap_or(0) as u32;
        let space = tablespace(place % tablespaces);
        connection.simple(&format!("SET default_tablespace = {space}"))?;
    }
    connection.simple(&create(table)).map(drop)
}

/// Creates the keys and indexes of a table.
pub(super) fn make_indexes(connection: &mut Connection, table: Table) -> Result<(), PgError> {
    let name = table.name();
    if !table.key().is_empty() {
        connection.simple(&format!("ALTER TABLE {name} ADD PRIMARY KEY ({})", table.key().join(", ")))?;
    }
    for index in table.indexes() {
        connection.simple(&format!(
            "CREATE INDEX {} ON {name} ({})",
            index.name,
            index.columns.join(", ")
        ))?;
    }
    Ok(())
}

fn tablespace(number: u32) -> String {
    format!("{NAME}_{number}")
}

fn create(table: Table) -> String {
    let mut text = format!("CREATE TABLE {} (", table.name());
    for (place, column) in table.columns().iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let null = if column.null { "" } else { " NOT NULL" };
        let _ = write!(text, "{comma}{} {}{null}", column.name, words(column.holds));
    }
    text + ")"
}

fn words(holds: Type) -> String {
    match holds {
        Type::Small => "smallint".to_owned(),
        Type::Int => "integer".to_owned(),
        Type::Long => "bigint".to_owned(),
        Type::Char(length) => format!("char({length})"),
        Type::Text(length) => format!("varchar({length})"),
        Type::Time => "timestamp".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_in_postgresqls_words() {
        let expected = "CREATE TABLE new_order (no_o_id integer NOT NULL, no_d_id smallint NOT NULL, \
                        no_w_id integer NOT NULL)";
        assert_eq!(create(Table::NewOrder), expected);
        assert!(create(Table::OrderLine).contains("ol_delivery_d timestamp, ol_quantity smallint NOT NULL"));
        for table in Table::ALL {
            assert!(BY_SIZE.iter().any(|(it, _)| *it == table), "{}", table.name());
        }
    }
}
