//! The cells of a plan: every point of every step, scaled, and checked to fit on the target.
//!
//! Dependencies between cells are in module `order`.

use super::order::arrange;
use super::{PlanTarget, PlannedCell, databases, traced};
use crate::experiment::{
    BadInput, Experiment, FactorName, Filesystem, Inserts, Layout, Length, Level, Purge, Settings, Work,
};
use lowtide_core::{Bytes, Nanos};
use lowtide_device::layout;

/// The most requests in flight in a cell. This number easily fits into memory.
const MOST_IN_FLIGHT: u64 = 1 << 20;
/// The most rows of a cell. This number easily fits into memory.
const MOST_ROWS: u64 = 2_000_000;

pub(super) fn all(
    experiment: &Experiment,
    target: &PlanTarget,
    scale: u64,
) -> Result<Vec<PlannedCell>, BadInput> {
    let trace = traced::read(experiment, target, scale)?;
    let mut cells = Vec::new();
    for (number, step) in experiment.steps.iter().enumerate() {
        let mut begun: Vec<Option<String>> = Vec::new();
        for (point, repetition) in arrange(step, &step.repeat) {
            let written = experiment.settings(step, &point);
            check_rate(experiment, number, &written)?;
            check_memory(experiment, &written)?;
            let mut settings = scaled(&written, scale);
            if let Some(trace) = &trace {
                settings.load.file_size =
                    settings.load.file_size.or_else(|| traced::needs(trace, &settings, target));
            }
            let (data, capacity) = fit(experiment, number, target, &written, &settings, scale)?;
            if let Some(trace) = &trace {
                traced::place(experiment, &mut settings, trace, data)?;
                check_memory(experiment, &settings)?;
            }
            check_precondition(experiment, number, data)?;
            // The first cell of each device of a step has the purge and the precondition of the step.
            let mut begin = (Purge::None, None);
            if !begun.contains(&settings.device) {
                begun.push(settings.device.clone());
                begin = (step.purge_before, step.precondition);
            }
            let (purge_before, precondition) = begin;
            let (index, step) = (cells.len() as u32, step.name.clone());
            cells.push(PlannedCell {
                index,
                step,
                point,
                repetition,
                purge_before,
                precondition,
                settings,
                data,
                capacity,
            });
        }
    }
    Ok(cells)
}

/// Refuses a load whose requests in flight or rows would exhaust memory.
fn check_memory(experiment: &Experiment, settings: &Settings) -> Result<(), BadInput> {
    let load = &settings.load;
    let in_flight = u64::from(load.threads) * u64::from(load.depth);
    if in_flight > MOST_IN_FLIGHT {
        let help = format!("`threads` times `depth` is at most {MOST_IN_FLIGHT}");
        return Err(experiment.blame("workload", format!("{in_flight} requests in flight"), help));
    }
    let row = load.bursts().map_or(load.interval, |(burst, _)| burst);
    let longest = load.length.longest().or_else(|| traced::longest(load));
    let rows = longest.map_or(0, |longest| longest.get() / row.get().max(1));
    if rows > MOST_ROWS {
        let help = format!(
            "at most {MOST_ROWS} intervals in a measurement, such as `interval = \"1s\"`, or longer bursts"
        );
        return Err(experiment.blame("workload.interval", format!("{rows} intervals"), help));
    }
    Ok(())
}

/// Refuses a precondition whose blocks are larger than the data, or do not fill its files.
fn check_precondition(experiment: &Experiment, number: usize, data: Bytes) -> Result<(), BadInput> {
    let step = &experiment.steps[number];
    let Some(passes) = step.precondition else { return Ok(()) };
    let each = data / u64::from(step.preparation.layout.files);
    if each >= passes.block {
        return Ok(());
    }
    let message = format!("a precondition in blocks of {} of files of {each}", passes.block);
    let help = format!("a block of at most {each}, or more data");
    Err(experiment.blame(&format!("step.{number}.precondition"), message, help))
}

/// Refuses the rate of an open loop that is so high or so low that the measurement would not end.
fn check_rate(experiment: &Experiment, number: usize, settings: &Settings) -> Result<(), BadInput> {
    let rate = settings.load.rate;
    if (1e-3..=1e9).contains(&rate) {
        return Ok(());
    }
    let message = format!("a rate of {rate:e} per second cannot be measured");
    let help = "requests per second from 0.001 to 1000000000";
    Err(experiment.blame(&experiment.path_of(number, "rate", "workload"), message, help))
}

/// Divides sizes and durations, but not blocks, threads and rates.
fn scaled(settings: &Settings, scale: u64) -> Settings {
    let mut settings = settings.clone();
    if scale > 1 {
        let load = &mut settings.load;
        let block = load.block;
        let shorter = |span: Nanos| Nanos::new((span.get() / scale).max(1));
        load.file_size = load.file_size.map(|size| (size / scale).align_down(block).max(block));
        load.interval = shorter(load.interval);
        load.burst = load.burst.map(shorter);
        load.pause = load.pause / scale;
        load.events = load.events.iter().map(|event| event.scaled(scale)).collect();
        load.length = match load.length {
            Length::For(span) => Length::For(shorter(span)),
            Length::Requests(number) => Length::Requests((number / scale).max(1)),
            Length::UntilSteady { max, precision } => Length::UntilSteady { max: shorter(max), precision },
        };
        settings.preparation.idle = settings.preparation.idle / scale;
        match &mut settings.load.work {
            Work::Inserts(inserts) => inserts.engine = inserts.engine.scaled(scale),
            Work::Transactions(oltp) => **oltp = oltp.scaled(scale),
            Work::Requests | Work::Trace(_) => {}
        }
        let partition = &mut settings.preparation.layout.partition;
        *partition = partition.map(|size| (size / scale).align_down(Bytes::kib(4)));
    }
    settings
}

/// The bytes of a cell's data, and the capacity of its target.
fn fit(
    experiment: &Experiment,
    number: usize,
    target: &PlanTarget,
    written: &Settings,
    settings: &Settings,
    scale: u64,
) -> Result<(Bytes, Bytes), BadInput> {
    let step = &experiment.steps[number];
    let size_key = experiment.path_of(number, "file_size", "workload");
    let share = settings.load.utilisation;
    let block = settings.load.block;
    if let Work::Transactions(oltp) = &settings.load.work {
        return databases::fit(experiment, number, target, settings, oltp, scale);
    }
    let (name, capacity) = match target {
        PlanTarget::Simulated(devices) | PlanTarget::Attached(devices) => {
            let name = settings.device.as_deref().expect("a simulated target names its device");
            (name.to_owned(), devices[name].spec.capacity())
        }
        PlanTarget::Block(block) => (block.disk.path.display().to_string(), block.disk.identity.size),
        PlanTarget::Host(_) if share.is_some() => {
            let key = experiment.path_of(number, "utilisation", "workload");
            let message = "`utilisation` on files, which share their filesystem with others";
            let help = "write the size of the data, such as `file_size = \"1GiB\"`";
            return Err(experiment.blame(&key, message, help));
        }
        PlanTarget::Host(spec) => {
            let size = settings.load.file_size.ok_or_else(|| {
                let help = "write for example `file_size = \"1GiB\"`";
                experiment.blame(&size_key, "the size of the data is missing", help)
            })?;
            let data = size.align_down(block);
            // Data that does not fit into the free space is refused when the plan is carried out.
            let filesystem = lowtide_host::environment::filesystem_size(spec.path()).unwrap_or(data);
            return Ok((data, filesystem.max(data)));
        }
    };
    let usable = usable(settings, capacity).map_err(|(key, message)| {
        experiment.blame(key, message, format!("the device {name} has {capacity}"))
    })?;
    if let Work::Inserts(inserts) = &settings.load.work {
        let PlanTarget::Simulated(devices) = target else {
            let help = "use a simulated device";
            return Err(experiment.blame("inserts", "inserts run in virtual time only", help));
        };
        return fit_inserts(experiment, &name, inserts, devices[&name].spec.first_part(), capacity);
    }
    let Layout { filesystem: kind, partition, .. } = written.preparation.layout;
    let filesystem = kind.made();
    let wanted = settings.load.file_size.unwrap_or(usable);
    if let Some(share) = share {
        let room = layout::room(filesystem, usable);
        let data = Bytes::new((room.get() as f64 * share) as u64).align_down(block);
        if data < block {
            let message = format!("{share} of {room} is smaller than a block of {block}");
            return Err(experiment.blame("workload", message, "a larger share, or a smaller block"));
        }
        return Ok((data, capacity));
    }
    match layout::lay_out(filesystem, usable, wanted) {
        Ok(_) => Ok((wanted.align_down(block), capacity)),
        Err(error) if settings.load.file_size.is_none() => Ok((error.available.align_down(block), capacity)),
        Err(error) => {
            let asked = written.load.file_size.unwrap_or(wanted);
            let room = as_written(error.available, scale);
            let help = match room {
                Bytes::ZERO => "use a larger share of the device, such as `--scale 1/8`".to_owned(),
                room => format!("up to {room} fit"),
            };
            let levels = step.factor(FactorName::FileSize).map_or(&[][..], |factor| &factor.levels);
            let position = levels.iter().position(|level| *level == Level::FileSize(asked));
            // If the size is not an element of a list, the error points at the key.
            let key = position.map_or(size_key.clone(), |position| format!("{size_key}.{position}"));
            let partition = partition.map(|size| format!(", in a partition of {size}")).unwrap_or_default();
            let kind = if kind == Filesystem::None { String::new() } else { format!(", with {kind}") };
            let message = format!("{asked} of data do not fit on {name}{partition}{kind}");
            Err(experiment.blame(&key, message, help))
        }
    }
}

/// The bytes of a cell's rows, and the capacity of its device.
fn fit_inserts(
    experiment: &Experiment,
    name: &str,
    inserts: &Inserts,
    first_part: Bytes,
    capacity: Bytes,
) -> Result<(Bytes, Bytes), BadInput> {
    let engine = &inserts.engine;
    let room = inserts.room(first_part, capacity);
    if engine.with_database_in(room).is_some() {
        return Ok((engine.data(), capacity));
    }
    let message = format!("{} of rows and a log of {} do not fit on {name}", engine.data(), engine.log.size);
    Err(experiment.blame("inserts.data-per-connection", message, format!("up to {room} of rows fit")))
}

/// Converts a scaled size to the size in the experiment, rounded down to GiB, or to MiB below 1 GiB.
fn as_written(size: Bytes, scale: u64) -> Bytes {
    let size = Bytes::new(size.get().saturating_mul(scale));
    size.align_down(if size < Bytes::gib(1) { Bytes::mib(1) } else { Bytes::gib(1) })
}

/// The part of the capacity within the partition and outside of the reserve.
///
/// # Errors
/// The key and the message, if the partition is larger than the capacity.
pub(crate) fn usable(settings: &Settings, capacity: Bytes) -> Result<Bytes, (&'static str, String)> {
    let layout = &settings.preparation.layout;
    let size = layout.partition.unwrap_or(capacity);
    if size > capacity {
        let message = format!("a partition of {size} is larger than the device");
        return Err(("before-each-cell.layout", message));
    }
    let usable = (size.get() as f64 * (1.0 - layout.reserve)) as u64;
    Ok(Bytes::new(usable).align_down(Bytes::kib(4)))
}
