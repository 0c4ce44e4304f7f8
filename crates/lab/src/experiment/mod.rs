//! The experiment: a question about storage, as a file that can be run.
//!
//! [`Experiment::parse`] resolves a text once: it fills in every default, parses every size and time, and checks
//! every name, so that no later stage parses again. It reports all errors together as one [`BadInput`], each at the
//! line of the file or the `--set` that caused it.
//!
//! ```text
//! name, title, question, source   identity and origin
//! [target]            device | file | directory | block
//! [before-each-cell]  purge, layout, fill              history is explicit
//! [workload]          pattern, block, threads, …       the load and its length
//! [inserts]           connections, data, …             or: inserts of rows into an index
//! [oltp]              engine, warehouses, …            or: TPC-C on a database
//! [sweep]             factors; the cells are their product
//! [repeat]            times, order, seed, track
//! [[event]]           power cuts, faults and pauses during a cell
//! [[step]]            several sweeps with different preparation
//! [[published]]       numbers to compare with
//! [[claim]]           sentences to check
//! [[not-compared]]    published numbers that are not compared, and why
//! ```
//!
//! Later stages make the checks that need the target, such as a check of the size of the data. Their errors point at
//! a key by [`Experiment::blame`].

mod check;
mod claim;
mod comparison;
mod document;
mod error;
mod event;
mod excerpt;
mod finding;
mod inserts;
mod length;
mod level;
mod load;
mod not_compared;
mod oltp;
mod overrides;
mod prepare;
mod read;
mod repeat;
mod replay;
mod resolved;
mod schema;
mod selection;
mod shares;
mod step;
mod sweep;
mod target;
mod track;
mod unit;
mod words;
mod work;

#[cfg(test)]
mod tests;

pub use claim::{Claim, Trend};
pub use comparison::{Bound, Comparison};
pub use error::{BadInput, Problem};
pub use event::{Event, Happens};
pub use finding::{Finding, Form, Measure, Of};
pub use inserts::{Inserts, Placement};
pub use length::Length;
pub use level::{FactorName, Level, is_at, untyped};
pub use load::{Load, Pace, Pattern, SteadyRule, Sync};
pub use not_compared::NotCompared;
pub use oltp::Oltp;
pub use overrides::Override;
pub use prepare::{Filesystem, Fill, Layout, Precondition, Preparation, Purge};
pub use repeat::{Order, Repeat};
pub use replay::{Replay, ReplayPace};
pub use resolved::{Resolved, Unreadable};
pub use selection::{Accept, Selection};
pub use step::{Settings, Step};
pub use sweep::Factor;
pub use target::Target;
pub use track::Track;
pub use unit::{Dimension, Unit};
pub use work::Work;

use document::Document;
use error::Problems;
use lowtide_files::passwords;
use lowtide_oltp::Address;
use read::Table;
use std::ops::{Deref, DerefMut, Range};

/// An experiment, fully resolved.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// A short name for files and campaigns.
    pub name: String,
    /// One-line title; defaults to the name.
    pub title: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The source of the experiment: `published/e02`, or an address.
    pub source: Option<String>,
    /// Published numbers that are not compared, with the reason.
    pub not_compared: Vec<NotCompared>,
    resolved: Resolved,
    document: Document,
}

impl Deref for Experiment {
    type Target = Resolved;

    fn deref(&self) -> &Resolved {
        &self.resolved
    }
}

impl DerefMut for Experiment {
    fn deref_mut(&mut self) -> &mut Resolved {
        &mut self.resolved
    }
}

impl Experiment {
    /// Reads an experiment. `name_of_source` is the name of the text in errors: the path of its file.
    ///
    /// # Errors
    /// [`BadInput`] with every problem of the text and the overrides.
    pub fn parse(name_of_source: &str, text: &str, overrides: &[Override]) -> Result<Experiment, BadInput> {
        let document = Document::new(name_of_source, text)?;
        let document = overrides.iter().try_fold(document, |document, set| set.apply(document))?;
        Self::resolve(document)
    }

    /// The TOML text with all overrides applied, which parses to the same experiment without overrides.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// Removes server passwords from a text, so that it can be stored and shown. The experiment's own text remains
    /// parsable.
    pub fn without_passwords(&self, text: &str) -> String {
        let servers = || self.load.work.transactions().into_iter().flat_map(|oltp| &oltp.servers);
        let mut plain = text.to_owned();
        if text == self.text() {
            // Addresses written with escapes, from last to first, so that earlier spans stay valid.
            let all: Vec<&Address> = servers().collect();
            for (at, address) in all.iter().enumerate().rev() {
                let place = self.document.place(&format!("oltp.servers.{at}"));
                let place = place.or_else(|| self.document.place("oltp.servers").filter(|_| all.len() == 1));
                if let Some(place) = place.filter(|place| text[place.value.clone()].contains('\\')) {
                    let shown = toml::Value::String(address.to_string()).to_string();
                    plain.replace_range(place.value.clone(), &shown);
                }
            }
        }
        let plain =
            servers().fold(plain, |plain, address| plain.replace(address.secret(), &address.to_string()));
        passwords::without(&plain)
    }

    /// The span in [`Experiment::text`] of the value at a dotted path: `sweep.file_size`, `step.0.fill`.
    pub fn span_of(&self, path: &str) -> Option<Range<usize>> {
        self.document.place(path).map(|place| place.value.clone())
    }

    /// The path of a factor of a step: in the step's sweep, in `[sweep]`, or else in `table`.
    pub(crate) fn path_of(&self, step: usize, factor: &str, table: &str) -> String {
        let sweeps = [format!("step.{step}.sweep.{factor}"), format!("sweep.{factor}")];
        let swept = sweeps.into_iter().find(|path| self.span_of(path).is_some());
        swept.unwrap_or_else(|| format!("{table}.{factor}"))
    }

    /// Returns an error that points at the value of `path`. If the value is a default, the error points at the
    /// surrounding table.
    ///
    /// Later stages use it for the errors that they find, such as data that is larger than the device.
    pub fn blame(&self, path: &str, message: impl Into<String>, help: impl Into<String>) -> BadInput {
        let place = self.document.nearest_place(path);
        let span = place.map_or(0..0, |place| place.value.clone());
        self.document.problem(span, message.into()).marked("here").accepting(help).into()
    }

    fn resolve(document: Document) -> Result<Experiment, BadInput> {
        let tables = document.tables();
        let problems = Problems::new(&document);
        let root = Table::root(&tables, &problems);
        root.only(&schema::ROOT);

        let name = root.require_text("name", "\"my-experiment\"");
        let line = |key: &str| root.get(key).and_then(|entry| entry.text("\"…\""));
        let (title, question, source) = (line("title"), line("question"), line("source"));
        if let (Some(source), Some(entry)) = (&source, root.get("source")) {
            check_source(source, &entry);
        }
        let table = |key: &str| root.get(key).and_then(|entry| entry.table());
        let (before, sweep, repeat) = (table("before-each-cell"), table("sweep"), table("repeat"));

        let target = root.require("target", "{ device = \"intel-320-160gb\" }");
        let target = target.and_then(|entry| target::read(&entry.table()?));
        let mut load = read_load(&root);
        let preparation = before.map_or_else(Preparation::default, |table| {
            table.only(&schema::PREPARATION);
            Preparation::default().with(&table)
        });
        let mut sweep = sweep.map_or_else(Vec::new, |table| sweep::read(&table));
        let (target, devices) =
            target.map_or((None, Vec::new()), |(target, devices)| (Some(target), devices));
        if !devices.is_empty() && document.place("sweep.device").is_none() {
            let levels = devices.into_iter().map(Level::Device).collect();
            sweep.insert(0, Factor { name: FactorName::Device, levels });
        }
        let list = |key: &str| root.get(key).map_or_else(Vec::new, |entry| entry.tables());
        let (steps, published) = (list("step"), list("published"));
        let (claims, not_compared, events) = (list("claim"), list("not-compared"), list("event"));
        let events = event::read(events);
        if let Some(load) = &mut load {
            load.events = events;
        }
        let repeat = repeat.map_or_else(Repeat::default, |table| repeat::read(&table, Repeat::default()));
        let steps = step::read(steps, preparation, sweep, repeat.clone());
        let published = comparison::read(published, &steps);
        let claims = claim::read(claims, &steps);
        let not_compared = not_compared::read(not_compared);

        if let (Some(load), true) = (&load, problems.is_empty()) {
            check::Parts { problems: &problems, target: target.as_ref(), load, steps: &steps }.check();
            // Checks individual cells only if there are not too many.
            match step::too_many_cells(&steps) {
                Some(cells) => check::refuse_cells(&problems, cells),
                None => track::check(&problems, &steps),
            }
        }
        problems.finish()?;
        let (Some(name), Some(target), Some(load)) = (name, target, load) else {
            unreachable!("an absent key is a problem")
        };
        let title = title.unwrap_or_else(|| name.clone());
        drop(tables);
        Ok(Experiment {
            name,
            title,
            question,
            source,
            not_compared,
            resolved: Resolved { target, load, steps, repeat, published, claims },
            document,
        })
    }
}

/// Published numbers that no experiment of the catalogue compares, with the reason. The `[[not-compared]]` tables of
/// experiment files list further numbers.
pub fn compared_by_none() -> Vec<NotCompared> {
    let text = include_str!("../../../../published/not-compared.toml");
    let document = Document::new("published/not-compared.toml", text).expect("a test reads the list");
    let tables = document.tables();
    let problems = Problems::new(&document);
    let root = Table::root(&tables, &problems);
    root.only(&schema::EXCUSES);
    let list = root.get("not-compared").map_or_else(Vec::new, |entry| entry.tables());
    let excuses = not_compared::read(list);
    problems.finish().expect("a test reads the list");
    excuses
}

/// Reads the load: `[workload]`, `[inserts]` or `[oltp]`.
fn read_load(root: &Table<'_>) -> Option<load::Load> {
    let mut given: Vec<_> = schema::LOADS.into_iter().filter_map(|load| root.get(load)).collect();
    given.sort_by_key(|entry| entry.key_span.start);
    if let [first, second, ..] = given.as_slice() {
        let message = format!("two loads: `{}` and `{}`", first.name, second.name);
        let label = format!("or `{}`, not both", first.name);
        root.problems.add(second.key_span.clone(), message, label, "remove one of them");
    }
    let Some(entry) = given.into_iter().next() else {
        root.require("workload", "{ … }");
        return None;
    };
    let read = match entry.name.as_str() {
        "inserts" => inserts::read,
        "oltp" => oltp::read,
        _ => load::read,
    };
    Some(read(&entry.table()?))
}

/// Records a `source` of the form `published/…` that names no study. Other sources are free text.
fn check_source(source: &str, entry: &read::Entry<'_>) {
    let Some(study) = source.strip_prefix("published/") else { return };
    if let Err(unknown) = lowtide_files::catalogue::study(study) {
        entry.refuse::<()>(&unknown, unknown.accepted());
    }
}
