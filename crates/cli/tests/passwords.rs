//! Passwords of servers appear nowhere: not in errors, plans, stores, reports or exports, nor in progress
//! output.

mod common;

use common::{Lab, told};

/// Nobody listens on port 1.
const EXPERIMENT: &str = r#"name = "others"
target.directory = "."

[oltp]
engine = "mariadb"
servers = "mariadb://me:sEcReT@127.0.0.1:1/x" # was mariadb://me:sEcReT@db/x
warehouses = 1
duration = "1min"
"#;

/// Runs a command, and checks that neither its output nor a file it leaves has the password; returns its exit
/// code.
fn hidden(lab: &Lab, arguments: &[&str]) -> Option<i32> {
    let (code, out, err) = told(&lab.run(arguments));
    for text in [&out, &err] {
        assert!(!text.contains("sEc"), "lowtide {}\n{text}", arguments.join(" "));
        assert!(!text.contains("panicked"), "lowtide {}\n{text}", arguments.join(" "));
    }
    let mine = ["others.toml", "bad.toml"];
    for name in lab.names().iter().filter(|name| !mine.contains(&name.as_str()) && lab.path(name).is_file()) {
        let bytes = std::fs::read(lab.path(name)).expect("it can be read");
        assert!(!bytes.windows(3).any(|part| part == b"sEc"), "{name} after lowtide {}", arguments.join(" "));
    }
    code
}

#[test]
fn a_campaign_on_servers_of_others_leaves_no_password_anywhere() {
    let lab = Lab::new();
    lab.write("others.toml", EXPERIMENT);
    assert_eq!(hidden(&lab, &["plan", "./others.toml"]), Some(0));
    assert_eq!(hidden(&lab, &["experiments", "show", "./others.toml"]), Some(0));
    // The campaign is in the store although nobody answers.
    assert_ne!(hidden(&lab, &["run", "./others.toml"]), Some(0));
    assert_eq!(hidden(&lab, &["report"]), Some(0));
    for format in ["csv", "json"] {
        hidden(&lab, &["store", "export", "--format", format, "-o", &format!("out.{format}")]);
    }
    assert_eq!(hidden(&lab, &["report", "1", "-o", "r.html"]), Some(0));
    hidden(&lab, &["run", "./others.toml", "--resume"]);
    let set = "oltp.servers=mariadb://me:sEcReT@127.0.0.1:1/y";
    hidden(&lab, &["run", "./others.toml", "--set", set]);
    hidden(&lab, &["run", "./others.toml", "--set", set, "--set", "threads=x"]);
    assert_eq!(hidden(&lab, &["plan", "./others.toml", "--set", set]), Some(0));
    assert_eq!(hidden(&lab, &["report", "2", "-o", "r.html"]), Some(0));
}

#[test]
fn errors_have_no_password() {
    let lab = Lab::new();
    lab.write("bad.toml", EXPERIMENT.replace("warehouses = 1", "warehouses = 0"));
    assert_eq!(hidden(&lab, &["run", "./bad.toml"]), Some(2));
    assert_eq!(hidden(&lab, &["plan", "./bad.toml"]), Some(2));
    lab.write("others.toml", EXPERIMENT);
    let address = "mariadb://me:sEcReT@h/x";
    for arguments in [
        &["run", address][..],
        &["plan", "./others.toml", "--set", address],
        &["plan", "./others.toml", "--set", &format!("oltp.servrs={address}")],
        &["plan", "./others.toml", "--set", &format!("servers=[\"{address}")],
        &["plan", "./others.toml", "--target", address],
        &["plan", "./others.toml", "--scale", address],
        &["plan", "./others.toml", address],
        &["fit", address],
        &["report", address],
        &["store", "import", address],
        &["devices", "show", address],
        &["experiments", "show", address],
    ] {
        let code = hidden(&lab, arguments);
        assert_eq!(code, Some(2), "lowtide {}", arguments.join(" "));
    }
}
