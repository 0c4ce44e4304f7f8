//! The keys an experiment file may hold, by table, and how a short key finds its table.
//!
//! Kept in one place so that reading a table, an unknown-key error and `--set` agree on the names. Not here:
//! what the values may be: each table's own module says that.

/// A table that may be set key by key: its path and its keys.
pub(super) struct Keys {
    pub(super) table: &'static str,
    pub(super) keys: &'static [&'static str],
}

pub(super) const ROOT: Keys = Keys {
    table: "",
    keys: &[
        "name",
        "title",
        "question",
        "source",
        "fitted-to",
        "target",
        "before-each-cell",
        "workload",
        "inserts",
        "oltp",
        "sweep",
        "repeat",
        "event",
        "step",
        "published",
        "claim",
        "not-compared",
    ],
};
/// A device in a table of its own.
pub(super) const DEVICE: Keys = Keys { table: "a device", keys: &["data", "mode", "log"] };
pub(super) const TARGET: Keys = Keys { table: "target", keys: &["device", "file", "directory", "block"] };
pub(super) const PREPARATION: Keys =
    Keys { table: "before-each-cell", keys: &["purge", "layout", "fill", "idle", "scheduler"] };
pub(super) const LAYOUT: Keys = Keys {
    table: "before-each-cell.layout",
    keys: &["filesystem", "reserve", "partition", "files", "mkfs-trims", "mount-options"],
};
pub(super) const WORKLOAD: Keys = Keys {
    table: "workload",
    keys: &[
        "pattern",
        "mix",
        "block",
        "blocks",
        "file_size",
        "utilisation",
        "threads",
        "depth",
        "streams",
        "sync",
        "zipf",
        "hot-cold",
        "zones",
        "rate",
        "arrival",
        "burst",
        "pause",
        "duration",
        "until",
        "requests",
        "max",
        "precision",
        "interval",
        "steady",
        "trace",
        "pace",
        "wrap",
    ],
};
pub(super) const INSERTS: Keys = Keys {
    table: "inserts",
    keys: &[
        "connections",
        "data-per-connection",
        "rows-per-transaction",
        "data_files",
        "database",
        "place",
        "insert",
        "hand-off",
        "connection",
        "log-record",
        "log-size",
        "log-block",
        "log-write",
        "log-outstanding",
        "checkpoint-after",
        "checkpoint-outstanding",
        "memory",
        "gather",
        "every",
    ],
};
pub(super) const OLTP: Keys = Keys {
    table: "oltp",
    keys: &[
        "engine",
        "programs",
        "servers",
        "preset",
        "warehouses",
        "terminals",
        "instances",
        "buffer_pool",
        "durability",
        "flush_method",
        "doublewrite",
        "flush_neighbours",
        "io_capacity",
        "read_ahead",
        "log_size",
        "log_device",
        "log-directory",
        "data_files",
        "options",
        "think",
        "check",
        "duration",
        "until",
        "max",
        "precision",
        "interval",
        "steady",
    ],
};
/// Factors that are not the database's, and make sense with one.
pub(super) const AROUND_A_DATABASE: [&str; 7] =
    ["device", "filesystem", "mount_options", "scheduler", "reserve", "partition", "idle"];
pub(super) const HOT_COLD: Keys = Keys { table: "workload.hot-cold", keys: &["data", "access"] };
pub(super) const BLOCKS: Keys = Keys { table: "a size of `blocks`", keys: &["size", "share"] };
pub(super) const ZONES: Keys = Keys { table: "a zone", keys: &["data", "access"] };
pub(super) const SWEEP: Keys = Keys { table: "sweep", keys: super::level::FactorName::NAMES };
pub(super) const REPEAT: Keys = Keys { table: "repeat", keys: &["times", "order", "seed", "track"] };
pub(super) const TRACK: Keys = Keys { table: "repeat.track", keys: &["of", "where", "first"] };
pub(super) const PRECONDITION: Keys = Keys { table: "a precondition", keys: &["times", "block"] };
pub(super) const STEP: Keys = Keys {
    table: "step",
    keys: &[
        "name",
        "purge-before",
        "precondition",
        "purge",
        "layout",
        "fill",
        "idle",
        "scheduler",
        "duration",
        "sweep",
        "repeat",
    ],
};
pub(super) const EVENT: Keys = Keys {
    table: "event",
    keys: &[
        "at",
        "do",
        "for",
        "granule",
        "read-errors",
        "write-errors",
        "factor",
        "added",
        "share",
        "end-of-life",
    ],
};
pub(super) const RANGE: Keys = Keys { table: "a range", keys: &["from", "to", "step", "factor"] };
pub(super) const PUBLISHED: Keys = Keys {
    table: "published",
    keys: &[
        "study",
        "line",
        "measure",
        "of",
        "form",
        "after",
        "step",
        "where",
        "against",
        "against-step",
        "bound",
        "note",
    ],
};
pub(super) const CLAIM: Keys = Keys {
    table: "claim",
    keys: &[
        "name",
        "says",
        "study",
        "measure",
        "of",
        "form",
        "unit",
        "after",
        "step",
        "where",
        "against",
        "against-step",
        "at-least",
        "at-most",
        "order",
        "tolerance",
        "each",
        "left-out",
    ],
};
pub(super) const NOT_COMPARED: Keys = Keys { table: "not-compared", keys: &["study", "lines", "why"] };
/// A file of published numbers that no experiment compares.
pub(super) const EXCUSES: Keys = Keys { table: "a list of what is not compared", keys: &["not-compared"] };
/// Lists of tables: they are the experiment's question, and are changed in its file.
pub(super) const LISTS: [&str; 5] = ["event", "step", "published", "claim", "not-compared"];

/// Tables that `--set` reaches.
const SETTABLE: [&Keys; 10] =
    [&ROOT, &TARGET, &PREPARATION, &LAYOUT, &WORKLOAD, &HOT_COLD, &INSERTS, &OLTP, &SWEEP, &REPEAT];

/// Tables of which an experiment has one: what is asked of the target.
pub(super) const LOADS: [&str; 3] = ["workload", "inserts", "oltp"];

/// Keys of which an experiment holds one: setting one of them takes the place of another.
pub(super) const EXCLUSIVE: [&[&str]; 6] = [
    &["oltp.duration", "oltp.until"],
    &["target.device", "target.file", "target.directory", "target.block"],
    &["workload.duration", "workload.until", "workload.requests"],
    &["workload.file_size", "workload.utilisation"],
    &["workload.block", "workload.blocks"],
    &["workload.zipf", "workload.hot-cold", "workload.zones"],
];

/// Every full key that `--set` accepts.
pub(super) fn settable() -> impl Iterator<Item = String> {
    SETTABLE.into_iter().flat_map(|table| table.keys.iter().map(|key| dotted(table.table, key))).filter(
        |path| {
            let whole_table = SETTABLE.iter().any(|table| table.table == path) && !path.contains('.');
            !whole_table && !LISTS.contains(&path.as_str())
        },
    )
}

/// The full keys that `key` may mean in an experiment with the load `load`: itself, or those that end in it.
///
/// `block` means the workload's: a block device to write to is named in full.
pub(super) fn meanings(key: &str, load: &str) -> Vec<String> {
    let suffix = format!(".{key}");
    let absent = |path: &str| {
        let table = path.split('.').next().unwrap_or(path);
        LOADS.contains(&table) && table != load
    };
    settable()
        .filter(|path| {
            let short = path.ends_with(&suffix) && !absent(path);
            path == key || (short && !(key == "block" && path == "target.block"))
        })
        .collect()
}

/// `table.key`, or `key` in the root table.
pub(super) fn dotted(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_key_means_one_table_or_a_factor_and_its_base() {
        assert_eq!(meanings("duration", "workload"), ["workload.duration"]);
        assert_eq!(meanings("duration", "oltp"), ["oltp.duration"]);
        assert_eq!(meanings("layout.reserve", "workload"), ["before-each-cell.layout.reserve"]);
        assert_eq!(meanings("block", "workload"), ["workload.block", "sweep.block"]);
        assert_eq!(meanings("target.block", "workload"), ["target.block"]);
        assert!(meanings("threds", "workload").is_empty());
        for (path, load) in settable().flat_map(|path| LOADS.map(|load| (path.clone(), load))) {
            let short = path.rsplit('.').next().expect("a key has a last part");
            let meanings = meanings(short, load);
            let bases = meanings.iter().filter(|path| !path.starts_with("sweep.")).count();
            assert!(bases <= 1, "{short}: {meanings:?}");
        }
    }
}
