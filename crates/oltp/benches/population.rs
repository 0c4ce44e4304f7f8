//! Benchmark of row generation: bytes of text per second that one client thread produces for `COPY` and `LOAD DATA`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, TabSeparated, Table, population};

fn rows(criterion: &mut Criterion) {
    let scale = Scale::warehouses(1);
    let make = |table, warehouse| {
        let mut lines = TabSeparated::new(Vec::new());
        population::write(table, warehouse, &scale, Seed::new(1), &mut lines)
            .expect("memory takes everything");
        lines.finish().expect("memory takes everything")
    };
    let mut group = criterion.benchmark_group("population");
    group.sample_size(10);
    for table in [Table::Customer, Table::Stock, Table::OrderLine] {
        group.throughput(Throughput::Bytes(make(table, 1).len() as u64));
        group.bench_function(table.name(), |bencher| bencher.iter(|| make(table, 1)));
    }
    group.finish();
}

criterion_group!(benches, rows);
criterion_main!(benches);
