//! Allowed dependencies: between crates, and between the modules of a crate.

use super::reading::{code, dependencies, without_tests};
use std::path::Path;

/// The crates of lowtide that each crate may depend on.
pub const DIRECTIONS: [(&str, &[&str]); 14] = [
    ("core", &[]),
    ("logdisk", &["core"]),
    // A device can be made of a log layer.
    ("device", &["core", "logdisk"]),
    ("host", &["core"]),
    ("engines", &["core"]),
    ("oltp", &["core", "engines"]),
    ("record", &["core", "engines"]),
    ("files", &["core", "device", "engines", "oltp", "record"]),
    ("live", &["core", "device", "host", "logdisk", "files"]),
    ("lab", &["core", "device", "engines", "host", "oltp", "record", "files", "live"]),
    ("report", &["core", "device", "engines", "logdisk", "record", "files", "lab"]),
    ("powercut", &["core", "device", "engines", "host", "oltp", "files", "live", "lab"]),
    ("studies", BELOW_STUDIES),
    ("cli", BELOW_CLI),
];

/// All crates below `studies`.
pub const BELOW_STUDIES: &[&str] = &[
    "core", "device", "engines", "host", "oltp", "logdisk", "record", "files", "live", "lab", "report",
    "powercut",
];

/// All crates below the command line and the native module of the Python package.
pub const BELOW_CLI: &[&str] = &[
    "core", "device", "engines", "host", "oltp", "logdisk", "record", "files", "live", "lab", "report",
    "powercut", "studies",
];

/// The modules of each crate, in layers separated by `|`: a module may use modules of earlier layers, but none of its
/// own layer. Names at the root of a crate (`crate::Error`) are not followed.
pub const MODULES: [(&str, &str); 14] = [
    (
        "core",
        "filesystem in_flight rng state suggest | units | block | \
         batch extents measure storage trace workload wraps | virtual_load",
    ),
    ("device", "layout partition | array cache composite disk flash log spec state volume | fault power"),
    (
        "logdisk",
        "closed_form format medium | aligned error log | scan | reader | recover | check disk | \
         resize virtual_time",
    ),
    (
        "host",
        "cgroup clock event memory mountinfo objection pattern process sqlite_vfs | \
         cpu error region | data http nbd run_folder | block | live | attach target | engine | \
         bench environment",
    ),
    ("engines", "settings tpcc | interval | inserts model"),
    (
        "oltp",
        "address network | check database error named sqlite terminals watchdog | server | \
         mariadb postgres snapshot | folder instance | bench",
    ),
    ("record", "column fact factors gap latency_parts oltp quantity verdict | analysis"),
    ("files", "application catalogue passwords table trace | device | output"),
    (
        "live",
        "counts figures record request_log time | contract stat state | drive | control open | \
         attached logdisk service",
    ),
    (
        "lab",
        "cell_error experiment smart | plan witness | fio_job prepare rounds store | import load | \
         campaign",
    ),
    (
        "report",
        "group | answer claim comparison export find number | sweep table | \
         compare durability frame lifetime | cost databases verdict | figure tables | \
         render rounds | html | build sample",
    ),
    ("powercut", "factors keep kernel ledger show | evidence simulated | attached"),
    ("studies", "advise bench fit interleave validate | adaptive | failure | ask"),
    ("cli", "args say | failure | metrics output serve | interrupt progress | watch | show | command"),
];

/// The only layer whose modules may use each other. Devices consist of other devices, so the code that describes,
/// builds and restores a device needs all kinds.
pub const KNOW_EACH_OTHER: (&str, &str) =
    ("device", "array cache composite disk flash log spec state volume");

/// A crate depends only on crates that are below it.
pub fn direction(name: &str, allowed: &[&str], manifest: &str) -> Vec<String> {
    let all = dependencies(manifest);
    let ours = all.iter().filter_map(|it| it.strip_prefix("lowtide-"));
    let wrong = ours.filter(|it| !allowed.contains(it));
    wrong.map(|it| format!("crates/{name}: depends on lowtide-{it}, which is not below it")).collect()
}

/// Every crate is listed in `DIRECTIONS`.
pub fn without_direction(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("crates")).expect("readable");
    let names =
        entries.map(|entry| entry.expect("readable").file_name().to_str().expect("plain names").to_owned());
    let unknown = names.filter(|name| DIRECTIONS.iter().all(|(known, _)| known != name));
    unknown
        .map(|name| format!("crates/{name}: not in DIRECTIONS of crates/cli/tests/tidy/order.rs"))
        .collect()
}

/// A module uses only modules below it. `below` is the path of the file in the crate's `src`.
pub fn module(krate: &str, layers: &str, below: &str, text: &str) -> Vec<String> {
    let own = below.split('/').next().expect("there is a first part").trim_end_matches(".rs");
    if ["lib", "main"].contains(&own) || below.split('/').any(|part| ["tests", "tests.rs"].contains(&part)) {
        return Vec::new();
    }
    let layers: Vec<&str> = layers.split(" | ").collect();
    let layer_of = |name: &str| layers.iter().position(|layer| layer.split(' ').any(|it| it == name));
    let Some(at) = layer_of(own) else {
        return vec![format!(
            "crates/{krate}/src/{below}: `{own}` is not in MODULES of crates/cli/tests/tidy/order.rs"
        )];
    };
    let known = |other: &&String| {
        let layer = layer_of(other);
        let together = krate == KNOW_EACH_OTHER.0 && layer == Some(at) && layers[at] == KNOW_EACH_OTHER.1;
        **other == own || layer.is_none_or(|layer| layer < at) || together
    };
    let uses = modules_named(&code(without_tests(text), false));
    let wrong = uses.iter().filter(|other| !known(other));
    wrong
        .map(|other| format!("crates/{krate}/src/{below}: uses `{other}`, which is not below `{own}`"))
        .collect()
}

/// The names after `crate::` in a source, and each name in `crate::{…}`.
pub fn modules_named(code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut all = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            all.push(name(rest));
            continue;
        };
        let mut depth = 0;
        all.push(name(list));
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => all.push(name(&list[at + 1..])),
                _ => {}
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
