//! What cannot be served: told with what is accepted, and nothing is left behind.

use crate::common::{Lab, assert_says};
use crate::served::{DRIVE, Served};

#[test]
fn what_cannot_be_listened_at_or_served_is_told() {
    let lab = Lab::new();
    lab.write("file", "mine");
    std::fs::create_dir(lab.path("empty")).expect("a folder");
    let long = "x".repeat(130);
    let rows: [(&[&str], i32, &[&str]); 9] = [
        (&["--tcp", "127.0.0.1"], 2, &["the address to listen at is 127.0.0.1", "HOST:PORT is accepted"]),
        (&["--tcp", "127.0.0.1:99999"], 2, &["HOST:PORT is accepted"]),
        (&["--tcp", "192.0.2.1:0"], 1, &["cannot listen on 192.0.2.1:0"]),
        (&["--unix", "file"], 1, &["cannot listen on file", "is not a socket"]),
        (&["--unix", "none/drive.sock"], 1, &["No such file or directory"]),
        (&["--unix", &long], 1, &["at most 107"]),
        (&["--tcp", "127.0.0.1:0", "--tls", "require"], 2, &["--tls-certificates <DIR>"]),
        (
            &["--tcp", "127.0.0.1:0", "--tls", "on", "--tls-certificates", "empty"],
            2,
            &["empty/server-cert.pem does not exist", "server-key.pem"],
        ),
        (&["--tcp", "127.0.0.1:0", "--tls-verify-peer"], 2, &["--tls-certificates <DIR>"]),
    ];
    for (arguments, code, wanted) in rows {
        assert_says(&lab.refuses(&[&["drive", "serve", DRIVE], arguments].concat(), code), wanted);
    }
    let error = lab.refuses(&["drive", "serve", "intel-320-160g", "--unix", "drive.sock"], 2);
    assert_says(&error, &["intel-320-160gb"]);
    let named = format!("{}=intel-320-160gb", "x".repeat(257));
    assert_says(
        &lab.refuses(&["drive", "serve", &named, "--unix", "drive.sock"], 2),
        &["has 257 bytes, but may have 256"],
    );
    assert_eq!(lab.read("file"), "mine");
}

#[test]
fn a_server_does_not_take_the_place_of_another() {
    let lab = Lab::new();
    let first = Served::start(&lab, &["--unix", "drive.sock", "--tcp", "127.0.0.1:0"]);
    let error = lab.refuses(&["drive", "serve", DRIVE, "--unix", "drive.sock"], 1);
    assert_says(&error, &["another server listens there"]);
    let port = first.uris[1].trim_start_matches("nbd://").to_owned();
    assert_says(&lab.refuses(&["drive", "serve", DRIVE, "--tcp", &port], 1), &["choose another port, or 0"]);
    first.ends_well();
    // One that was killed leaves its socket, which does not keep the next one out.
    let mut killed = Served::start(&lab, &["--unix", "drive.sock"]);
    killed.kill();
    assert!(lab.path("drive.sock").exists());
    Served::start(&lab, &["--unix", "drive.sock"]).ends_well();
    assert!(!lab.path("drive.sock").exists());
}
