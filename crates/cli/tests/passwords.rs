//! Passwords of servers appear in no output: errors, plans, stores, reports, exports and progress.

mod common;

use common::{Lab, decoded};

/// No server listens on port 1.
const EXPERIMENT: &str = r#"name = "others"
target.directory = "."

[oltp]
engine = "mariadb"
servers = "mariadb://me:sEcReT@127.0.0.1:1/x" # was mariadb://me:sEcReT@db/x
warehouses = 1
duration = "1min"
"#;

/// Runs a command, and asserts that neither its output nor a file it leaves contains the password; returns its exit
/// code.
fn hidden(lab: &Lab, arguments: &str) -> Option<i32> {
    let (code, out, err) = decoded(&lab.run(arguments));
    for text in [&out, &err] {
        assert!(!text.contains("sEc") && !text.contains("panicked"), "lowtide {arguments}\n{text}");
    }
    let mine = ["others.toml", "bad.toml"];
    for name in lab.names().iter().filter(|name| !mine.contains(&name.as_str()) && lab.path(name).is_file()) {
        let bytes = lab.read_bytes(name);
        assert!(!bytes.windows(3).any(|part| part == b"sEc"), "{name} after lowtide {arguments}");
    }
    code
}

#[test]
fn a_campaign_on_a_users_server_leaves_no_password() {
    let lab = Lab::with(&[("others.toml", EXPERIMENT)]);
    let set = "--set oltp.servers=mariadb://me:sEcReT@127.0.0.1:1/y";
    for (arguments, code) in [
        ("plan ./others.toml", Some(0)),
        ("experiments show ./others.toml", Some(0)),
        // The campaign is stored although the server cannot be reached.
        ("run ./others.toml", None),
        ("report", Some(0)),
        ("store export --format csv -o out.csv", None),
        ("store export --format json -o out.json", None),
        ("report 1 -o r.html", Some(0)),
        ("run ./others.toml --resume", None),
        (&format!("run ./others.toml {set}"), None),
        (&format!("run ./others.toml {set} --set threads=x"), None),
        (&format!("plan ./others.toml {set}"), Some(0)),
        ("report 2 -o r.html", Some(0)),
    ] {
        let found = hidden(&lab, arguments);
        assert!(code.is_none() || found == code, "lowtide {arguments}: {found:?}");
        assert!(arguments != "run ./others.toml" || found != Some(0), "no server was needed");
    }
}

#[test]
fn errors_have_no_password() {
    let bad = EXPERIMENT.replace("warehouses = 1", "warehouses = 0");
    let lab = Lab::with(&[("bad.toml", &bad), ("others.toml", EXPERIMENT)]);
    for arguments in [
        "run ./bad.toml",
        "plan ./bad.toml",
        "run ADDRESS",
        "plan ./others.toml --set ADDRESS",
        "plan ./others.toml --set oltp.servrs=ADDRESS",
        "plan ./others.toml --set servers=[\"ADDRESS",
        "plan ./others.toml --target ADDRESS",
        "plan ./others.toml --scale ADDRESS",
        "plan ./others.toml ADDRESS",
        "fit ADDRESS",
        "report ADDRESS",
        "store import ADDRESS",
        "devices show ADDRESS",
        "experiments show ADDRESS",
    ] {
        let code = hidden(&lab, &arguments.replace("ADDRESS", "mariadb://me:sEcReT@h/x"));
        assert_eq!(code, Some(2), "lowtide {arguments}");
    }
}
