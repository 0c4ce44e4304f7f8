//! Tests the change of live drives from `NoDelay` to the model's pace, on a clock set by the test. The first requests
//! at the model's pace must not wait for earlier ones, no request in flight may be lost, and the model keeps its own
//! time.
//!
//! Sockets, the server loop and filesystems are not involved.

use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Nanos, Request, Seed, rest};
use lowtide_host::live::{Drive, Ticket};
use lowtide_live::{LiveDrive, Offer, Pace, ResolvedOffer};

const SECOND: u64 = 1_000_000_000;
const AT_ITS_PACE: Pace = Pace::RealTime { transport_ns: 0 };

fn known(device: &str, seed: u64) -> ResolvedOffer {
    Offer { scale: 16, seed: Seed::new(seed), ..Offer::of(device) }.look_up().expect("it is in the catalogue")
}

/// Submits a request, and returns the tickets answered at that instant.
fn ask(drive: &mut LiveDrive, now_ns: u64, ticket: Ticket, request: Request) -> Vec<Ticket> {
    let data = vec![0; if request.op == (Request::read(0, 0)).op { 0 } else { request.length as usize }];
    drive.submit(now_ns, ticket, request, &data);
    due(drive, now_ns)
}

fn due(drive: &mut LiveDrive, now_ns: u64) -> Vec<Ticket> {
    let mut all = Vec::new();
    while let Some((ticket, result)) = drive.due(now_ns) {
        assert_eq!(result, Ok(()));
        all.push(ticket);
    }
    all
}

/// The latency of a request that is submitted alone, in nanoseconds.
fn alone(drive: &mut LiveDrive, now_ns: u64, request: Request) -> u64 {
    let mut answered = ask(drive, now_ns, 0, request);
    let mut at_ns = now_ns;
    while answered.is_empty() {
        at_ns = drive.next_due().expect("it is in flight");
        answered = due(drive, at_ns);
    }
    at_ns - now_ns
}

fn random_write(rng: &mut Rng, blocks: u64) -> Request {
    Request::write(below(rng, blocks) * 16384, 16384)
}

#[test]
fn the_first_requests_in_time_find_a_model_at_rest() {
    for device in ["intel-x25-e-32gb", "intel-320-160gb", "sata-7k2-1tb", "raid10-8x-sas-15k-73gb"] {
        let seed = 11;
        let known = known(device, seed);
        let blocks = known.usable().get() / 16384;
        let mut rng = Seed::new(seed).part("requests", 0).stream();
        let writes: Vec<Request> = (0..4000).map(|_| random_write(&mut rng, blocks)).collect();
        let reads: Vec<Request> =
            (0..200).map(|_| Request::read(below(&mut rng, blocks) * 16384, 16384)).collect();

        let mut live = known.open(Pace::NoDelay).expect("opens");
        for (n, write) in writes.iter().enumerate() {
            assert_eq!(ask(&mut live, n as u64, 0, *write), [0], "{device}: at once");
        }
        let began_ns = 3600 * SECOND;
        live.at_its_pace(began_ns);

        // The reference: the model alone in virtual time, given the same requests and then idle until its work is
        // done.
        let (mut model, mut now) = known.model().expect("builds");
        for write in &writes {
            now = now.max(model.submit(now, write).at);
        }
        let tired = model.submit(now, &reads[0]).at.since(now);
        let (mut model, mut now) = known.model().expect("builds");
        for write in &writes {
            now = now.max(model.submit(now, write).at);
        }
        now = rest(&mut model, now, Nanos::from_secs(600));
        assert!(model.busy_until() <= now, "{device} rests");
        let rested = model.submit(now, &reads[0]).at.since(now);
        assert!(rested <= tired, "{device}: {rested} after a rest, {tired} without");

        let mut at_ns = began_ns;
        for (n, read) in reads.iter().enumerate() {
            let took_ns = alone(&mut live, at_ns, *read);
            if n == 0 {
                assert_eq!(Nanos::new(took_ns), rested, "{device}: the first read, seed {seed}");
            } else {
                let asked = now + Nanos::new(at_ns - began_ns);
                let took = model.submit(asked, read).at.since(asked);
                assert_eq!(Nanos::new(took_ns), took, "{device}: read {n}, seed {seed}");
            }
            at_ns += took_ns + 1000;
        }
        let counted = live.stat(at_ns).since_new;
        assert_eq!(counted, model.counters(), "{device}: seed {seed}");
    }
}

#[test]
fn the_models_time_is_its_own_while_it_answers_at_once() {
    let known = known("intel-320-160gb", 3);
    let mut live = known.open(AT_ITS_PACE).expect("opens");
    let model_s = |live: &LiveDrive, now_ns: u64| live.stat(now_ns).model_s;
    alone(&mut live, 5 * SECOND, Request::write(0, 4096));
    live.at_once(10 * SECOND);
    let before = model_s(&live, 10 * SECOND);
    assert!((before - 10.0).abs() < 1e-6, "in step until here: {before}");
    for n in 0..100 {
        assert_eq!(ask(&mut live, (10 + n) * SECOND, 0, Request::write(n * 4096, 4096)), [0]);
    }
    let after = model_s(&live, 110 * SECOND);
    assert!(after > before && after - before < 1.0, "100 writes take the model {} s", after - before);
    live.at_its_pace(200 * SECOND);
    alone(&mut live, 201 * SECOND, Request::write(0, 4096));
    let last = model_s(&live, 201 * SECOND);
    assert!(
        (1.0..2.0).contains(&(last - after)),
        "a second of the host is one of the model: {}",
        last - after
    );
}

#[test]
fn what_is_in_flight_is_answered_once_whatever_the_pace() {
    for device in ["intel-320-160gb", "sata-7k2-1tb", "raid10-8x-sas-15k-73gb", "flash-cache-write-back"] {
        for seed in 0..20 {
            let known = known(device, seed);
            let blocks = known.usable().get() / 16384;
            let mut rng = Seed::new(seed).part("steps", 0).stream();
            let mut live = known.open(AT_ITS_PACE).expect("opens");
            let (mut now_ns, mut flying, mut last_model_s) = (0, Vec::new(), 0.0);
            for _ in 0..600 {
                now_ns += below(&mut rng, 3_000_000);
                let mut answered = match below(&mut rng, 20) {
                    0 => {
                        live.at_once(now_ns);
                        let answered = due(&mut live, now_ns);
                        assert_eq!(answered.len(), flying.len(), "{device}, seed {seed}: all at once");
                        answered
                    }
                    1 => {
                        live.at_its_pace(now_ns);
                        due(&mut live, now_ns)
                    }
                    it => {
                        let ticket = (0..).find(|ticket| !flying.contains(ticket)).expect("there is one");
                        flying.push(ticket);
                        let offset = below(&mut rng, blocks) * 16384;
                        let request = if it < 10 {
                            Request::read(offset, 16384)
                        } else {
                            Request::write(offset, 16384)
                        };
                        ask(&mut live, now_ns, ticket, request)
                    }
                };
                for ticket in answered.drain(..) {
                    let place = flying.iter().position(|it| *it == ticket);
                    flying.swap_remove(
                        place.unwrap_or_else(|| panic!("{ticket} twice: {device}, seed {seed}")),
                    );
                }
                let model_s = live.stat(now_ns).model_s;
                assert!(
                    model_s >= last_model_s,
                    "{device}, seed {seed}: back from {last_model_s} to {model_s}"
                );
                last_model_s = model_s;
            }
            while let Some(due_ns) = live.next_due() {
                now_ns = now_ns.max(due_ns);
                due(&mut live, now_ns).iter().for_each(|ticket| flying.retain(|it| it != ticket));
            }
            assert!(flying.is_empty(), "{device}, seed {seed}: {flying:?} are never answered");
        }
    }
}
