//! Images that are copied to a drive and back, by nbdcopy and qemu-img, over every transport. The image itself is the
//! oracle.

use crate::common::{Lab, Running};
use crate::served::{DRIVE, SMALL, Served, ok};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

const SEED: u64 = 20_261_121;

/// Bytes of the image.
pub const IMAGE: usize = 24 << 20;

/// Writes `image`: runs of noise and of zeroes, of many lengths.
pub fn image(lab: &Lab) -> Vec<u8> {
    println!("seed {SEED}");
    let mut state = SEED;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let mut image = Vec::with_capacity(IMAGE);
    while image.len() < IMAGE {
        let length = (512 << (next() % 12)) * (1 + next() % 3);
        let noise = next() % 3 > 0;
        (0..length / 8).for_each(|_| image.extend(if noise { next() } else { 0 }.to_le_bytes()));
    }
    image.truncate(IMAGE);
    lab.write("image", &image);
    image
}

/// Asserts that `file` begins with the image and holds nothing else.
pub fn assert_copied(lab: &Lab, file: &str, image: &[u8], what: &str) {
    let file = std::fs::File::open(lab.path(file)).expect("the copy");
    let mut begin = vec![0; IMAGE];
    file.read_exact_at(&mut begin, 0).expect("as long as the image");
    assert!(begin == image, "{what}: the copy differs");
    let mut piece = vec![0; 4 << 20];
    let mut at = IMAGE as u64;
    loop {
        let length = file.read_at(&mut piece, at).expect("readable");
        if length == 0 {
            break;
        }
        assert!(piece[..length].iter().all(|byte| *byte == 0), "{what}: something after the image");
        at += length as u64;
    }
    assert_eq!(at, file.metadata().expect("its size").len());
}

#[test]
fn nbdcopy_gets_back_what_it_sent() {
    let lab = Lab::new();
    let image = image(&lab);
    for (what, place) in [("unix", ["--unix", "drive.sock"]), ("tcp", ["--tcp", "127.0.0.1:0"])] {
        let served = Served::start(&lab, &place);
        let uri = served.uri("");
        if ok(&lab, "nbdcopy", &["--flush", "image", &uri]).is_none() {
            return;
        }
        ok(&lab, "nbdcopy", &[&uri, "copy"]);
        assert_copied(&lab, "copy", &image, what);
        std::fs::remove_file(lab.path("copy")).expect("removed");
        served.ends_well();
    }
}

#[test]
fn nbdcopy_gets_back_what_it_sent_to_servers_that_it_started() {
    let lab = Lab::new();
    let image = image(&lab);
    // Two servers one after the other, and the data in a file between them.
    let server = [&["[", "lowtide", "drive", "serve", DRIVE, "--data", "data"], &SMALL[..], &["]"]].concat();
    if ok(&lab, "nbdcopy", &[&["--flush", "--", "image"], &server[..]].concat()).is_none() {
        return;
    }
    ok(&lab, "nbdcopy", &[&["--"], &server[..], &["copy"]].concat());
    assert_copied(&lab, "copy", &image, "activated");
    // Byte 0 of the file is byte 0 of the drive.
    assert_copied(&lab, "data", &image, "the file");
}

#[test]
fn nbdkit_passes_on_what_nbdcopy_sends() {
    let lab = Lab::new();
    let image = image(&lab);
    let served = Served::start(&lab, &["--unix", "drive.sock"]);
    let script = "nbdcopy --flush image \"$uri\" && nbdcopy \"$uri\" copy";
    let uri = format!("uri={}", served.uri(""));
    if ok(&lab, "nbdkit", &["-U", "-", "nbd", &uri, "--run", script]).is_some() {
        assert_copied(&lab, "copy", &image, "nbdkit");
    }
    served.ends_well();
}

/// Runs `program` with a socket as its server, and behind it `lowtide drive serve -s`, which has what the client connected to as
/// its stdin and its stdout, or, with `pipes`, two pipes.
fn through_stdin_and_stdout(lab: &Lab, pipes: bool, program: &str, arguments: &[&str]) -> Option<String> {
    let listener = UnixListener::bind(lab.path("door")).expect("a socket");
    let uri = format!("nbd+unix:///?socket={}", lab.path("door").display());
    let arguments: Vec<&str> = arguments.iter().map(|it| if *it == "URI" { &uri } else { *it }).collect();
    let mut server = lab.command(&[&["drive", "serve", DRIVE, "--data", "data", "-s"], &SMALL[..]].concat());
    server.stderr(Stdio::null());
    let said = std::thread::scope(|threads| {
        let client = threads.spawn(|| {
            let said = ok(lab, program, &arguments);
            // Where it is missing nobody has come: the server is told so.
            if said.is_none() {
                drop(UnixStream::connect(lab.path("door")));
            }
            said
        });
        let (door, _) = listener.accept().expect("a client");
        let copy = |socket: &UnixStream| socket.try_clone().expect("a second handle");
        let mut running = if pipes {
            let child = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let mut child = child.expect("lowtide starts");
            let (mut input, mut output) = (child.stdin.take(), child.stdout.take());
            let (mut from, mut to) = (copy(&door), door);
            // Either side may be gone before the other; the server has its end when its pipe is dropped.
            threads.spawn(move || pass(&mut from, input.as_mut().expect("a pipe")));
            pass(output.as_mut().expect("a pipe"), &mut to);
            let _ = to.shutdown(Shutdown::Both);
            Running(child)
        } else {
            server.stdin(OwnedFd::from(copy(&door))).stdout(OwnedFd::from(door));
            Running(server.spawn().expect("lowtide starts"))
        };
        // Ours, which would keep the client from seeing the end.
        drop(server);
        assert_eq!(running.wait(), Some(0), "the server ends with its client");
        client.join().expect("no panic")
    });
    std::fs::remove_file(lab.path("door")).expect("removed");
    said
}

/// Passes bytes on until either side ends. (`std::io::copy` would splice, which holds bytes back.)
fn pass(from: &mut impl Read, to: &mut impl Write) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
}

#[test]
fn nbdcopy_gets_back_what_it_sent_through_stdin_and_stdout() {
    for pipes in [false, true] {
        let lab = Lab::new();
        let image = image(&lab);
        let send = ["--connections=1", "--flush", "image", "URI"];
        if through_stdin_and_stdout(&lab, pipes, "nbdcopy", &send).is_none() {
            return;
        }
        through_stdin_and_stdout(&lab, pipes, "nbdcopy", &["--connections=1", "URI", "copy"]);
        assert_copied(&lab, "copy", &image, if pipes { "pipes" } else { "a socket" });
    }
}

#[test]
fn qemu_img_gets_back_what_it_sent() {
    let lab = Lab::new();
    let image = image(&lab);
    let served = Served::start_all(
        &lab,
        &["drive", "serve", "one=intel-320-160gb", "two=intel-320-160gb", "--unix", "drive.sock"],
    );
    let (one, two) = (served.uri("one"), served.uri("two"));
    let raw = ["-f", "raw", "-O", "raw"];
    if ok(&lab, "qemu-img", &[&["convert", "-n"], &raw[..], &["image", &one]].concat()).is_none() {
        return;
    }
    // What lies behind the image is zero, which is the same for qemu-img.
    ok(&lab, "qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &one]);
    // The other drive is another drive.
    ok(&lab, "qemu-img", &[&["convert", "-n", "--target-is-zero"], &raw[..], &[&one, &two]].concat());
    ok(&lab, "qemu-img", &["compare", "-s", "-f", "raw", "-F", "raw", &one, &two]);
    ok(&lab, "qemu-io", &["-f", "raw", "-c", "write -P 7 0 512", &two]);
    ok(&lab, "qemu-img", &[&["convert"], &raw[..], &[&one, "copy"]].concat());
    assert_copied(&lab, "copy", &image, "qemu-img");
    served.ends_well();
}
