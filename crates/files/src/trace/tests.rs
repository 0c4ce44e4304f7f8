//! Tests of trace formats and of rejected files. Real iologs are in `crates/cli/tests/import.rs`.

use super::*;
use lowtide_core::{Bytes, Nanos, Op};
use proptest::prelude::*;

fn read(text: &str) -> Result<Trace, TraceFileError> {
    parse(text.as_bytes())
}

fn requests(text: &str) -> Vec<(u64, Op, u64, u64)> {
    let trace = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let all = trace.requests().iter();
    all.map(|it| (it.at_ns, it.request.op, it.request.offset, it.request.length)).collect()
}

const WRITE: Op = Op::Write { fua: false };

#[test]
fn version_3_has_times_and_files_lie_after_one_another() {
    let text = "fio version 3 iolog\n17 /a add\n18 /b add\n119 /a open\n127 /a read 8192 4096\n314 /b write 0 512\n\
                314 /b sync 815104 0\n400 /a trim 0 4096\n500 /b close\n";
    let found = requests(text);
    let expected = [
        (0, Op::Read, 8192, 4096),
        (187_000, WRITE, 12_288, 512),
        (187_000, Op::Flush, 0, 0),
        (273_000, Op::Trim, 0, 4096),
    ];
    assert_eq!(found, expected);
}

#[test]
fn version_2_has_waits_that_add_up() {
    let text = "fio version 2 iolog\n/a add\n/a open\n/a wait 500 0\n/a read 0 4096\n/a write 4096 4096\n\
                /a wait 1000 0\n/a datasync 0 0\n/a wait 250 0\n/a read 512 512\n/a close\n";
    let times: Vec<u64> = requests(text).iter().map(|it| it.0).collect();
    assert_eq!(times, [0, 0, 1_000_000, 1_250_000]);
}

/// Written by hand after blkparse's manual: queue, get, insert, issue, complete; a flush; a write with forced unit
/// access; a discard; the summary.
const BLKPARSE: &str = include_str!("sample.blkparse");

#[test]
fn blkparse_counts_each_request_once_where_it_was_queued() {
    let found = requests(BLKPARSE);
    let expected = [
        (0, WRITE, 223_490 * 512, 8 * 512),
        (3_211, Op::Read, 1_000_000 * 512, 16 * 512),
        (9_507_758, Op::Flush, 0, 0),
        (9_600_000, Op::Flush, 0, 0),
        (9_600_000, Op::Write { fua: true }, 300_000 * 512, 8 * 512),
        (1_000_000_345, Op::Trim, 0, 2048 * 512),
    ];
    assert_eq!(found, expected);
    let issued: String = BLKPARSE
        .lines()
        .filter(|line| !line.contains(" Q "))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(requests(&issued).len(), 2, "what was issued stands in for what was queued");
}

#[test]
fn what_is_no_trace_is_refused_at_its_line() {
    let head = "fio version 3 iolog\n";
    let two = "8,0 1 1 0.000000001 9 Q R 0 + 8 [x]\n8,16 1 2 0.000000002 9 Q R 0 + 8 [x]\n";
    for (text, expected) in [
        (String::new(), "it is empty"),
        (head.to_owned(), "it holds no request"),
        ("hello\n".to_owned(), "line 1: nothing says that it is a trace"),
        ("fio version 1 iolog\n".to_owned(), "line 1: version 1 of the iolog: 2 and 3 are read"),
        (format!("{head}5 /a read 0\n"), "line 2: the length is `missing`, no whole number"),
        (format!("{head}5 /a read -4096 4096\n"), "line 2: the offset is `-4096`, no whole number"),
        (format!("{head}NaN /a read 0 4096\n"), "line 2: the time in microseconds is `NaN`, no whole number"),
        (format!("{head}5 /a raed 0 4096\n"), "line 2: the action `raed` is not known; did you mean `read`?"),
        (format!("{head}5 /a wait 0 4096\n"), "line 2: `wait` in version 3, which has times"),
        (
            format!("{head}5 /a read 100 4096\n"),
            "line 2: 4096 bytes at 100 are not whole sectors of 512 bytes below 4 EiB",
        ),
        (
            format!("{head}9 /a read 0 512\n5 /a read 0 512\n"),
            "line 3: the time is before that of the request above it",
        ),
        (format!("{head}{} /a read 0 512\n", u64::MAX), "line 2: a time later than any clock counts"),
        (format!("{head}5 /a read {} 512\n", u64::MAX - 511), "what is asked of /a reaches too far"),
        (two.to_owned(), "line 2: requests of two devices, 8,0 and 8,16: print one with `blkparse -i`"),
    ] {
        assert_eq!(read(&text).expect_err(&text).to_string(), expected, "{text}");
    }
    assert_eq!(parse(&b"\xff\xfe\x00binary"[..]).expect_err("binary").to_string(), "line 1: it is not text");
}

proptest! {
    #[test]
    fn no_text_makes_the_readers_panic(text in "(fio version [23] iolog\n|8,0 1 1 0\\.[0-9]{1,9} 9 Q )?[ -~\n]{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn what_an_iolog_says_is_what_is_read(
        list in prop::collection::vec((0u64..1000, 0u64..1 << 30, 1u64..256, any::<bool>()), 1..50),
    ) {
        let (mut text, mut at_us) = ("fio version 3 iolog\n".to_owned(), 0);
        for (gap, sector, sectors, reads) in &list {
            at_us += gap;
            let action = if *reads { "read" } else { "write" };
            text += &format!("{at_us} /a {action} {} {}\n", sector * 512, sectors * 512);
        }
        let trace = read(&text).expect("valid");
        prop_assert_eq!(trace.count(), list.len() as u64);
        prop_assert_eq!(trace.length(), Nanos::from_micros(at_us - list[0].0));
        let end = list.iter().map(|(_, sector, sectors, _)| sector + sectors).max().expect("one");
        prop_assert_eq!(trace.end(), Bytes::new(end * 512));
    }
}
