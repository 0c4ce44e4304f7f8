//! Generates the catalogue's tables from the files in `devices/`, `experiments/` and `published/`.
//!
//! The build finds new files in these folders. A file is looked up by its name without the extension, so two files of
//! the same name in one folder tree are an error. Parsing is in `src/catalogue` and `src/device`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let root = root.canonicalize().expect("the project's root exists");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it")).join("catalogue.rs");
    let mut code = String::new();
    for (table, folder, ending) in [
        ("DEVICES", "devices", "toml"),
        ("EXPERIMENTS", "experiments", "toml"),
        ("PUBLISHED", "published", "csv"),
    ] {
        let mut files = BTreeMap::new();
        list(&root, &root.join(folder), ending, &mut files);
        writeln!(code, "pub(super) const {table}: &[Entry] = &[").expect("a string takes it");
        for (name, path) in files {
            let shown =
                path.strip_prefix(&root).expect("it lies below the root").to_str().expect("UTF-8 names");
            let (name, shown, path) = (format!("{name:?}"), format!("{shown:?}"), format!("{path:?}"));
            writeln!(code, "    Entry {{ name: {name}, path: {shown}, text: include_str!({path}) }},")
                .expect("a string takes it");
        }
        writeln!(code, "];").expect("a string takes it");
    }
    std::fs::write(out, code).expect("the build folder is writable");
}

/// Adds the files with this extension in `folder` and its subfolders, keyed by name.
fn list(root: &Path, folder: &Path, ending: &str, files: &mut BTreeMap<String, PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a folder that opens is readable").path();
        if path.is_dir() {
            list(root, &path, ending, files);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("UTF-8 names").to_owned();
            if let Some(other) = files.insert(name, path.clone()) {
                let shown = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
                panic!("{} and {} have the same name", shown(&other), shown(&path));
            }
        }
    }
}
