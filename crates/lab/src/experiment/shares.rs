//! `blocks`, `zones` and `hot-cold` of `[workload]`: sizes of requests and parts of the data, each with its share.
//!
//! Not here: one size (`block`) and the other distribution (`zipf`), which may be factors.

use super::error::Problems;
use super::level::{FactorName, Level};
use super::read::{Entry, Table};
use super::schema::{self, Keys};
use lowtide_core::Bytes;
use lowtide_core::workload::{BlockShare, Blocks, Distribution, Zone, sum_to_one};

/// Reads `blocks`, where it is written.
pub(super) fn blocks(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Blocks> {
    let entry = table.get("blocks")?;
    if let Some(block) = table.get("block") {
        let message = "two block sizes: `block` and `blocks`";
        problems.add(block.key_span, message, "or `blocks`, not both", "remove `block` or `blocks`");
    }
    let example = "[{ size = \"4KiB\", share = 0.7 }, { size = \"64KiB\", share = 0.3 }]";
    let blocks = list(&entry, example, problems, |element, problems| {
        let table = known(element, &schema::BLOCKS, problems)?;
        let size = table.require("size", "\"4KiB\"", problems);
        let size = size.and_then(|entry| match FactorName::Block.read(&entry, problems) {
            Some(Level::Block(size)) => Some(size),
            _ => None,
        });
        let share = share(&table, "share", "0.7", problems);
        Some(BlockShare { size: size?, share: share? })
    })?;
    let sizes: Vec<Bytes> = blocks.iter().map(|block| block.size).collect();
    let second = (1..sizes.len()).find(|at| sizes[..*at].contains(&sizes[*at]));
    if let (Some(second), Some(elements)) = (second, entry.elements()) {
        let fault = format!("{} is listed twice", sizes[second]);
        return elements[second].refuse(fault, "each size once, with all of its share", problems);
    }
    whole(&entry, "shares", blocks.iter().map(|block| block.share), problems)?;
    Some(Blocks::new(blocks).expect("sizes and shares were checked"))
}

/// Reads `zones` or `hot-cold`, where one is written.
pub(super) fn distribution(table: &Table<'_>, problems: &mut Problems<'_>) -> Option<Distribution> {
    let mut given = ["zipf", "hot-cold", "zones"].into_iter().filter_map(|key| table.get(key));
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        let (one, other) = (&first.name, &second.name);
        let message = format!("two distributions: `{one}` and `{other}`");
        let help = format!("remove `{one}` or `{other}`");
        problems.add(first.key_span, message, format!("or `{other}`, not both"), help);
    }
    if let Some(entry) = table.get("zones") {
        return zones(&entry, problems).map(Distribution::Zones);
    }
    let entry = table.get("hot-cold")?;
    let hot = zone(&entry, &schema::HOT_COLD, ["0.2", "0.8"], problems)?;
    Some(Distribution::hot_cold(hot))
}

fn zones(entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Vec<Zone>> {
    let example = "[{ data = 0.2, access = 0.8 }, { data = 0.8, access = 0.2 }]";
    let zones = list(entry, example, problems, |element, problems| {
        zone(element, &schema::ZONES, ["0.2", "0.8"], problems)
    })?;
    let data = whole(entry, "shares of the data", zones.iter().map(|zone| zone.data), problems);
    whole(entry, "shares of the accesses", zones.iter().map(|zone| zone.access), problems).and(data)?;
    Some(zones)
}

fn zone(entry: &Entry<'_>, keys: &Keys, examples: [&str; 2], problems: &mut Problems<'_>) -> Option<Zone> {
    let table = known(entry, keys, problems)?;
    let data = share(&table, "data", examples[0], problems);
    let access = share(&table, "access", examples[1], problems);
    Some(Zone { data: data?, access: access? })
}

/// The elements of a list of two or more, if each can be read.
fn list<T>(
    entry: &Entry<'_>,
    example: &str,
    problems: &mut Problems<'_>,
    read: impl Fn(&Entry<'_>, &mut Problems<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(elements) = entry.elements().filter(|elements| elements.len() > 1) else {
        let help = format!("write for example `{} = {example}`", entry.name);
        return entry.refuse("not a list of two or more", help, problems);
    };
    let read: Vec<Option<T>> = elements.iter().map(|element| read(element, problems)).collect();
    read.into_iter().collect()
}

/// An element's table, without unknown keys.
fn known<'a>(entry: &Entry<'a>, keys: &Keys, problems: &mut Problems<'_>) -> Option<Table<'a>> {
    let table = entry.table(problems)?;
    table.only(keys, problems).then_some(table)
}

/// A share between 0 and 1, both excluded.
fn share(table: &Table<'_>, key: &str, example: &str, problems: &mut Problems<'_>) -> Option<f64> {
    let entry = table.require(key, example, problems)?;
    match entry.number(example, problems)? {
        share if share > 0.0 && share < 1.0 => Some(share),
        other => {
            let help = format!("a share between 0 and 1, such as `{example}`");
            entry.refuse(format!("{other} is not a share"), help, problems)
        }
    }
}

/// Refuses shares that are not all of a whole.
fn whole(
    entry: &Entry<'_>,
    what: &str,
    shares: impl Iterator<Item = f64> + Clone,
    problems: &mut Problems<'_>,
) -> Option<()> {
    if sum_to_one(shares.clone()) {
        return Some(());
    }
    // What people write has a few digits; the sum has no more.
    let sum = (shares.sum::<f64>() * 1e9).round() / 1e9;
    entry.refuse(format!("{what} that sum to {sum}"), format!("{what} that sum to 1"), problems)
}
