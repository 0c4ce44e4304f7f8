//! The command `lowtide`.

fn main() {}
