//! A network between a client and a test server: a TCP proxy to the server's Unix socket that can stop forwarding or
//! close its connections.
//!
//! # Not modelled
//! Delays and lost bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// State shared by the threads of a proxy.
#[derive(Default)]
struct Shared {
    silent: AtomicBool,
    clients: Mutex<Vec<TcpStream>>,
}

/// A proxy. Dropping it closes its connections.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Creates a proxy to `socket`, listening on a free port.
    pub fn to(socket: &Path) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared::default());
        let (known, socket) = (Arc::clone(&shared), socket.to_owned());
        std::thread::spawn(move || serve(&listener, &known, &socket));
        Proxy { port, shared }
    }
    /// The port on which the proxy listens.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// Stops forwarding bytes, but keeps all connections open.
    pub fn fall_silent(&self) {
        self.shared.silent.store(true, Ordering::Relaxed);
    }
    /// Closes all connections.
    pub fn close(&self) {
        for client in self.shared.clients.lock().expect("no panic").iter() {
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>, socket: &PathBuf) {
    for client in listener.incoming().flatten() {
        let Ok(server) = UnixStream::connect(socket) else { return };
        client.set_nodelay(true).expect("set");
        let copy = |client: &TcpStream| client.try_clone().expect("a copy");
        shared.clients.lock().expect("no panic").push(copy(&client));
        let (to_server, mut from_client) = (server.try_clone().expect("a copy"), copy(&client));
        let (there, back) = (Arc::clone(shared), Arc::clone(shared));
        std::thread::spawn(move || {
            pass(&there, &mut from_client, &to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        std::thread::spawn(move || {
            pass(&back, &mut &server, &client);
            let _ = client.shutdown(Shutdown::Both);
        });
    }
}

/// Forwards bytes until one side closes. Discards the bytes while the proxy is silent.
fn pass(shared: &Shared, from: &mut impl Read, mut to: impl Write) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let silent = shared.silent.load(Ordering::Relaxed);
        if !silent && to.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
}
