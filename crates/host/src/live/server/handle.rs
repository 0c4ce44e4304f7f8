//! The handle through which other threads use the server ([`Handle`]).

use super::super::port::{OnComplete, Port};
use super::budget::Usage;
use crate::event::Event;
use crate::nbd::{Agreed, Transport};
use lowtide_core::Request;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A function for the server's thread; its second argument is the instant of the server's clock.
type Call<D> = Box<dyn FnOnce(&mut [D], u64) + Send>;

/// A message from another thread.
pub(super) enum Message<D> {
    /// A client after its negotiation.
    Client(Transport, Agreed),
    /// A request to a drive.
    Request { drive: usize, life: u64, request: Request, data: Vec<u8>, done: OnComplete },
    /// A function to call with the drives.
    Call(Call<D>),
    /// A waiter for the end of the server, which drops the sender when it ends.
    Watch(mpsc::SyncSender<()>),
    /// Ends the server.
    Stop,
}

/// A handle to the server for other threads. Messages to a server that has ended are dropped.
pub struct Handle<D> {
    pub(super) to: mpsc::Sender<Message<D>>,
    /// Wakes the server.
    pub(super) waker: Event,
    pub(super) lives: Arc<[AtomicU64]>,
    pub(super) usage: Arc<Mutex<Usage>>,
}

impl<D> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Handle {
            to: self.to.clone(),
            waker: self.waker.clone(),
            lives: Arc::clone(&self.lives),
            usage: Arc::clone(&self.usage),
        }
    }
}

impl<D> Handle<D> {
    fn send(&self, message: Message<D>) {
        if self.to.send(message).is_ok() {
            self.waker.set();
        }
    }

    /// Adds a client.
    pub fn serve(&self, transport: Transport, agreed: Agreed) {
        self.send(Message::Client(transport, agreed));
    }

    /// Calls `what` on the server's thread with the drives and the instant of the server's clock, and returns the
    /// result; `None` if the server has ended.
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

    /// The number of clients and their memory, as of the last pass of the server.
    pub fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the server has ended.
    pub fn ended(&self) {
        // The server never answers, and drops the sender when it ends.
        let (to, from) = mpsc::sync_channel::<()>(1);
        self.send(Message::Watch(to));
        let _ = from.recv();
    }

    /// Ends the server. Requests in flight are not answered.
    pub fn stop(&self) {
        self.send(Message::Stop);
    }
}

impl<D: Send + 'static> Handle<D> {
    /// Access to a drive of `size` bytes, by requests in multiples of `block` bytes.
    pub fn port(&self, drive: usize, size: u64, block: u32) -> Arc<dyn Port> {
        Arc::new(DrivePort { handle: self.clone(), drive, size, block })
    }
}

struct DrivePort<D> {
    handle: Handle<D>,
    drive: usize,
    size: u64,
    block: u32,
}

impl<D: Send + 'static> Port for DrivePort<D> {
    fn size(&self) -> u64 {
        self.size
    }
    fn block(&self) -> u32 {
        self.block
    }
    fn life(&self) -> u64 {
        self.handle.lives[self.drive].load(Ordering::Acquire)
    }
    fn submit(&self, life: u64, request: Request, data: Vec<u8>, done: OnComplete) {
        let message = Message::Request { drive: self.drive, life, request, data, done };
        if let Err(mpsc::SendError(Message::Request { done, .. })) = self.handle.to.send(message) {
            done(Err(libc::EIO));
            return;
        }
        self.handle.waker.set();
    }
}
