//! Tests that run on both engines, with files that work.
#![allow(clippy::print_stdout)]

mod common;

use common::{SEED, each_engine, load, run_all, target, workload};
use lowtide_core::workload::{Access, BlockShare, Blocks, Distribution, Sync, Zone};
use lowtide_core::{Bytes, Nanos, Workload};
use lowtide_host::engine::{Control, Ended, Load, run};
use lowtide_host::target::TestData;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn intervals_follow_each_other_and_sum_to_the_total() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 3, Bytes::mib(2));
        let workload = workload(0.7, Access::Random, 2, 8);
        let (summary, intervals) = run_all(&load(target.data(), &workload, engine, 450));
        let summary = summary.expect("ran");
        assert_eq!((summary.ended, summary.errors, summary.stuck_threads), (Ended::Duration, 0, 0));
        assert_eq!(summary.elapsed, Nanos::from_millis(450));
        let ends: Vec<u64> = intervals.iter().map(|interval| interval.end_ns / 1_000_000).collect();
        assert_eq!(ends, [100, 200, 300, 400, 450]);
        assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        let sum = |of: fn(&lowtide_core::Interval) -> u64| intervals.iter().map(of).sum::<u64>();
        assert_eq!(sum(|i| i.reads + i.writes), summary.completed);
        assert_eq!(sum(|i| i.read_latency.count()), sum(|i| i.reads));
        assert_eq!(sum(|i| i.write_latency.count()), sum(|i| i.writes));
        assert_eq!(sum(|i| i.read_bytes + i.write_bytes), summary.completed * 4096);
        let share = sum(|i| i.reads) as f64 / summary.completed as f64;
        assert!((share - 0.7).abs() < 0.1, "{share} of {} were reads", summary.completed);
    });
}

#[test]
fn writes_land_where_they_should_and_nowhere_else() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        // The data is the first 512 KiB of 1 MiB files. The second half must not change.
        let (used, whole) = (512 << 10, 1 << 20);
        let paths: Vec<_> = (0..3).map(|n| directory.path().join(n.to_string())).collect();
        paths.iter().for_each(|path| std::fs::write(path, vec![0xee; whole]).expect("written"));
        let data = TestData::new(paths.clone(), Bytes::new(used as u64)).expect("valid");
        for access in [Access::Sequential, Access::Random] {
            let (summary, _) = run_all(&load(&data, &workload(0.0, access, 2, 4), engine, 400));
            let summary = summary.expect("ran");
            assert!(summary.completed > 1000, "{} writes cover 384 blocks", summary.completed);
        }
        for (number, path) in paths.iter().enumerate() {
            let bytes = std::fs::read(path).expect("read");
            assert_eq!(bytes.len(), whole, "the size stays");
            assert!(bytes[used..].iter().all(|byte| *byte == 0xee), "bytes behind the data changed");
            for (page, bytes) in bytes[..used].chunks(4096).enumerate() {
                let stamped = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
                assert_eq!(
                    stamped,
                    (number * used + page * 4096) as u64,
                    "file {number}, page {page}, {SEED:?}"
                );
                assert!(bytes[16..].chunks(16).any(|part| part != [0xee; 16]), "random bytes were written");
            }
        }
    });
}

/// Requests of 512 bytes, 1.5 KiB, 4 KiB and 64 KiB, half of them to the first tenth of the data.
fn composite(read_share: f64, depth: u32) -> Workload {
    let blocks = [(512, 0.25), (1536, 0.125), (4096, 0.5), (65_536, 0.125)];
    let blocks = blocks.map(|(size, share)| BlockShare { size: Bytes::new(size), share });
    Workload {
        blocks: Blocks::new(blocks.to_vec()),
        block: Bytes::kib(64),
        distribution: Distribution::hot_cold(Zone { data: 0.1, access: 0.5 }),
        ..workload(read_share, Access::Random, 2, depth)
    }
}

#[test]
fn requests_of_several_sizes_land_where_they_should_and_nowhere_else() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        // Not a multiple of 1.5 KiB or 64 KiB, so that the last position of these sizes ends before the data does.
        let (used, whole) = ((1 << 20) + 4096, 2 << 20);
        let path = directory.path().join("data");
        for (sync, depth) in [(Sync::None, 4), (Sync::Fua, 2), (Sync::Flush, 2)] {
            std::fs::write(&path, vec![0xee; whole]).expect("written");
            let data = TestData::new(vec![path.clone()], Bytes::new(used as u64)).expect("valid");
            let workload = Workload { sync, ..composite(0.0, depth) };
            let (summary, intervals) = run_all(&load(&data, &workload, engine, 400));
            let summary = summary.expect("ran");
            assert_eq!((summary.errors, summary.stuck_threads), (0, 0), "{sync:?}");
            let written: u64 = intervals.iter().map(|interval| interval.write_bytes).sum();
            let mean = written as f64 / summary.completed as f64;
            // The mean is 128 + 192 + 2048 + 8192 bytes. Over 2000 requests, its standard deviation is 4 %.
            if summary.completed > 2000 {
                assert!((mean / 10_560.0 - 1.0).abs() < 0.25, "{mean} bytes a request, {SEED:?}");
            }
            let bytes = std::fs::read(&path).expect("read");
            assert_eq!(bytes.len(), whole, "the size stays");
            assert!(bytes[used..].iter().all(|byte| *byte == 0xee), "bytes behind the data changed");
            // Each request, and each page of it, begins with its own offset in the data.
            let mut stamps = 0;
            for (sector, bytes) in bytes[..used].chunks(512).enumerate() {
                let stamped = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
                let number = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
                // A stamp's number consists of a worker and a count. Random bytes do not look like one.
                if number >> 40 < 16 && number & 0xff_ffff_ffff < 1 << 24 {
                    assert_eq!(stamped, sector as u64 * 512, "{sync:?}, {SEED:?}");
                    stamps += 1;
                }
            }
            assert!(stamps > 100, "{stamps} stamps of requests, {sync:?}, {SEED:?}");
        }
    });
}

#[test]
fn several_sizes_are_read_and_counted_by_their_bytes() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 1, Bytes::mib(4));
        let (summary, intervals) = run_all(&load(target.data(), &composite(0.4, 4), engine, 300));
        assert_eq!(summary.expect("ran").errors, 0);
        let sum = |of: fn(&lowtide_core::Interval) -> u64| intervals.iter().map(of).sum::<u64>();
        for (requests, bytes) in
            [(sum(|i| i.reads), sum(|i| i.read_bytes)), (sum(|i| i.writes), sum(|i| i.write_bytes))]
        {
            assert!(requests > 0 && bytes % 512 == 0 && bytes >= requests * 512, "{requests}, {bytes}");
            assert!(bytes <= requests * 65_536, "{requests}, {bytes}");
        }
    });
}

#[test]
fn several_sizes_do_not_cross_from_one_file_to_the_next() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path(), 2, Bytes::mib(1));
    let workload = composite(0.5, 1);
    let (summary, _) =
        run_all(&load(target.data(), &workload, lowtide_host::engine::EngineChoice::Sync, 100));
    let text = summary.expect_err("1 MiB is no multiple of 1.5 KiB").to_string();
    assert!(text.contains("also of 1536B; or one file"), "{text}");
}

#[test]
fn a_workload_that_reads_writes_nothing() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("precious");
        let contents: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &contents).expect("written");
        let before = std::fs::metadata(&path).expect("there");
        let target = lowtide_host::target::Target::existing(&path, Bytes::kib(4)).expect("a file");
        let workload = workload(1.0, Access::Random, 2, 4);
        let mut writable = 0;
        let summary = run(&load(target.data(), &workload, engine, 300), &mut |_| {
            writable += descriptors_open_for_writing(&path);
            Control::Continue
        });
        assert!(summary.expect("ran").completed > 0);
        assert_eq!(writable, 0, "the file was open for writing");
        target.remove().expect("removes nothing");
        let after = std::fs::metadata(&path).expect("still there");
        assert_eq!((before.mtime_nsec(), before.len()), (after.mtime_nsec(), after.len()));
        assert!(std::fs::read(&path).expect("read") == contents, "the contents changed");
    });
}

/// Number of this process's descriptors for `path` that allow writing.
fn descriptors_open_for_writing(path: &std::path::Path) -> usize {
    let listed = std::fs::read_dir("/proc/self/fd").expect("procfs");
    listed
        .flatten()
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|link| link == path))
        .filter(|entry| {
            let info = format!("/proc/self/fdinfo/{}", entry.file_name().to_string_lossy());
            let text = std::fs::read_to_string(info).unwrap_or_default();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("0");
            i64::from_str_radix(flags.trim(), 8).expect("octal") & 3 != 0
        })
        .count()
}

#[test]
fn stop_ends_it_and_keeps_what_was_measured() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 1, Bytes::mib(4));
        let workload = workload(1.0, Access::Random, 2, 4);
        let forever = Load { duration: None, ..load(target.data(), &workload, engine, 0) };
        let mut seen = Vec::new();
        let begun = Instant::now();
        let summary = run(&forever, &mut |interval| {
            seen.push(interval);
            if seen.len() >= 2 { Control::Stop } else { Control::Continue }
        })
        .expect("ran");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(summary.ended, Ended::Stopped);
        assert_eq!(seen.iter().map(|i| i.reads).sum::<u64>(), summary.completed);
        assert_eq!(seen.last().expect("some").end_ns, summary.elapsed.get());
    });
}

#[test]
fn it_ends_after_the_requests_that_were_asked_for() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 1, Bytes::mib(4));
        let workload = workload(1.0, Access::Random, 2, 4);
        let base = load(target.data(), &workload, engine, 0);
        let counted = Load { duration: None, requests: Some(5000), ..base };
        let (summary, intervals) = run_all(&counted);
        let summary = summary.expect("ran");
        assert_eq!(summary.ended, Ended::Duration);
        assert!(summary.completed >= 5000, "{}", summary.completed);
        assert_eq!(intervals.iter().map(|interval| interval.reads).sum::<u64>(), summary.completed);
    });
}

#[test]
fn the_interrupt_flag_ends_it_and_delivers_the_part_interval() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 1, Bytes::mib(4));
        let workload = workload(1.0, Access::Random, 2, 4);
        let interrupt = AtomicBool::new(false);
        let base = load(target.data(), &workload, engine, 0);
        let long = Load { duration: None, interval: Nanos::from_secs(3600), interrupt: &interrupt, ..base };
        let (summary, intervals) = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(150));
                interrupt.store(true, Ordering::Relaxed);
            });
            run_all(&long)
        });
        let summary = summary.expect("ran");
        assert_eq!(summary.ended, Ended::Interrupted);
        assert_eq!(intervals.len(), 1, "an hour has not passed, so there is one part interval");
        assert!(intervals[0].reads > 0);
        assert_eq!(intervals[0].reads, summary.completed);
        assert_eq!(intervals[0].end_ns, summary.elapsed.get());
    });
}

#[test]
fn tmpfs_is_not_called_direct() {
    let Some(small) = common::SmallFilesystem::mount("8m") else { return };
    each_engine(|engine| {
        let path = small.join("data");
        let file = std::fs::File::create(&path).expect("made");
        file.write_all_at(&vec![1; 1 << 20], 0).expect("written");
        let data = TestData::new(vec![path], Bytes::mib(1)).expect("valid");
        let (summary, _) = run_all(&load(&data, &workload(0.5, Access::Random, 1, 4), engine, 100));
        let summary = summary.expect("ran");
        assert!(!summary.direct);
        assert!(summary.completed > 0);
    });
}

#[test]
fn loads_that_cannot_run_are_refused_by_name() {
    each_engine(|engine| {
        let directory = tempfile::tempdir().expect("a directory");
        let target = target(directory.path(), 1, Bytes::mib(1));
        let good = workload(1.0, Access::Random, 1, 1);
        let refusal = |workload: lowtide_core::Workload| {
            let (result, intervals) = run_all(&load(target.data(), &workload, engine, 100));
            assert!(intervals.is_empty());
            result.unwrap_err().to_string()
        };
        let text = refusal(lowtide_core::Workload { depth: 0, ..good.clone() });
        assert_eq!(text, "the depth is 0: at least 1 is needed");
        let text = refusal(lowtide_core::Workload { block: Bytes::kib(768), ..good.clone() });
        assert!(text.contains("multiple of the block of 768KiB"), "{text}");
        let text = refusal(lowtide_core::Workload { depth: 1 << 20, ..good });
        assert!(text.contains("at most"), "{text}");
    });
}
