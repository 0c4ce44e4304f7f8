//! Fuzzes the parsers of NBD option data. Any bytes must give a value within bounds or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowtide_host::nbd::options::{ContextQueries, ExportChoice, name};
use lowtide_host::nbd::wire::MAX_STRING;

fuzz_target!(|data: &[u8]| {
    if let Ok(choice) = ExportChoice::read(data) {
        assert!(choice.name.len() + 6 <= data.len());
    }
    if let Ok(asked) = ContextQueries::read(data) {
        let strings: usize = asked.queries.iter().map(|query| 4 + query.len()).sum();
        assert_eq!(8 + asked.export.len() + strings, data.len());
        assert!(asked.queries.iter().all(|query| query.contains(':') && query.len() <= MAX_STRING));
    }
    if let Ok(name) = name(data) {
        assert_eq!(name.as_bytes(), data);
    }
});
