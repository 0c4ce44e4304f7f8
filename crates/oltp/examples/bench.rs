//! `cargo run --release --example bench -- postgresql 10 16 30` measures the load of `lowtide bench oltp` without
//! building the command line.
//!
//! Other options of `lowtide bench oltp` are not supported.

use lowtide_engines::Engine;
use lowtide_oltp::bench::{Asked, measure};
use std::sync::Arc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, otherwise: u32| {
        arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let name = arguments.first().map_or("postgresql", String::as_str);
    let Some((_, engine)) = Engine::NAMES.into_iter().find(|(it, _)| *it == name) else {
        eprintln!("`{name}` is not an engine");
        std::process::exit(2);
    };
    let asked = Asked {
        warehouses: number(1, 10),
        terminals: number(2, 16),
        seconds: number(3, 30),
        ..Asked::of(engine)
    };
    match measure(&asked, &Arc::default()) {
        Ok(figures) => println!("{figures:#?}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
