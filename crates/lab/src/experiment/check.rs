//! Checks between tables: the workload, the sweep and the steps together.
//!
//! Checks that need the target, such as a check of the size of the data, are in module `plan`.

use super::error::Problems;
use super::event;
use super::length::Length;
use super::level::{FactorName, Level};
use super::load::{Load, Pattern};
use super::oltp::Oltp;
use super::schema;
use super::step::{MOST_CELLS, Step};
use super::target::Target;
use super::work::Work;
use lowtide_core::Bytes;
use lowtide_core::workload::Access;
use lowtide_oltp::Address;
use std::ops::Range;

/// The parts of an experiment that are checked together.
pub(super) struct Parts<'a> {
    pub(super) problems: &'a Problems<'a>,
    pub(super) target: Option<&'a Target>,
    pub(super) load: &'a Load,
    pub(super) steps: &'a [Step],
}

impl Parts<'_> {
    /// Records every contradiction.
    pub(super) fn check(&self) {
        event::check(self.problems, self.target, self.load, self.swept("rate").is_some());
        self.once_only();
        self.devices();
        if let Work::Transactions(oltp) = &self.load.work {
            return self.database(oltp);
        }
        self.only_with_databases();
        self.one_size();
        if let Work::Trace(_) = self.load.work {
            return self.traced();
        }
        self.required();
        self.patterns();
        self.several_sizes();
        self.pace();
        self.bursts();
        self.sizes();
    }

    /// Refuses a factor of `[sweep]` with another value elsewhere. `[target]` always names one device; with the
    /// factor `device`, the sweep names the devices to compare.
    fn once_only(&self) {
        for factor in FactorName::NAMES {
            let base = match *factor {
                "device" => "target.device.0".to_owned(),
                "reserve" | "partition" | "filesystem" => format!("before-each-cell.layout.{factor}"),
                "idle" => "before-each-cell.idle".to_owned(),
                factor if self.load.work.is_transactions() => format!("oltp.{factor}"),
                "data_files" => "inserts.data_files".to_owned(),
                factor => format!("workload.{factor}"),
            };
            if let (Some(at), Some(_)) = (self.place(&base), self.place(&format!("sweep.{factor}"))) {
                let base = base.trim_end_matches(".0");
                let message = format!("`{factor}` is given twice: `{base}` and `sweep.{factor}`");
                self.problems.add(
                    at,
                    message,
                    "has no effect",
                    format!("remove it, or `{factor}` in [sweep]"),
                );
            }
        }
        for (key, factor, what) in [
            ("hot-cold", "zipf", "two distributions"),
            ("zones", "zipf", "two distributions"),
            ("blocks", "block", "two block sizes"),
        ] {
            if let (Some(at), Some(_)) = (self.place(&format!("workload.{key}")), self.swept(factor)) {
                let message = format!("{what}: `{key}`, and the factor `{factor}`");
                let help = format!("remove `{key}`, or the factor `{factor}`");
                self.problems.add(at, message, "has no effect", help);
            }
        }
    }

    /// Refuses data with two sizes: in bytes, and as a share of the space for it.
    fn one_size(&self) {
        let message = "two sizes of the data: `file_size` and `utilisation`";
        let add = |at| self.problems.add(at, message, "has no effect", "remove one of them");
        for (base, factor) in [("file_size", "utilisation"), ("utilisation", "file_size")] {
            if let (Some(at), Some(_)) = (self.place(&format!("workload.{base}")), self.swept(factor)) {
                add(at);
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            let both = [FactorName::FileSize, FactorName::Utilisation];
            if both.iter().all(|factor| step.factor(*factor).is_some()) {
                let paths = [format!("step.{index}.sweep"), "sweep".to_owned()];
                let keys = paths
                    .iter()
                    .flat_map(|path| ["utilisation", "file_size"].map(|key| format!("{path}.{key}")));
                add(keys.into_iter().find_map(|key| self.place(&key)).unwrap_or(0..0));
                break;
            }
        }
    }

    /// Refuses factors of requests, because a trace fixes the requests.
    fn traced(&self) {
        let varies = ["file_size", "utilisation", "depth", "reserve", "partition", "idle", "device"];
        for factor in FactorName::NAMES {
            if let (Some(at), false) = (self.swept(factor), varies.contains(factor)) {
                let help = format!("factors of a trace: {}", varies.join(", "));
                self.problems.add(at, format!("the factor `{factor}` with `trace`"), "has no effect", help);
            }
        }
    }

    fn required(&self) {
        for (factor, example) in [("pattern", "\"random-write\""), ("block", "\"16KiB\"")] {
            let given = self.place(&format!("workload.{factor}")).is_some()
                || factor == "block" && self.place("workload.blocks").is_some()
                || self.steps.iter().all(|step| step.sweep.iter().any(|own| own.name.name() == factor));
            if let (false, Some(workload)) = (given, self.place_of_value("workload")) {
                let help = format!("write for example `{factor} = {example}`");
                self.problems.add(workload, format!("`{factor}` is missing in [workload]"), "here", help);
            }
        }
    }

    fn patterns(&self) {
        let patterns: Vec<Pattern> = self.steps.iter().flat_map(|step| self.patterns_of(step)).collect();
        let any = |wanted: fn(Pattern) -> bool| patterns.iter().any(|pattern| wanted(*pattern));
        match self.written("mix") {
            None if any(Pattern::is_mixed) => {
                let at = self.written("pattern").unwrap_or(0..0);
                let help = "add the share of reads, such as `mix = 0.83`";
                self.problems.add(at, "a mixed pattern without `mix`", "reads and writes", help);
            }
            Some(at) => {
                let swept = |step: &&Step| step.factor(FactorName::Mix).is_some();
                let wasted =
                    self.steps.iter().filter(swept).any(|s| !self.patterns_of(s).all(Pattern::is_mixed));
                if !any(Pattern::is_mixed) || wasted {
                    let message = "`mix` with a pattern that only reads or only writes";
                    let help =
                        "`random-mixed` or `sequential-mixed` (or `random`, `sequential`), or remove `mix`";
                    self.problems.add(at, message, "has no effect there", help);
                }
            }
            None => {}
        }
        for (keys, access, name) in [
            (&["zipf", "hot-cold", "zones"][..], Access::Random, "random"),
            (&["streams"][..], Access::Sequential, "sequential"),
        ] {
            for key in keys {
                let Some(at) = self.written(key) else { continue };
                if !patterns.iter().any(|pattern| pattern.access() == access) {
                    let help = format!("a {name} pattern, or remove `{key}`");
                    self.problems.add(
                        at,
                        format!("`{key}` belongs to {name} patterns"),
                        "has no effect",
                        help,
                    );
                }
            }
        }
    }

    /// Refuses several block sizes for a sequential stream, because its threads share the stream block by block.
    fn several_sizes(&self) {
        let Some(at) = self.place("workload.blocks") else { return };
        let sequential = |pattern: Pattern| pattern.access() == Access::Sequential;
        if self.steps.iter().flat_map(|step| self.patterns_of(step)).any(sequential) {
            let help = "a random pattern, or `block = \"…\"` in place of `blocks`";
            self.problems.add(at, "`blocks` with a sequential pattern, which has one size", "here", help);
        }
    }

    fn patterns_of<'s>(&'s self, step: &'s Step) -> impl Iterator<Item = Pattern> + 's {
        let factor = step.factor(FactorName::Pattern);
        let swept = factor.into_iter().flat_map(|factor| &factor.levels).filter_map(|level| match level {
            Level::Pattern(pattern) => Some(*pattern),
            _ => None,
        });
        swept.chain(factor.is_none().then_some(self.load.pattern))
    }

    fn pace(&self) {
        let rate = self.written("rate");
        let Some(arrival) = self.problems.document.place("workload.arrival") else { return };
        let closed =
            self.problems.document.text()[arrival.value.clone()].trim_matches(['"', '\'']) == "closed";
        if let (Some(at), true) = (&rate, closed) {
            let help = "`arrival = \"fixed\"` or `\"poisson\"`, or remove `rate`";
            self.problems.add(
                at.clone(),
                "`rate` with a closed loop, which has no rate",
                "has no effect",
                help,
            );
        }
        if rate.is_none() && !closed {
            let help = "add the requests per second, such as `rate = 1000`";
            self.problems.add(arrival.value.clone(), "an open loop without `rate`", "needs a rate", help);
        }
    }

    /// Checks the target, the factors and the number of instances of a database.
    fn database(&self, oltp: &Oltp) {
        for name in FactorName::NAMES {
            if let (Some(at), false) = (self.swept(name), fits_databases(name)) {
                let message = format!("the factor `{name}` is not one of databases");
                let names: Vec<_> =
                    FactorName::NAMES.iter().copied().filter(|name| fits_databases(name)).collect();
                self.problems.add(
                    at,
                    message,
                    "has no effect",
                    format!("factors here: {}", names.join(", ")),
                );
            }
        }
        self.modelled(oltp);
        let levels = |factor: FactorName, base: u32, pick: fn(f64, f64) -> f64| {
            let swept = self.steps.iter().filter_map(|step| step.factor(factor));
            let numbers = swept.flat_map(|factor| factor.levels.iter().filter_map(Level::number));
            numbers.reduce(pick).unwrap_or(f64::from(base))
        };
        let warehouses = levels(FactorName::Warehouses, oltp.warehouses, f64::min);
        let instances = levels(FactorName::Instances, oltp.instances, f64::max);
        let terminals = levels(FactorName::Terminals, self.load.threads, f64::min);
        let written_instances = || self.written_for_databases("instances").or(Some(0..0));
        let servers = || self.place("oltp.servers");
        let refuse = |at: Option<Range<usize>>, message: &str, label: &str, help: &str| {
            if let Some(at) = at {
                self.problems.add(at, message, label, help);
            }
        };
        if let Some(Target::File(_)) = self.target {
            let help = "`directory = \"/data\"`, a block device, or a simulated device";
            refuse(self.place("target.file"), "a database in a single file", "needs a directory", help);
        }
        if !self.load.events.is_empty() {
            let message = "events under a database, which runs in wall time";
            refuse(self.place("event"), message, "here", "events happen in virtual time: `[workload]`");
        }
        let help = "rounds belong to `[workload]`; use `until = \"steady\"`";
        refuse(self.place("repeat.track"), "rounds of a database", "here", help);
        if instances > warehouses {
            let message = format!("{instances} instances share {warehouses} warehouses");
            refuse(written_instances(), &message, "here", "at least a warehouse for each instance");
        }
        if instances > terminals {
            let message = format!("{instances} instances share {terminals} terminals");
            refuse(written_instances(), &message, "here", "at least a terminal for each instance");
        }
        if oltp.settings.engine.is_embedded() {
            let help = "`engine = \"mariadb\"` or `\"postgresql\"`: SQLite has no servers";
            refuse(servers(), "servers of SQLite", "here", help);
        }
        if !matches!(self.target, Some(Target::Directory(_)) | None) {
            let help = "`target.directory`: the directory with the servers' data, to observe their device";
            refuse(servers(), "existing servers on a device that lowtide prepares", "here", help);
        }
        if !oltp.servers.is_empty()
            && (oltp.servers.len() as u32 != oltp.instances || self.swept("instances").is_some())
        {
            let message = format!("{} servers for {} instances", oltp.servers.len(), oltp.instances);
            let help = "as many `servers` as `instances`, which are not varied";
            refuse(servers().or(Some(0..0)), &message, "here", help);
        }
        if !self.on_simulated() {
            let help = "`log-directory = \"…\"`, or a simulated device as the target";
            let message = "a simulated device for the log of a real target";
            refuse(self.written_for_databases("log_device"), message, "here", help);
        }
        if let Some(Target::Device(_)) = self.target {
            let help = "`log_device = \"…\"`: a simulated device, like the target";
            let message = "a directory of this machine for the log of a simulated target";
            refuse(self.place("oltp.log-directory"), message, "here", help);
        }
        if !oltp.servers.is_empty() {
            self.servers_of_others(oltp);
        }
    }

    /// Refuses settings that a modelled engine does not have.
    fn modelled(&self, oltp: &Oltp) {
        let swept = self.steps.iter().filter_map(|step| step.factor(FactorName::Engine));
        let levels = swept.flat_map(|factor| &factor.levels).filter_map(|level| match level {
            Level::Engine(engine) => Some(engine.is_modelled()),
            _ => None,
        });
        let mut all: Vec<bool> = levels.collect();
        if all.is_empty() {
            all.push(oltp.settings.engine.is_modelled());
        }
        if !all.contains(&true) {
            return;
        }
        let at = |key: &str| self.written_for_databases(key).unwrap_or(0..0);
        if all.contains(&false) {
            let help = "one experiment for models, in virtual time, and one for databases";
            self.problems.add(at("engine"), "modelled engines and databases in one experiment", "here", help);
        }
        if !self.on_simulated() {
            let help = "`target.device = \"…\"`: `lowtide devices` lists simulated devices";
            self.problems.add(at("engine"), "a modelled engine on a real target", "here", help);
        }
        if oltp.think {
            let message = "terminals of a modelled engine have no think time";
            self.problems.add(at("think"), message, "here", "`think = false`");
        }
        for key in ["instances", "servers", "data_files", "flush_method", "read_ahead"] {
            if let Some(at) = self.written_for_databases(key) {
                let message = format!("`{key}` of a modelled engine, which has none");
                self.problems.add(at, message, "has no effect", "remove it");
            }
        }
    }

    /// Refuses settings of servers if the servers exist already, because lowtide does not change their settings.
    fn servers_of_others(&self, oltp: &Oltp) {
        let loads = ["servers", "engine", "warehouses", "terminals", "instances", "think", "check"];
        let lengths = ["duration", "until", "max", "precision", "interval", "steady"];
        let settings = schema::OLTP.names().filter(|key| !loads.contains(key) && !lengths.contains(key));
        for key in settings {
            if let Some(at) = self.written_for_databases(key) {
                let message = format!("`{key}` with `servers`, whose settings lowtide does not change");
                let help = "remove it, or remove `servers`: lowtide then starts servers of its own";
                self.problems.add(at, message, "has no effect", help);
            }
        }
        if let Some(at) = self.swept("engine") {
            let help = "`oltp.engine`, to match the addresses of `servers`";
            self.problems.add(at, "the factor `engine` with `servers`", "has no effect", help);
        }
        let schemes = oltp.settings.engine.schemes();
        let fits = |address: &Address| schemes.iter().any(|scheme| address.secret().starts_with(scheme));
        if !oltp.servers.iter().all(fits) {
            let at = self.place("oltp.engine").or_else(|| self.place("oltp.servers")).unwrap_or(0..0);
            let help = "`mariadb` for `mariadb://…` and `mysql://…`, `postgresql` for `postgresql://…`";
            let message = format!("the engine `{}` on these `servers`", oltp.settings.engine.name());
            self.problems.add(at, message, "here", help);
        }
    }

    fn on_simulated(&self) -> bool {
        matches!(self.target, Some(Target::Device(_)) | None)
    }

    fn written_for_databases(&self, key: &str) -> Option<Range<usize>> {
        self.place(&format!("oltp.{key}")).or_else(|| self.swept(key))
    }

    /// Refuses factors of databases if the load is not a database.
    fn only_with_databases(&self) {
        for name in FactorName::NAMES {
            let elsewhere = [schema::WORKLOAD, schema::INSERTS, schema::AROUND_A_DATABASE];
            let is_only_of_databases =
                schema::OLTP.contains(name) && !elsewhere.iter().any(|keys| keys.contains(name));
            if let (Some(at), true) = (self.swept(name), is_only_of_databases) {
                let help = "an `[oltp]` table instead of `[workload]`, or another factor";
                let message = format!("the factor `{name}` varies a database, and there is none");
                self.problems.add(at, message, "has no effect", help);
            }
        }
    }

    /// Refuses pauses without bursts, and bursts without a duration.
    fn bursts(&self) {
        if let (None, Some(at)) = (self.load.burst, self.written("pause")) {
            let help = "add how long the load lasts until each pause, such as `burst = \"5s\"`";
            self.problems.add(at, "`pause` without `burst`", "after what?", help);
        }
        if let (Some(at), false) = (self.place("workload.burst"), matches!(self.load.length, Length::For(_)))
        {
            let help = "end the measurement by `duration`, which counts the time of the bursts";
            self.problems.add(at, "`burst` in a measurement that does not end by its duration", "here", help);
        }
    }

    fn devices(&self) {
        let Some(at) = self.written("device") else { return };
        let help =
            "name one device in [target] and the devices to compare in [sweep], or list them in [target]";
        if !self.on_simulated() {
            self.problems.add(at, "the factor `device` varies a target that is not a device", "here", help);
        }
    }

    /// Refuses data that is smaller than one block in each file.
    fn sizes(&self) {
        for (index, step) in self.steps.iter().enumerate() {
            let files = u64::from(step.preparation.layout.files);
            let blocks =
                step.factor(FactorName::Block).map(|factor| factor.levels.iter().filter_map(Level::number));
            let block =
                blocks.map_or(self.load.block, |blocks| Bytes::new(blocks.fold(0.0, f64::max) as u64));
            let too_small = |size: Bytes| size.get() / files < block.get();
            let swept = step.factor(FactorName::FileSize).and_then(|factor| {
                let mut levels = factor.levels.iter().enumerate();
                levels.find_map(|(at, level)| match level {
                    Level::FileSize(size) if too_small(*size) => Some((*size, Some(at))),
                    _ => None,
                })
            });
            let varied = [FactorName::FileSize, FactorName::Utilisation];
            let varied = varied.iter().any(|factor| step.factor(*factor).is_some());
            let base = self.load.file_size.filter(|_| !varied);
            let Some((size, at)) = swept.or(base.filter(|size| too_small(*size)).map(|size| (size, None)))
            else {
                continue;
            };
            let own = format!("step.{index}.sweep.file_size");
            let key = [own.as_str(), "sweep.file_size", "workload.file_size"]
                .into_iter()
                .find(|path| self.place(path).is_some())
                .unwrap_or("workload");
            let place = at.and_then(|at| self.place_of_value(&format!("{key}.{at}")));
            let place = place.or(self.place_of_value(key)).unwrap_or(0..0);
            let each = if files > 1 { format!(" in each of {files} files") } else { String::new() };
            let message = format!("`file_size`: {size} is smaller than a block of {block}{each}");
            self.problems.add(place, message, "here", format!("at least {block}{each}"));
        }
    }

    /// The first place of a key: in the workload, in the sweep, or in a step's sweep.
    fn written(&self, key: &str) -> Option<Range<usize>> {
        self.place(&format!("workload.{key}")).or_else(|| self.swept(key))
    }

    /// The first place of a factor: in the sweep, or in a step's sweep.
    fn swept(&self, key: &str) -> Option<Range<usize>> {
        let steps = (0..self.steps.len()).map(|step| format!("step.{step}.sweep.{key}"));
        std::iter::once(format!("sweep.{key}")).chain(steps).find_map(|path| self.place(&path))
    }

    fn place(&self, path: &str) -> Option<Range<usize>> {
        self.problems.document.place(path).map(|place| place.key.clone())
    }

    fn place_of_value(&self, path: &str) -> Option<Range<usize>> {
        self.problems.document.place(path).map(|place| place.value.clone())
    }
}

/// Records that there are too many cells.
pub(super) fn refuse_cells(problems: &Problems<'_>, cells: u128) {
    let place = problems.document.nearest_place("sweep").map_or(0..0, |place| place.value.clone());
    let help = format!("at most {MOST_CELLS}: fewer levels of a factor, or fewer repetitions");
    problems.add(place, format!("{cells} cells"), "here", help);
}

/// Returns whether an experiment with a database may vary the factor.
fn fits_databases(factor: &str) -> bool {
    schema::OLTP.contains(factor) || schema::AROUND_A_DATABASE.contains(factor)
}
