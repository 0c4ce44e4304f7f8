# Short names for what one types every day; `just` lists them.

_default:
    @just --list

# Build the program with optimisation.
build:
    cargo build --release

# Run every test.
test:
    cargo test --workspace

# What continuous integration lints.
lint:
    cargo fmt --all -- --check
    cargo clippy --workspace --all-targets -- -D warnings

# Format everything.
fmt:
    cargo fmt --all

# The figures that docs/performance.md states, on this machine; FILE is made where it is missing.
bench file="/var/tmp/lowtide-bench.dat":
    cargo run --release -- bench simulate --format json
    cargo run --release -- bench engine --file {{ file }} --format json

# How near the steady-state rule comes to runs ten times longer.
bench-steady:
    cargo run --release -- bench steady

# The micro-benchmarks.
criterion:
    cargo bench --workspace

# Everything continuous integration does.
ci:
    .ci/run

# Run the main experiment and write report.html.
report:
    cargo run --release -- run intel-320-random-write

# Draw the figures that the README and the guide show again.
figures:
    cargo run --release -- run intel-320-random-write --store target/figures.db --report target/figures.html
    cargo run --release -- report --store target/figures.db --output target/figures.html --figures target/figures
    cp target/figures/throughput-by-size.svg docs/figures/throughput-by-size.svg
    cargo run --release -- run intel-320-random-write --set file_size=100GiB --store target/figure.db --report target/figures.html
    cargo run --release -- report --store target/figure.db --output target/figures.html --figures target/figures
    cp target/figures/throughput-over-time.svg docs/figures/throughput-100gib-over-time.svg

# Licences, advisories and sources of the dependencies (needs cargo-deny).
deny:
    cargo deny check
