//! The rules of the source tree that no compiler checks: which crate may know which, what the pure crates never
//! touch, what every file begins with, and that the documents name what there is.
//!
//! Each rule is a function from text to complaints. The first test runs them all over the tree; the others show
//! each rule a text that breaks it. Leaves out what rustfmt and clippy see.

use std::path::{Path, PathBuf};

/// The most lines a source file may have.
const MOST_LINES: usize = 800;

/// The most numbers of a device file that may be chosen to meet published numbers.
const MOST_FITTED: usize = 4;

/// Devices that have more, and how many: see docs/models/validation.md for why.
const MORE_FITTED: [(&str, usize); 1] = [("intel-320-160gb.toml", 7)];

/// The native part of the Python package, which is a crate outside of the workspace.
const PYTHON: &str = "python";

/// Which crates of lowtide each may depend on.
const DIRECTIONS: [(&str, &[&str]); 14] = [
    ("core", &[]),
    ("logdisk", &["core"]),
    // A log layer is one of the things that a device can be made of.
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

/// All others but the programs.
const BELOW_STUDIES: &[&str] = &[
    "core", "device", "engines", "host", "oltp", "logdisk", "record", "files", "live", "lab", "report",
    "powercut",
];

/// What the programs, the command line and the native part of the Python package, may depend on.
const BELOW_CLI: &[&str] = &[
    "core", "device", "engines", "host", "oltp", "logdisk", "record", "files", "live", "lab", "report",
    "powercut", "studies",
];

/// Which modules of a crate may know which: a line those of the lines before it, and none of its own line. Names that a
/// crate has at its root (`crate::Error`) are not followed.
const MODULES: [(&str, &[&str]); 14] = [
    (
        "core",
        &[
            "in_flight rng state suggest",
            "units",
            "block",
            "batch extents measure storage trace workload",
            "virtual_load",
        ],
    ),
    (
        "device",
        &["layout partition", "array cache composite disk flash log spec state volume", "fault power"],
    ),
    (
        "logdisk",
        &[
            "closed_form format medium",
            "aligned error log",
            "scan",
            "reader",
            "recover",
            "check disk",
            "resize virtual_time",
        ],
    ),
    (
        "host",
        &[
            "cgroup clock cpu http memory mountinfo objection pattern process sqlite_vfs",
            "error region",
            "data nbd run_folder",
            "block",
            "live",
            "attach target",
            "engine",
            "bench environment",
        ],
    ),
    ("engines", &["settings tpcc", "interval", "inserts model"]),
    (
        "oltp",
        &[
            "address network",
            "check database error named sqlite terminals watchdog",
            "server",
            "mariadb postgres snapshot",
            "folder instance",
            "bench",
        ],
    ),
    ("record", &["fact factors gap latency_parts oltp quantity verdict", "analysis"]),
    ("files", &["application catalogue passwords table trace", "device output"]),
    (
        "live",
        &[
            "counts figures record request_log time",
            "contract stat state",
            "drive",
            "control open",
            "attached logdisk service",
        ],
    ),
    ("lab", &["experiment smart", "plan witness", "fio_job prepare rounds store", "import load", "campaign"]),
    (
        "report",
        &[
            "answer claim comparison export find number",
            "sweep table",
            "compare durability frame lifetime",
            "cost databases verdict",
            "figure tables",
            "render rounds",
            "html",
            "build sample",
        ],
    ),
    ("powercut", &["factors keep kernel ledger show", "evidence simulated", "attached"]),
    ("studies", &["advise bench fit interleave validate", "adaptive", "failure", "ask"]),
    ("cli", &["args say", "failure", "metrics output serve", "interrupt progress watch", "show", "command"]),
];

/// Devices are made of devices, so what describes, builds and restores them knows all of them.
const KNOW_EACH_OTHER: (&str, &str) = ("device", "array cache composite disk flash log spec state volume");

/// Crates without I/O and without a clock.
const PURE: [&str; 3] = ["core", "device", "engines"];

/// What a pure crate does not name.
const IMPURE: [&str; 12] = [
    "std::fs",
    "std::net",
    "std::thread",
    "std::env",
    "std::process",
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "println",
    "eprintln",
    "libc",
];

/// What makes a file, or opens one to be written.
const WRITERS: [&str; 11] = [
    "fs::write(",
    "File::create",
    "File::options",
    "OpenOptions",
    ".create_new(",
    "fs::rename(",
    "fs::copy(",
    "fs::hard_link(",
    "NamedTempFile",
    ".tempfile_in(",
    ".persist(",
];

/// Where the one mechanism is that writes files.
const OUTPUT: &str = "crates/files/src/output/";

/// Files that open others to write them in place.
const IN_PLACE: [&str; 3] = [
    "crates/studies/src/bench/logdisk_file.rs",
    "crates/live/src/state.rs",
    "crates/live/src/logdisk/place.rs",
];

/// What writes a file in Python, and the modules that do so in a temporary folder.
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
        complaints.extend(header(&name, &text));
        complaints.extend(length(&name, &text));
        complaints.extend(unfinished(&name, &text));
        let within = |crates: &[&str], part: &str| {
            crates.iter().any(|it| name.starts_with(&format!("crates/{it}/{part}")))
        };
        if !within(&["host"], "") {
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
        if within(&["core", "device", "logdisk", "host"], "src/") && !name.ends_with("/tests.rs") {
            complaints.extend(published(&name, &text));
        }
    }
    for (name, allowed) in DIRECTIONS {
        let manifest = read(&root.join(format!("crates/{name}/Cargo.toml")));
        complaints.extend(direction(name, allowed, &manifest));
    }
    complaints.extend(direction(PYTHON, BELOW_CLI, &read(&root.join(PYTHON).join("Cargo.toml"))));
    complaints.extend(without_direction(&root));
    for (name, lines) in MODULES {
        let source = root.join(format!("crates/{name}/src"));
        for path in files(&source, "rs") {
            let below =
                path.strip_prefix(&source).expect("it was found there").to_str().expect("plain names");
            complaints.extend(module(name, lines, below, &read(&path)));
        }
    }
    for path in files(&root.join(PYTHON), "py") {
        let (name, text) = (shown(&path), read(&path));
        complaints.extend(docstring(&name, &text));
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
    complaints.extend(undocumented(&help(), &texts));
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

/// Every file below `folder` with that ending, in order; build outputs and hidden folders left out.
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

/// What people read: the documents at the root and everything under `docs/`.
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

fn help() -> String {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_lowtide")).arg("--help").output();
    String::from_utf8(run.expect("the program runs").stdout).expect("help is text")
}

// The rules.

/// Every file says first what it is.
fn header(name: &str, text: &str) -> Option<String> {
    let what = "does not open with `//! …`: what it is, and what it leaves out";
    (!text.starts_with("//! ")).then(|| format!("{name}: {what}"))
}

/// The same of Python, in its way.
fn docstring(name: &str, text: &str) -> Option<String> {
    let what = "does not open with a docstring: what it is, and what it leaves out";
    (!text.starts_with("\"\"\"")).then(|| format!("{name}: {what}"))
}

fn length(name: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > MOST_LINES)
        .then(|| format!("{name}: {lines} lines, more than {MOST_LINES}: split it by what it does"))
}

/// Nothing is left for later.
fn unfinished(name: &str, text: &str) -> Vec<String> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME")].into_iter().filter(|word| has_word(text, word));
    let macros = [concat!("todo", "!("), concat!("unimplemented", "!(")];
    let macros = macros.into_iter().filter(|it| text.contains(it));
    words.chain(macros).map(|mark| format!("{name}: `{mark}`: finish it, or say what is left out")).collect()
}

fn unsafe_code(name: &str, text: &str) -> Option<String> {
    has_word(&code(text, false), "unsafe").then(|| format!("{name}: `unsafe` outside crates/host"))
}

fn impure(name: &str, text: &str) -> Vec<String> {
    let code = code(text, false);
    let named = IMPURE.iter().filter(|word| has_word(&code, word));
    named.map(|word| format!("{name}: `{word}` in a pure crate: the world comes in as arguments")).collect()
}

/// Files that people name are written by `lowtide_files::output` alone, which knows what must not be overwritten.
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
    let found = WRITERS.iter().filter(|writer| code.contains(**writer));
    found.map(|writer| format!("{name}: `{writer}`: files are written by `lowtide_files::output`")).collect()
}

/// The same of the Python package.
fn python_writers(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("python/package/") || TEMPORARY.contains(&name) {
        return Vec::new();
    }
    let found = PYTHON_WRITERS.iter().filter(|writer| text.contains(**writer));
    found.map(|writer| format!("{name}: `{writer}`: files are written by the native part")).collect()
}

/// Published values never reach a model, or agreement with them would prove nothing.
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

/// Few parameters of a device are chosen to meet published numbers, and never more than numbers they meet: with as
/// many knobs as numbers, agreement proves nothing.
fn fitted(name: &str, text: &str) -> Vec<String> {
    let marked = text.lines().filter_map(|line| {
        let (code, comment) = line.split_once('#').unwrap_or((line, ""));
        let (key, value) = code.split_once('=')?;
        (key.trim() != "fitted-to" && has_word(comment, "fitted")).then_some(value)
    });
    // A table of several numbers is as many parameters.
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

/// The dependencies between the crates of lowtide point one way.
fn direction(name: &str, allowed: &[&str], manifest: &str) -> Vec<String> {
    let all = dependencies(manifest);
    let ours = all.iter().filter_map(|it| it.strip_prefix("lowtide-"));
    let wrong = ours.filter(|it| !allowed.contains(it));
    wrong.map(|it| format!("crates/{name}: depends on lowtide-{it}, which is not below it")).collect()
}

/// A crate that `DIRECTIONS` does not know has none.
fn without_direction(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("crates")).expect("readable");
    let names =
        entries.map(|entry| entry.expect("readable").file_name().to_str().expect("plain names").to_owned());
    let unknown = names.filter(|name| DIRECTIONS.iter().all(|(known, _)| known != name));
    unknown.map(|name| format!("crates/{name}: not in DIRECTIONS of crates/cli/tests/tidy.rs")).collect()
}

/// Modules of a crate know only those below them. `below` is the file's path in the sources of the crate.
fn module(krate: &str, lines: &[&str], below: &str, text: &str) -> Vec<String> {
    let own = below.split('/').next().expect("there is a first part").trim_end_matches(".rs");
    if ["lib", "main"].contains(&own) || below.split('/').any(|part| ["tests", "tests.rs"].contains(&part)) {
        return Vec::new();
    }
    let line_of = |name: &str| lines.iter().position(|line| line.split(' ').any(|it| it == name));
    let Some(at) = line_of(own) else {
        return vec![format!(
            "crates/{krate}/src/{below}: `{own}` is not in MODULES of crates/cli/tests/tidy.rs"
        )];
    };
    let known = |other: &&String| {
        let there = line_of(other);
        let together = krate == KNOW_EACH_OTHER.0 && there == Some(at) && lines[at] == KNOW_EACH_OTHER.1;
        **other == own || there.is_none_or(|there| there < at) || together
    };
    let uses = modules_named(&code(without_tests(text), false));
    let wrong = uses.iter().filter(|other| !known(other));
    wrong
        .map(|other| format!("crates/{krate}/src/{below}: uses `{other}`, which is not below `{own}`"))
        .collect()
}

/// What stands behind `crate::` in a source, each name of `crate::{…}` too.
fn modules_named(code: &str) -> Vec<String> {
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

/// Every dependency has its reason in CONTRIBUTING.md.
fn unexplained(manifest: &str, contributing: &str) -> Vec<String> {
    let foreign = dependencies(manifest).into_iter().filter(|name| !name.starts_with("lowtide-"));
    foreign
        .filter(|name| !contributing.contains(&format!("`{name}`")))
        .map(|name| format!("CONTRIBUTING.md: gives no reason for the dependency `{name}`"))
        .collect()
}

/// What the README says runs the tests is what continuous integration runs.
fn commands(readme: &str, ci: &str) -> Vec<String> {
    let test: Vec<&str> = readme.lines().filter(|line| line.starts_with("cargo test")).collect();
    if test.is_empty() {
        return vec!["README.md: no line `cargo test …` says how to run the tests".to_owned()];
    }
    let missing = test.into_iter().filter(|line| ci.lines().all(|it| it.trim() != *line));
    missing.map(|line| format!(".ci/run: does not run `{line}`, as the README says")).collect()
}

/// Every verb of the program is in the documents.
fn undocumented(help: &str, documents: &str) -> Vec<String> {
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    if verbs.is_empty() {
        return vec!["lowtide --help: lists no verbs".to_owned()];
    }
    let missing = verbs.into_iter().filter(|verb| !has_word(documents, &format!("lowtide {verb}")));
    missing.map(|verb| format!("README.md and docs/: `lowtide {verb}` is not mentioned")).collect()
}

/// Links inside the project lead somewhere.
fn dead_links(name: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
    let inside = links.filter(|link| !link.is_empty() && !link.contains("://"));
    inside
        .filter(|link| !exists(link))
        .map(|link| format!("{name}: links to {link}, which is not there"))
        .collect()
}

// Reading.

/// The text before the module of tests at its end.
fn without_tests(text: &str) -> &str {
    let mut modules = text.match_indices("#[cfg(test)]\nmod ");
    let body = |at: usize| text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    modules.find(|(at, _)| body(*at)).map_or(text, |(at, _)| &text[..at])
}

/// Whether `text` holds `word` with no letter, digit or underscore beside it.
fn has_word(text: &str, word: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let after = text[at + word.len()..].chars().next();
        !text[..at].chars().next_back().is_some_and(inner) && !after.is_some_and(inner)
    })
}

/// The names in every table of dependencies of a Cargo.toml.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let (parent, name) = table.rsplit_once('.').unwrap_or(("", table));
            inside = table.ends_with("dependencies");
            if parent.ends_with("dependencies") {
                names.push(name.to_owned());
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            names.extend(line.split(['.', '=', ' ']).next().map(|name| name.trim_matches('"').to_owned()));
        }
    }
    names
}

/// Rust source without its comments, and without its strings unless those are asked for.
fn code(text: &str, strings: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let in_name = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => plain_string(rest),
            'r' if !in_name => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if length == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.push_str(if strings && c != '/' { &rest[..length] } else { " " });
            rest = &rest[length..];
        }
    }
    out
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn plain_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string; 0 where `text` begins with something else.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    let begin = 1 + hashes + 1;
    if text.as_bytes().get(begin - 1) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(0, |at| 3 + at + 1),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

// Each rule can fail.

#[test]
fn a_file_without_a_header_is_told() {
    assert!(header("x.rs", "use std::fmt;\n").is_some());
    assert!(header("x.rs", "//! What it is.\n").is_none());
}

#[test]
fn a_module_of_python_without_a_docstring_is_told() {
    assert!(docstring("x.py", "import os\n").is_some());
    assert!(docstring("x.py", "\"\"\"What it is.\"\"\"\n").is_none());
}

#[test]
fn a_long_file_is_told() {
    assert!(length("x.rs", &"\n".repeat(MOST_LINES + 1)).is_some());
    assert!(length("x.rs", &"\n".repeat(MOST_LINES)).is_none());
}

#[test]
fn unfinished_work_is_told() {
    let marks = [concat!("// TO", "DO: later"), concat!("FIX", "ME"), concat!("todo", "!()")];
    for text in marks.into_iter().chain([concat!("unimplemented", "!(\"x\")")]) {
        assert_eq!(unfinished("x.rs", text).len(), 1, "{text}");
    }
    assert!(unfinished("x.rs", "#![warn(clippy::todo)] let mastodon = 1;").is_empty());
}

#[test]
fn too_many_fitted_keys_are_told() {
    let keys = |count| "size = 1  # fitted: so\n".repeat(count);
    let device = |count, rows: &str| format!("fitted-to = [{rows}]  # what was fitted\n{}", keys(count));
    assert!(fitted("x.toml", &device(2, r#""e02:1", "e02:2""#)).is_empty());
    assert_eq!(fitted("x.toml", &device(2, r#""e02:1""#)).len(), 1);
    assert_eq!(fitted("x.toml", &keys(1)).len(), 1);
    assert_eq!(fitted("x.toml", &keys(5)).len(), 2);
    assert!(fitted("x.toml", "# Nothing is fitted.\nsize = 1  # assumed\n").is_empty());
}

#[test]
fn unsafe_code_is_told_and_talk_of_it_is_not() {
    for text in ["unsafe { x() }", "unsafe fn f() {}", "pub unsafe impl Send for X {}"] {
        assert!(unsafe_code("x.rs", text).is_some(), "{text}");
    }
    let talk =
        ["#![deny(unsafe_code)]", "// unsafe", "/* a /* b */ unsafe */", "\"unsafe\"", "r#\"\" unsafe\"#"];
    for text in talk {
        assert!(unsafe_code("x.rs", text).is_none(), "{text}");
    }
    // A quote in a character, an escape and a lifetime do not hide what comes after.
    for text in
        ["'\"'; unsafe {}", "'\\''; unsafe {}", "fn f<'a>(x: &'a u8) { unsafe {} }", "\"\\\"\"; unsafe {}"]
    {
        assert!(unsafe_code("x.rs", text).is_some(), "{text}");
    }
}

#[test]
fn a_file_that_is_written_by_hand_is_told() {
    let name = "crates/lab/src/x.rs";
    for text in ["std::fs::write(path, text)?;", "File::create(path)", "OpenOptions::new().write(true)"] {
        assert_eq!(writers(name, text).len(), 1, "{text}");
        assert!(writers("crates/files/src/output/mod.rs", text).is_empty());
        assert!(writers(name, &format!("// {text}\n#[cfg(test)]\nmod tests {{\n{text}\n}}\n")).is_empty());
        assert_eq!(writers(name, &format!("#[cfg(test)]\nmod tests;\n{text}\n")).len(), 1);
    }
    assert_eq!(writers(IN_PLACE[0], "OpenOptions::new()").len(), 1);
    assert!(writers(IN_PLACE[0], "output::in_place(role, path)?; OpenOptions::new()").is_empty());
    assert_eq!(python_writers("python/package/lowtide/_x.py", "path.write_text(page)").len(), 1);
    assert!(python_writers("python/tests/test_x.py", "path.write_text(page)").is_empty());
}

#[test]
fn a_clock_or_a_hash_map_in_a_pure_crate_is_told() {
    for text in ["use std::fs;", "use std::time::Instant;", "std::thread::spawn(f)", "HashMap<u8, u8>"] {
        assert_eq!(impure("x.rs", text).len(), 1, "{text}");
    }
    assert!(impure("x.rs", "/// No HashMap: its order differs.\nuse std::collections::BTreeMap;").is_empty());
}

#[test]
fn a_model_that_reads_published_numbers_is_told() {
    assert_eq!(published("x.rs", "include_str!(\"../../../published/e02.csv\");").len(), 2);
    assert_eq!(published("x.rs", "let path = \"published/e02.csv\";").len(), 1);
    assert!(published("x.rs", "/// Rows of `published/e02`.\npub fitted_to: Vec<String>,").is_empty());
}

#[test]
fn a_dependency_against_the_direction_is_told() {
    let manifest = "[dependencies]\nlowtide-core.workspace = true\nlowtide-lab = { path = \"../lab\" }\n";
    assert_eq!(direction("device", &["core"], manifest).len(), 1);
    assert!(direction("cli", &["core", "lab"], manifest).is_empty());
    let table = "[dev-dependencies.lowtide-host]\nworkspace = true\n[features]\nlowtide-cli = []\n";
    assert_eq!(
        direction("core", &[], table),
        ["crates/core: depends on lowtide-host, which is not below it"]
    );
}

#[test]
fn a_module_that_uses_one_above_it_is_told() {
    let lines: &[&str] = &["units rng", "plan", "store"];
    let of = |below: &str, text: &str| module("lab", lines, below, text);
    assert!(of("store/mod.rs", "use crate::plan::{self, Plan};\nuse crate::{rng, units::Bytes};").is_empty());
    assert_eq!(
        of("plan/mod.rs", "use crate::{units::{A, B}, store};"),
        ["crates/lab/src/plan/mod.rs: uses `store`, which is not below `plan`"]
    );
    assert_eq!(of("rng.rs", "fn f() { crate::units::g() }").len(), 1, "none of its own line");
    assert_eq!(of("other.rs", "").len(), 1, "none that has no line");
    assert!(of("plan/mod.rs", "// crate::store\n#[cfg(test)]\nmod tests {\nuse crate::store;\n}").is_empty());
    assert!(of("plan/tests.rs", "use crate::store;").is_empty());
}

#[test]
fn a_dependency_without_a_reason_is_told() {
    let manifest = "[workspace.dependencies]\nserde = { version = \"1\" }\n\n[build-dependencies]\nrand = \"0.9\"\n\
                    \n[lints]\nworkspace = true\n";
    let told = unexplained(manifest, "- `serde`: reads files");
    assert_eq!(told, ["CONTRIBUTING.md: gives no reason for the dependency `rand`"]);
}

#[test]
fn tests_that_run_otherwise_than_the_readme_says_are_told() {
    assert!(commands("cargo test --workspace\n", "set -e\ncargo test --workspace\n").is_empty());
    assert_eq!(commands("cargo test --workspace\n", "cargo test --workspace --lib\n").len(), 1);
    assert_eq!(commands("Run the tests.\n", "cargo test --workspace\n").len(), 1);
}

#[test]
fn a_verb_that_no_document_names_is_told() {
    let help =
        "Usage\n\nCommands:\n  run   Run\n        and report\n  help  Print\n\nOptions:\n  -h  Print\n";
    assert!(undocumented(help, "`lowtide run x`").is_empty());
    assert_eq!(undocumented(help, "`lowtide runs`").len(), 1);
    assert_eq!(undocumented("", "`lowtide run`").len(), 1);
}

#[test]
fn a_link_to_nothing_is_told() {
    let text = "[a](there.md) [b](gone.md#part) [c](https://example.org) [d](#here)";
    let told = dead_links("x.md", text, &|link| link == "there.md");
    assert_eq!(told, ["x.md: links to gone.md, which is not there"]);
}
