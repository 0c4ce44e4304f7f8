//! Requests over TLS that already arrived with the choice of an export, or that exceed the number in flight per
//! client. In both cases requests wait in buffers that no descriptor signals.
//!
//! Symptom: the client waits for ever. Cause: TLS reads whole records, but the loop waited for the descriptor. Fix:
//! the loop also asks the transport.

use crate::client::*;
use crate::tls::{Authority, settings};
use lowtide_core::{Op, Request};
use lowtide_host::live::contents::Run;
use lowtide_host::live::{Clock, Drive, Server as Loop, Ticket};
use lowtide_host::nbd::tls::read_certificates;
use lowtide_host::nbd::wire::{self, command, option, reply};
use lowtide_host::nbd::{Export, Tls};
use std::collections::VecDeque;
use std::io::Write;

/// Far more requests than one client may have in flight.
const REQUESTS: u64 = 5000;

/// A drive that reads as zeroes and answers after a millisecond.
struct Zeroes(Export, VecDeque<(u64, Ticket)>);

impl Drive for Zeroes {
    fn export(&self) -> &Export {
        &self.0
    }
    fn life(&self) -> u64 {
        0
    }
    fn submit(&mut self, now_ns: u64, ticket: Ticket, request: Request, _data: &[u8]) {
        assert_eq!(request.op, Op::Read);
        self.1.push_back((now_ns + 1_000_000, ticket));
    }
    fn next_due(&self) -> Option<u64> {
        self.1.front().map(|(due_ns, _)| *due_ns)
    }
    fn due(&mut self, now_ns: u64) -> Option<(Ticket, Result<(), i32>)> {
        self.next_due().filter(|due_ns| *due_ns <= now_ns)?;
        self.1.pop_front().map(|(_, ticket)| (ticket, Ok(())))
    }
    fn read(&mut self, _offset: u64, into: &mut [u8]) -> Result<(), i32> {
        into.fill(0);
        Ok(())
    }
    fn run(&self, _offset: u64, length: u64) -> Result<Run, i32> {
        Ok(Run { length, allocated: true })
    }
}

#[test]
fn what_waits_in_tls_is_answered() {
    let authority = Authority::new();
    let tls = Tls::Required(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = session(settings(tls));
    assert_eq!(client.kinds(option::STARTTLS, &[]), [reply::ACK]);
    let mut client = Client { stream: authority.client(client.stream, None) };

    let drives = vec![Zeroes(exports().remove(0), VecDeque::new())];
    let (served, handle) = Loop::new(drives, Clock::new()).expect("a loop");
    let serving = std::thread::spawn(move || served.run());

    let read = |cookie: u64| {
        let kind = [0, command::READ].map(u16::to_be_bytes).concat();
        let place = [&0_u64.to_be_bytes()[..], &512_u32.to_be_bytes()].concat();
        [&wire::REQUEST_MAGIC.to_be_bytes()[..], &kind, &cookie.to_be_bytes(), &place].concat()
    };
    let early = [message(option::GO, &choice("first", &[])), read(0)].concat();
    client.stream.write_all(&early).expect("sent");
    assert_eq!((client.reply().1, client.reply().1), (reply::INFO, reply::ACK));
    let (transport, agreed) = server.outcome().expect("agreed");
    handle.serve(transport, agreed);
    let answered = |client: &mut Client<_>, cookie: u64| {
        let wanted = [&wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &[0; 4], &cookie.to_be_bytes()].concat();
        assert_eq!(client.bytes(16), wanted);
        assert_eq!(client.bytes(512), [0; 512]);
    };
    answered(&mut client, 0);

    let many: Vec<u8> = (1..=REQUESTS).flat_map(read).collect();
    client.stream.write_all(&many).expect("sent");
    (1..=REQUESTS).for_each(|cookie| answered(&mut client, cookie));

    handle.stop();
    serving.join().expect("no panic");
}
