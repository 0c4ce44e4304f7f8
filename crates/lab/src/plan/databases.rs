//! The size of databases, and the check that they fit on their target.
//!
//! Sizes are estimates: the exact size of a database is known only after loading.

use super::{PlanTarget, cells};
use crate::experiment::{BadInput, Experiment, Filesystem, Oltp, Settings};
use lowtide_core::Bytes;
use lowtide_device::layout::lay_out;
use lowtide_engines::model::{self, ModelSettings};

/// The bytes of a cell's databases, and the capacity of their target.
pub(super) fn fit(
    experiment: &Experiment,
    step: usize,
    target: &PlanTarget,
    settings: &Settings,
    oltp: &Oltp,
    scale: u64,
) -> Result<(Bytes, Bytes), BadInput> {
    let at_warehouses = |message: String, help: &str| {
        experiment.blame(&experiment.path_of(step, "warehouses", "oltp"), message, help)
    };
    if oltp.warehouses < oltp.instances {
        let message = format!("at a scale of 1/{scale} not every instance has a warehouse");
        return Err(at_warehouses(message, "a larger share, such as `--scale 1/10`, or more warehouses"));
    }
    least(experiment, step, oltp, scale)?;
    let (data, with_log) = match oltp.settings.engine.is_modelled() {
        true => modelled(experiment, oltp)?,
        false => (oltp.data(), Bytes::ZERO),
    };
    let capacity = match target {
        PlanTarget::Host(spec) => {
            let filesystem = lowtide_host::environment::filesystem_size(spec.path()).unwrap_or(data);
            return Ok((data, filesystem.max(data)));
        }
        PlanTarget::Block(block) => block.disk.identity.size,
        PlanTarget::Simulated(devices) | PlanTarget::Attached(devices) => {
            let name = settings.device.as_deref().expect("a simulated target names its device");
            devices[name].spec.capacity()
        }
    };
    if settings.preparation.layout.filesystem == Filesystem::None && !target.is_simulated() {
        let message = "a database on a device without a filesystem";
        let help = "`layout = { filesystem = \"xfs\" }`, `\"ext4\"` or `\"btrfs\"`";
        return Err(experiment.blame("before-each-cell", message, help));
    }
    let usable = cells::usable(settings, capacity)
        .map_err(|(key, message)| experiment.blame(key, message, format!("the device has {capacity}")))?;
    let filesystem = settings.preparation.layout.filesystem.made();
    if let (PlanTarget::Simulated(devices), Some(name)) = (target, &oltp.log_device)
        && let Err(error) = lay_out(filesystem, devices[name].spec.capacity(), with_log)
    {
        let message =
            format!("a log of {with_log} does not fit on `{name}`: {} are available", error.available);
        let key = experiment.path_of(step, "log_device", "oltp");
        return Err(experiment.blame(&key, message, "a smaller log_size, or a larger device"));
    }
    match lay_out(filesystem, usable, data) {
        Ok(_) => Ok((data, capacity)),
        Err(error) => {
            let message = format!("about {data} of databases do not fit: {} are available", error.available);
            Err(at_warehouses(message, "fewer warehouses, or a larger device"))
        }
    }
}

/// Bytes of a modelled engine on the device of its data, and on the device of its log.
fn modelled(experiment: &Experiment, oltp: &Oltp) -> Result<(Bytes, Bytes), BadInput> {
    let model = ModelSettings::of(&oltp.settings).map_err(|error| {
        let key = if experiment.span_of("oltp.options").is_some() { "oltp.options" } else { "oltp" };
        experiment.blame(key, error.to_string(), "docs/models/oltp.md has the options of modelled engines")
    })?;
    let (others, with_log) = model.beside_data(oltp.log_device.is_some());
    Ok((model::loaded(&model, oltp.warehouses) + others, with_log))
}

/// Refuses memory and logs below the minimum of the engine, as written or divided by the scale.
fn least(experiment: &Experiment, step: usize, oltp: &Oltp, scale: u64) -> Result<(), BadInput> {
    let (engine, of) = (oltp.settings.engine, oltp.settings.engine.least());
    for (key, size, least) in [
        ("buffer_pool", oltp.settings.buffer_pool, of.buffer_pool),
        ("log_size", oltp.settings.log_size, of.log),
    ] {
        let Some(size) = size.filter(|size| *size < least) else { continue };
        let (name, mib) = (engine.name(), size.as_mib());
        let (size, help) = match scale {
            1 => (format!("of {size}"), format!("at least {least}")),
            _ => {
                let larger = larger(scale, size, least);
                (
                    format!("comes to {mib:.1} MiB at a scale of 1/{scale}"),
                    format!("{least} are needed: a larger share, such as `--scale 1/{larger}`"),
                )
            }
        };
        let message = format!("{key} {size}: {name} does not start with it");
        return Err(experiment.blame(&experiment.path_of(step, key, "oltp"), message, help));
    }
    Ok(())
}

/// The scale nearest to `scale` at which `size` is `least`.
fn larger(scale: u64, size: Bytes, least: Bytes) -> u64 {
    // The division of `size` by the scale rounded it down by less than 1.
    (u128::from(scale) * (u128::from(size.get()) + 1) / u128::from(least.get()).max(1)).max(1) as u64
}
