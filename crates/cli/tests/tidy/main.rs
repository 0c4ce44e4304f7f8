//! Rules of the source tree that no compiler checks: dependencies between crates and modules, purity, headers and
//! length of files, and completeness of the documentation.
//!
//! Each rule is a function from text to complaints. The first test applies all rules to the tree; the tests in
//! `rules` give each rule a text that breaks it.

mod order;
mod reading;
mod rules;

use order::{BELOW_CLI, DIRECTIONS, MODULES, direction, module, without_direction};
use reading::{code, dependencies, has_word, without_tests};
use std::path::{Path, PathBuf};

/// Maximum number of lines of a source file.
const MOST_LINES: usize = 600;

/// Maximum number of parameters of a device file that are fitted to published numbers.
const MOST_FITTED: usize = 4;

/// Devices with more fitted parameters, and their numbers. docs/models/validation.md gives the reasons.
const MORE_FITTED: [(&str, usize); 1] = [("intel-320-160gb.toml", 7)];

/// The only file outside `host` with `unsafe` code: one instruction that reads nothing.
const PREFETCH: &str = "crates/device/src/flash/prefetch.rs";
/// The Python package; its native module is a crate outside of the workspace.
const PYTHON: &str = "python";

/// Crates without I/O and without a clock.
const PURE: [&str; 4] = ["core", "device", "engines", "logdisk"];

/// Names that a pure crate must not use.
const IMPURE: &str = "std::fs std::net std::thread std::env std::process Instant SystemTime HashMap HashSet \
                      println eprintln libc";

/// Calls that create a file, or open one for writing.
const WRITERS: &str = "fs::write( File::create File::options OpenOptions .create_new( fs::rename( fs::copy( \
                       fs::hard_link( NamedTempFile .tempfile_in( .persist(";

/// The only module that creates or replaces files.
const OUTPUT: &str = "crates/files/src/output/";

/// Modules that open files to write them in place.
const IN_PLACE: [&str; 3] = [
    "crates/studies/src/bench/logdisk_file.rs",
    "crates/live/src/state.rs",
    "crates/live/src/logdisk/backing.rs",
];

/// Calls that write a file in Python, and the modules that use them in a temporary folder.
const PYTHON_WRITERS: [&str; 2] = ["write_text(", "write_bytes("];
const TEMPORARY: [&str; 2] =
    ["python/package/lowtide/distributed/_into.py", "python/package/lowtide/distributed/_worker.py"];

// The tree.

#[test]
fn the_tree_is_tidy() {
    let root = root();
    let mut complaints = Vec::new();
    let native = files(&root.join(PYTHON).join("src"), "rs");
    for path in files(&root.join("crates"), "rs").into_iter().chain(native) {
        let name = shown(&path);
        let text = read(&path);
        complaints.extend(header(&name, &text, "//! "));
        complaints.extend(length(&name, &text));
        complaints.extend(unfinished(&name, &text));
        let within = |crates: &[&str], part: &str| {
            crates.iter().any(|it| name.starts_with(&format!("crates/{it}/{part}")))
        };
        if !within(&["host"], "") && name != PREFETCH {
            complaints.extend(unsafe_code(&name, &text));
        }
        if within(&["cli", "files", "lab", "live", "powercut", "record", "report", "studies"], "src/")
            || name.starts_with(PYTHON)
        {
            complaints.extend(writers(&name, &text));
        }
        if within(&PURE, "src/") {
            complaints.extend(impure(&name, &text));
        }
        if within(&["core", "device", "engines", "logdisk", "host"], "src/") && !name.ends_with("/tests.rs") {
            complaints.extend(published(&name, &text));
        }
    }
    for (name, allowed) in DIRECTIONS {
        let manifest = read(&root.join(format!("crates/{name}/Cargo.toml")));
        complaints.extend(direction(name, allowed, &manifest));
    }
    complaints.extend(direction(PYTHON, BELOW_CLI, &read(&root.join(PYTHON).join("Cargo.toml"))));
    complaints.extend(without_direction(&root));
    for (name, layers) in MODULES {
        let source = root.join(format!("crates/{name}/src"));
        for path in files(&source, "rs") {
            let below =
                path.strip_prefix(&source).expect("it was found there").to_str().expect("plain names");
            complaints.extend(module(name, layers, below, &read(&path)));
        }
    }
    for path in files(&root.join(PYTHON), "py") {
        let (name, text) = (shown(&path), read(&path));
        complaints.extend(header(&name, &text, "\"\"\""));
        complaints.extend(python_writers(&name, &text));
        complaints.extend(length(&name, &text));
        complaints.extend(unfinished(&name, &text));
    }
    let contributing = read(&root.join("CONTRIBUTING.md"));
    complaints.extend(manifests(&root).iter().flat_map(|text| unexplained(text, &contributing)));
    for path in files(&root.join("devices"), "toml") {
        complaints.extend(fitted(&shown(&path), &read(&path)));
    }
    complaints.extend(commands(&read(&root.join("README.md")), &read(&root.join(".ci/run"))));
    let documents = documents(&root);
    let texts: String = documents.iter().map(|path| read(path)).collect();
    for group in ["lowtide", "lowtide store", "lowtide drive"] {
        complaints.extend(undocumented(group, &help(group), &texts));
    }
    for path in &documents {
        let (name, text) = (shown(path), read(path));
        let folder = path.parent().expect("a file has a folder");
        complaints.extend(dead_links(&name, &text, &|link| folder.join(link).exists()));
        complaints.extend(unfinished(&name, &text));
    }
    complaints.sort();
    complaints.dedup();
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root exists")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below `folder` with an extension, sorted, except in build outputs and hidden folders.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("readable").path()) {
        let name = path.file_name().expect("entries have names").to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The documentation: the Markdown files at the root and everything under `docs/`.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut all = files(&root.join("docs"), "md");
    let named = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    all.extend(named.map(|name| root.join(name)));
    all
}

fn manifests(root: &Path) -> Vec<String> {
    let inside = files(&root.join("crates"), "toml").into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let outside = [root.join("Cargo.toml"), root.join(PYTHON).join("Cargo.toml")];
    outside.into_iter().chain(inside).map(|path| read(&path)).collect()
}

fn help(group: &str) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lowtide"));
    let run = command.args(group.split(' ').skip(1)).arg("--help").output();
    String::from_utf8(run.expect("the program runs").stdout).expect("help is text")
}

// The rules.

/// Every file begins with documentation: `opening` is `//! ` in Rust and `"""` in Python.
fn header(name: &str, text: &str, opening: &str) -> Option<String> {
    let what = "does not open with documentation: what it is, and what it leaves out";
    (!text.starts_with(opening)).then(|| format!("{name}: {what} (`{opening}`)"))
}

fn length(name: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > MOST_LINES)
        .then(|| format!("{name}: {lines} lines, more than {MOST_LINES}: split it by what it does"))
}

/// No comment marks unfinished work.
fn unfinished(name: &str, text: &str) -> Vec<String> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME")].into_iter().filter(|word| has_word(text, word));
    let macros = [concat!("todo", "!("), concat!("unimplemented", "!(")];
    let macros = macros.into_iter().filter(|it| text.contains(it));
    words.chain(macros).map(|mark| format!("{name}: `{mark}`: finish it, or say what is left out")).collect()
}

fn unsafe_code(name: &str, text: &str) -> Option<String> {
    has_word(&code(text, false), "unsafe")
        .then(|| format!("{name}: `unsafe` outside crates/host and {PREFETCH}"))
}

fn impure(name: &str, text: &str) -> Vec<String> {
    let code = code(text, false);
    let named = IMPURE.split(' ').filter(|word| has_word(&code, word));
    named.map(|word| format!("{name}: `{word}` in a pure crate: the world comes in as arguments")).collect()
}

/// Only `lowtide_files::output` writes files that users name, because it protects stores, inputs and devices.
fn writers(name: &str, text: &str) -> Vec<String> {
    let is_test = name.ends_with("/tests.rs") || name.contains("/tests/");
    if is_test || name.starts_with(OUTPUT) {
        return Vec::new();
    }
    let code = code(without_tests(text), false);
    if IN_PLACE.contains(&name) {
        let asks = code.contains("output::in_place(");
        let what = "writes in place without asking `output::in_place`";
        return (!asks).then(|| format!("{name}: {what}")).into_iter().collect();
    }
    let found = WRITERS.split(' ').filter(|writer| code.contains(*writer));
    found.map(|writer| format!("{name}: `{writer}`: files are written by `lowtide_files::output`")).collect()
}

/// The Python package leaves writing files to its native module.
fn python_writers(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("python/package/") || TEMPORARY.contains(&name) {
        return Vec::new();
    }
    let found = PYTHON_WRITERS.iter().filter(|writer| text.contains(**writer));
    found.map(|writer| format!("{name}: `{writer}`: files are written by the native part")).collect()
}

/// Models never read published values; otherwise agreement with them would prove nothing.
fn published(name: &str, text: &str) -> Vec<String> {
    let code = code(text, true);
    let mut complaints = Vec::new();
    if code.contains("published/") {
        complaints.push(format!("{name}: names a file of published/, which models never read"));
    }
    if ["include_str!", "include_bytes!", "include!"].iter().any(|it| code.contains(it)) {
        complaints.push(format!("{name}: includes a file, which models never do"));
    }
    complaints
}

/// Few parameters of a device are fitted, and never more than the published numbers used for the fit: with as many
/// free parameters as numbers, agreement proves nothing.
fn fitted(name: &str, text: &str) -> Vec<String> {
    let marked = text.lines().filter_map(|line| {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let (key, value) = code.split_once('=')?;
        (key.trim() != "fitted-to" && has_word(comment, "fitted")).then_some(value)
    });
    // A table of several numbers counts as that many parameters.
    let numbers: usize = marked.map(|value| value.matches('=').count().max(1)).sum();
    let list = text.split_once("fitted-to").and_then(|(_, rest)| rest.split_once('[')?.1.split_once(']'));
    let rows = list.map_or(0, |(rows, _)| rows.matches(':').count());
    let most =
        MORE_FITTED.iter().find(|(device, _)| name.ends_with(device)).map_or(MOST_FITTED, |(_, most)| *most);
    let mut complaints = Vec::new();
    if numbers > most {
        complaints.push(format!("{name}: {numbers} numbers are marked fitted, more than {most}"));
    }
    if numbers > rows {
        complaints
            .push(format!("{name}: {numbers} numbers are marked fitted, to {rows} rows in `fitted-to`"));
    }
    complaints
}

/// CONTRIBUTING.md gives a reason for every dependency.
fn unexplained(manifest: &str, contributing: &str) -> Vec<String> {
    let foreign = dependencies(manifest).into_iter().filter(|name| !name.starts_with("lowtide-"));
    foreign
        .filter(|name| !contributing.contains(&format!("`{name}`")))
        .map(|name| format!("CONTRIBUTING.md: gives no reason for the dependency `{name}`"))
        .collect()
}

/// Continuous integration runs the test commands that the README gives.
fn commands(readme: &str, ci: &str) -> Vec<String> {
    let test: Vec<&str> = readme.lines().filter(|line| line.starts_with("cargo test")).collect();
    if test.is_empty() {
        return vec!["README.md: no line `cargo test …` says how to run the tests".to_owned()];
    }
    let missing = test.into_iter().filter(|line| ci.lines().all(|it| it.trim() != *line));
    missing.map(|line| format!(".ci/run: does not run `{line}`, as the README says")).collect()
}

/// Every verb of the program, or of a group of verbs, is documented.
fn undocumented(group: &str, help: &str, documents: &str) -> Vec<String> {
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.contains("Commands"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    if verbs.is_empty() {
        return vec![format!("{group} --help: lists no verbs")];
    }
    let missing = verbs.into_iter().filter(|verb| !has_word(documents, &format!("{group} {verb}")));
    missing.map(|verb| format!("README.md and docs/: `{group} {verb}` is not mentioned")).collect()
}

/// Links inside the project lead to files that exist.
fn dead_links(name: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    let inside = links.filter(|link| !link.is_empty() && !link.contains("://"));
    inside
        .filter(|link| !exists(link))
        .map(|link| format!("{name}: links to {link}, which is not there"))
        .collect()
}
