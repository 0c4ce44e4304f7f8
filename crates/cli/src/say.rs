//! What is said beside the results, on standard error.

use std::io::{self, Write};

/// Says something on standard error; that nobody listens there is no failure.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
