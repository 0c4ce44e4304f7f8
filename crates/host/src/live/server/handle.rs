//! How other threads speak to the loop ([`Handle`]).

use super::super::port::{Done, Port};
use super::budget::{SharedUsage, Usage};
use crate::nbd::{Agreed, Transport};
use lowtide_core::Request;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

/// Something to do on the loop's thread; the second argument is the instant on its clock.
type Errand<D> = Box<dyn FnOnce(&mut [D], u64) + Send>;

/// What another thread wants.
pub(super) enum Message<D> {
    /// A client, and what was agreed on with it.
    Client(Transport, Agreed),
    /// A request to a drive.
    Request { drive: usize, life: u64, request: Request, data: Vec<u8>, done: Done },
    /// Something to do with the drives.
    Call(Errand<D>),
    /// Somebody waits for the end, when this is dropped.
    Watch(mpsc::SyncSender<()>),
    /// The end.
    Stop,
}

/// Wakes the loop.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) fd: OwnedFd,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { fd })
    }

    pub(super) fn ring(&self) {
        // It fails where the count is full: then it rings already.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
    }
}

/// Wakes the loop, so that it asks its drives what is due.
#[derive(Debug, Clone)]
pub struct Ring(pub(super) Arc<Bell>);

impl Ring {
    /// Wakes it.
    pub fn ring(&self) {
        self.0.ring();
    }
}

/// The loop, for other threads. Messages to a loop that has ended are dropped.
pub struct Handle<D> {
    pub(super) to: mpsc::Sender<Message<D>>,
    pub(super) bell: Arc<Bell>,
    pub(super) lives: Arc<[AtomicU64]>,
    pub(super) usage: Arc<SharedUsage>,
}

impl<D> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Handle {
            to: self.to.clone(),
            bell: Arc::clone(&self.bell),
            lives: Arc::clone(&self.lives),
            usage: Arc::clone(&self.usage),
        }
    }
}

impl<D> Handle<D> {
    fn send(&self, message: Message<D>) -> bool {
        let sent = self.to.send(message).is_ok();
        if sent {
            self.bell.ring();
        }
        sent
    }

    /// Serves a client from now on.
    pub fn serve(&self, transport: Transport, agreed: Agreed) {
        self.send(Message::Client(transport, agreed));
    }

    /// Does something with the drives on the loop's thread, and waits for what comes of it; the second argument is the
    /// instant on the loop's clock. `None` where the loop has ended.
    pub fn call<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut [D], u64) -> T + Send + 'static,
    ) -> Option<T> {
        let (to, from) = mpsc::sync_channel(1);
        let what = Box::new(move |drives: &mut [D], now_ns: u64| {
            let _ = to.send(what(drives, now_ns));
        });
        self.send(Message::Call(what));
        from.recv().ok()
    }

    /// How many clients there are, and how much memory they hold, as of the loop's last turn.
    pub fn usage(&self) -> Usage {
        self.usage.get()
    }

    /// Waits until the loop has ended.
    pub fn ended(&self) {
        // It is never answered: the loop drops it when it ends.
        let (to, from) = mpsc::sync_channel::<()>(1);
        self.send(Message::Watch(to));
        let _ = from.recv();
    }

    /// Ends the loop; what is in flight is not answered.
    pub fn stop(&self) {
        self.send(Message::Stop);
    }
}

impl<D: Send + 'static> Handle<D> {
    /// A way to a drive of `size` bytes in blocks of `block`.
    pub fn port(&self, drive: usize, size: u64, block: u32) -> Arc<dyn Port> {
        Arc::new(Way { handle: self.clone(), drive, size, block })
    }
}

struct Way<D> {
    handle: Handle<D>,
    drive: usize,
    size: u64,
    block: u32,
}

impl<D: Send + 'static> Port for Way<D> {
    fn size(&self) -> u64 {
        self.size
    }
    fn block(&self) -> u32 {
        self.block
    }
    fn life(&self) -> u64 {
        self.handle.lives[self.drive].load(Ordering::Acquire)
    }
    fn submit(&self, life: u64, request: Request, data: Vec<u8>, done: Done) {
        let message = Message::Request { drive: self.drive, life, request, data, done };
        if let Err(mpsc::SendError(Message::Request { done, .. })) = self.handle.to.send(message) {
            done(Err(libc::EIO));
            return;
        }
        self.handle.bell.ring();
    }
}
