//! The keys of an experiment file, by table, and the tables that a short key may mean.
//!
//! Reading a table, errors about unknown keys and `--set` all use these names. The module of each table checks the
//! values of its keys.

/// A table of an experiment file and its keys.
pub(super) struct Keys {
    pub(super) table: &'static str,
    /// The keys, separated by spaces.
    keys: &'static str,
}

impl Keys {
    pub(super) const fn new(table: &'static str, keys: &'static str) -> Keys {
        Keys { table, keys }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.split_whitespace()
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.names().any(|name| name == key)
    }

    /// All keys for an error message.
    pub(super) fn list(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }
}

pub(super) const ROOT: Keys = Keys::new(
    "",
    "name title question source fitted-to target before-each-cell workload inserts oltp sweep repeat \
     event step published claim not-compared",
);
/// A device as a table.
pub(super) const DEVICE: Keys = Keys::new("a device", "data mode log");
pub(super) const TARGET: Keys = Keys::new("target", "device file directory block");
pub(super) const PREPARATION: Keys = Keys::new("before-each-cell", "purge layout fill idle scheduler");
pub(super) const LAYOUT: Keys =
    Keys::new("before-each-cell.layout", "filesystem reserve partition files mkfs-trims mount-options");
pub(super) const WORKLOAD: Keys = Keys::new(
    "workload",
    "pattern mix block blocks file_size utilisation threads depth streams sync zipf hot-cold zones rate \
     arrival burst pause duration until requests max precision interval steady trace pace wrap",
);
pub(super) const INSERTS: Keys = Keys::new(
    "inserts",
    "connections data-per-connection rows-per-transaction data_files database place insert hand-off \
     connection log-record log-size log-block log-write log-outstanding checkpoint-after \
     checkpoint-outstanding memory gather every",
);
pub(super) const OLTP: Keys = Keys::new(
    "oltp",
    "engine programs servers preset warehouses terminals instances buffer_pool durability flush_method \
     doublewrite flush_neighbours io_capacity read_ahead log_size log_device log-directory data_files \
     options think check duration until max precision interval steady",
);
pub(super) const HOT_COLD: Keys = Keys::new("workload.hot-cold", "data access");
pub(super) const BLOCKS: Keys = Keys::new("a size of `blocks`", "size share");
pub(super) const ZONES: Keys = Keys::new("a zone", "data access");
pub(super) const SWEEP: Keys = Keys::new("sweep", super::level::FactorName::WORDS);
pub(super) const REPEAT: Keys = Keys::new("repeat", "times order seed track");
pub(super) const TRACK: Keys = Keys::new("repeat.track", "of where first");
pub(super) const PRECONDITION: Keys = Keys::new("a precondition", "times block");
pub(super) const STEP: Keys = Keys::new(
    "step",
    "name purge-before precondition purge layout fill idle scheduler duration sweep repeat",
);
pub(super) const EVENT: Keys =
    Keys::new("event", "at do for granule read-errors write-errors factor added share end-of-life");
pub(super) const RANGE: Keys = Keys::new("a range", "from to step factor");
/// A range in a selection of cells.
pub(super) const CELL_RANGE: Keys = Keys::new("a range of cells", "from to");
pub(super) const PUBLISHED: Keys =
    Keys::new("published", "study line measure of form after step where against against-step bound note");
pub(super) const CLAIM: Keys = Keys::new(
    "claim",
    "name says study measure of form unit after step where against against-step at-least at-most order \
     tolerance each left-out",
);
pub(super) const NOT_COMPARED: Keys = Keys::new("not-compared", "study lines why");
/// A file of published numbers that no experiment compares.
pub(super) const EXCUSES: Keys = Keys::new("a list of what is not compared", "not-compared");
/// Keys of `[workload]` that a trace replaces.
pub(super) const REPLACED_BY_TRACE: Keys = Keys::new(
    "workload",
    "pattern mix block blocks threads streams sync zipf hot-cold zones rate arrival duration until max precision",
);
/// Factors outside `[oltp]` that an experiment with a database may vary.
pub(super) const AROUND_A_DATABASE: Keys =
    Keys::new("sweep", "device filesystem mount_options scheduler reserve partition idle");
/// Lists of tables. They define the experiment's question, and can be changed only in its file.
pub(super) const LISTS: [&str; 5] = ["event", "step", "published", "claim", "not-compared"];

/// Tables whose keys `--set` can change.
const SETTABLE: [&Keys; 10] =
    [&ROOT, &TARGET, &PREPARATION, &LAYOUT, &WORKLOAD, &HOT_COLD, &INSERTS, &OLTP, &SWEEP, &REPEAT];

/// Tables of loads. An experiment has exactly one load.
pub(super) const LOADS: [&str; 3] = ["workload", "inserts", "oltp"];

/// Groups of exclusive keys: setting one key of a group replaces another.
pub(super) const EXCLUSIVE: [&[&str]; 6] = [
    &["oltp.duration", "oltp.until"],
    &["target.device", "target.file", "target.directory", "target.block"],
    &["workload.duration", "workload.until", "workload.requests"],
    &["workload.file_size", "workload.utilisation"],
    &["workload.block", "workload.blocks"],
    &["workload.zipf", "workload.hot-cold", "workload.zones"],
];

/// Keys whose value may be a table under its own header.
pub(super) const TABLES: [&str; 5] =
    ["target.device", "before-each-cell.layout", "workload.hot-cold", "workload.blocks", "workload.zones"];

/// Every full key that `--set` accepts.
pub(super) fn settable() -> impl Iterator<Item = String> {
    let all = SETTABLE.into_iter().flat_map(|table| table.names().map(|key| dotted(table.table, key)));
    all.filter(|path| {
        let is_table = SETTABLE.iter().any(|table| table.table == path) && !path.contains('.');
        !is_table && !LISTS.contains(&path.as_str())
    })
}

/// The full keys that `key` may mean in an experiment with the load `load`: `key` itself, or every key that ends in
/// `key`.
///
/// `block` means the key of the workload. A block device to write to needs the full key `target.block`.
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
