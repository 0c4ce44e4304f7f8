//! The erase commands of drives: NVMe format and sanitize, ATA secure erase.
//!
//! nvme-cli and hdparm send the commands. An experiment names the command, and the plan shows it. A command that has
//! begun cannot be stopped.
//!
//! # Not handled
//! SCSI sanitize, and the crypto erase of self-encrypting drives.

use super::disk::{Disk, line};
use super::tool::{self, Program};
use crate::error::HostError;
use std::fs;
use std::time::Duration;

const NVME: Program = ("nvme", "of nvme-cli");
const HDPARM: Program = ("hdparm", "of hdparm");
/// The password that an ATA erase sets and removes again. A drive that is still locked with it was interrupted during
/// the erase: see docs/guide/your-own-disk.md.
const PASSWORD: &str = "lowtide";

/// An erase command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erase {
    /// NVMe Format NVM with user data erase, for one namespace.
    NvmeFormat,
    /// NVMe Sanitize, block erase, for the whole drive.
    NvmeSanitize,
    /// ATA Security Erase Unit, for the whole drive.
    AtaSecure,
}

impl Erase {
    /// The command lines to run in order, as a user would type them.
    pub fn commands(self, disk: &Disk) -> Vec<String> {
        let node = disk.node.display();
        match self {
            Erase::NvmeFormat => vec![format!("nvme format {node} --ses=1 --force")],
            Erase::NvmeSanitize => {
                let drive = controller(&disk.name).unwrap_or_else(|| disk.name.clone());
                vec![format!("nvme sanitize /dev/{drive} --sanact=2")]
            }
            Erase::AtaSecure => vec![
                format!("hdparm --user-master u --security-set-pass {PASSWORD} {node}"),
                format!("hdparm --user-master u --security-erase {PASSWORD} {node}"),
            ],
        }
    }

    /// Rejects a device without this command, or on which the command would also erase other namespaces or
    /// partitions.
    ///
    /// # Errors
    /// [`HostError::Invalid`] with the reason.
    pub fn check(self, disk: &Disk) -> Result<(), HostError> {
        let refuse =
            |accepted| HostError::invalid("the way to purge", format_args!("`{}`", self.name()), accepted);
        let path = disk.path.display();
        if disk.partition_of.is_some() {
            return Err(refuse(format!("it erases the whole drive, and {path} is a partition")));
        }
        let controller = controller(&disk.name);
        match (self, controller) {
            (Erase::NvmeFormat, Some(_)) => Ok(()),
            (Erase::NvmeSanitize, Some(drive)) => match namespaces(&drive) {
                0 | 1 => Ok(()),
                several => Err(refuse(format!(
                    "it erases all {several} namespaces of /dev/{drive}, and {path} is one of them"
                ))),
            },
            (Erase::AtaSecure, None) if is_ata(disk) => Ok(()),
            (Erase::AtaSecure, _) => Err(refuse(format!("{path} is not an ATA drive"))),
            _ => Err(refuse(format!("{path} is not an NVMe drive"))),
        }
    }

    /// The name in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Erase::NvmeFormat => "nvme-format",
            Erase::NvmeSanitize => "nvme-sanitize",
            Erase::AtaSecure => "ata-secure-erase",
        }
    }
}

/// Erases the drive and waits until the erase is complete.
pub(super) fn erase(disk: &Disk, how: Erase) -> Result<(), HostError> {
    how.check(disk)?;
    if how == Erase::AtaSecure {
        let identity = tool::run(HDPARM, &["-I", &disk.node.to_string_lossy()])?;
        check_security(&identity).map_err(|why| tool::failed(HDPARM, why))?;
    }
    for command in how.commands(disk) {
        let words: Vec<&str> = command.split(' ').collect();
        let program = if words[0] == NVME.0 { NVME } else { HDPARM };
        tool::run(program, &words[1..])?;
    }
    if let (Erase::NvmeSanitize, Some(drive)) = (how, controller(&disk.name)) {
        let node = format!("/dev/{drive}");
        loop {
            let log = tool::run(NVME, &["sanitize-log", &node, "--output-format=json"])?;
            match sanitized(&log) {
                Some(true) => break,
                Some(false) => return Err(tool::failed(NVME, "the drive reports that sanitizing failed")),
                None => std::thread::sleep(Duration::from_secs(1)),
            }
        }
    }
    Ok(())
}

/// `nvme0` of `nvme0n1`.
pub(super) fn controller(name: &str) -> Option<String> {
    let rest = name.strip_prefix("nvme")?;
    let (number, namespace) = rest.split_once('n')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(number) && digits(namespace)).then(|| format!("nvme{number}"))
}

fn namespaces(controller: &str) -> usize {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| self::controller(name).as_deref() == Some(controller)).count()
}

/// Drives behind libata have the vendor `ATA`.
fn is_ata(disk: &Disk) -> bool {
    line(&disk.whole_folder().join("device/vendor")).as_deref() == Some("ATA")
}

/// Checks in the security section of `hdparm -I` that the drive can be erased.
fn check_security(text: &str) -> Result<(), &'static str> {
    let Some(section) = text.split("Security:").nth(1) else {
        return Err("the drive has no security feature set, so it has no secure erase");
    };
    let state = |word: &str| {
        section.lines().map(str::trim).find_map(
            |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [found] if found == word => Some(true),
                ["not", found] if found == word => Some(false),
                _ => None,
            },
        )
    };
    if state("supported") == Some(false) {
        return Err("the drive does not support secure erase");
    }
    if state("frozen") == Some(true) {
        return Err(
            "the drive is frozen by the firmware of the machine: suspend and wake the machine, or replug \
                    the drive while the machine runs",
        );
    }
    if state("locked") == Some(true) || state("enabled") == Some(true) {
        return Err("the drive has a password already: remove it with hdparm --security-disable");
    }
    Ok(())
}

/// Returns whether the latest sanitize succeeded; `None` while it runs. Bits 2:0 of SSTAT in the Sanitize Status log
/// of the NVMe base specification.
fn sanitized(log: &str) -> Option<bool> {
    let json: serde_json::Value = serde_json::from_str(log).ok()?;
    // Newer versions name the status under the drive's name.
    let inner = json.as_object().and_then(|object| object.values().find(|value| value.is_object()));
    let status = |json: &serde_json::Value| {
        let sstat = &json["sstat"];
        sstat.as_u64().or_else(|| sstat["status"].as_u64()).or_else(|| sstat["value"].as_u64())
    };
    let status = status(&json).or_else(|| status(inner?))?;
    match status & 0b111 {
        2 => None,
        3 => Some(false),
        _ => Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_of_an_nvme_drive_is_in_its_name() {
        assert_eq!(controller("nvme0n1").as_deref(), Some("nvme0"));
        assert_eq!(controller("nvme12n3").as_deref(), Some("nvme12"));
        for other in ["nvme0", "nvme0n1p1", "sda", "nvmen1", "loop0"] {
            assert_eq!(controller(other), None, "{other}");
        }
    }

    #[test]
    fn a_drive_that_cannot_be_erased_is_rejected_with_the_reason() {
        // The output of hdparm 9.65.
        let free = "Security: \n\tMaster password revision code = 65534\n\t\tsupported\n\tnot\tenabled\n\
                    \tnot\tlocked\n\tnot\tfrozen\n\tnot\texpired: security count\n\t\tsupported: enhanced erase\n";
        assert_eq!(check_security(free), Ok(()));
        for (text, reason) in [
            (free.replace("\tnot\tfrozen", "\t\tfrozen"), "suspend"),
            (free.replace("\tnot\tenabled", "\t\tenabled"), "password"),
            ("ATA device\nCapabilities:\n".to_owned(), "no security"),
        ] {
            assert!(check_security(&text).unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn the_sanitize_log_shows_progress_success_and_failure() {
        assert_eq!(sanitized(r#"{"nvme0":{"sprog":12000,"sstat":{"status":2}}}"#), None);
        assert_eq!(sanitized(r#"{"sprog":65535,"sstat":257}"#), Some(true));
        assert_eq!(sanitized(r#"{"sstat":3}"#), Some(false));
    }
}
