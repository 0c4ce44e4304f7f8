//! `lowtide bench`: measures lowtide itself.

use crate::args::{BenchArguments, BenchVerb, PlainFormat};
use crate::failure::Failure;
use crate::{interrupt, output};
use lowtide_core::{Bytes, Seed};
use lowtide_files::output::{CommandFiles, Role};
use lowtide_host::bench::{Requests, engine_bench, null_bench};
use lowtide_oltp::bench::measure;
use lowtide_studies::bench::{logdisk, nbd, simulate, steady};

/// The file of `bench engine`.
const BENCH_FILE: Role = Role::new("the file of the bench", "--file PATH");

/// File sizes of `bench steady`, in GiB.
const SIZES_GIB: [u64; 4] = [20, 60, 100, 140];

/// Measures, and prints the figures.
pub fn run(arguments: &BenchArguments) -> Result<u8, Failure> {
    let format = arguments.format;
    let figures = match &arguments.verb {
        BenchVerb::Steady { seeds, scale } => return judge(*seeds, *scale, format),
        BenchVerb::Simulate { seed } => serde_json::to_value(simulate(Seed::new(*seed))),
        BenchVerb::EngineNull { seconds, mix } => {
            let requests = Requests { block: Bytes::kib(4), depth: 64, read_share: mix.clamp(0.0, 1.0) };
            serde_json::to_value(null_bench(requests, *seconds, Seed::new(1))?)
        }
        BenchVerb::Nbd { seconds } => {
            serde_json::to_value(nbd(*seconds, Seed::new(1)).map_err(Failure::failed)?)
        }
        BenchVerb::Logdisk { file, size } => serde_json::to_value(logdisk(file, *size, Seed::new(1))?),
        BenchVerb::Oltp(arguments) => serde_json::to_value(measure(&arguments.asked(), &interrupt::flag())?),
        BenchVerb::Engine { file, size, depth, mix, seconds, engine } => {
            let read_share = mix.clamp(0.0, 1.0);
            let requests = Requests { block: Bytes::kib(4), depth: *depth, read_share };
            // Reading an existing file needs no check.
            if read_share < 1.0 || !file.exists() {
                lowtide_files::output::in_place(BENCH_FILE, file, &CommandFiles::default())?;
            }
            serde_json::to_value(engine_bench(file, *size, requests, *seconds, *engine, Seed::new(1))?)
        }
    };
    let figures = figures.expect("figures serialise");
    let text = match format {
        PlainFormat::Json => figures.to_string(),
        PlainFormat::Table => {
            let figures = figures.as_object().expect("figures are an object");
            figures.iter().map(|(key, value)| format!("{key:32} {value}\n")).collect()
        }
    };
    output::print(&text)?;
    Ok(0)
}

/// Compares steady-state rules, and prints a line for each file size.
fn judge(seeds: u64, scale: u64, format: PlainFormat) -> Result<u8, Failure> {
    let spec = lowtide_files::device::find("intel-320-160gb")?.spec;
    if format == PlainFormat::Json {
        // A size takes minutes, so each line is printed at once.
        for size in SIZES_GIB {
            for judged in steady(&spec, &[size], seeds, scale) {
                output::print(&(serde_json::to_string(&judged).expect("figures serialise") + "\n"))?;
            }
        }
        return Ok(0);
    }
    let judged = steady(&spec, &SIZES_GIB, seeds, scale);
    let rows = judged.iter().flat_map(|judged| {
        let rules = [("lowtide", &judged.lowtide), ("SNIA", &judged.snia), ("fio slope", &judged.fio_slope)];
        rules.map(|(name, rule)| {
            vec![
                format!("{} GiB", judged.file_size_gib),
                name.to_owned(),
                format!("{}/{}", rule.within_3_percent, judged.runs),
                format!("{}/{}", rule.in_honeymoon, judged.runs),
                format!("{:.1}", rule.mean_error_percent),
                format!("{:.1}", rule.largest_error_percent),
                format!("{:.0}", rule.mean_stop_s),
            ]
        })
    });
    let head = ["file", "rule", "within 3 %", "honeymoon", "error %", "largest %", "stops at s"];
    output::print(&lowtide_files::table::plain(&head, &rows.collect::<Vec<_>>(), output::columns()))?;
    Ok(0)
}
