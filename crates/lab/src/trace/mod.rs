//! Traces: recorded requests, read from files.

/// Whether a file that begins with this line is a trace.
pub fn is_trace(first_line: &str) -> bool {
    first_line.starts_with("fio version ") && first_line.trim_end().ends_with(" iolog")
}
