//! Signals: on each signal that ends a program by default, a server shuts down cleanly, writes the state of its
//! drives, and removes its socket.

use crate::common::{Lab, Running};
use crate::served::Served;
use rustix::process::Signal;

/// Symptom: signals such as SIGUSR1 and SIGALRM killed a server at once, and the state of its drives was lost. Cause:
/// only four signals were caught. Fix: all signals that end a program by default are caught.
#[test]
fn on_every_ending_signal_a_server_shuts_down_cleanly() {
    let lab = Lab::new();
    lab.ok("logdisk format disk.log --size 64MiB --segment 1MiB");
    for signal in [
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::XCPU,
        Signal::XFSZ,
    ] {
        let state = format!("{signal:?}.state");
        let mut served = Served::start(&lab, &format!("--unix drive.sock --state {state}"));
        assert_eq!(served.ends_by(signal).0, Some(0), "{signal:?}");
        assert!(lab.path(&state).exists(), "{signal:?}: its state is not written");
        assert!(
            !lab.path(&format!("{state}.open")).exists() && !lab.path("drive.sock").exists(),
            "{signal:?}"
        );
        let mut served = Served::by(&lab, "logdisk serve disk.log --unix drive.sock");
        let (code, text) = served.ends_by(signal);
        assert_eq!(code, Some(0), "{signal:?}");
        assert!(text.contains("closed in order"), "{signal:?}: {text}");
    }
}

/// A limit of processor time sends SIGXCPU every second: only a repeated Ctrl-C ends a server at once.
#[test]
fn a_repeated_sigxcpu_does_not_end_a_server_at_once() {
    let lab = Lab::new();
    let mut served = Served::start(&lab, "--unix drive.sock --state drive.state");
    let process: &Running = served.running();
    for _ in 0..30 {
        process.signal(Signal::XCPU);
    }
    assert_eq!(served.ends_by(Signal::XCPU).0, Some(0));
    assert!(lab.path("drive.state").exists());
}
