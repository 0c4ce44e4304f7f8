//! Translates the options of a fio job into the keys of `[workload]`.
//!
//! Options without a corresponding key are kept as facts, as fio wrote them.

use super::run::Run;
use lowtide_core::Bytes;

/// Options by name: global options first, then the job's own.
pub(super) type Options = Vec<(String, String)>;

/// Sets the fields of `run` from the options. `alone`: the job has a single entry in the output, so its
/// `numjobs` clones report together (fio does not print `group_reporting`).
pub(super) fn apply(options: &Options, alone: bool, run: &mut Run) {
    let get = |names: &[&str]| {
        let found = options.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_str())
    };
    let jobs = get(&["numjobs"]).and_then(|text| text.parse().ok()).unwrap_or(1).clamp(1, 65_536);
    run.threads = if alone { jobs } else { 1 };
    let pattern = get(&["rw", "readwrite"]).map_or("read", |text| text.split(':').next().unwrap_or(text));
    run.settings.push(("pattern", in_our_words(pattern).to_owned()));
    let block = get(&["bs", "blocksize"]).unwrap_or("4k");
    run.settings.push(("block", size(block).map_or_else(|| block.to_owned(), |size| size.to_string())));
    run.settings.push(("depth", get(&["iodepth"]).unwrap_or("1").to_owned()));
    run.settings.push(("threads", run.threads.to_string()));
    if pattern.ends_with("rw") || pattern == "readwrite" {
        let read = get(&["rwmixread"]).and_then(|text| text.parse::<f64>().ok());
        let write = get(&["rwmixwrite"]).and_then(|text| text.parse::<f64>().ok());
        let share = read.or(write.map(|write| 100.0 - write)).unwrap_or(50.0);
        run.settings.push(("mix", (share / 100.0).to_string()));
    }
    if let Some(rate) = get(&["rate_iops"]) {
        // fio's rate is per job, lowtide's is the total.
        let whole = rate.parse::<u64>().ok().and_then(|rate| rate.checked_mul(u64::from(run.threads)));
        run.settings.push(("rate", whole.map_or_else(|| rate.to_owned(), |rate| rate.to_string())));
    }
    let data = get(&["size", "filesize"]).and_then(size);
    let file = get(&["filename"]);
    // Jobs with a `filename` share that file; other jobs have a file each.
    let files = if file.is_some() { 1 } else { u64::from(run.threads) };
    run.data = data.and_then(|data| data.get().checked_mul(files)).map(Bytes::new);
    if let Some(data) = run.data {
        run.settings.push(("file_size", data.to_string()));
    }
    run.target = match (file, get(&["directory"])) {
        (Some(file), _) => Some(format!("file:{file}")),
        (None, Some(directory)) => Some(format!("dir:{directory}")),
        (None, None) => None,
    };
}

fn in_our_words(pattern: &str) -> &str {
    match pattern {
        "read" => "sequential-read",
        "write" => "sequential-write",
        "rw" | "readwrite" => "sequential-mixed",
        "randread" => "random-read",
        "randwrite" => "random-write",
        "randrw" => "random-mixed",
        other => other,
    }
}

/// Parses a size in fio's syntax: `4k`, `16m`, `1Gi`, `4096`. Units are powers of 1024, as is fio's default. `None`
/// for ranges, percentages and invalid sizes.
fn size(text: &str) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|size| *size > 0).map(Bytes::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        for (text, bytes) in [("4k", 4096), ("4KiB", 4096), ("16m", 16 << 20), ("512", 512), ("1G", 1 << 30)]
        {
            assert_eq!(size(text), Some(Bytes::new(bytes)), "{text}");
        }
        for text in ["", "k", "4k-8k", "4k,8k", "50%", "-4k", "99999999999999999999", "99999999999g", "0"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn jobs_that_report_together_are_threads_of_one() {
        let options = |list: &[(&str, &str)]| -> Options {
            list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let mut run = Run::default();
        let list =
            [("numjobs", "4"), ("rw", "randrw"), ("rwmixread", "70"), ("size", "1g"), ("rate_iops", "50")];
        apply(&options(&list), true, &mut run);
        assert_eq!((run.threads, run.data), (4, Some(Bytes::gib(4))));
        assert!(run.settings.contains(&("pattern", "random-mixed".to_owned())), "{:?}", run.settings);
        assert!(run.settings.contains(&("mix", "0.7".to_owned())), "{:?}", run.settings);
        assert!(run.settings.contains(&("rate", "200".to_owned())), "{:?}", run.settings);
        let mut apart = Run::default();
        apply(&options(&list), false, &mut apart);
        assert_eq!((apart.threads, apart.data), (1, Some(Bytes::gib(1))));
    }
}
