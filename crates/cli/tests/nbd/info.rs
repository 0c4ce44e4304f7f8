//! Exports as nbdinfo shows them: sizes, flags, block sizes, descriptions and allocation.

use crate::common::{Lab, json as parsed};
use crate::served::{DRIVE, SMALL, Served, ok, qemu_io, real};
use serde_json::json;

#[test]
fn nbdinfo_shows_the_properties_of_the_drive() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock");
    let Some(text) = ok(&lab, "nbdinfo", &["--json", &served.uri("")]) else { return };
    let info = parsed(&text);
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(info["TLS"], false);
    assert_eq!(info["structured"], true);
    let export = &info["exports"][0];
    for can in ["cache", "df", "fast_zero", "flush", "fua", "multi_conn", "trim", "zero"] {
        assert_eq!(export[format!("can_{can}")], true, "{can}");
    }
    assert_eq!((&export["is_read_only"], &export["is_rotational"]), (&json!(false), &json!(false)));
    assert_eq!(export["contexts"], json!(["base:allocation"]));
    assert_eq!(export["block_size_minimum"], 512);
    assert_eq!(export["block_size_maximum"], 32 << 20);
    // 160 GB / 256, in whole units of 4 KiB.
    assert_eq!(export["export-size"], 625_000_000 / 4096 * 4096);
    let size = ok(&lab, "nbdinfo", &["--size", &served.uri(DRIVE)]).expect("it ran before");
    assert_eq!(size.trim(), export["export-size"].to_string());
    served.ends_well();
    assert!(!lab.path("drive.sock").exists(), "the socket is left");
}

#[test]
fn nbdinfo_lists_several_exports_with_their_properties() {
    let lab = Lab::new();
    let served = Served::by(
        &lab,
        &format!("drive serve data=intel-320-160gb log=sas-15k-73gb --read-only --tcp 127.0.0.1:0 {SMALL}"),
    );
    let Some(text) = ok(&lab, "nbdinfo", &["--list", "--json", &served.uri("")]) else { return };
    let list = parsed(&text);
    let exports = list["exports"].as_array().expect("a list");
    let each = |key: &str| exports.iter().map(|export| export[key].clone()).collect::<Vec<_>>();
    assert_eq!(each("export-name"), ["data", "log"]);
    assert_eq!(each("is_rotational"), [false, true]);
    assert_eq!(each("is_read_only"), [true, true]);
    assert!(each("description").iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty())));
    for (question, value, wanted) in
        [("--is", "read-only", 0), ("--can", "write", 2), ("--is", "tls", 2), ("--can", "connect", 0)]
    {
        let answer = real(&lab, "nbdinfo", &[question, value, &served.uri("log")]).expect("it ran before");
        assert_eq!(answer.status.code(), Some(wanted), "{question} {value}");
    }
    // Unlike nbdinfo, qemu-img shows the server's error message.
    let Some(none) = real(&lab, "qemu-img", &["info", &served.uri("lgo")]) else { return };
    let text = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(!none.status.success() && text.contains("did you mean \"log\"?"), "{text}");
    served.ends_well();
}

#[test]
fn nbdinfo_shows_the_map_of_allocated_ranges() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock");
    let uri = served.uri("");
    if qemu_io(&lab, &uri, &["write -P 1 1M 1M", "write -P 2 8M 64k"]).is_none() {
        return;
    }
    let Some(text) = ok(&lab, "nbdinfo", &format!("--map --json {uri}")) else { return };
    let map = parsed(&text);
    let runs: Vec<(u64, u64, u64)> = map
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| {
            let number = |key: &str| run[key].as_u64().expect("a number");
            (number("offset"), number("length"), number("type"))
        })
        .collect();
    let (m, k) = (1 << 20, 1 << 10);
    assert_eq!(runs[..4], [(0, m, 3), (m, m, 0), (2 * m, 6 * m, 3), (8 * m, 64 * k, 0)]);
    let last = runs.last().expect("more runs");
    let size = ok(&lab, "nbdinfo", &format!("--size {uri}")).expect("it ran before");
    assert_eq!((last.0 + last.1).to_string(), size.trim());
    assert!(runs[4..].iter().all(|(_, _, kind)| *kind == 3));
    served.ends_well();
}

#[test]
fn nbdinfo_starts_a_server_and_asks_it() {
    let lab = Lab::new();
    let asked = ok(&lab, "nbdinfo", &format!("--size -- [ lowtide drive serve {DRIVE} {SMALL} ]"));
    let Some(size) = asked else { return };
    assert_eq!(size.trim(), (625_000_000 / 4096 * 4096).to_string());
}
