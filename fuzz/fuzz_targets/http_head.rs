//! Fuzzes the parser of HTTP request heads. It must accept any bytes as a request or report a fault. The end of a
//! head must not depend on how its bytes are split on arrival.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_host::http::head;

fuzz_target!(|data: &[u8]| {
    let end = head::end(data, 0);
    for seen in 0..data.len().min(64) {
        if head::end(&data[..seen], 0).is_none() {
            assert_eq!(head::end(data, seen), end);
        }
    }
    if let Ok(request) = head::parse(&data[..end.unwrap_or(data.len())]) {
        assert!(!request.path.contains('?'));
    }
});
