//! The tables as statements of MariaDB and MySQL.
//!
//! Text is Latin-1 and compared byte by byte, which is compact and sorts as on every other engine. The columns come
//! from [`Table::columns`].

use lowtide_engines::Engine;
use lowtide_engines::tpcc::{Column, Table, Type};

/// The storage engine's name for `ENGINE =`.
pub(super) fn storage(engine: Engine) -> &'static str {
    match engine {
        Engine::MariadbAria => "Aria",
        Engine::MariadbMyisam => "MyISAM",
        _ => "InnoDB",
    }
}

/// The comment that marks lowtide's tables. In a user's database, tables without it must not be dropped.
pub(super) const MARK: &str = "TPC-C of lowtide";

/// `CREATE TABLE` with its keys and indexes.
pub(super) fn create(table: Table, engine: Engine) -> String {
    let mut parts: Vec<String> = table.columns().iter().map(column).collect();
    if !table.key().is_empty() {
        parts.push(format!("PRIMARY KEY ({})", table.key().join(", ")));
    }
    parts.extend(table.indexes().iter().map(|it| format!("INDEX {} ({})", it.name, it.columns.join(", "))));
    let (name, storage) = (table.name(), storage(engine));
    let all = parts.join(", ");
    format!(
        "CREATE TABLE {name} ({all}) ENGINE = {storage} CHARACTER SET latin1 COLLATE latin1_bin COMMENT = '{MARK}'"
    )
}

/// The query for tables of this database that have one of our names but not our mark.
pub(super) fn of_others() -> String {
    let names = Table::ALL.map(|table| format!("'{}'", table.name())).join(", ");
    format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME IN ({names}) AND TABLE_COMMENT <> '{MARK}' ORDER BY TABLE_NAME"
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
