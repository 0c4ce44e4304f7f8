//! The server's own counters: enough to see where time is spent.
//!
//! Waits are converted to nanoseconds. Most levels are not read, because a report shows differences; the exceptions
//! include the number of dirty pages and the checkpoint age.

use crate::{Counter, CounterUnit};
use mysql::Conn;
use mysql::prelude::Queryable;

/// Status variables, their unit, and the factor to that unit.
const STATUS: [(&str, CounterUnit, f64); 33] = {
    use CounterUnit::{Bytes, Count, Level, Nanoseconds};
    /// Nanoseconds per millisecond.
    const MS: f64 = 1e6;
    [
        ("Innodb_data_reads", Count, 1.0),
        ("Innodb_data_writes", Count, 1.0),
        ("Innodb_data_fsyncs", Count, 1.0),
        ("Innodb_data_read", Bytes, 1.0),
        ("Innodb_data_written", Bytes, 1.0),
        ("Innodb_os_log_written", Bytes, 1.0),
        ("Innodb_os_log_fsyncs", Count, 1.0),
        ("Innodb_log_waits", Count, 1.0),
        ("Innodb_log_writes", Count, 1.0),
        ("Innodb_log_write_requests", Count, 1.0),
        ("Innodb_pages_read", Count, 1.0),
        ("Innodb_pages_written", Count, 1.0),
        ("Innodb_pages_created", Count, 1.0),
        ("Innodb_dblwr_pages_written", Count, 1.0),
        ("Innodb_dblwr_writes", Count, 1.0),
        ("Innodb_buffer_pool_read_requests", Count, 1.0),
        ("Innodb_buffer_pool_reads", Count, 1.0),
        ("Innodb_buffer_pool_read_ahead", Count, 1.0),
        ("Innodb_buffer_pool_wait_free", Count, 1.0),
        ("Innodb_buffer_pool_pages_dirty", Level, 1.0),
        ("Innodb_checkpoint_age", Level, 1.0),
        ("Innodb_row_lock_waits", Count, 1.0),
        ("Innodb_row_lock_time", Nanoseconds, MS),
        ("Innodb_deadlocks", Count, 1.0),
        ("Aria_pagecache_reads", Count, 1.0),
        ("Aria_pagecache_writes", Count, 1.0),
        ("Key_reads", Count, 1.0),
        ("Key_writes", Count, 1.0),
        ("Handler_read_key", Count, 1.0),
        ("Handler_read_next", Count, 1.0),
        ("Handler_read_rnd_next", Count, 1.0),
        ("Table_locks_waited", Count, 1.0),
        ("Questions", Count, 1.0),
    ]
};

/// Suffixes of InnoDB's time metrics, and the factor to nanoseconds.
const TIMES: [(&str, f64); 4] = [("_nsec", 1.0), ("_usecs", 1e3), ("_usec", 1e3), ("_msec", 1e6)];

/// Reads all counters.
pub(super) fn read(conn: &mut Conn) -> mysql::Result<Vec<Counter>> {
    let mut counters = status(conn)?;
    counters.extend(metrics(conn)?);
    counters.extend(waits(conn)?);
    Ok(counters)
}

fn status(conn: &mut Conn) -> mysql::Result<Vec<Counter>> {
    let rows: Vec<(String, String)> = conn.query("SHOW GLOBAL STATUS")?;
    let of = |(name, value): &(String, String)| {
        let lower = name.to_ascii_lowercase();
        let (_, unit, factor) = STATUS.iter().find(|(wanted, ..)| wanted.to_ascii_lowercase() == lower)?;
        let value = value.parse::<f64>().ok()? * factor;
        Some(Counter { from: "global_status", name: lower, unit: *unit, value })
    };
    Ok(rows.iter().filter_map(of).collect())
}

/// The metrics that the server has enabled (`innodb_monitor_enable`), without those that a status variable counts
/// too.
fn metrics(conn: &mut Conn) -> mysql::Result<Vec<Counter>> {
    let enabled = "SELECT NAME, CAST(COUNT AS CHAR), TYPE FROM information_schema.INNODB_METRICS \
                   WHERE SUBSYSTEM IN ('buffer', 'log', 'recovery', 'transaction', 'purge', 'file_system') \
                   AND NAME NOT LIKE 'buffer_pool_%' AND TYPE <> 'set_owner'";
    // Empty on a server without InnoDB or for a user without the privilege.
    let rows: Vec<(String, String, String)> = conn.query(enabled).unwrap_or_default();
    let of = |(name, count, kind): (String, String, String)| {
        let value = count.parse::<f64>().ok()?;
        let time = TIMES.iter().find(|(ending, _)| name.ends_with(ending));
        let (unit, factor) = match time {
            Some((_, factor)) => (CounterUnit::Nanoseconds, *factor),
            None if kind == "value" => (CounterUnit::Level, 1.0),
            None => (CounterUnit::Count, 1.0),
        };
        Some(Counter { from: "innodb_metrics", name, unit, value: value * factor })
    };
    Ok(rows.into_iter().filter_map(of).filter(|counter| counter.value != 0.0).collect())
}

/// Waits for files, locks and tables, if the performance schema is on. Its times are in picoseconds.
fn waits(conn: &mut Conn) -> mysql::Result<Vec<Counter>> {
    let summary = "SELECT EVENT_NAME, CAST(SUM_TIMER_WAIT AS CHAR) \
                   FROM performance_schema.events_waits_summary_global_by_event_name \
                   WHERE SUM_TIMER_WAIT > 0 AND EVENT_NAME <> 'idle'";
    let rows: Vec<(String, String)> = conn.query(summary).unwrap_or_default();
    let of = |(name, time): (String, String)| {
        let value = time.parse::<f64>().ok()? / 1e3;
        Some(Counter { from: "events_waits", name, unit: CounterUnit::Nanoseconds, value })
    };
    Ok(rows.into_iter().filter_map(of).collect())
}
