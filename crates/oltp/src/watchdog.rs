//! [`Watchdog`]: ends calls that still wait for a database some time after lowtide was interrupted.
//!
//! Code that waits for a frozen server, or for a network that drops packets, does not check the interrupt. So
//! a separate thread checks the interrupt. It cuts every registered connection after [`CONNECTIONS`], and kills every
//! registered server of our own after [`SERVERS`]; the waiting calls then fail. Measured results are kept; the data
//! of an interrupted cell is discarded.
//!
//! # Not handled
//! A server that waits for a device that never answers: the kernel cannot end such a process.

use crate::network::Cut;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time from an interrupt until connections are cut.
pub(crate) const CONNECTIONS: Duration = Duration::from_secs(3);
/// Time from an interrupt until servers are killed.
const SERVERS: Duration = Duration::from_secs(6);
/// Interval at which the thread checks the interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A connection or server that the watchdog ends.
#[derive(Debug)]
enum Target {
    Connection(Cut),
    Server(Server),
}

/// A thread that watches an interrupt, with the connections and servers registered for it. Clones share the thread,
/// which ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Watchdog(Arc<Watched>);

#[derive(Debug)]
struct Watched {
    interrupt: Arc<AtomicBool>,
    targets: Mutex<Targets>,
}

#[derive(Debug, Default)]
struct Targets {
    next: u64,
    all: BTreeMap<u64, Target>,
}

/// Keeps a target registered until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    watched: Weak<Watched>,
    key: u64,
}

impl Watchdog {
    /// Starts a thread that watches `interrupt`. If the thread cannot be started, nothing is watched, and calls to a
    /// frozen server wait forever.
    pub(crate) fn new(interrupt: &Arc<AtomicBool>) -> Watchdog {
        let watched = Arc::new(Watched { interrupt: Arc::clone(interrupt), targets: Mutex::default() });
        let weak = Arc::downgrade(&watched);
        let _ = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || watch(&weak));
        Watchdog(watched)
    }
    /// Registers a connection, which is cut [`CONNECTIONS`] after the interrupt. `None` is a connection that cannot
    /// be cut.
    pub(crate) fn connection(&self, cut: Option<Cut>) -> Option<Registration> {
        cut.map(|cut| self.register(Target::Connection(cut)))
    }
    /// Registers a server, which is killed with its children [`SERVERS`] after the interrupt.
    pub(crate) fn server(&self, server: Server) -> Registration {
        self.register(Target::Server(server))
    }
    fn register(&self, target: Target) -> Registration {
        let mut targets = self.0.lock();
        let key = targets.next;
        targets.next += 1;
        targets.all.insert(key, target);
        Registration { watched: Arc::downgrade(&self.0), key }
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Targets> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(watched) = self.watched.upgrade() {
            watched.lock().all.remove(&self.key);
        }
    }
}

/// Checks the interrupt until the last [`Watchdog`] is dropped.
fn watch(watched: &Weak<Watched>) {
    let mut interrupted: Option<Instant> = None;
    while let Some(watched) = watched.upgrade() {
        if watched.interrupt.load(Ordering::Relaxed) {
            let since = interrupted.get_or_insert_with(Instant::now).elapsed();
            // Includes targets that were registered after the interrupt.
            for target in watched.lock().all.values() {
                match target {
                    Target::Connection(cut) if since >= CONNECTIONS => cut.now(),
                    Target::Server(server) if since >= SERVERS => server.kill(),
                    _ => {}
                }
            }
        }
        drop(watched);
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A server's process. The pidfd never signals another process, even if the process id is reused.
#[derive(Debug)]
pub(crate) struct Server {
    number: u32,
    process: Option<OwnedFd>,
}

impl Server {
    /// The handle of a child of this process that has not been waited for yet.
    pub(crate) fn of(number: u32) -> Server {
        Server { number, process: open(number) }
    }
    /// Kills the server and its children. The children of PostgreSQL have sessions of their own, and a frozen child
    /// would not notice that its parent has ended.
    pub(crate) fn kill(&self) {
        let Some(process) = &self.process else { return };
        let children = children(self.number);
        let _ = pidfd_send_signal(process, Signal::KILL);
        for child in &children {
            let _ = pidfd_send_signal(child, Signal::KILL);
        }
    }
}

fn open(number: u32) -> Option<OwnedFd> {
    let number = Pid::from_raw(i32::try_from(number).ok()?)?;
    pidfd_open(number, PidfdFlags::empty()).ok()
}

/// Handles of a process's children. The parent of each child is checked again once the handle is open, so that a
/// reused process id never leads to another process.
fn children(parent: u32) -> Vec<OwnedFd> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let held = numbers.filter(|number| parent_of(*number) == Some(parent)).filter_map(|number| {
        let held = open(number)?;
        (parent_of(number) == Some(parent)).then_some(held)
    });
    held.collect()
}

/// The parent's id: the fourth field of `/proc/N/stat`. The second field, the program's name, may contain any
/// character, so the search begins after the last `)`.
fn parent_of(number: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    #[test]
    fn an_interrupt_cuts_connections_and_kills_servers_with_their_children() {
        let interrupt = Arc::new(AtomicBool::new(false));
        let watchdog = Watchdog::new(&interrupt);
        let (mut waiting, _silent) = UnixStream::pair().expect("sockets");
        let _connection = watchdog.connection(Cut::of(&waiting)).expect("registered");
        // A shell and a child in a session of its own, both frozen.
        let script = "setsid sleep 600 & echo $!; kill -STOP $!; kill -STOP $$";
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("sh");
        let mut line = [0; 16];
        let length = child.stdout.as_mut().expect("piped").read(&mut line).expect("read");
        let grandchild: u32 = String::from_utf8_lossy(&line[..length]).trim().parse().expect("a number");
        let _server = watchdog.server(Server::of(child.id()));
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!(waiting.read(&mut [0]).expect("an end"), 0);
        child.wait().expect("killed");
        let gone = || fs::read_link(format!("/proc/{grandchild}/exe")).is_err();
        for _ in 0..600 {
            if gone() {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        panic!("the grandchild {grandchild} still runs");
    }

    #[test]
    fn what_is_no_longer_registered_is_left_alone() {
        let interrupt = Arc::new(AtomicBool::new(true));
        let watchdog = Watchdog::new(&interrupt);
        let (one, _other) = UnixStream::pair().expect("sockets");
        drop(watchdog.connection(Cut::of(&one)));
        assert!(watchdog.0.lock().all.is_empty());
    }
}
