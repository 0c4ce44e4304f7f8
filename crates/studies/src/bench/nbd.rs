//! Benchmarks the NBD server: its cost per request, and the accuracy of emulated latencies.
//!
//! Server and client are threads of this process, connected by a Unix socket like a client on the same machine. Reads
//! are random, 4 KiB each, from data in memory. docs/performance.md covers other servers.

use lowtide_core::rng::below;
use lowtide_core::{Bytes, Latency, Nanos, Seed, VirtualTime};
use lowtide_device::DeviceSpec;
use lowtide_device::fault::Fault;
use lowtide_device::power::Cache;
use lowtide_device::volume::VolumeSpec;
use lowtide_host::live::contents::Memory;
use lowtide_host::live::{Clock, Contents, Handle, Server, transport_ns};
use lowtide_host::nbd::wire::command;
use lowtide_host::nbd::{Agreed, Export, NbdClient, Transport};
use lowtide_live::{LiveDrive, Pace, Parts};
use std::io;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SIZE: Bytes = Bytes::mib(256);
const BLOCK: u32 = 4096;

/// Latency of the emulated device.
const EMULATED: Nanos = Nanos::from_micros(80);

/// The results.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NbdBench {
    /// Reads per second at depth 1, without emulated latency.
    pub iops_depth_1: f64,
    /// Reads per second at depth 32, without emulated latency.
    pub iops_depth_32: f64,
    /// Processor time of the server's thread per read at depth 32, in microseconds.
    pub server_cpu_us_per_io: f64,
    /// Median latency at the client for an emulated device of 80 us at depth 1, in microseconds.
    pub emulated_80us_p50_us: f64,
    /// 99th percentile of that latency, in microseconds.
    pub emulated_80us_p99_us: f64,
    /// Time for the transport of request and reply on this machine, in microseconds. The server subtracts it.
    pub transport_us: f64,
    /// Time by which the server wakes up before a deadline so as not to be late, in microseconds.
    pub awake_early_us: f64,
}

/// A server of one drive, in a thread.
struct Running {
    handle: Handle<LiveDrive>,
    thread: JoinHandle<Vec<LiveDrive>>,
}

impl Running {
    fn new(clock: Clock, pace: Pace, seed: Seed) -> io::Result<Running> {
        let spec = VolumeSpec {
            capacity: SIZE,
            iops: 1_000_000_000,
            burst: None,
            throughput: None,
            io_size: Bytes::mib(1),
            latency: EMULATED,
            latency_spread: Nanos::ZERO,
        };
        let export = Export {
            name: "bench".to_owned(),
            description: String::new(),
            size: SIZE.get(),
            minimum_block: 512,
            preferred_block: BLOCK,
            read_only: false,
            rotational: false,
        };
        let mut contents = Contents::Memory(Memory::new(SIZE.get())?);
        for offset in (0..SIZE.get()).step_by(1 << 20) {
            contents.write(offset, &[1; 1 << 20])?;
        }
        let model = DeviceSpec::Volume(spec).build(seed).expect("the description is valid");
        let model = Fault::new(model, seed);
        let began = VirtualTime::START;
        let drive = LiveDrive::new(Parts {
            export,
            model,
            began,
            cache: Cache::Protected,
            block: 512,
            contents,
            pace,
            seed,
            marker: None,
        });
        let (server, handle) = Server::new(vec![drive], clock)?;
        Ok(Running { handle, thread: std::thread::Builder::new().spawn(move || server.run())? })
    }

    fn client(&self) -> io::Result<NbdClient<UnixStream>> {
        let (ours, theirs) = UnixStream::pair()?;
        let agreed = Agreed { export: 0, structured: false, base_allocation: false, block_sizes: true };
        self.handle.serve(Transport::socket(theirs.into(), "the bench's client")?, agreed);
        Ok(NbdClient::begun(ours, SIZE.get()))
    }

    fn cpu(&self) -> Nanos {
        self.handle.call(|_, _| lowtide_host::cpu::thread_time()).unwrap_or(Nanos::ZERO)
    }

    fn end(self) {
        self.handle.stop();
        let _ = self.thread.join();
    }
}

/// Reads at random for `span`, `depth` at a time. Returns the reads, and the reads per second.
fn read(
    client: &mut NbdClient<UnixStream>,
    depth: usize,
    span: Duration,
    seed: Seed,
) -> io::Result<(u64, f64)> {
    let mut rng = seed.part("reads", depth as u64).stream();
    let mut offset = move || below(&mut rng, SIZE.get() / u64::from(BLOCK)) * u64::from(BLOCK);
    let mut data = [0; BLOCK as usize];
    let (begin, mut done, mut flying) = (Instant::now(), 0u64, depth);
    client.send_reads((0..depth).map(|_| offset()), BLOCK)?;
    while flying > 0 {
        let mut answered = 0;
        while answered == 0 || client.has_more() && answered < flying {
            client.receive(&mut data)?;
            answered += 1;
        }
        (done, flying) = (done + answered as u64, flying - answered);
        if begin.elapsed() < span {
            client.send_reads((0..answered).map(|_| offset()), BLOCK)?;
            flying += answered;
        }
    }
    Ok((done, done as f64 / begin.elapsed().as_secs_f64()))
}

/// Measures the server, for `seconds` per figure.
///
/// # Errors
/// The I/O error if a socket, a thread or memory cannot be created or used.
pub fn nbd(seconds: f64, seed: Seed) -> io::Result<NbdBench> {
    let clock = Clock::new();
    let span = Duration::from_secs_f64(seconds);
    let server = Running::new(clock, Pace::NoDelay, seed)?;
    let mut client = server.client()?;
    let (_, iops_depth_1) = read(&mut client, 1, span, seed)?;
    let before = server.cpu();
    let (reads, iops_depth_32) = read(&mut client, 32, span, seed)?;
    let used_ns = server.cpu().get().saturating_sub(before.get());
    server.end();
    let transport_ns = transport_ns(clock)?;
    let server = Running::new(clock, Pace::RealTime { transport_ns }, seed)?;
    let mut client = server.client()?;
    let (begin, mut latency, mut data) = (Instant::now(), Latency::default(), [0; BLOCK as usize]);
    while begin.elapsed() < span {
        let asked = Instant::now();
        client.ask(command::READ, 0, 0, BLOCK, &mut data)?;
        latency.record(Nanos::new(asked.elapsed().as_nanos() as u64));
    }
    server.end();
    let us = |ns: u64| ns as f64 / 1e3;
    Ok(NbdBench {
        iops_depth_1,
        iops_depth_32,
        server_cpu_us_per_io: us(used_ns) / reads as f64,
        emulated_80us_p50_us: us(latency.percentile(50.0).get()),
        emulated_80us_p99_us: us(latency.percentile(99.0).get()),
        transport_us: us(transport_ns),
        awake_early_us: us(clock.early_ns()),
    })
}
