//! The tables of rounds: test flow, measurement windows, and result matrices.

use super::course::{Course, Point};
use super::words::{self, DisplayUnit};
use crate::group::{distinct, grouped};
use crate::number::{percent, size};
use crate::sweep::slug;
use crate::table::{Align, Column, Digits, Table, Value};
use lowtide_core::workload::Distribution;
use lowtide_lab::experiment::{FactorName, Level, Load, Of, Pattern, Purge, Resolved, Step};
use lowtide_record::Campaign;
use lowtide_record::analysis::Snia;

/// Up to this many steps have a column each; more steps are summarised in one column.
const MOST_BESIDE: usize = 3;

/// The test procedure, in the terms of the specification.
pub(crate) fn flow(experiment: &Resolved, campaign: &Campaign) -> Table {
    let steps = &experiment.steps;
    let facts: Vec<Vec<(&str, String)>> =
        steps.iter().map(|step| facts(experiment, campaign, step)).collect();
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_deref().unwrap_or("value")).collect();
    let beside = (2..=MOST_BESIDE).contains(&steps.len());
    let mut columns = vec![Column::text("what", "what").naming()];
    if beside {
        let column = |(n, name): (usize, &&str)| Column::text(&format!("step_{}", n + 1), name);
        columns.extend(names.iter().enumerate().map(column));
    } else {
        columns.push(Column::text("value", "value"));
    }
    let mut rows = Vec::new();
    for (row, (what, _)) in facts[0].iter().enumerate() {
        let values: Vec<&str> = facts.iter().map(|facts| facts[row].1.as_str()).collect();
        if values.iter().all(|value| value.is_empty()) {
            continue;
        }
        let shown = if beside {
            values.iter().map(|value| Value::text(*value)).collect()
        } else {
            vec![together(&names, &values)]
        };
        rows.push(std::iter::once(Value::text(*what)).chain(shown).collect());
    }
    Table::new("flow", "Test flow", columns, rows)
}

/// The values of many steps as one text: `secure-erase (saturation); none (other steps)`.
fn together(names: &[&str], values: &[&str]) -> Value {
    let groups = grouped(values.iter().copied().zip(names.iter().copied()));
    if let [(value, _)] = groups.as_slice() {
        return Value::text(*value);
    }
    let most = groups.iter().map(|(_, steps)| steps.len()).max().unwrap_or(0);
    let (rest, few): (Vec<_>, Vec<_>) = groups.iter().partition(|(_, steps)| steps.len() == most && most > 1);
    let named = |(value, steps): &&(&str, Vec<&str>), steps_are: Option<&str>| {
        let steps = steps_are.map_or_else(|| steps.join(", "), str::to_owned);
        format!("{} ({steps})", if value.is_empty() { "none" } else { value })
    };
    let one = if rest.len() == 1 { Some("other steps") } else { None };
    let parts = few.iter().map(|group| named(group, None)).chain(rest.iter().map(|group| named(group, one)));
    Value::text(parts.collect::<Vec<_>>().join("; "))
}

/// The settings of a step by name. Every step has the same names; settings without a meaning are empty.
fn facts(experiment: &Resolved, campaign: &Campaign, step: &Step) -> Vec<(&'static str, String)> {
    let first = step.points().next().unwrap_or_default();
    let settings = experiment.settings(step, &first);
    let load = &settings.load;
    let swept = |name: FactorName, base: String| match step.factor(name) {
        Some(factor) => factor.levels.iter().map(words::level).collect::<Vec<_>>().join(", "),
        None => base,
    };
    let simulated = !campaign.devices.is_empty() || campaign.target.starts_with("block:");
    let purge = match step.purge_before {
        Purge::None => "none".to_owned(),
        purge if !simulated => format!("{purge}, not available for files: not done"),
        purge => purge.to_string(),
    };
    let precondition = step
        .precondition
        .map(|passes| format!("{} × the active range, sequential writes of {}", passes.times, passes.block));
    let cell = campaign.cells.iter().find(|cell| cell.step == step.name);
    let range = cell.map(|cell| {
        let scale = campaign.scale.max(1) as f64;
        let [data, capacity] = [cell.data, cell.capacity].map(|bytes| bytes.get() as f64 * scale);
        format!("{} of {} ({})", size(data), size(capacity), percent(data / capacity))
    });
    let mixed = Pattern::is_mixed(load.pattern);
    let mix = if mixed { words::level(&Level::Mix(load.mix)) } else { String::new() };
    let outstanding = |name, base: u32| step.factor(name).is_some() || base > 0;
    let oio = match (step.factor(FactorName::Threads), step.factor(FactorName::Depth)) {
        (None, None) => {
            let (threads, depth) = (load.threads, load.depth);
            format!("{} ({threads} × {depth})", threads * depth)
        }
        _ if outstanding(FactorName::Threads, load.threads) => format!(
            "threads {}; queue depth {}",
            swept(FactorName::Threads, load.threads.to_string()).replace("threads ", ""),
            swept(FactorName::Depth, load.depth.to_string()).replace("depth ", "")
        ),
        _ => String::new(),
    };
    let length = load.length.longest().map_or_else(String::new, |span| span.to_string());
    let pauses = load.bursts().map(|(burst, pause)| format!("{pause} after every {burst}"));
    let rounds = step.repeat.track.as_ref().map(|_| format!("at most {}", step.repeat.times));
    let tracked = step.repeat.track.as_ref().map(|track| {
        let part = track.first.map(|first| format!(", first {first} of each")).unwrap_or_default();
        let cells = track.cells.label();
        let at = if cells == "every cell" { String::new() } else { format!(" at {cells}") };
        format!("{}{at}{part}", DisplayUnit::of(track.of, 0.0).name)
    });
    vec![
        ("purge", purge),
        ("preconditioning", precondition.unwrap_or_else(|| "none".to_owned())),
        ("active range", range.unwrap_or_default()),
        ("access", swept(FactorName::Pattern, load.pattern.to_string())),
        ("reads/writes", swept(FactorName::Mix, mix).replace("R/W ", "")),
        ("addresses", addresses(load)),
        ("block", swept(FactorName::Block, blocks(load))),
        ("outstanding I/O (threads × depth)", oio),
        ("data pattern", "random, not compressible".to_owned()),
        ("pauses", pauses.unwrap_or_default()),
        ("each point", length),
        ("rounds", rounds.unwrap_or_default()),
        ("tracked", tracked.unwrap_or_default()),
    ]
}

/// The request size, or each of several sizes with its share.
fn blocks(load: &Load) -> String {
    let Some(blocks) = &load.blocks else { return load.block.to_string() };
    let named = blocks.iter().map(|block| format!("{} {}", block.size, percent(block.share)));
    named.collect::<Vec<_>>().join(", ")
}

/// The distribution of random requests, unless it is uniform.
fn addresses(load: &Load) -> String {
    let zones = match &load.distribution {
        Distribution::Uniform => return String::new(),
        Distribution::Zipf { exponent } => return format!("Zipf with exponent {exponent}"),
        Distribution::Zones(zones) => zones,
    };
    let last = zones.len() - 1;
    let named = zones.iter().enumerate().map(|(at, zone)| {
        let which = if at == 0 {
            "first"
        } else if at == last {
            "last"
        } else {
            "next"
        };
        format!("{} to the {which} {}", percent(zone.access), percent(zone.data))
    });
    named.collect::<Vec<_>>().join(", ")
}

/// The measurement window of a course: every tracked point with its rounds and the rule's statistics.
pub(crate) fn window(course: &Course<'_>, number: usize, several: bool) -> Option<Table> {
    let rule = Snia::default();
    let shown = words::shown(course);
    let factors = words::varying(course);
    let value = |key: &str, name: &str| Column::number(key, name, shown.unit).scaled(shown.scale);
    let mut columns = vec![
        Column { align: Align::Left, ..Column::text("tracked", "tracked").naming() },
        Column::text("steady", "steady?"),
    ];
    for round in course.window.clone() {
        columns.push(value(&format!("round_{}", round + 1), &format!("round {}", round + 1)));
    }
    columns.extend([
        value("average", "average"),
        value("excursion", "max\u{a0}−\u{a0}min"),
        value("excursion_limit", "limit (20\u{a0}%)"),
        value("slope", "slope").digits(Digits::Each),
        value("slope_excursion", "slope\u{a0}×\u{a0}span").digits(Digits::Each),
        value("slope_limit", "limit (10\u{a0}%)"),
    ]);
    let mut rows = Vec::new();
    for point in course.tracked() {
        let Some(seen) = course.seen(point) else { continue };
        let name = match words::point(point, &factors) {
            name if name.is_empty() => shown.name.to_owned(),
            name => name,
        };
        let mut row = vec![Value::text(name), Value::Flag(seen.steady, ["yes", "no"])];
        row.extend(course.values(point)[course.window.clone()].iter().map(|value| Value::number(*value)));
        row.extend([seen.average, seen.excursion, rule.excursion * seen.average].map(Value::Number));
        row.extend([seen.slope, seen.rise.abs(), rule.slope * seen.average].map(Value::Number));
        rows.push(row);
    }
    let kind =
        if course.steady { "Steady-state measurement window" } else { "Last rounds, which are not steady" };
    let name = words::course(course, several);
    let key = if several { format!("window_{number}") } else { "window".to_owned() };
    let title = if name.is_empty() { kind.to_owned() } else { format!("{kind}: {name}") };
    let note = "Steady: over five rounds the values span at most 20 % of their average, and the least-squares line \
                through them changes by at most 10 % of it.";
    (!rows.is_empty()).then(|| Table::new(key, title, columns, rows).with_note(note))
}

/// A number for each point over the window of its course: rows by the last factor, columns by the first.
pub(crate) struct Matrix<'m, 'c> {
    pub courses: &'m [&'m Course<'c>],
    /// The factors with several values over all courses, in sweep order.
    pub factors: Vec<FactorName>,
}

impl<'m, 'c> Matrix<'m, 'c> {
    /// The matrix of courses with more than one point; `None` unless two factors vary.
    pub fn of(courses: &'m [&'m Course<'c>]) -> Option<Self> {
        let points = courses.iter().flat_map(|course| &course.points);
        let levels = points.flat_map(|point| &point.levels).map(|level| (level.factor(), level.to_string()));
        let varies = |(name, values): &(FactorName, Vec<String>)| {
            *name != FactorName::Device && distinct(values).len() > 1
        };
        let several = grouped(levels).into_iter().filter(varies);
        let factors: Vec<FactorName> = several.map(|(name, _)| name).collect();
        (factors.len() == 2).then_some(Matrix { courses, factors })
    }

    /// The names of the columns and of the rows, in sweep order.
    pub fn headings(&self) -> [Vec<String>; 2] {
        [0, 1].map(|place| {
            let points = self.courses.iter().flat_map(|course| &course.points);
            distinct(points.map(|point| words::point(point, &self.factors[place..=place])))
        })
    }

    /// The point in a column and a row, with its course.
    pub fn find(&self, column: &str, row: &str) -> Option<(&'m Course<'c>, &'m Point<'c>)> {
        let is = |point: &Point<'_>, place: usize, name: &str| {
            words::point(point, &self.factors[place..=place]) == name
        };
        self.courses.iter().find_map(|course| {
            let point = course.points.iter().find(|point| is(point, 0, column) && is(point, 1, row))?;
            Some((*course, point))
        })
    }

    /// The table of one quantity.
    pub fn table(
        &self,
        key: &str,
        title: &str,
        shown: DisplayUnit,
        value: impl Fn(&Course<'c>, &Point<'c>) -> Option<f64>,
    ) -> Table {
        let [across, down] = self.headings();
        let corner = self.factors[1].name().replace('_', " ");
        let mut columns =
            vec![Column { align: Align::Right, ..Column::text(&slug(&corner), &corner).naming() }];
        columns.extend(across.iter().map(|name| {
            let key = format!("{}_{}", shown.key, slug(name));
            Column::each(&key, name, shown.unit).scaled(shown.scale).shaded()
        }));
        let rows = down
            .iter()
            .map(|row| {
                let cell = |column: &String| {
                    Value::number(self.find(column, row).and_then(|(course, point)| value(course, point)))
                };
                std::iter::once(Value::text(row)).chain(across.iter().map(cell)).collect()
            })
            .collect();
        let rounds = match self.courses.iter().all(|course| course.steady) {
            true => "the rounds of the measurement window",
            false => "the last rounds, not all of which were steady",
        };
        let note = format!("The mean over {rounds}; the stronger the colour, the larger, by powers of ten.");
        Table::new(key, title, columns, rows).with_note(note)
    }

    /// The tables of the tracked quantity.
    pub fn tables(&self) -> Vec<Table> {
        let of = self.courses[0].track.of;
        let most = |value: &dyn Fn(&Course<'c>, &Point<'c>) -> Option<f64>| {
            let values =
                self.courses.iter().flat_map(|course| course.points.iter().map(|p| value(course, p)));
            values.flatten().fold(0.0, f64::max)
        };
        let mean = |course: &Course<'c>, point: &Point<'c>| course.mean(point, of);
        let shown = DisplayUnit::of(of, most(&mean));
        let title = match of {
            Of::Throughput => "Throughput",
            Of::Iops => "IOPS",
            Of::NewOrders => "New orders",
            _ => "Mean latency",
        };
        let mut tables = vec![self.table("matrix", title, shown, mean)];
        if of == Of::MeanLatency {
            let longest = |course: &Course<'c>, point: &Point<'c>| course.longest_ns(point);
            let shown = DisplayUnit::latency("maximum latency", "latency_ns_max", most(&longest));
            let table = self.table("matrix_maximum", "Maximum latency", shown, longest);
            tables.push(Table { note: table.note.replace("The mean", "The longest request"), ..table });
        }
        tables
    }
}
