//! Both engines on files that fail: errors are counted and reported, and no engine loops for ever.
#![allow(clippy::print_stdout)]

mod common;

use common::{SmallFilesystem, each_engine, in_memory, load, run_all, target, workload};
use lowtide_core::Bytes;
use lowtide_core::workload::Access;
use lowtide_host::engine::{Control, Load, run};
use lowtide_host::target::TestData;
use lowtide_host::{HostError, Operation};
use std::fs::File;
use std::io::ErrorKind;

#[test]
fn a_full_filesystem_is_a_clean_error() {
    let Some(small) = SmallFilesystem::mount("1m") else { return };
    each_engine(|engine| {
        let path = small.join("sparse");
        File::create(&path).and_then(|file| file.set_len(64 << 20)).expect("made");
        let data = TestData::new(vec![path.clone()], Bytes::mib(64)).expect("valid");
        let workload = workload(0.0, Access::Random, 2, 4);
        let forever = Load { duration: None, ..load(&data, &workload, engine, 0) };
        let (result, intervals) = run_all(&forever);
        let Err(HostError::TooManyErrors { failures, first }) = result else { panic!("{result:?}") };
        assert_eq!(failures, 1000);
        assert_eq!((first.operation, &first.path), (Operation::Write, &path));
        assert_eq!(first.source.kind(), ErrorKind::StorageFull, "{first}");
        assert!(first.to_string().contains(&format!("cannot write {} at byte ", path.display())), "{first}");
        assert!(intervals.iter().map(|i| i.writes).sum::<u64>() > 0, "what was measured before is delivered");
        assert!(intervals.iter().map(|i| i.errors).sum::<u64>() >= 1000);
        std::fs::remove_file(path).expect("removed");
    });
}

#[test]
fn some_errors_are_counted_and_the_first_is_named() {
    each_engine(|engine| {
        let directory = in_memory();
        let target = target(directory.path(), 2, Bytes::mib(1));
        let paths = target.data().files().to_vec();
        let workload = workload(1.0, Access::Random, 1, 4);
        let mut intervals = Vec::new();
        let summary = run(&load(target.data(), &workload, engine, 500), &mut |interval| {
            // The second half of the data is truncated during the reads.
            File::options().write(true).open(&paths[1]).and_then(|file| file.set_len(0)).expect("cut");
            intervals.push(interval);
            Control::Continue
        })
        .expect("half of the requests still succeed");
        assert!(summary.errors > 0);
        assert_eq!(summary.errors, intervals.iter().map(|i| i.errors).sum::<u64>());
        assert_eq!(summary.completed, intervals.iter().map(|i| i.reads).sum::<u64>());
        let first = summary.first_failure.expect("named");
        assert_eq!((first.operation, &first.path), (Operation::Read, &paths[1]));
        assert!(first.offset < 1 << 20, "the offset is one in the file");
    });
}

#[test]
fn a_missing_or_short_file_is_refused_before_anything_runs() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("gone");
        let data = TestData::new(vec![path.clone()], Bytes::mib(1)).expect("valid");
        let workload = workload(1.0, Access::Random, 1, 1);
        let (result, _) = run_all(&load(&data, &workload, engine, 100));
        assert!(matches!(result, Err(HostError::Io { operation: Operation::Open, .. })), "{result:?}");
        std::fs::write(&path, vec![0; 8192]).expect("written");
        let (result, _) = run_all(&load(&data, &workload, engine, 100));
        let text = result.unwrap_err().to_string();
        assert!(text.contains("8KiB") && text.contains("at least 1MiB are needed"), "{text}");
    });
}
