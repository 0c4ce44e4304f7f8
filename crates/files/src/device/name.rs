//! Parses device names as users write them: `NAME` or `PATH`, optionally with `:MODE`, or two of them as `DATA+LOG`.
//!
//! The text alone distinguishes a path from a name. Names of folders and files may contain `:` and `+`, so a path
//! that contains `/` must end in `.toml` before a mode or a log device. If a text could be read as two devices but is
//! also the path of an existing file, the file is used. Files are never opened here.

use crate::catalogue::is_path;
use std::fmt;
use std::path::{Path, PathBuf};

/// A parsed device name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceName {
    /// The device, or the data device of a composition.
    pub data: Part,
    /// The log device of a composition.
    pub log: Option<Part>,
}

/// One device of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// A name in the catalogue, or the path of a device file.
    pub file: String,
    /// The mode, if one is named.
    pub mode: Option<String>,
}

impl DeviceName {
    /// Parses a name.
    pub fn new(text: &str) -> DeviceName {
        let is_end = |text: &str| !text.contains('/') || Part::new(text).file.ends_with(".toml");
        let splits = || text.match_indices('+').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let by_syntax = splits().find(|(data, log)| !data.is_empty() && !log.is_empty() && is_end(data));
        let split = by_syntax.filter(|_| !is_file(text));
        let by_file = || splits().find(|(data, log)| !log.is_empty() && data.contains('+') && is_file(data));
        match split.map(|split| by_file().unwrap_or(split)) {
            Some((data, log)) => DeviceName { data: Part::new(data), log: Some(Part::new(log)) },
            None => DeviceName { data: Part::new(text), log: None },
        }
    }

    /// The devices of the name: one, or data and log.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.data).chain(&self.log)
    }

    /// The paths of device files in the name.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.parts().filter(|part| is_path(&part.file)).map(|part| PathBuf::from(&part.file))
    }
}

/// Whether the text is the path of an existing file, with or without a mode. A mode cannot contain `+`: text after a
/// `+` names a log device.
fn is_file(text: &str) -> bool {
    let Part { file, mode } = Part::new(text);
    mode.is_none_or(|mode| !mode.contains('+')) && is_path(&file) && Path::new(&file).is_file()
}

impl Part {
    fn new(text: &str) -> Part {
        let plain = || Part { file: text.to_owned(), mode: None };
        let Some((file, mode)) = text.rsplit_once(':') else { return plain() };
        let is_mode = !mode.is_empty() && !is_path(mode);
        let is_file = !file.is_empty() && (!file.contains('/') || file.ends_with(".toml"));
        if is_mode && is_file { Part { file: file.to_owned(), mode: Some(mode.to_owned()) } } else { plain() }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.log {
            Some(log) => write!(f, "{}+{log}", self.data),
            None => self.data.fmt(f),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mode {
            Some(mode) => write!(f, "{}:{mode}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(String, Option<String>)> {
        let name = DeviceName::new(text);
        assert_eq!(name.to_string(), text, "as it was written");
        name.parts().map(|part| (part.file.clone(), part.mode.clone())).collect()
    }

    #[test]
    fn modes_and_logs_are_split_off() {
        let part = |file: &str, mode: Option<&str>| (file.to_owned(), mode.map(str::to_owned));
        assert_eq!(split("card"), [part("card", None)]);
        assert_eq!(split("card:fast"), [part("card", Some("fast"))]);
        assert_eq!(split("card:fast+disks"), [part("card", Some("fast")), part("disks", None)]);
        assert_eq!(split("card+card:fast"), [part("card", None), part("card", Some("fast"))]);
        assert_eq!(split("./my.toml:fast+disks"), [part("./my.toml", Some("fast")), part("disks", None)]);
        assert_eq!(split("my.toml+./a/b.toml:x"), [part("my.toml", None), part("./a/b.toml", Some("x"))]);
    }

    #[test]
    fn colons_and_plus_signs_of_paths_stay() {
        for path in
            ["./a:b.toml", "./a+b.toml", "./a:b/c.toml", "/a+b/c+d.toml", "./drive:fast", "card:", "+x", "x+"]
        {
            assert_eq!(split(path), [(path.to_owned(), None)]);
        }
    }
}
