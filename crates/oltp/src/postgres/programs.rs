//! Finds PostgreSQL's programs and the parameters that the installed version knows.
//!
//! Debian installs each version in a directory of its own, outside of `PATH`; the newest version is used. Only this
//! machine is searched.

use crate::OltpError;
use crate::server::io_error;
use lowtide_engines::Settings;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that lowtide needs.
const NEEDED: [&str; 2] = ["initdb", "postgres"];

/// Directories in which packages install several versions: the directory, the text before the version, and the
/// subdirectory with the programs.
const VERSIONS: [(&str, &str, &str); 2] = [("/usr/lib/postgresql", "", "bin"), ("/usr", "pgsql-", "bin")];

/// Finds the directory with the programs.
///
/// # Errors
/// [`OltpError::Missing`] if no directory has all of them, or the directory that the user named lacks one.
pub(super) fn find(settings: &Settings) -> Result<PathBuf, OltpError> {
    if let Some(named) = &settings.programs {
        return match NEEDED.iter().find(|program| !named.join(program).is_file()) {
            // An absolute path, because the server runs in another directory.
            None => named.canonicalize().map_err(|source| io_error(named, source)),
            Some(missing) => Err(OltpError::Missing {
                program: named.join(missing).display().to_string(),
                hint: "the directory that was named does not hold it".to_owned(),
            }),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(versions());
    places.into_iter().find(|place| NEEDED.iter().all(|program| place.join(program).is_file())).ok_or_else(|| {
        OltpError::Missing {
            program: "initdb".to_owned(),
            hint: "install PostgreSQL (Debian and Ubuntu: postgresql; Fedora: postgresql-server); it was looked for in \
                   PATH, /usr/lib/postgresql/*/bin and /usr/pgsql-*/bin"
                .to_owned(),
        }
    })
}

/// The directories of installed versions, newest first.
fn versions() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for (directory, before, after) in VERSIONS {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(before)?.parse().ok());
            found.extend(version.map(|version| (version, entry.path().join(after))));
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// The parameters that the server lists as known.
///
/// # Errors
/// [`OltpError`] if the program cannot be run.
pub(super) fn parameters(programs: &Path) -> Result<BTreeSet<String>, OltpError> {
    let program = programs.join("postgres");
    let output = Command::new(&program)
        .arg("--describe-config")
        .output()
        .map_err(|source| io_error(&program, source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
}
