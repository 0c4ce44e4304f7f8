//! Settings as SQLite pragmas, and the settings that SQLite does not support.
//!
//! A load has its own settings, in `load`.

use super::error::sql;
use crate::{OltpError, Places};
use lowtide_core::suggest::nearest;
use lowtide_engines::{Durability, Settings};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::time::Duration;

/// Time that a connection waits for a lock on the file.
const BUSY: Duration = Duration::from_secs(5);

/// Prepares the only connection to a file on a VFS without shared memory or temporary files, before its other
/// settings.
///
/// A WAL needs shared memory unless the connection locks the file exclusively. `cache_spill` is off so that
/// pages are not written before their transaction ends. Otherwise, a SQLite built with memory management could
/// take memory from any connection of the process, and the time of a write would depend on other connections.
pub(super) fn alone(connection: &Connection, settings: &Settings) -> Result<(), OltpError> {
    if journal(settings).eq_ignore_ascii_case("WAL") {
        set(connection, "locking_mode", "EXCLUSIVE")?;
    }
    set(connection, "temp_store", "MEMORY")?;
    set(connection, "cache_spill", "OFF")
}

fn journal(settings: &Settings) -> &str {
    let journal = settings.options.iter().rfind(|(name, _)| name == "journal_mode");
    journal.map_or("WAL", |(_, value)| value)
}

/// Applies the settings to the writer.
pub(super) fn apply(connection: &Connection, settings: &Settings) -> Result<(), OltpError> {
    connection.busy_timeout(BUSY).map_err(sql("setting the busy timeout"))?;
    check_names(connection, settings)?;
    // The page size cannot change once the file is in WAL mode.
    for (name, value) in settings.options.iter().filter(|(name, _)| name == "page_size") {
        set(connection, name, value)?;
    }
    set(connection, "journal_mode", journal(settings))?;
    let synchronous = match settings.durability.unwrap_or_default() {
        Durability::Full => "FULL",
        Durability::Second => "NORMAL",
        Durability::None => "OFF",
    };
    set(connection, "synchronous", synchronous)?;
    if let Some(memory) = settings.buffer_pool {
        // A negative value is in KiB.
        set(connection, "cache_size", &format!("-{}", (memory.get() / 1024).max(1)))?;
    }
    if let Some(log) = settings.log_size {
        let page: u64 = get(connection, "page_size")?.parse().unwrap_or(4096);
        set(connection, "wal_autocheckpoint", &(log.get() / page).max(1).to_string())?;
    }
    let done = ["page_size", "journal_mode"];
    for (name, value) in settings.options.iter().filter(|(name, _)| !done.contains(&name.as_str())) {
        set(connection, name, value)?;
    }
    Ok(())
}

/// Current settings of a connection, with SQLite's names and values.
pub(super) fn shown(
    connection: &Connection,
    settings: &Settings,
) -> Result<Vec<(String, String)>, OltpError> {
    let always = ["journal_mode", "synchronous", "page_size", "cache_size", "wal_autocheckpoint"];
    let asked = settings.options.iter().map(|(name, _)| name.as_str());
    let names = always.into_iter().chain(asked.filter(|name| !always.contains(name)));
    names.map(|name| Ok((name.to_owned(), get(connection, name)?))).collect()
}

/// Requested settings without a pragma, each with the reason.
pub(super) fn ignored(places: Option<&Places>, settings: &Settings) -> Vec<String> {
    let Settings {
        engine: _,
        buffer_pool: _,
        preset: _,
        durability,
        flush_method,
        doublewrite,
        flush_neighbours,
        io_capacity,
        read_ahead,
        log_size: _,
        data_files,
        data_file_size: _,
        options: _,
        programs,
    } = settings;
    let lines = [
        (
            *durability == Some(Durability::Second),
            "durability: SQLite syncs at commits or, as now, at checkpoints only, and never by the second",
        ),
        (flush_method.is_some(), "flush_method: SQLite writes through the kernel's cache and syncs"),
        (doublewrite.is_some(), "doublewrite: the WAL of SQLite holds whole pages, always"),
        (flush_neighbours.is_some(), "flush_neighbours: SQLite writes what has changed at checkpoints"),
        (io_capacity.is_some(), "io_capacity: SQLite writes nothing in the background"),
        (read_ahead.is_some(), "read_ahead: SQLite reads page by page, and the kernel ahead"),
        (data_files.is_some(), "data_files: a database of SQLite is one file"),
        (programs.is_some(), "programs: SQLite is within lowtide"),
        (
            places.is_some_and(|it| it.log.is_some()),
            "the place of the log: the WAL of SQLite lies beside its data",
        ),
    ];
    lines.into_iter().filter(|(asked, _)| *asked).map(|(_, line)| line.to_owned()).collect()
}

/// Rejects unknown pragmas, which SQLite would ignore.
fn check_names(connection: &Connection, settings: &Settings) -> Result<(), OltpError> {
    let mut known: Vec<String> = Vec::new();
    connection
        .pragma_query(None, "pragma_list", |row| {
            known.push(row.get(0)?);
            Ok(())
        })
        .map_err(sql("listing the pragmas of SQLite"))?;
    for (name, _) in &settings.options {
        if !known.contains(name) {
            let hint = nearest(name, known.iter().map(String::as_str));
            let hint = hint.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(OltpError::Invalid(format!("SQLite has no pragma `{name}`{hint}")));
        }
    }
    Ok(())
}

fn set(connection: &Connection, name: &str, value: &str) -> Result<(), OltpError> {
    connection.pragma_update(None, name, value).map_err(sql(format!("PRAGMA {name} = {value}")))
}

/// Value of a pragma as text; empty if it has none.
fn get(connection: &Connection, name: &str) -> Result<String, OltpError> {
    let mut value = Value::Null;
    let read = connection.pragma_query(None, name, |row| {
        value = row.get(0)?;
        Ok(())
    });
    read.map_err(sql(format!("PRAGMA {name}")))?;
    Ok(match value {
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Null | Value::Blob(_) => String::new(),
    })
}
