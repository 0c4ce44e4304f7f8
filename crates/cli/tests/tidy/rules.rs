//! Tests of the rules: each rule gets a text that breaks it.

use super::order::{direction, module};
use super::*;

#[test]
fn a_file_without_a_header_is_reported() {
    for (name, opening, without, with) in [
        ("x.rs", "//! ", "use std::fmt;\n", "//! What it is.\n"),
        ("x.py", "\"\"\"", "import os\n", "\"\"\"What it is.\"\"\"\n"),
    ] {
        assert!(header(name, without, opening).is_some() && header(name, with, opening).is_none());
    }
}

#[test]
fn a_long_file_is_reported() {
    assert!(length("x.rs", &"\n".repeat(MOST_LINES + 1)).is_some());
    assert!(length("x.rs", &"\n".repeat(MOST_LINES)).is_none());
}

#[test]
fn unfinished_work_is_reported() {
    let marks = [concat!("// TO", "DO: later"), concat!("FIX", "ME"), concat!("todo", "!()")];
    for text in marks.into_iter().chain([concat!("unimplemented", "!(\"x\")")]) {
        assert_eq!(unfinished("x.rs", text).len(), 1, "{text}");
    }
    assert!(unfinished("x.rs", "#![warn(clippy::todo)] let mastodon = 1;").is_empty());
}

#[test]
fn too_many_fitted_keys_are_reported() {
    let keys = |count| "size = 1  # fitted: so\n".repeat(count);
    let device = |count, rows: &str| format!("fitted-to = [{rows}]  # what was fitted\n{}", keys(count));
    assert!(fitted("x.toml", &device(2, r#""e02:1", "e02:2""#)).is_empty());
    assert_eq!(fitted("x.toml", &device(2, r#""e02:1""#)).len(), 1);
    assert_eq!(fitted("x.toml", &keys(1)).len(), 1);
    assert_eq!(fitted("x.toml", &keys(5)).len(), 2);
    assert!(fitted("x.toml", "# Nothing is fitted.\nsize = 1  # assumed\n").is_empty());
}

#[test]
fn unsafe_code_is_reported_outside_comments_and_strings() {
    for text in ["unsafe { x() }", "unsafe fn f() {}", "pub unsafe impl Send for X {}"] {
        assert!(unsafe_code("x.rs", text).is_some(), "{text}");
    }
    let talk =
        ["#![deny(unsafe_code)]", "// unsafe", "/* a /* b */ unsafe */", "\"unsafe\"", "r#\"\" unsafe\"#"];
    for text in talk {
        assert!(unsafe_code("x.rs", text).is_none(), "{text}");
    }
    // Quotes in character literals, escapes and lifetimes do not hide the code after them.
    for text in
        ["'\"'; unsafe {}", "'\\''; unsafe {}", "fn f<'a>(x: &'a u8) { unsafe {} }", "\"\\\"\"; unsafe {}"]
    {
        assert!(unsafe_code("x.rs", text).is_some(), "{text}");
    }
}

#[test]
fn a_file_that_is_written_by_hand_is_reported() {
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
fn a_clock_or_a_hash_map_in_a_pure_crate_is_reported() {
    for text in ["use std::fs;", "use std::time::Instant;", "std::thread::spawn(f)", "HashMap<u8, u8>"] {
        assert_eq!(impure("x.rs", text).len(), 1, "{text}");
    }
    assert!(impure("x.rs", "/// No HashMap: its order differs.\nuse std::collections::BTreeMap;").is_empty());
}

#[test]
fn a_model_that_reads_published_numbers_is_reported() {
    assert_eq!(published("x.rs", "include_str!(\"../../../published/e02.csv\");").len(), 2);
    assert_eq!(published("x.rs", "let path = \"published/e02.csv\";").len(), 1);
    assert!(published("x.rs", "/// Rows of `published/e02`.\npub fitted_to: Vec<String>,").is_empty());
}

#[test]
fn a_dependency_against_the_direction_is_reported() {
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
fn a_module_that_uses_one_above_it_is_reported() {
    let of = |below: &str, text: &str| module("lab", "units rng | plan | store", below, text);
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
fn a_dependency_without_a_reason_is_reported() {
    let manifest = "[workspace.dependencies]\nserde = { version = \"1\" }\n\n[build-dependencies]\nrand = \"0.9\"\n\
                    \n[lints]\nworkspace = true\n";
    let text = unexplained(manifest, "- `serde`: reads files");
    assert_eq!(text, ["CONTRIBUTING.md: gives no reason for the dependency `rand`"]);
}

#[test]
fn test_commands_that_differ_from_the_readme_are_reported() {
    assert!(commands("cargo test --workspace\n", "set -e\ncargo test --workspace\n").is_empty());
    assert_eq!(commands("cargo test --workspace\n", "cargo test --workspace --lib\n").len(), 1);
    assert_eq!(commands("Run the tests.\n", "cargo test --workspace\n").len(), 1);
}

#[test]
fn a_verb_that_no_document_names_is_reported() {
    let help =
        "Usage\n\nCommands:\n  run   Run\n        and report\n  help  Print\n\nOptions:\n  -h  Print\n";
    assert!(undocumented("lowtide", help, "`lowtide run x`").is_empty());
    assert_eq!(undocumented("lowtide", help, "`lowtide runs`").len(), 1);
    assert_eq!(undocumented("lowtide", "", "`lowtide run`").len(), 1);
}

#[test]
fn a_link_to_nothing_is_reported() {
    let text = "[a](there.md) [b](gone.md#part) [c](https://example.org) [d](#here)";
    let text = dead_links("x.md", text, &|link| link == "there.md");
    assert_eq!(text, ["x.md: links to gone.md, which is not there"]);
}
