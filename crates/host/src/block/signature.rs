//! What lies on a device: partition tables and labels of filesystems, RAID, LVM, LUKS and ZFS.
//!
//! util-linux knows them (`wipefs`, of libblkid) and is on every Linux machine; where it is missing, nothing is known
//! and nothing is written. Not here: data without a signature; for that the serial is typed.

use super::disk::Disk;
use crate::error::{HostError, Operation};
use crate::objection::Objection;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What `wipefs --json` prints.
#[derive(Deserialize)]
struct Wipefs {
    #[serde(default)]
    signatures: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "type")]
    kind: String,
    offset: String,
    #[serde(default)]
    uuid: Option<String>,
}

/// Kinds that are tables of partitions.
const TABLES: [&str; 9] = ["gpt", "dos", "PMBR", "mac", "sun", "sgi", "bsd", "atari", "minix"];

/// The signatures on a device.
///
/// # Errors
/// [`HostError::Tool`] where `wipefs` is missing or fails.
pub(super) fn objections(disk: &Disk) -> Result<Vec<Objection>, HostError> {
    Ok(summary(parse(&probe(disk)?, &disk.node)?))
}

/// Whether a filesystem of that UUID is on a device.
///
/// # Errors
/// As [`objections`].
pub(super) fn has_uuid(disk: &Disk, uuid: &str) -> Result<bool, HostError> {
    let found = parse(&probe(disk)?, &disk.node)?;
    Ok(found.iter().any(|found| found.uuid.as_deref() == Some(uuid)))
}

/// What `wipefs` prints of a device.
fn probe(disk: &Disk) -> Result<Vec<u8>, HostError> {
    let output = Command::new("wipefs")
        .args(["--no-act", "--json", "--output", "TYPE,OFFSET,UUID"])
        .arg(&disk.node)
        .env("LC_ALL", "C")
        .output()
        .map_err(|source| HostError::tool("wipefs", "a part of util-linux", source.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(HostError::tool("wipefs", "a part of util-linux", said));
    }
    Ok(output.stdout)
}

fn parse(text: &[u8], path: &Path) -> Result<Vec<Found>, HostError> {
    // Without any signature it prints nothing at all.
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let wipefs: Wipefs = serde_json::from_slice(text)
        .map_err(|error| HostError::io(Operation::Inspect, path)(std::io::Error::other(error)))?;
    Ok(wipefs.signatures)
}

fn summary(found: Vec<Found>) -> Vec<Objection> {
    let objection = |found: Found| {
        let digits = found.offset.trim_start_matches("0x");
        let offset = u64::from_str_radix(digits, 16).unwrap_or(0);
        if TABLES.contains(&found.kind.as_str()) {
            Objection::PartitionTable { what: found.kind }
        } else {
            Objection::Signature { kind: found.kind, offset }
        }
    };
    let mut all: Vec<Objection> = found.into_iter().map(objection).collect();
    // ZFS repeats its label dozens of times.
    all.sort();
    all.dedup_by(|a, b| matches!((a, b), (Objection::Signature { kind: a, .. }, Objection::Signature { kind: b, .. }) if a == b));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wipefs_prints_is_understood() {
        let text = br#"{"signatures": [{"type":"ext4","offset":"0x438"},{"type":"gpt","offset":"0x200"},
            {"type":"zfs_member","offset":"0x3f000"},{"type":"zfs_member","offset":"0x3e000"}]}"#;
        let found = summary(parse(text, Path::new("/dev/x")).expect("read"));
        assert_eq!(found.len(), 3);
        assert!(found.contains(&Objection::PartitionTable { what: "gpt".to_owned() }));
        assert!(found.contains(&Objection::Signature { kind: "ext4".to_owned(), offset: 0x438 }));
        assert!(parse(b"\n", Path::new("/dev/x")).expect("read").is_empty());
        assert!(parse(b"{", Path::new("/dev/x")).is_err());
    }
}
