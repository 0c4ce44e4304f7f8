//! Copies of an image to a drive and back, by nbdcopy and qemu-img, over every transport. The image itself is the
//! oracle.

use crate::common::{Lab, Running};
use crate::served::{DRIVE, SMALL, Served, ok, qemu_io};
use lowtide_core::Seed;
use lowtide_core::rng::below;
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
    let mut rng = Seed::new(SEED).stream();
    let mut image = Vec::with_capacity(IMAGE);
    while image.len() < IMAGE {
        let length = (512 << below(&mut rng, 12)) * (1 + below(&mut rng, 3));
        let noise = below(&mut rng, 3) > 0;
        for _ in 0..length / 8 {
            image.extend(if noise { below(&mut rng, u64::MAX) } else { 0 }.to_le_bytes());
        }
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
        assert!(piece[..length].iter().all(|byte| *byte == 0), "{what}: bytes after the image");
        at += length as u64;
    }
    assert_eq!(at, file.metadata().expect("its size").len());
}

#[test]
fn nbdcopy_gets_back_what_it_sent() {
    let lab = Lab::new();
    let image = image(&lab);
    for what in ["--unix drive.sock", "--tcp 127.0.0.1:0"] {
        let served = Served::start(&lab, what);
        let uri = served.uri("");
        if ok(&lab, "nbdcopy", &format!("--flush image {uri}")).is_none() {
            return;
        }
        ok(&lab, "nbdcopy", &format!("{uri} copy"));
        assert_copied(&lab, "copy", &image, what);
        lab.remove("copy");
        served.ends_well();
    }
}

#[test]
fn nbdcopy_gets_back_what_it_sent_to_servers_that_it_started() {
    let lab = Lab::new();
    let image = image(&lab);
    // Two servers, one after another, with the data in a file.
    let server = format!("[ lowtide drive serve {DRIVE} --data data {SMALL} ]");
    if ok(&lab, "nbdcopy", &format!("--flush -- image {server}")).is_none() {
        return;
    }
    ok(&lab, "nbdcopy", &format!("-- {server} copy"));
    assert_copied(&lab, "copy", &image, "activated");
    // Byte 0 of the file is byte 0 of the drive.
    assert_copied(&lab, "data", &image, "the file");
}

#[test]
fn nbdkit_passes_on_what_nbdcopy_sends() {
    let lab = Lab::new();
    let image = image(&lab);
    let served = Served::start(&lab, "--unix drive.sock");
    let script = "nbdcopy --flush image \"$uri\" && nbdcopy \"$uri\" copy";
    let uri = format!("uri={}", served.uri(""));
    if ok(&lab, "nbdkit", &["-U", "-", "nbd", &uri, "--run", script]).is_some() {
        assert_copied(&lab, "copy", &image, "nbdkit");
    }
    served.ends_well();
}

/// Runs nbdcopy as a client of `lowtide drive serve -s`. The server's stdin and stdout are the client's socket or,
/// with `pipes`, two pipes.
fn through_stdin_and_stdout(lab: &Lab, pipes: bool, arguments: &str) -> Option<String> {
    let listener = UnixListener::bind(lab.path("socket")).expect("a socket");
    let uri = format!("nbd+unix:///?socket={}", lab.path("socket").display());
    let arguments = format!("--connections=1 {}", arguments.replace("URI", &uri));
    let mut server = lab.command(&format!("drive serve {DRIVE} --data data -s {SMALL}"));
    server.stderr(Stdio::null());
    let printed = std::thread::scope(|threads| {
        let client = threads.spawn(|| {
            let printed = ok(lab, "nbdcopy", &arguments);
            // If nbdcopy is missing, this connection ends the wait for a client.
            if printed.is_none() {
                drop(UnixStream::connect(lab.path("socket")));
            }
            printed
        });
        let (client_socket, _) = listener.accept().expect("a client");
        let copy = |socket: &UnixStream| socket.try_clone().expect("a second handle");
        let mut running = if pipes {
            let mut running = Running::start(server.stdin(Stdio::piped()).stdout(Stdio::piped()));
            let (mut input, mut output) = (running.0.stdin.take(), running.0.stdout.take());
            let (mut from, mut to) = (copy(&client_socket), client_socket);
            // Either side may end first. The server sees the end of its input when the pipe is dropped.
            threads.spawn(move || pass(&mut from, input.as_mut().expect("a pipe")));
            pass(output.as_mut().expect("a pipe"), &mut to);
            let _ = to.shutdown(Shutdown::Both);
            running
        } else {
            server.stdin(OwnedFd::from(copy(&client_socket))).stdout(OwnedFd::from(client_socket));
            Running::start(&mut server)
        };
        // Closes this process's copies of the socket, so that the client sees its end.
        drop(server);
        assert_eq!(running.wait(), Some(0), "the server ends with its client");
        client.join().expect("no panic")
    });
    lab.remove("socket");
    printed
}

/// Forwards bytes until either side ends. `std::io::copy` would use splice(2), which delays bytes.
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
        if through_stdin_and_stdout(&lab, pipes, "--flush image URI").is_none() {
            return;
        }
        through_stdin_and_stdout(&lab, pipes, "URI copy");
        assert_copied(&lab, "copy", &image, if pipes { "pipes" } else { "a socket" });
    }
}

#[test]
fn qemu_img_gets_back_what_it_sent() {
    let lab = Lab::new();
    let image = image(&lab);
    let drives = format!("drive serve one=intel-320-160gb two=intel-320-160gb --unix drive.sock {SMALL}");
    let served = Served::by(&lab, &drives);
    let (one, two) = (served.uri("one"), served.uri("two"));
    if ok(&lab, "qemu-img", &format!("convert -n -f raw -O raw image {one}")).is_none() {
        return;
    }
    // qemu-img ignores zeroes after the end of the shorter image.
    ok(&lab, "qemu-img", &format!("compare -f raw -F raw image {one}"));
    ok(&lab, "qemu-img", &format!("convert -n --target-is-zero -f raw -O raw {one} {two}"));
    ok(&lab, "qemu-img", &format!("compare -s -f raw -F raw {one} {two}"));
    // A write to one drive does not change the other.
    qemu_io(&lab, &two, &["write -P 7 0 512"]);
    ok(&lab, "qemu-img", &format!("convert -f raw -O raw {one} copy"));
    assert_copied(&lab, "copy", &image, "qemu-img");
    served.ends_well();
}
