//! Signatures on a device: partition tables and labels of filesystems, RAID, LVM, LUKS and ZFS.
//!
//! `wipefs` of util-linux recognises them, and lowtide writes nothing if it is missing. Data without a signature
//! cannot be recognised. The typed serial is the only protection for such data.

use super::disk::Disk;
use super::tool;
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use serde::Deserialize;
use std::path::Path;

/// The output of `wipefs --json`.
#[derive(Deserialize)]
struct Wipefs {
    #[serde(default)]
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    #[serde(rename = "type")]
    kind: String,
    offset: String,
    #[serde(default)]
    uuid: Option<String>,
}

/// Types of partition tables.
const TABLES: [&str; 9] = ["gpt", "dos", "PMBR", "mac", "sun", "sgi", "bsd", "atari", "minix"];

/// The signatures on a device.
///
/// # Errors
/// [`HostError::Tool`] if `wipefs` is missing or fails.
pub(super) fn objections(disk: &Disk) -> Result<Vec<Objection>, HostError> {
    Ok(summary(probe(disk)?))
}

/// Returns whether a device has a filesystem with this UUID.
///
/// # Errors
/// As [`objections`].
pub(super) fn has_uuid(disk: &Disk, uuid: &str) -> Result<bool, HostError> {
    Ok(probe(disk)?.iter().any(|signature| signature.uuid.as_deref() == Some(uuid)))
}

fn probe(disk: &Disk) -> Result<Vec<Signature>, HostError> {
    let node = disk.node.to_string_lossy();
    let arguments = ["--no-act", "--json", "--output", "TYPE,OFFSET,UUID", &node];
    parse(&tool::run(tool::WIPEFS, &arguments)?, &disk.node)
}

fn parse(text: &str, path: &Path) -> Result<Vec<Signature>, HostError> {
    // Without any signature, wipefs prints nothing at all.
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let wipefs: Wipefs = serde_json::from_str(text)
        .map_err(|error| HostError::io(Operation::Inspect, path)(std::io::Error::other(error)))?;
    Ok(wipefs.signatures)
}

fn summary(signatures: Vec<Signature>) -> Vec<Objection> {
    let objection = |Signature { kind, offset, .. }: Signature| {
        let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).unwrap_or(0);
        if TABLES.contains(&kind.as_str()) {
            Objection::PartitionTable(kind)
        } else {
            Objection::Signature { kind, offset }
        }
    };
    let mut all: Vec<Objection> = signatures.into_iter().map(objection).collect();
    // ZFS repeats its label dozens of times.
    all.sort();
    all.dedup_by(|a, b| matches!((a, b), (Objection::Signature { kind: a, .. }, Objection::Signature { kind: b, .. }) if a == b));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_wipefs_is_parsed() {
        let text = r#"{"signatures": [{"type":"ext4","offset":"0x438"},{"type":"gpt","offset":"0x200"},
            {"type":"zfs_member","offset":"0x3f000"},{"type":"zfs_member","offset":"0x3e000"}]}"#;
        let found = summary(parse(text, Path::new("/dev/x")).expect("read"));
        assert_eq!(found.len(), 3);
        assert!(found.contains(&Objection::PartitionTable("gpt".to_owned())));
        assert!(found.contains(&Objection::Signature { kind: "ext4".to_owned(), offset: 0x438 }));
        assert!(parse("\n", Path::new("/dev/x")).expect("read").is_empty());
        assert!(parse("{", Path::new("/dev/x")).is_err());
    }
}
