//! The overhead of an engine ([`engine_bench`]): processor time per random request, with everything included.
//!
//! Runs the engine as measurements do, with histograms and intervals, and divides the processor time of the process
//! by the number of completed requests. `examples/compare_with_fio.py` compares lowtide with another program.

use crate::engine::{Control, EngineChoice, Load, run};
use crate::error::{HostError, Operation};
use crate::target::{Layout, Order, Preparation, Target, TargetSpec, TestData};
use lowtide_core::{Bytes, Interval, Latency, Nanos, Seed, Workload};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The default size of the file.
pub const DEFAULT_SIZE: Bytes = Bytes::gib(4);

/// The result of a benchmark.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct EngineBench {
    /// The engine that ran: `uring` or `sync`.
    pub engine: String,
    /// Whether the file was opened with `O_DIRECT`.
    pub direct: bool,
    /// Size of a request in bytes.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u32,
    /// Duration in seconds.
    pub seconds: f64,
    /// Completed requests.
    pub requests: u64,
    /// Failed requests.
    pub errors: u64,
    /// Completed requests per second.
    pub iops: f64,
    /// Processor time of the process per request, in user and kernel mode, in microseconds.
    pub cpu_us_per_io: f64,
    /// Processor time of the process per request in user mode, in microseconds.
    pub user_us_per_io: f64,
    /// Median latency in microseconds.
    pub latency_us_p50: f64,
    /// 99th percentile of the latency in microseconds.
    pub latency_us_p99: f64,
}

/// Random requests of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    /// Size of a request.
    pub block: Bytes,
    /// Requests in flight.
    pub depth: u32,
    /// The share of reads, from 0 to 1.
    pub read_share: f64,
}

impl Requests {
    fn workload(self) -> Workload {
        let Requests { block, depth, read_share } = self;
        Workload { read_share, depth, ..Workload::random_write(block) }
    }
}

/// Runs `requests` on a file of `size` for `seconds`.
///
/// A file that does not exist is created, filled, and kept for the next run. A file that lowtide did not make is only
/// read, whatever its size.
///
/// # Errors
/// Those of [`Target::prepare`] and of [`run`].
pub fn engine_bench(
    path: &Path,
    size: Bytes,
    requests: Requests,
    seconds: u64,
    engine: EngineChoice,
    seed: Seed,
) -> Result<EngineBench, HostError> {
    let interrupt = AtomicBool::new(false);
    let spec = TargetSpec::File(path.to_owned());
    let layout = Layout::split(size, 1, requests.block)?;
    let how = Preparation {
        spec: &spec,
        layout,
        order: Order::Sequential,
        seed,
        keep: true,
        interrupt: &interrupt,
    };
    let target = match Target::prepare(&how, &mut |_| ()) {
        Err(HostError::NotOurs { .. } | HostError::NotOpened { .. } | HostError::InUse { .. })
            if requests.read_share >= 1.0 =>
        {
            Target::existing(path, requests.block)?
        }
        prepared => prepared?,
    };
    measure(target.data(), &requests.workload(), seconds, engine, seed)
}

/// Measures the overhead without the kernel and a device: requests complete at once.
///
/// # Errors
/// [`HostError::Io`] if there is no memory.
pub fn null_bench(requests: Requests, seconds: u64, seed: Seed) -> Result<EngineBench, HostError> {
    let data = TestData::new(vec!["nothing".into()], Bytes::gib(100))?;
    measure(&data, &requests.workload(), seconds, EngineChoice::Null, seed)
}

fn measure(
    data: &TestData,
    workload: &Workload,
    seconds: u64,
    engine: EngineChoice,
    seed: Seed,
) -> Result<EngineBench, HostError> {
    let load = Load {
        data,
        workload,
        replay: None,
        seed,
        interval: Nanos::from_secs(1),
        duration: Some(Nanos::from_secs(seconds)),
        requests: None,
        engine,
        interrupt: &AtomicBool::new(false),
    };
    let path = &data.files()[0];
    let mut latency = Latency::default();
    let before = ProcessorTime::now(path)?;
    let summary = run(&load, &mut |interval: Interval| {
        latency.merge(&interval.read_latency);
        latency.merge(&interval.write_latency);
        Control::Continue
    })?;
    let after = ProcessorTime::now(path)?;
    let requests = summary.completed.max(1) as f64;
    let user_us = after.user_us - before.user_us;
    let system_us = after.system_us - before.system_us;
    Ok(EngineBench {
        engine: summary.engine.to_string(),
        direct: summary.direct,
        block_bytes: workload.block.get(),
        depth: workload.depth,
        seconds: summary.elapsed.as_secs_f64(),
        requests: summary.completed,
        errors: summary.errors,
        iops: summary.completed as f64 / summary.elapsed.as_secs_f64(),
        cpu_us_per_io: (user_us + system_us) / requests,
        user_us_per_io: user_us / requests,
        latency_us_p50: latency.percentile(50.0).get() as f64 / 1e3,
        latency_us_p99: latency.percentile(99.0).get() as f64 / 1e3,
    })
}

/// Processor time of this process since its start.
struct ProcessorTime {
    user_us: f64,
    system_us: f64,
}

impl ProcessorTime {
    #[allow(unsafe_code)]
    fn now(path: &Path) -> Result<ProcessorTime, HostError> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer refers to memory for one `rusage`, which the kernel fills.
        let answer = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        if answer != 0 {
            return Err(HostError::io(Operation::Inspect, path)(std::io::Error::last_os_error()));
        }
        // SAFETY: zeroes are a valid `rusage`, and the kernel has written one.
        let usage = unsafe { usage.assume_init() };
        let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
        Ok(ProcessorTime { user_us: us(usage.ru_utime), system_us: us(usage.ru_stime) })
    }
}
