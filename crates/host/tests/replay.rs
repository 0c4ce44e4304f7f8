//! Trace replay on files, with both engines: every request is made exactly once, at the offset and with the length in
//! the trace, and no due request is lost.
#![allow(clippy::print_stdout)]

mod common;

use common::{each_engine, load, run_all, target, workload};
use lowtide_core::trace::{Pacing, Trace, Traced};
use lowtide_core::workload::Access;
use lowtide_core::{Bytes, Request, Workload};
use lowtide_host::HostError;
use lowtide_host::engine::Load;
use std::sync::Arc;

/// Requests 100 µs apart.
fn trace(requests: Vec<Request>) -> Arc<Trace> {
    let traced = |(n, request)| Traced { at_ns: n as u64 * 100_000, request };
    Arc::new(Trace::new(requests.into_iter().enumerate().map(traced).collect()).expect("valid"))
}

#[test]
fn every_request_is_made_once_where_the_trace_says() {
    let mut requests = vec![Request::trim(1 << 20, 64 << 10), Request::flush()];
    requests.extend((0..100).map(|n| Request::write(n * 12_288, 4096)));
    requests.extend((0..50).map(|n| Request::read(n * 65_536, 32_768)));
    requests.push(Request::trim(2 << 20, 8192));
    let trace = trace(requests);
    each_engine(|engine| {
        for pacing in [Pacing::Recorded, Pacing::AsFastAsPossible { depth: 4 }] {
            let directory = tempfile::tempdir().expect("a directory");
            let target = target(directory.path(), 1, Bytes::mib(4));
            let path = target.data().files()[0].clone();
            let before = std::fs::read(&path).expect("readable");
            let workload = Workload {
                block: trace.longest(),
                depth: 4,
                ..workload(trace.read_share(), Access::Random, 1, 4)
            };
            let replay = Load {
                replay: Some((&trace, pacing)),
                requests: Some(trace.count()),
                duration: None,
                ..load(target.data(), &workload, engine, 0)
            };
            let (summary, intervals) = run_all(&replay);
            let summary = summary.expect("ran");
            assert_eq!((summary.completed, summary.errors), (trace.count(), 0), "{summary:?}");
            let sum = |count: fn(&lowtide_core::Interval) -> u64| intervals.iter().map(count).sum::<u64>();
            assert_eq!((sum(|it| it.reads), sum(|it| it.read_bytes)), (50, 50 * 32_768));
            assert_eq!((sum(|it| it.writes), sum(|it| it.write_bytes)), (100, 100 * 4096));
            if pacing == Pacing::Recorded {
                assert!(summary.elapsed >= trace.length(), "not before the last request was due");
            }
            let after = std::fs::read(&path).expect("readable");
            assert_eq!(after.len(), before.len(), "the file does not grow");
            for (page, bytes) in after.chunks(4096).enumerate() {
                let at = page * 4096;
                let written = at.is_multiple_of(12_288) && at < 100 * 12_288;
                let discarded = ((1 << 20)..(1 << 20) + (64 << 10)).contains(&at)
                    || ((2 << 20)..(2 << 20) + 8192).contains(&at);
                // With several requests in flight, writes to the first MiB and its discard may be reordered.
                match (written, discarded) {
                    (true, true) => {}
                    (true, false) => {
                        assert_eq!(bytes[..8], (at as u64).to_le_bytes(), "the stamp of page {page}")
                    }
                    (false, true) => {
                        assert!(bytes.iter().all(|byte| *byte == 0), "page {page} was discarded")
                    }
                    (false, false) => {
                        assert_eq!(bytes, &before[at..at + 4096], "page {page} was not asked for")
                    }
                }
            }
        }
    });
}

#[test]
fn a_trace_that_could_touch_other_bytes_is_refused() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let small = target(directory.path(), 1, Bytes::mib(1));
        let beyond = trace(vec![Request::write(1 << 20, 4096)]);
        let inside = trace(vec![Request::write(0, 4096)]);
        let workload = workload(0.0, Access::Random, 1, 1);
        let base = Load { duration: None, ..load(small.data(), &workload, engine, 0) };
        let refused = |replay: &Load<'_>| match run_all(replay).0 {
            Err(HostError::Invalid { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        let of = |trace| Some((trace, Pacing::Recorded));
        assert_eq!(refused(&Load { replay: of(&beyond), requests: Some(1), ..base }), "the size of the data");
        let threads = Workload { threads: 2, ..workload.clone() };
        let two = Load { replay: of(&inside), requests: Some(1), workload: &threads, ..base };
        assert_eq!(refused(&two), "the number of threads");
        let directory = tempfile::tempdir().expect("a directory");
        let several = target(directory.path(), 2, Bytes::mib(1));
        let replay = Load { replay: of(&inside), requests: Some(1), data: several.data(), ..base };
        assert_eq!(refused(&replay), "the number of files");
    });
}
