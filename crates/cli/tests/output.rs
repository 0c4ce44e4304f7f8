//! Formats of the output: tables and help of at most 80 columns, JSON, CSV, Markdown, figures, self-contained
//! reports.

mod common;

use common::{Lab, decoded, flat, names};
use std::io::Read;

/// Columns of a small terminal.
const COLUMNS: usize = 80;

/// Lines of a small terminal.
const LINES: usize = 24;

/// The verbs that a help text lists.
fn verbs(help: &str) -> Vec<String> {
    let list = help
        .lines()
        .skip_while(|line| !line.contains("Commands"))
        .skip(1)
        .take_while(|line| !line.is_empty());
    let first = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    first.filter(|verb| !verb.is_empty() && *verb != "help").map(str::to_owned).collect()
}

/// Asserts that no line is wider than a terminal, except commands to be copied.
fn assert_fits(what: &str, text: &str) {
    let wide = |line: &&str| line.chars().count() > COLUMNS && !line.starts_with("$ ");
    let wide: Vec<&str> = text.lines().filter(wide).collect();
    assert!(wide.is_empty(), "{what}: wider than {COLUMNS} columns:\n{}", wide.join("\n"));
}

#[test]
fn help_fits_a_terminal() {
    let lab = Lab::new();
    let whole = lab.ok("--help");
    assert!(whole.lines().count() <= LINES, "more than {LINES} lines:\n{whole}");
    let listed = verbs(&whole);
    assert_eq!(listed[0], "run", "the order in which they are needed");
    let at = |verb: &str| listed.iter().position(|it| it == verb);
    assert!(at("run") < at("report") && at("report") < at("drive"), "{listed:?}");
    let groups = ["store", "drive", "logdisk", "powercut", "bench", "devices", "experiments"];
    let inner = |group: &&str| -> Vec<String> {
        let verbs = verbs(&lab.ok(&format!("{group} --help")));
        verbs.into_iter().map(|verb| format!("{group} {verb}")).collect()
    };
    let hidden = ["", "completions", "bench"].map(str::to_owned);
    for path in groups.iter().flat_map(inner).chain(listed).chain(hidden) {
        for help in ["--help", "-h"] {
            let text = lab.ok(&format!("{path} {help}"));
            assert_fits(&path, &text);
            assert!(text.contains("Usage: lowtide"), "{text}");
        }
    }
    assert_eq!(lab.ok("--version"), format!("lowtide {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn tables_fit_a_terminal() {
    let lab = Lab::new();
    let fits = |command: &str| assert_fits(command, &lab.ok(command));
    for command in ["devices", "devices list", "experiments", "plan ./tiny.toml"] {
        fits(command);
    }
    for experiment in ["intel-320-random-write", "disk-quick"] {
        fits(&format!("plan {experiment}"));
    }
    let (answer, text) = lab.ends("run ./tiny.toml --scale 1/256", 0);
    assert_fits("run", &answer);
    assert_fits("run, standard error", &text);
    lab.ok("run ./reads.toml --scale 1/256");
    for command in
        ["store show", "store show 1", "store show reads", "compare 1 2", "compare 1 --factor file_size"]
    {
        fits(command);
    }
}

#[test]
fn every_experiment_of_the_catalogue_can_be_planned() {
    let lab = Lab::new();
    // The trace of `replay`.
    lab.write("requests.trace", "lowtide trace 1\n0 read 0 4096\n81250 write-fua 4096 4096\n90125 flush\n");
    let listed = lab.ok("experiments");
    // A long title continues on lines without a name.
    let named = listed.lines().skip(2).filter(|line| !line.starts_with(' '));
    for name in named.filter_map(|line| line.split_whitespace().next()) {
        assert_fits(name, &lab.ok(&format!("plan {name}")));
    }
}

#[test]
fn the_answer_comes_first() {
    let lab = Lab::new();
    let answer = lab.ok("run ./reads.toml --scale 1/256");
    let lines: Vec<&str> = answer.lines().filter(|line| !line.is_empty()).take(2).collect();
    assert!(lines[0] == "reads" && lines[1].starts_with("Settled at "), "{answer}");
}

#[test]
fn files_of_the_catalogue_are_printed_as_they_are() {
    let lab = Lab::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (verb, name, path) in [
        ("devices", "intel-320-160gb", "devices/intel-320-160gb.toml"),
        ("experiments", "disk-quick", "experiments/disk-quick.toml"),
    ] {
        let text = std::fs::read_to_string(format!("{root}/{path}")).expect("the file is there");
        assert_eq!(lab.ok(&format!("{verb} show {name}")), text);
    }
}

#[test]
fn devices_are_listed_by_class_and_year() {
    let lab = Lab::new();
    let listed = lab.ok("devices");
    let class = |title: &str| {
        let class = listed.split("\n\n").find(|class| class.starts_with(title));
        class.unwrap_or_else(|| panic!("{title} in:\n{listed}"))
    };
    let order = [
        "fusionio-iodrive-160-slc ",
        "    :120gb",
        "fusionio-duo-640-mlc-half ",
        "    :windows",
        "virident-",
    ];
    let positions = order.map(|name| class("PCI Express flash cards").find(name).expect(name));
    assert!(positions.is_sorted(), "{listed}");
    assert!(
        class("Hard disks").contains("  sata-7k2-1tb                    2008  SATA disk, 1 TB"),
        "{listed}"
    );
    let arrays = class("Arrays");
    let [dated, undated] =
        ["intel-320-x2-raid0", "raid10-8x-sata"].map(|name| arrays.find(name).expect(name));
    assert!(dated < undated, "devices without a year come last:\n{arrays}");
    // Every file is listed once.
    let devices = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");
    for file in std::fs::read_dir(devices).expect("the devices") {
        let path = file.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let is_listed = |line: &str| line.split_whitespace().next() == Some(name);
        assert_eq!(listed.lines().filter(|line| is_listed(line)).count(), 1, "{name}");
    }
}

#[test]
fn a_mode_and_a_composition_are_printed_as_files_that_can_be_used() {
    let lab = Lab::new();
    lab.write("disk.toml", lab.ok("devices show sas-15k-73gb-shallow"));
    assert!(lab.ok("devices show ./disk.toml:shallow").contains("the mode `shallow`"));
    lab.write("both.toml", lab.ok("devices show ./disk.toml:shallow+mtron-32gb"));
    for (device, shown) in [
        ("./both.toml", "./both.toml"),
        ("./disk.toml:shallow+mtron-32gb", "./disk.toml:shallow+mtron-32gb"),
        ("sas-15k-73gb:shallow+mtron-32gb", "sas-15k-73gb-shallow+mtron-32gb"),
    ] {
        let planned = lab.ok(&format!("plan ./tiny.toml --target {device} --scale 1/256"));
        assert!(planned.contains(&format!("target device:{shown}: 2 cells")), "{planned}");
    }
    let (_, text) = lab.ends("plan ./tiny.toml --target sas-15k-73gb:shalow", 2);
    assert!(text.contains("has no mode `shalow`") && text.contains("shallow"), "{text}");
}

#[test]
fn completions_know_the_verbs() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.ok(&format!("completions {shell}"));
        assert!(script.contains("lowtide") && script.contains("compare"), "{shell}");
        assert!(script.contains("power-on"), "{shell}: the verbs of groups");
    }
}

#[test]
fn json_is_one_object_and_nothing_else() {
    let lab = Lab::new();
    let answer = lab.json("run ./tiny.toml --scale 1/256");
    assert!(answer.is_object(), "{answer}");
    let plan = lab.json("plan ./tiny.toml");
    assert_eq!(plan["cells"].as_array().map(Vec::len), Some(2));
    let listed = lab.json("store show");
    assert_eq!((&listed[0]["campaign"], &listed[0]["cells_done"]), (&1.into(), &2.into()));
}

#[test]
fn csv_and_markdown_have_a_line_for_each_cell() {
    let lab = Lab::new();
    let csv = lab.ok("run ./tiny.toml --scale 1/256 --format csv");
    let fields = |line: &str| line.split(',').count();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.lines().all(|line| fields(line) == fields(csv.lines().next().unwrap_or_default())), "{csv}");
    let markdown = lab.ok("store show 1 --format markdown");
    assert!(markdown.lines().filter(|line| line.starts_with('|')).count() >= 4, "{markdown}");
    for (command, lines) in [("store show", 2), ("plan ./tiny.toml", 3)] {
        let csv = lab.ok(&format!("{command} --format csv"));
        assert_eq!(csv.lines().count(), lines, "{csv}");
        let markdown = lab.ok(&format!("{command} --format markdown"));
        assert!(markdown.lines().all(|line| line.starts_with('|')), "{markdown}");
    }
}

/// Runs the command with standard output and error connected to a pipe without a reader.
fn run_without_a_reader(lab: &Lab, arguments: &str) {
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let quiet = writer.try_clone().expect("a pipe can be cloned");
    let status = lab.command(arguments).stdout(writer).stderr(quiet).status().expect("lowtide starts");
    assert_eq!(status.code(), Some(0), "lowtide {arguments}");
}

#[test]
fn a_broken_pipe_is_no_failure() {
    let lab = Lab::new();
    run_without_a_reader(&lab, "run ./tiny.toml --scale 1/256");
    assert_eq!(lab.exports("lowtide.db").0.lines().count(), 1 + 2 * 40, "the campaign is complete");
    for arguments in [
        "store export",
        "store export --format json",
        "store show",
        "store show 1",
        "report",
        "devices",
        "plan ./tiny.toml",
        "completions bash",
    ] {
        run_without_a_reader(&lab, arguments);
    }
    // A reader that closes the pipe after one byte.
    let mut export = lab.command("store export --format json").spawn().expect("lowtide starts");
    let mut first = [0; 1];
    export.stdout.take().expect("a pipe").read_exact(&mut first).expect("something is printed");
    let (code, _, error) = decoded(&export.wait_with_output().expect("it ends"));
    assert_eq!((code, error.as_str()), (Some(0), ""));
}

/// Returns whether every tag of an XML text is closed in order, ignoring comments, declarations and instructions.
fn is_well_formed(xml: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        let Some(end) = tag.find('>') else {
            return false;
        };
        let inside = &tag[1..end];
        rest = &tag[end + 1..];
        let escaped = |entity: &str| {
            ["amp;", "lt;", "gt;", "quot;", "apos;", "#"].iter().any(|e| entity.starts_with(e))
        };
        if text.split('&').skip(1).any(|entity| !escaped(entity)) || inside.matches('"').count() % 2 == 1 {
            return false;
        }
        if inside.starts_with(['?', '!']) || inside.ends_with('/') {
            continue;
        }
        match inside.strip_prefix('/') {
            Some(name) if open.pop() != Some(name.trim()) => return false,
            Some(_) => {}
            None => open.push(inside.split_whitespace().next().unwrap_or_default()),
        }
    }
    open.is_empty()
}

#[test]
fn figures_are_xml() {
    assert!(
        is_well_formed("<a b=\"c\"><d/>&amp;</a>")
            && !is_well_formed("<a><b></a></b>")
            && !is_well_formed("a&b<c/>")
    );
    let lab = Lab::new();
    lab.write("tiny.toml", common::TINY.replace("A tiny experiment", "<Tiny> & \\\"small\\\" é 漢字"));
    lab.ok("run ./tiny.toml --scale 1/256");
    lab.ok("report --figures deep/figures");
    let figures = names(&lab.path("deep/figures"));
    assert!(figures.len() >= 3, "{figures:?}");
    for name in figures {
        let svg = lab.read(&format!("deep/figures/{name}"));
        assert!(name.ends_with(".svg") && svg.contains("<svg ") && is_well_formed(&svg), "{name}:\n{svg}");
    }
}

#[test]
fn a_report_is_self_contained() {
    let lab = Lab::new();
    lab.write("tiny.toml", common::TINY.replace("A tiny experiment", "<script>alert(1)</script> & more"));
    lab.ok("run ./tiny.toml --scale 1/256");
    lab.ok("run intel-320-random-write --scale 1/256 --report study.html");
    for name in ["report.html", "study.html"] {
        let html = lab.read(name);
        assert!(html.starts_with("<!DOCTYPE html>"), "{name}");
        assert!(
            !html.contains("<script>alert") && !html.contains("src=\"http") && !html.contains("@import"),
            "{name}"
        );
        assert!(!html.contains("<link") && !html.contains("url(http") && !html.contains("<iframe"), "{name}");
        for (at, _) in html.match_indices("http") {
            let before = &html[..at];
            let harmless =
                ["xmlns=\"", "xmlns:xlink=\"", "<a href=\""].iter().any(|start| before.ends_with(start));
            // A browser does not fetch text between tags.
            let in_text = before.rfind('>') > before.rfind('<');
            assert!(
                harmless || in_text,
                "{name}: {}",
                flat(&html[at.saturating_sub(80)..(at + 80).min(html.len())])
            );
        }
    }
}
