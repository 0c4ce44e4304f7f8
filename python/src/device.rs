//! A simulated device that Python code drives directly: it takes arrays of requests and returns completion times.
//!
//! All requests are checked before the first is submitted. The Python class `lowtide.Device` adds named operations, a
//! common length for all requests, and filling.

use crate::errors::{Raised, bad_input, detached};
use crate::plan::source;
use lowtide_core::batch::{Answers, Batch, Each, Pace, Requests};
use lowtide_core::{BlockDevice, Counters, Nanos, Op, Seed, VirtualTime};
use lowtide_device::AnyDevice;
use lowtide_studies::ask;
use lowtide_studies::failure::Failure;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// Number of requests submitted between two checks for signals.
const STEP: usize = 1 << 16;

/// Latest accepted submission time in nanoseconds. The limit leaves room for the device's service times.
const LATEST: u64 = 1 << 62;

/// A simulated device in its initial state.
#[pyclass(frozen, module = "lowtide._native")]
pub struct Device {
    /// The device's name.
    #[pyo3(get)]
    name: String,
    /// The device's title: one line for people.
    #[pyo3(get)]
    title: String,
    /// The scale: the capacity is divided by this number.
    #[pyo3(get)]
    scale: u64,
    /// The seed of every random choice.
    #[pyo3(get)]
    seed: u64,
    /// Bytes that the host can address.
    #[pyo3(get)]
    capacity: u64,
    /// Logical block size in bytes. Offsets and lengths must be multiples of it.
    #[pyo3(get)]
    logical_block: u64,
    /// The NAND capacity in bytes; `None` if the device does not collect garbage.
    #[pyo3(get)]
    raw_capacity: Option<u64>,
    state: Mutex<State>,
}

struct State {
    device: AnyDevice,
    now: VirtualTime,
}

/// Completion times and submission times, in nanoseconds.
type Instants<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

impl Device {
    fn state(&self) -> Result<MutexGuard<'_, State>, Raised> {
        self.state
            .lock()
            .map_err(|_| Raised::Panic("this device met a bug before, and is not to be used".to_owned()))
    }

    /// Submits requests. The lists of operations and lengths have one element for all requests or one element per
    /// request. Returns completion times and submission times.
    fn batch(
        &self,
        (ops, offsets, lengths): (&[Op], &[u64], &[u64]),
        at: Option<&[u64]>,
        depth: usize,
    ) -> Result<(Vec<u64>, Vec<u64>), Raised> {
        let count = offsets.len();
        let requests = Requests { ops: each(ops), offsets, lengths: each(lengths) };
        let mut state = self.state()?;
        let State { device, now } = &mut *state;
        requests
            .check(device.capacity(), device.logical_block())
            .map_err(|(index, error)| bad_input(format!("request {index}: {error}"), self.accepted()))?;
        let pace = match at {
            None => Pace::Closed { depth },
            Some(at_ns) => {
                let first = at_ns.first().copied().unwrap_or(LATEST);
                if first < now.as_nanos()
                    || at_ns.last().is_some_and(|last| *last > LATEST)
                    || !at_ns.is_sorted()
                {
                    let message = "instants of submission that do not begin with `now`, or fall";
                    let accepted = format!("nanoseconds from {} on, in order", now.as_nanos());
                    return Err(bad_input(message, accepted));
                }
                Pace::Open { at_ns }
            }
        };
        let (mut begun_ns, mut done_ns) = (vec![0; count], vec![0; count]);
        let mut answers = Answers { begun_ns: &mut begun_ns, done_ns: &mut done_ns };
        let mut batch = Batch::new(requests, pace, *now);
        let mut signal = Ok(());
        while signal.is_ok() && batch.go_on(device, STEP, &mut answers) {
            signal = Python::attach(|py| py.check_signals());
        }
        let (end, ended) = batch.finish(device, &mut answers);
        *now = end;
        signal.map_err(Raised::Python)?;
        ended.map_err(|(index, error)| Failure::failed(format!("request {index}: {error}")))?;
        Ok((done_ns, begun_ns))
    }

    fn accepted(&self) -> String {
        let (block, capacity) = (self.logical_block, self.capacity);
        format!("offsets and lengths that are multiples of {block} bytes, up to byte {capacity}")
    }
}

fn each<T: Copy>(values: &[T]) -> Each<'_, T> {
    match values {
        [value] => Each::Same(*value),
        values => Each::List(values),
    }
}

/// Returns the operation for a code. `lowtide.Op` names the codes.
fn op(code: &u8) -> Result<Op, Raised> {
    Ok(match code {
        0 => Op::Read,
        1 => Op::Write { fua: false },
        2 => Op::Write { fua: true },
        3 => Op::Trim,
        4 => Op::WriteZeroes,
        5 => Op::Flush,
        code => return Err(bad_input(format!("there is no operation {code}"), "a member of `lowtide.Op`")),
    })
}

#[pymethods]
impl Device {
    /// Creates the device with the given name or path, or the device described by `text`.
    #[new]
    #[pyo3(signature = (name, text=None, *, scale=1, seed=1))]
    fn new(py: Python<'_>, name: String, text: Option<String>, scale: u64, seed: u64) -> PyResult<Self> {
        detached(py, || {
            let found = ask::device(&source(name, text), scale)?;
            let device = found.spec.build(Seed::new(seed)).expect("the description was checked");
            Ok(Device {
                name: found.name,
                title: found.title,
                scale,
                seed,
                capacity: device.capacity().get(),
                logical_block: device.logical_block().get(),
                raw_capacity: device.raw_capacity().map(|raw| raw.get()),
                state: Mutex::new(State { device, now: VirtualTime::START }),
            })
        })
    }

    /// The device's time in nanoseconds.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        detached(py, || Ok(self.state()?.now.as_nanos()))
    }

    /// The device's counters, by name.
    fn counters(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        let counted: Counters = detached(py, || Ok(self.state()?.device.counters()))?;
        let json = serde_json::to_value(counted).expect("counters are plain numbers");
        let all = json.as_object().expect("a struct serialises to an object");
        Ok(all.iter().map(|(name, count)| (name.clone(), count.as_u64().unwrap_or_default())).collect())
    }

    /// Erase cycles of each block. Empty if the device has no NAND.
    fn erase_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let counts = detached(py, || Ok(self.state()?.device.erase_counts()))?;
        Ok(PyArray1::from_vec(py, counts))
    }

    /// Submits requests: with `at`, each request at its own time; otherwise with `depth` requests in flight. Returns
    /// completion times and submission times, in the order of the requests.
    #[pyo3(signature = (ops, offsets, lengths, *, at=None, depth=1))]
    fn submit<'py>(
        &self,
        py: Python<'py>,
        ops: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, u64>,
        lengths: PyReadonlyArray1<'py, u64>,
        at: Option<PyReadonlyArray1<'py, u64>>,
        depth: usize,
    ) -> PyResult<Instants<'py>> {
        // Copy the arrays, because other Python threads may write to them while the GIL is released.
        let (ops, offsets, lengths) = (ops.to_vec()?, offsets.to_vec()?, lengths.to_vec()?);
        let at = at.map(|at| at.to_vec()).transpose()?;
        let (done, begun) = detached(py, || {
            let ops = ops.iter().map(op).collect::<Result<Vec<Op>, _>>()?;
            let count = offsets.len();
            let fits = |given: usize| given == 1 || given == count;
            if !fits(ops.len()) || !fits(lengths.len()) || at.as_ref().is_some_and(|at| at.len() != count) {
                let told = format!("{count} offsets, {} operations, {} lengths", ops.len(), lengths.len());
                return Err(bad_input(told, "one for all requests, or one for each"));
            }
            if depth == 0 {
                return Err(bad_input("no requests in flight", "a depth from 1"));
            }
            self.batch((&ops, &offsets, &lengths), at.as_deref(), depth)
        })?;
        Ok((PyArray1::from_vec(py, done), PyArray1::from_vec(py, begun)))
    }

    /// Keeps the device idle for `span_ns` nanoseconds.
    fn idle(&self, py: Python<'_>, span_ns: u64) -> PyResult<()> {
        detached(py, || {
            let mut state = self.state()?;
            let State { device, now } = &mut *state;
            let until = now.as_nanos().saturating_add(span_ns);
            if until > LATEST {
                return Err(bad_input("so much idle time has no end", "at most a hundred years"));
            }
            *now = *now + Nanos::new(span_ns);
            device.idle_until(*now);
            Ok(())
        })
    }

    /// Erases all data. The wear remains.
    fn secure_erase(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.state()?.device.secure_erase();
            Ok(())
        })
    }
}
