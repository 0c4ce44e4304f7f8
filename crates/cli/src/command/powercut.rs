//! `lowtide powercut oltp`: runs databases through power cuts. `lowtide_powercut` does the work; `control` has the
//! orders to live drives.

use crate::args::{PowercutOltpArguments, RowsFormat};
use crate::failure::{FAILED, Failure};
use crate::{interrupt, output};
use lowtide_core::Seed;
use lowtide_device::power::CacheKind;
use lowtide_engines::Durability;
use lowtide_live::attached;
use lowtide_powercut::{Asked, Factors, PowercutError, Row, Setting};

/// Runs databases through power cuts, and prints a row for each setting.
pub fn oltp(arguments: &PowercutOltpArguments) -> Result<u8, Failure> {
    let asked = Asked {
        device: arguments.device.clone(),
        scale: arguments.scale,
        cuts: arguments.cuts,
        seed: Seed::new(arguments.seed),
        keep: arguments.keep.clone(),
    };
    let settings = settings(arguments, &asked)?;
    attached::set_server(super::attach::server_of);
    let several = settings.len() > 1;
    let each = |row: &Row| {
        if several {
            let lost = format!("{} transactions lost, {} corrupt", row.lost, row.corrupt);
            output::say(format_args!("{}: {} cuts, {lost}", row.setting, row.cuts));
        }
    };
    let rows = lowtide_powercut::run(&settings, &asked, &interrupt::flag(), &each)?;
    output::print(&match arguments.format {
        RowsFormat::Table => lowtide_powercut::table(&rows, output::columns()),
        RowsFormat::Json => lowtide_powercut::json(&rows),
        RowsFormat::Csv => lowtide_powercut::csv(&rows),
    })?;
    Ok(if rows.iter().all(Row::kept) { 0 } else { FAILED })
}

/// Every combination of the arguments.
fn settings(arguments: &PowercutOltpArguments, asked: &Asked) -> Result<Vec<Setting>, PowercutError> {
    let PowercutOltpArguments { engine, durability, journal, filesystem, barrier, cache, all, .. } =
        arguments;
    let barrier = barrier.iter().map(|it| *it == crate::args::OnOff::On);
    let mut factors = Factors {
        engine: engine.clone(),
        durability: durability.clone(),
        journal: journal.clone(),
        filesystem: filesystem.clone(),
        barrier: barrier.collect(),
        cache: cache.clone(),
    };
    if *all {
        factors.durability = Durability::NAMES.map(|(_, durability)| durability).to_vec();
        factors.barrier = vec![true, false];
        factors.cache = vec![CacheKind::Protected, CacheKind::Volatile, CacheKind::Lying];
    }
    factors.settings(asked, *all)
}
