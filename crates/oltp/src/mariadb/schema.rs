//! The tables in the words of MariaDB and MySQL.
//!
//! Text is Latin-1, compared byte by byte: as short as it can be, and sorted as on every other engine. Leaves out the
//! columns themselves ([`Table::columns`]).

use crate::settings::Engine;
use crate::tpcc::{Column, Table, Type};

/// How tables are stored: what `ENGINE =` calls it.
pub(super) fn storage(engine: Engine) -> &'static str {
    match engine {
        Engine::MariadbAria => "Aria",
        Engine::MariadbMyisam => "MyISAM",
        _ => "InnoDB",
    }
}

/// `CREATE TABLE` with its keys and indexes.
pub(super) fn create(table: Table, engine: Engine) -> String {
    let mut parts: Vec<String> = table.columns().iter().map(column).collect();
    if !table.key().is_empty() {
        parts.push(format!("PRIMARY KEY ({})", table.key().join(", ")));
    }
    parts.extend(table.indexes().iter().map(|it| format!("INDEX {} ({})", it.name, it.columns.join(", "))));
    let (name, storage) = (table.name(), storage(engine));
    format!(
        "CREATE TABLE {name} ({}) ENGINE = {storage} CHARACTER SET latin1 COLLATE latin1_bin",
        parts.join(", ")
    )
}

fn column(column: &Column) -> String {
    let holds = match column.holds {
        Type::Small => "SMALLINT".to_owned(),
        Type::Int => "INT".to_owned(),
        Type::Long => "BIGINT".to_owned(),
        Type::Char(length) => format!("CHAR({length})"),
        Type::Text(length) => format!("VARCHAR({length})"),
        Type::Time => "DATETIME".to_owned(),
    };
    format!("{} {holds}{}", column.name, if column.null { "" } else { " NOT NULL" })
}
