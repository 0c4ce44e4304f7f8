//! Refused servers: the error names the accepted values, and no file is left behind.

use crate::common::Lab;
use crate::served::{DRIVE, Served};

#[test]
fn addresses_certificates_and_names_are_checked() {
    let lab = Lab::with(&[("file", "mine")]);
    lab.make_directory("empty");
    for (arguments, code, says) in [
        ("--tcp 127.0.0.1", 2, ["the address to listen at is 127.0.0.1", "HOST:PORT is accepted"]),
        ("--tcp 127.0.0.1:99999", 2, ["HOST:PORT is accepted", ""]),
        ("--tcp 192.0.2.1:0", 1, ["cannot listen on 192.0.2.1:0", ""]),
        ("--unix file", 1, ["cannot listen on file", "is not a socket"]),
        ("--unix none/drive.sock", 1, ["No such file or directory", ""]),
        (&format!("--unix {}", "x".repeat(130)), 1, ["at most 107", ""]),
        ("--tcp 127.0.0.1:0 --tls require", 2, ["--tls-certificates <DIR>", ""]),
        (
            "--tcp 127.0.0.1:0 --tls on --tls-certificates empty",
            2,
            ["empty/server-cert.pem does not exist", "server-key.pem"],
        ),
        ("--tcp 127.0.0.1:0 --tls-verify-peer", 2, ["--tls-certificates <DIR>", ""]),
    ] {
        lab.refuses(&format!("drive serve {DRIVE} {arguments}"), code, &says);
    }
    lab.refuses("drive serve intel-320-160g --unix drive.sock", 2, &["intel-320-160gb"]);
    let named = format!("{}=intel-320-160gb", "x".repeat(257));
    lab.refuses(&format!("drive serve {named} --unix drive.sock"), 2, &["has 257 bytes, but may have 256"]);
    assert_eq!(lab.read("file"), "mine");
}

#[test]
fn a_server_does_not_replace_another() {
    let lab = Lab::new();
    let first = Served::start(&lab, "--unix drive.sock --tcp 127.0.0.1:0");
    lab.refuses(&["drive", "serve", DRIVE, "--unix", "drive.sock"], 1, &["another server listens there"]);
    let port = first.uris[1].trim_start_matches("nbd://").to_owned();
    lab.refuses(&["drive", "serve", DRIVE, "--tcp", &port], 1, &["choose another port, or 0"]);
    first.ends_well();
    // The socket of a killed server does not prevent the next one.
    let mut killed = Served::start(&lab, "--unix drive.sock");
    killed.kill();
    assert!(lab.path("drive.sock").exists());
    Served::start(&lab, "--unix drive.sock").ends_well();
    assert!(!lab.path("drive.sock").exists());
}
