//! The settings of the studies of 2008 to 2011 (`published/`: e08, e10, e11), in the names of today.
//!
//! What a study says, and what the servers of that time did by themselves and those of today do otherwise. Not here: the
//! sizes of database, memory and log, which each study has its own of.

use lowtide_engines::{Durability, Engine, Settings};

/// What a server of today has no word for, or does otherwise.
pub(super) struct Gone {
    /// What it was called.
    pub(super) name: &'static str,
    /// What became of it, and what that means for a comparison.
    pub(super) why: &'static str,
}

/// `settings` with those of a time where nothing else was asked for; options stay apart, because a server may not have
/// them.
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

/// Settings as servers ran with in those studies.
///
/// `innodb_flush_log_at_trx_commit = 2` and the direct way to data files are those of e08; a doublewrite buffer, neighbours
/// that are written along and read-ahead were on. The log was at most 4 GB for MySQL 5.5.
pub(super) fn of_2010() -> Settings {
    let options = [
        // One checksum for all pages was the default of the time; the other one is gone.
        ("innodb_page_size", "16384"),
        // Adaptive flushing came with 5.5 and its plugin, and was on.
        ("innodb_adaptive_flushing", "ON"),
        // It was on until MariaDB 10.5 and MySQL 8.4.
        ("innodb_adaptive_hash_index", "ON"),
        // Pages were not kept from one start to the next.
        ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
        // Four threads of each came with the plugin.
        ("innodb_read_io_threads", "4"),
        ("innodb_write_io_threads", "4"),
        // Purging was done by the master thread.
        ("innodb_purge_threads", "1"),
        // When the log filled, pages were written as fast as the device took them, whatever io_capacity said.
        ("innodb_flush_sync", "ON"),
        // Kept free: 69 pages, and 117 more when it came to that (`buf0flu.h` of MySQL 5.1). The 1536 of today are a sixth of a
        // pool of 150 MiB.
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

/// What cannot be had again, on MariaDB 10.11.
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
