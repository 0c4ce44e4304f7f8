//! `lowtide export`: every raw number of a campaign.

use super::campaign_of;
use crate::args::{ExportArguments, RawFormat};
use crate::failure::Failure;
use crate::output;
use lowtide_lab::report::{export_csv, export_json};

/// Writes a campaign as CSV or JSON; the same bytes for the same experiment, device and seed.
pub fn run(arguments: &ExportArguments) -> Result<u8, Failure> {
    let campaign = campaign_of(&arguments.campaign)?;
    let mut bytes = Vec::new();
    match arguments.format {
        RawFormat::Csv => export_csv(&campaign, &mut bytes),
        RawFormat::Json => export_json(&campaign, &mut bytes),
    }
    .expect("writing to memory does not fail");
    match &arguments.output {
        Some(path) => output::write_file(path, &bytes)?,
        None => output::print(&String::from_utf8(bytes).expect("exports are text"))?,
    }
    Ok(0)
}
