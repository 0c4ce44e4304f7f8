//! Hostile and odd files. Leaves out real ones: `crates/cli/tests/import.rs` makes them with the programs themselves.
