//! `blocks`, `zones` and `hot-cold` of `[workload]`: sizes of requests and zones of the data, each with its share.
//!
//! A single size (`block`) and the Zipf distribution (`zipf`) are factors, in module `level`.

use super::level::FactorName;
use super::read::{Entry, Table};
use super::schema::{self, Keys};
use lowtide_core::Bytes;
use lowtide_core::workload::{BlockShare, Blocks, Distribution, Zone, sum_to_one};

/// Reads `blocks`, if it is present.
pub(super) fn blocks(table: &Table<'_>) -> Option<Blocks> {
    let entry = table.get("blocks")?;
    if let Some(block) = table.get("block") {
        let message = "two block sizes: `block` and `blocks`";
        table.problems.add(block.key_span, message, "or `blocks`, not both", "remove `block` or `blocks`");
    }
    let example = "[{ size = \"4KiB\", share = 0.7 }, { size = \"64KiB\", share = 0.3 }]";
    let blocks = list(&entry, example, |element| {
        let table = known(element, &schema::BLOCKS)?;
        let size = table.require("size", "\"4KiB\"");
        let size = size.and_then(|entry| FactorName::read_block(&entry));
        let share = share(&table, "share", "0.7");
        Some(BlockShare { size: size?, share: share? })
    })?;
    let sizes: Vec<Bytes> = blocks.iter().map(|block| block.size).collect();
    let second = (1..sizes.len()).find(|at| sizes[..*at].contains(&sizes[*at]));
    if let (Some(second), Some(elements)) = (second, entry.elements()) {
        let fault = format!("{} is listed twice", sizes[second]);
        return elements[second].refuse(fault, "each size once, with all of its share");
    }
    check_sum(&entry, "shares", blocks.iter().map(|block| block.share))?;
    Some(Blocks::new(blocks).expect("sizes and shares were checked"))
}

/// Reads `zones` or `hot-cold`, if one is present.
pub(super) fn distribution(table: &Table<'_>) -> Option<Distribution> {
    let mut given = ["zipf", "hot-cold", "zones"].into_iter().filter_map(|key| table.get(key));
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let (one, other) = (&first.name, &second.name);
        let message = format!("two distributions: `{one}` and `{other}`");
        let help = format!("remove `{one}` or `{other}`");
        table.problems.add(first.key_span, message, format!("or `{other}`, not both"), help);
    }
    if let Some(entry) = table.get("zones") {
        return zones(&entry).map(Distribution::Zones);
    }
    let entry = table.get("hot-cold")?;
    let hot = zone(&entry, &schema::HOT_COLD)?;
    Some(Distribution::hot_cold(hot))
}

fn zones(entry: &Entry<'_>) -> Option<Vec<Zone>> {
    let example = "[{ data = 0.2, access = 0.8 }, { data = 0.8, access = 0.2 }]";
    let read = |element: &Entry<'_>| zone(element, &schema::ZONES);
    let zones = list(entry, example, read)?;
    let data = check_sum(entry, "shares of the data", zones.iter().map(|zone| zone.data));
    let access = check_sum(entry, "shares of the accesses", zones.iter().map(|zone| zone.access));
    data.and(access)?;
    Some(zones)
}

fn zone(entry: &Entry<'_>, keys: &Keys) -> Option<Zone> {
    let table = known(entry, keys)?;
    let data = share(&table, "data", "0.2");
    let access = share(&table, "access", "0.8");
    Some(Zone { data: data?, access: access? })
}

/// Reads the elements of a list of two or more.
fn list<T>(entry: &Entry<'_>, example: &str, read: impl Fn(&Entry<'_>) -> Option<T>) -> Option<Vec<T>> {
    let Some(elements) = entry.elements().filter(|elements| elements.len() > 1) else {
        return entry.refuse("not a list of two or more", entry.write(example));
    };
    let read: Vec<Option<T>> = elements.iter().map(read).collect();
    read.into_iter().collect()
}

/// The table of an element; `None` if it has unknown keys.
fn known<'a>(entry: &Entry<'a>, keys: &Keys) -> Option<Table<'a>> {
    let table = entry.table()?;
    table.only(keys).then_some(table)
}

/// A share between 0 and 1, both excluded.
fn share(table: &Table<'_>, key: &str, example: &str) -> Option<f64> {
    let entry = table.require(key, example)?;
    entry.share(example, "between 0 and 1", |share| share > 0.0 && share < 1.0)
}

/// Refuses shares that do not sum to 1.
fn check_sum(entry: &Entry<'_>, what: &str, shares: impl Iterator<Item = f64> + Clone) -> Option<()> {
    if sum_to_one(shares.clone()) {
        return Some(());
    }
    // Shares are written with a few digits, so the sum is rounded for the message.
    let sum = (shares.sum::<f64>() * 1e9).round() / 1e9;
    entry.refuse(format!("{what} that sum to {sum}"), format!("{what} that sum to 1"))
}
