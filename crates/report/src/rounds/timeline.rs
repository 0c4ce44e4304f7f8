//! Steps with one load each, in succession: a timeline over all of them, and a table row for each.
//!
//! Times are times under load, without pauses between bursts, and are scaled back. Steps with several points are not
//! part of a timeline.

use super::words::DisplayUnit;
use crate::figure::{Axis, Draw, Figure, Mark, Panel, Point, Section, Series};
use crate::find::mean;
use crate::number::{significant, span};
use crate::table::{Column, Digits, Table, Value};
use lowtide_core::{Bytes, Nanos};
use lowtide_lab::experiment::{Of, Pattern, Purge, Resolved, Step};
use lowtide_lab::rounds::value;
use lowtide_record::{Campaign, Cell, Row, Status};

const MOST_POINTS: usize = 600;
/// Up to this many steps get a sentence each.
const MOST_SENTENCES: usize = 3;
/// The approximate number of letters across a panel.
const LETTERS: f64 = 100.0;

/// The verdict, tables and figures of steps in succession.
#[derive(Default)]
pub(crate) struct Timelines {
    pub verdict: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

/// One step with the rows of all its cells.
struct Phase<'c> {
    step: &'c Step,
    /// Pattern and block.
    load: (Pattern, Bytes),
    pause: Option<Nanos>,
    rows: Vec<&'c Row>,
    /// Bytes written before the step, and the capacity of the device.
    written_before: Option<Bytes>,
    capacity: Bytes,
}

/// The timeline of a campaign on one device; empty unless a step has a single load.
pub(crate) fn of(experiment: &Resolved, campaign: &Campaign) -> Timelines {
    let single = experiment.steps.iter().filter(|step| step.points().take(2).count() == 1);
    let phases: Vec<Phase<'_>> = single.filter_map(|step| phase(experiment, step, campaign)).collect();
    if phases.is_empty() {
        return Timelines::default();
    }
    let of =
        if phases.iter().all(|phase| phase.load.1 == phases[0].load.1) { Of::Iops } else { Of::Throughput };
    let scale = campaign.scale.max(1) as f64;
    let mut timelines = Timelines::default();
    if phases.len() > 1 {
        timelines.tables.push(table(&phases, scale));
    }
    let untracked: Vec<&Phase<'_>> =
        phases.iter().filter(|phase| phase.step.repeat.track.is_none()).collect();
    timelines.verdict.extend(recovery(&phases, of));
    timelines.verdict.extend(back(&phases, of, scale));
    if untracked.len() <= MOST_SENTENCES {
        timelines.verdict.extend(untracked.iter().filter_map(|phase| sentence(phase, of)));
    }
    timelines.figures.push(over_time(&phases, of, scale));
    timelines.figures.extend(over_writes(&phases, of));
    timelines.figures.push(latency(&phases, scale));
    timelines
}

fn phase<'c>(experiment: &Resolved, step: &'c Step, campaign: &'c Campaign) -> Option<Phase<'c>> {
    let of_step = |cell: &&Cell| cell.step == step.name && cell.status == Status::Done;
    let cells: Vec<&Cell> = campaign.cells.iter().filter(of_step).collect();
    let first = cells.first()?;
    let load = experiment.settings(step, &step.points().next()?).load;
    let pause = load.bursts().map(|(_, pause)| pause);
    let load = (load.pattern, load.block);
    let rows =
        cells.iter().flat_map(|cell| cell.rows.iter()).filter(|row| row.end_ns > row.start_ns).collect();
    Some(Phase { step, load, pause, rows, written_before: first.written_before, capacity: first.capacity })
}

impl Phase<'_> {
    fn name(&self) -> &str {
        self.step.name.as_deref().unwrap_or("measured")
    }

    fn hours(&self, scale: f64) -> f64 {
        self.rows.iter().map(|row| row.seconds()).sum::<f64>() * scale / 3600.0
    }

    /// A quantity over `count` rows from `from` on.
    fn value(&self, of: Of, from: usize, count: usize) -> Option<f64> {
        let rows: Vec<Row> = self.rows.iter().skip(from).take(count).map(|row| (*row).clone()).collect();
        value(of, &rows, u64::MAX)
    }

    fn mean(&self, of: Of) -> Option<f64> {
        self.value(of, 0, usize::MAX)
    }

    /// The values of the first and the last interval.
    fn ends(&self, of: Of) -> Option<(f64, f64)> {
        Some((self.value(of, 0, 1)?, self.value(of, self.rows.len().checked_sub(1)?, 1)?))
    }

    fn longest_ns(&self) -> f64 {
        self.rows.iter().map(|row| row.read.max_ns.max(row.write.max_ns)).max().unwrap_or(0) as f64
    }
}

/// The gain from pauses in the first and the last load with pauses; `None` without pauses.
fn recovery(phases: &[Phase<'_>], of: Of) -> Option<String> {
    let paused: Vec<(Nanos, f64)> =
        phases.iter().filter_map(|phase| Some((phase.pause?, phase.mean(of)?))).collect();
    let (first, last) = (paused.first()?, paused.last()?);
    // Loads without pauses between loads with pauses give the reference level. Without any, the last load before the
    // pauses gives it.
    let since = phases.iter().skip_while(|phase| phase.pause.is_none());
    let between: Vec<f64> =
        since.filter(|phase| phase.pause.is_none()).filter_map(|phase| phase.mean(of)).collect();
    let before = match mean(&between) {
        Some(mean) => mean,
        None => phases.iter().take_while(|phase| phase.pause.is_none()).last()?.ends(of)?.1,
    };
    let shown = DisplayUnit::of(of, 0.0);
    let times = |value: f64| significant(value / before);
    Some(format!(
        "Without pauses the device did {} on average; with pauses of {} it did {} times as much, with pauses of {} {} times.",
        shown.text(before),
        first.0,
        times(first.1),
        last.0,
        times(last.1)
    ))
}

/// The time until a repeated load regains its former level; `None` if no load is repeated.
fn back(phases: &[Phase<'_>], of: Of, scale: f64) -> Option<String> {
    const NEAR: f64 = 0.9;
    if phases.iter().any(|phase| phase.pause.is_some()) {
        return None;
    }
    let same = |phase: &&Phase<'_>, other: &Phase<'_>| phase.load == other.load;
    let (number, again) = phases.iter().enumerate().skip(2).find(|(number, phase)| {
        phases[..number - 1].iter().any(|earlier| same(&earlier, phase)) && !same(&&phases[number - 1], phase)
    })?;
    let first = phases[..number].iter().find(|earlier| same(earlier, again))?;
    let former = first.value(of, first.rows.len() / 4 * 3, usize::MAX)?;
    let shown = DisplayUnit::of(of, 0.0).text(former);
    let reached =
        (0..again.rows.len()).find(|row| again.value(of, *row, 1).is_some_and(|v| v >= NEAR * former));
    let within = format!("within 10\u{a0}% of its former {shown}");
    let name = again.name();
    Some(match reached {
        Some(0) => format!("{name}: at once {within}."),
        Some(row) => {
            let ns: f64 = again.rows[..row].iter().map(|row| (row.end_ns - row.start_ns) as f64).sum();
            format!("{name}: {within} after {}.", span(ns * scale))
        }
        None => format!("{name}: never {within}."),
    })
}

fn sentence(phase: &Phase<'_>, of: Of) -> Option<String> {
    let shown = DisplayUnit::of(of, 0.0);
    let (mean, (first, last)) = (phase.mean(of)?, phase.ends(of)?);
    Some(format!(
        "{}: {} on average, {} at first and {} at the end.",
        phase.name(),
        shown.text(mean),
        significant(first),
        shown.text(last)
    ))
}

fn table(phases: &[Phase<'_>], scale: f64) -> Table {
    let mean_most = phases.iter().filter_map(|phase| phase.mean(Of::MeanLatency)).fold(0.0, f64::max);
    let longest = phases.iter().map(Phase::longest_ns).fold(0.0, f64::max);
    let each = |it: DisplayUnit| Column::each(it.key, it.name, it.unit).scaled(it.scale);
    let whole = |key: &str, name: &str| Column::number(key, name, "1/s").digits(Digits::Fixed(0));
    let columns = vec![
        Column::text("step", "step").naming(),
        Column::number("hours", "under load", "h").digits(Digits::Fixed(1)),
        whole("iops", "IOPS"),
        whole("iops_first", "first interval"),
        whole("iops_last", "last interval"),
        Column::number("mib_per_s", "throughput", "MiB/s"),
        each(DisplayUnit::latency("mean latency", "latency_ns_mean", mean_most)),
        each(DisplayUnit::latency("maximum", "latency_ns_max", longest)),
    ];
    let row = |phase: &Phase<'_>| {
        let ends = phase.ends(Of::Iops);
        vec![
            Value::text(phase.name()),
            Value::Number(phase.hours(scale)),
            Value::number(phase.mean(Of::Iops)),
            Value::number(ends.map(|(first, _)| first)),
            Value::number(ends.map(|(_, last)| last)),
            Value::number(phase.mean(Of::Throughput)),
            Value::number(phase.mean(Of::MeanLatency)),
            Value::Number(phase.longest_ns()),
        ]
    };
    let note = "Over all rounds of a step. Pauses between bursts do not count as time under load.";
    Table::new("phases", "Step by step", columns, phases.iter().map(row).collect()).with_note(note)
}

/// The rows of all phases in runs, one per point of a figure, each with the hour of its middle.
fn runs<'p>(phases: &'p [Phase<'_>], scale: f64) -> Vec<(f64, Vec<Row>, &'p Phase<'p>)> {
    let count: usize = phases.iter().map(|phase| phase.rows.len()).sum();
    let step = count.div_ceil(MOST_POINTS).max(1);
    let mut seconds = 0.0;
    let mut runs = Vec::new();
    for phase in phases {
        for rows in phase.rows.chunks(step) {
            let own: f64 = rows.iter().map(|row| row.seconds()).sum();
            seconds += own;
            let middle = (seconds - own / 2.0) * scale / 3600.0;
            runs.push((middle, rows.iter().map(|row| (*row).clone()).collect(), phase));
        }
    }
    runs
}

/// The names of the phases that have room for them, and a shade for every second phase.
fn boundaries(phases: &[Phase<'_>], scale: f64) -> (Vec<Mark>, Vec<(f64, f64)>) {
    let all: f64 = phases.iter().map(|phase| phase.hours(scale)).sum();
    let (mut x, mut marks, mut bands) = (0.0, Vec::new(), Vec::new());
    for (n, phase) in phases.iter().enumerate().filter(|_| phases.len() > 1) {
        let hours = phase.hours(scale);
        let fits = phase.name().chars().count() as f64 <= hours / all * LETTERS;
        let label = if fits { phase.name().to_owned() } else { String::new() };
        marks.push(Mark::Label { x: x + hours / 2.0, label });
        if n % 2 == 1 {
            bands.push((x, x + hours));
        }
        x += hours;
    }
    (marks, bands)
}

fn over_time(phases: &[Phase<'_>], of: Of, scale: f64) -> Figure {
    let shown = DisplayUnit::of(of, 0.0);
    let points = runs(phases, scale)
        .into_iter()
        .filter_map(|(hour, rows, _)| Some(Point::new(hour, value(of, &rows, u64::MAX)?)))
        .collect();
    let shades = if phases.len() > 1 { " Shades separate the steps." } else { "" };
    let (title, unit) =
        if of == Of::Iops { ("IOPS over time", shown.name) } else { ("Throughput over time", shown.unit) };
    let panel = panel(phases, scale, Axis::linear(unit), vec![Series::new("", 0, Draw::Line, points)]);
    let caption = format!("Every interval, in the order of measurement.{shades}");
    Figure::new("timeline", title, Section::Throughput, caption, vec![panel])
}

/// A panel over the time under load, with the boundaries of the phases.
fn panel(phases: &[Phase<'_>], scale: f64, y: Axis, series: Vec<Series>) -> Panel {
    let (marks, bands) = boundaries(phases, scale);
    Panel { marks, bands, ..Panel::new(Axis::linear("time under load (h)"), y, series) }
}

/// The timeline over bytes written since the purge, for a device that was only written after it.
fn over_writes(phases: &[Phase<'_>], of: Of) -> Option<Figure> {
    let [phase] = phases else { return None };
    let before = phase.written_before.filter(|_| phase.step.purge_before != Purge::None)?;
    let mut written = before.get() as f64;
    let capacity = phase.capacity.get() as f64;
    let mut points = Vec::new();
    for (_, rows, _) in runs(phases, 1.0) {
        written += rows.iter().map(|row| row.write_bytes).sum::<u64>() as f64;
        points.push(Point::new(written / capacity, value(of, &rows, u64::MAX)?));
    }
    let written: u64 = phase.rows.iter().map(|row| row.write_bytes).sum();
    let x = Axis::linear("written (× user capacity)");
    let series = vec![Series::new("", 0, Draw::Line, points)];
    let panel = Panel::new(x, Axis::linear(DisplayUnit::of(of, 0.0).name), series);
    let caption =
        "The same intervals against host writes since the purge, in multiples of the user capacity.";
    (written > 0).then(|| {
        let (name, title) = ("timeline-by-writes", "IOPS by host writes");
        Figure::new(name, title, Section::Throughput, caption, vec![panel])
    })
}

fn latency(phases: &[Phase<'_>], scale: f64) -> Figure {
    let (mut means, mut longest) = (Vec::new(), Vec::new());
    for (hour, rows, _) in runs(phases, scale) {
        means.extend(value(Of::MeanLatency, &rows, u64::MAX).map(|ns| Point::new(hour, ns)));
        let most = rows.iter().map(|row| row.read.max_ns.max(row.write.max_ns)).max().unwrap_or(0);
        longest.extend((most > 0).then(|| Point::new(hour, most as f64)));
    }
    let series =
        vec![Series::new("mean", 0, Draw::Line, means), Series::new("longest", 1, Draw::Line, longest)];
    let panel = panel(phases, scale, Axis::latency(), series);
    let caption = "The mean and the longest request of every interval; the vertical axis has powers of ten.";
    Figure::new("latency-timeline", "Latency over time", Section::Latency, caption, vec![panel])
}
