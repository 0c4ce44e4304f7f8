//! The settings of the studies of 2008 to 2011 (`published/`: e08, e10, e11), under the names of today's options.
//!
//! They include the settings that a study states, and the defaults of the servers of that time that have changed
//! since. The sizes of database, memory and log differ between the studies and are not included.

use lowtide_engines::{Durability, Engine, Settings};

/// A behaviour of that time that today's servers lack or have changed.
pub(super) struct Gone {
    /// Its name at that time.
    pub(super) name: &'static str,
    /// The change since, and its meaning for a comparison.
    pub(super) why: &'static str,
}

/// Fills unset settings from a preset. The preset's options are kept separate, because a server may not have them.
pub(super) fn over(preset: Settings, settings: &Settings) -> Settings {
    Settings {
        durability: settings.durability.or(preset.durability),
        flush_method: settings.flush_method.clone().or(preset.flush_method),
        doublewrite: settings.doublewrite.or(preset.doublewrite),
        flush_neighbours: settings.flush_neighbours.or(preset.flush_neighbours),
        io_capacity: settings.io_capacity.or(preset.io_capacity),
        read_ahead: settings.read_ahead.or(preset.read_ahead),
        ..settings.clone()
    }
}

/// The server settings of the studies of 2008 to 2011.
///
/// `innodb_flush_log_at_trx_commit = 2` and direct I/O to the data files are from e08. The doublewrite buffer,
/// flushing of neighbours and read-ahead were on. The log was at most 4 GB until MySQL 5.5.
pub(super) fn of_2010() -> Settings {
    let options = [
        // The page size of the time. Its checksum algorithm no longer exists.
        ("innodb_page_size", "16384"),
        // Adaptive flushing arrived with MySQL 5.5 and its plugin, and was on.
        ("innodb_adaptive_flushing", "ON"),
        // The default was ON until MariaDB 10.5 and MySQL 8.4.
        ("innodb_adaptive_hash_index", "ON"),
        // The contents of the buffer pool were not saved across restarts.
        ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
        // Four threads for reads and four for writes arrived with the plugin.
        ("innodb_read_io_threads", "4"),
        ("innodb_write_io_threads", "4"),
        // The master thread did the purging.
        ("innodb_purge_threads", "1"),
        // When the log filled up, pages were flushed as fast as the device allowed, regardless of io_capacity.
        ("innodb_flush_sync", "ON"),
        // Free pages kept: 69, plus a batch of 117 when needed (`buf0flu.h` of MySQL 5.1). Today's default of 1536 is
        // a sixth of a pool of 150 MiB.
        ("innodb_lru_scan_depth", "186"),
    ];
    Settings {
        engine: Engine::Mariadb,
        durability: Some(Durability::Second),
        flush_method: Some("O_DIRECT".to_owned()),
        doublewrite: Some(true),
        flush_neighbours: Some(true),
        read_ahead: Some(56),
        io_capacity: Some(200),
        options: options.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..Settings::default()
    }
}

/// Behaviour that cannot be restored on MariaDB 10.11.
pub(super) const GONE_SINCE_2010: [Gone; 9] = [
    Gone {
        name: "innodb_thread_concurrency",
        why: "removed in MariaDB 10.6: as many threads run within InnoDB as there are sessions",
    },
    Gone {
        name: "innodb_adaptive_flushing_method",
        why: "of Percona Server: `estimate`, `keep_average`; there is one style now, by the growth of the log",
    },
    Gone {
        name: "innodb_checkpoint_age_target",
        why: "of Percona Server: the checkpoint age follows from the size of the log",
    },
    Gone {
        name: "innodb_log_files_in_group",
        why: "removed in MariaDB 10.6: the log is one file, as large as all were together",
    },
    Gone {
        name: "innodb_buffer_pool_instances",
        why: "removed in MariaDB 10.6: there is one pool, with finer locks",
    },
    Gone {
        name: "innodb_checksum_algorithm",
        why: "`innodb` and `none` cannot be chosen: pages have CRC-32C, which costs less than either did then",
    },
    Gone {
        name: "innodb_change_buffering",
        why: "`inserts` and `all` are deprecated: changes to secondary indexes are made at once, with a read where needed",
    },
    Gone { name: "query_cache_type", why: "off in the studies, and off by default today" },
    Gone {
        name: "barriers",
        why: "XFS without barriers, as in e10, cannot be mounted since Linux 4.19: fsync flushes the drive",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_set_is_said_to_be_gone_for_good() {
        let set = of_2010();
        for gone in GONE_SINCE_2010 {
            assert!(set.options.iter().all(|(name, _)| name != gone.name), "{}", gone.name);
        }
    }
}
