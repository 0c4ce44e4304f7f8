//! Tests of servers given by address and reached through a network that closes connections or falls silent.
//!
//! The tests of each database start the server and create its user.

use super::proxy::Proxy;
use lowtide_core::{Control, Nanos, Seed};
use lowtide_engines::tpcc::Scale;
use lowtide_oltp::terminals::{self, Load, Part, Summary, WallClock};
use lowtide_oltp::{OltpError, instance};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Time limit after which the test ends a hanging load.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs four terminals against `address`. Calls `then` once 50 transactions have completed. Returns the number of
/// completed transactions and the result of the load.
fn run(
    address: &str,
    scale: &Scale,
    seed: Seed,
    interrupt: &Arc<AtomicBool>,
    then: &dyn Fn(),
) -> (u64, Result<Summary, OltpError>) {
    let database = instance::connect(address, interrupt).expect("connected");
    let load = Load {
        terminals: 4,
        think: false,
        interval: Nanos::from_millis(20),
        clock: &WallClock::start(),
        seed,
        interrupt,
    };
    let (mut heard, mut done) = (0, false);
    let summary = terminals::run(&[Part { database: &*database, scale }], &load, &mut |interval| {
        heard += interval.kinds.iter().map(|tally| tally.committed + tally.rolled_back).sum::<u64>();
        if heard >= 50 && !std::mem::replace(&mut done, heard >= 50) {
            then();
        }
        Control::Continue
    });
    (heard, summary)
}

/// If the network closes the connections, the load fails with an error that has the server's address without the
/// password.
pub fn a_lost_connection_is_named(proxy: &Proxy, address: &str, scale: &Scale, seed: Seed) {
    let never = Arc::new(AtomicBool::new(false));
    let (heard, summary) = run(address, scale, seed, &never, &|| proxy.close());
    let told = summary.expect_err("it is gone").to_string();
    assert!(heard >= 50, "{seed:?}: what was measured is kept");
    let shown = address.replace("secret", "***");
    assert!(told.contains("the connection was lost") && told.contains(&shown), "{seed:?}: {told}");
    assert!(!told.contains("secret"), "{told}");
}

/// An interrupt ends a load even if the network has fallen silent.
pub fn an_interrupt_ends_a_load_that_nobody_answers(proxy: &Proxy, address: &str, scale: &Scale, seed: Seed) {
    let interrupt = Arc::new(AtomicBool::new(false));
    let (ended, watch) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let late = scope.spawn(move || {
            let late = watch.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                proxy.close();
            }
            late
        });
        let (_, summary) = run(address, scale, seed, &interrupt, &|| {
            proxy.fall_silent();
            interrupt.store(true, Ordering::Relaxed);
        });
        drop(ended);
        assert!(!late.join().expect("no panic"), "{seed:?}: it did not end within {LIMIT:?}");
        assert!(summary.expect("an interrupt is no failure").interrupted, "{seed:?}");
    });
}

/// Connecting to a server that accepts the connection but sends nothing fails after a time limit.
pub fn a_server_that_says_nothing_is_given_up(scheme: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("{scheme}://me:secret@{}/x", listener.local_addr().expect("bound"));
    let told =
        instance::connect(&address, &Arc::default()).map(drop).expect_err("nobody answers").to_string();
    assert!(told.contains("let nobody in within 10 s") && !told.contains("secret"), "{told}");
}
