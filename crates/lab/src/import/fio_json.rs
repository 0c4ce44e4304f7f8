//! Parses the output of fio with `--output-format=json`, `json+` or `normal,json`: one [`Run`] per job.
//!
//! Text before and after the JSON object is skipped. Version 3 counts bytes and nanoseconds; version 2 counts KiB and
//! microseconds (`io_bytes` without `io_kbytes`, `clat` without `_ns`). With several objects (`--status-interval`)
//! the last one covers the entire run. Latency is `lat_ns` if that has a distribution, else `clat_ns`. Trims and
//! syncs, of which fio prints only counts, become facts.
//!
//! # Not handled
//! The disk statistics that fio prints.

use super::bins;
use super::error::ImportError;
use super::fio_options::{self, Options};
use super::kind::Source;
use super::run::{MOST, MOST_MS, Run};
use crate::store::Measured;
use lowtide_core::{Latency, Nanos};
use lowtide_record::{Percentiles, Row};
use serde_json::Value as Json;

const ACCEPTED: &str = "the whole output of `fio --output-format=json` or `json+`";

/// Every job of a file.
pub(super) fn read(source: &Source) -> Result<Vec<Run>, ImportError> {
    let (whole, passed) = last_object(source)?;
    let at = Place { source, path: String::new(), value: &whole };
    let jobs = at.key("jobs")?;
    let Json::Array(list) = jobs.value else { return Err(jobs.refuse("a list of jobs")) };
    if list.is_empty() {
        return Err(jobs.refuse("a list of at least one job"));
    }
    let global = options(&whole["global options"]);
    let mut runs = Vec::new();
    for (index, job) in list.iter().enumerate() {
        let place = Place { source, path: format!("jobs[{index}]"), value: job };
        let same = |other: &&Json| ["jobname", "groupid"].iter().all(|key| other[*key] == job[*key]);
        let alone = list.iter().filter(same).count() == 1;
        let mut run = self::job(&place, &global, alone)?;
        if !alone {
            // The clones of a job (`numjobs`) that report separately have the same name.
            run.job = format!("{}.{}", run.job, 1 + list[..index].iter().filter(same).count());
        }
        run.facts.splice(0..0, facts(&whole, passed));
        run.started_at = started_at(&whole, job);
        runs.push(run);
    }
    Ok(runs)
}

/// The last fio object in a text, and the number of objects before it.
fn last_object(source: &Source) -> Result<(Json, usize), ImportError> {
    let text = &source.text;
    let mut found = None;
    let mut count = 0;
    for (at, _) in text.match_indices("\"fio version\"") {
        let Some(brace) = text[..at].trim_end().strip_suffix('{').map(str::len) else { continue };
        let mut objects = serde_json::Deserializer::from_str(&text[brace..]).into_iter::<Json>();
        match objects.next() {
            Some(Ok(object)) => {
                found = Some(object);
                count += 1;
            }
            Some(Err(error)) => {
                let before = text[..brace].matches('\n').count();
                let what = if error.is_eof() { "the JSON ends too early".to_owned() } else { reason(&error) };
                let place = (before + error.line(), error.column());
                return Err(ImportError::at(source, place, what, ACCEPTED));
            }
            None => {}
        }
    }
    let none = || ImportError::file(&source.path, "there is no object of fio in it", ACCEPTED);
    found.map(|object| (object, count - 1)).ok_or_else(none)
}

/// The message of serde_json without its own line and column.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    format!("this is not JSON: {}", text.split(" at line ").next().unwrap_or(&text))
}

fn job(place: &Place<'_>, global: &Options, alone: bool) -> Result<Run, ImportError> {
    let job = place.value;
    let mut all = global.clone();
    all.extend(options(&job["job options"]));
    let name = job["jobname"].as_str().unwrap_or("job").to_owned();
    let mut run = Run { program: "fio", job: name, ..Run::default() };
    fio_options::apply(&all, alone, &mut run);
    let (read, write) = (Direction::of(place, "read")?, Direction::of(place, "write")?);
    run.facts.extend(all.iter().map(|(name, value)| (format!("option {name}"), value.clone())));
    run.facts.extend(kept(&[&read, &write]));
    for (name, count) in [("trims", &job["trim"]["total_ios"]), ("syncs", &job["sync"]["total_ios"])] {
        if let Some(count) = count.as_u64().filter(|count| *count > 0) {
            run.facts.push((format!("{name}, not counted"), count.to_string()));
        }
    }
    if let Some(error) = job["error"].as_i64().filter(|error| *error != 0) {
        run.failure = Some(format!("fio ended with error {error}"));
    }
    let errors = job["total_err"].as_u64().unwrap_or(0).min(MOST);
    let ran_ms = read.runtime_ms.max(write.runtime_ms);
    if ran_ms == 0 {
        run.failure
            .get_or_insert_with(|| "fio says that nothing was read or written for a millisecond".to_owned());
        return Ok(run);
    }
    let row = Row {
        start_ns: 0,
        end_ns: ran_ms * 1_000_000,
        reads: read.count,
        read_bytes: read.bytes,
        writes: write.count,
        write_bytes: write.bytes,
        errors,
        read: read.percentiles,
        write: write.percentiles,
        ..Row::default()
    };
    run.measured.push(Measured::new(row, &read.latency, &write.latency));
    Ok(run)
}

/// The results of a job in one direction.
struct Direction {
    count: u64,
    bytes: u64,
    runtime_ms: u64,
    latency: Latency,
    percentiles: Percentiles,
    /// The source of the latency, and the available part of its distribution.
    kept: Option<&'static str>,
}

impl Direction {
    fn of(job: &Place<'_>, name: &str) -> Result<Direction, ImportError> {
        let place = job.key(name)?;
        let unit = if place.value.get("io_kbytes").is_some() { 1 } else { 1024 };
        let count = place.key("total_ios")?.whole(MOST)?;
        let bytes = place.key("io_bytes")?.whole(MOST / unit)? * unit;
        let runtime_ms = place.key("runtime")?.whole(MOST_MS)?;
        let mut direction = Direction {
            count,
            bytes,
            runtime_ms,
            latency: Latency::default(),
            percentiles: Percentiles::default(),
            kept: None,
        };
        if count > 0 {
            direction.latency(&place)?;
        }
        Ok(direction)
    }

    fn latency(&mut self, place: &Place<'_>) -> Result<(), ImportError> {
        let keys = ["lat_ns", "clat_ns", "lat", "clat"];
        let has = |key: &&&str, part: &str| place.value[**key].get(part).is_some_and(Json::is_object);
        let best =
            keys.iter().find(|key| has(key, "bins")).or(keys.iter().find(|key| has(key, "percentile")));
        let Some(key) = best.or(keys.iter().find(|key| place.value.get(**key).is_some())) else {
            return Ok(());
        };
        let unit_ns = if key.ends_with("_ns") { 1 } else { 1000 };
        let place = place.key(key)?;
        let max_ns = place.key("max")?.number()? * unit_ns as f64;
        let mean_ns = place.key("mean")?.number()? * unit_ns as f64;
        let of_clat = key.starts_with("clat");
        let count = place.value["N"].as_u64().unwrap_or(self.count).min(MOST);
        if place.value["bins"].is_object() {
            self.latency = histogram(&place.key("bins")?, unit_ns)?;
            self.kept = Some(if of_clat { "clat, every bin" } else { "lat, every bin" });
        } else if place.value["percentile"].is_object() {
            let list = percentiles(&place.key("percentile")?, unit_ns)?;
            self.latency = bins::of_percentiles(&list, count, max_ns as u64);
            let kept = if of_clat { "clat, by fio's percentiles" } else { "lat, by fio's percentiles" };
            self.kept = (self.latency.count() > 0).then_some(kept);
        }
        self.percentiles = Percentiles { mean_ns, max_ns: max_ns as u64, ..Percentiles::of(&self.latency) };
        self.kept = self.kept.or(Some("mean and longest only"));
        Ok(())
    }
}

/// The bins of JSON+. In version 3 the keys are latencies; in version 2 they are bin numbers, next to the layout.
fn histogram(place: &Place<'_>, unit_ns: u64) -> Result<Latency, ImportError> {
    let Json::Object(bins) = place.value else { return Err(place.refuse("bins by latency")) };
    let layout = bins.get("FIO_IO_U_PLAT_NR").and_then(Json::as_u64);
    let layout = layout.and_then(|count| bins::Layout::of_count(usize::try_from(count).ok()?));
    let mut latency = Latency::default();
    let mut counted = 0;
    for (name, count) in bins.iter().filter(|(name, _)| !name.starts_with("FIO_")) {
        let place = Place { path: format!("{}.{name}", place.path), value: count, ..*place };
        let count = place.whole(MOST - counted)?;
        counted += count;
        let number: u64 = name.parse().map_err(|_| place.refuse("the name of a bin is a whole number"))?;
        let at = match layout {
            Some(layout) => layout.value(usize::try_from(number.min(1 << 12)).expect("small")),
            None => Nanos::new(number.saturating_mul(unit_ns)),
        };
        latency.record_many(at, count);
    }
    Ok(latency)
}

/// Percentiles as `(percent, ns)`, in order of percent.
fn percentiles(place: &Place<'_>, unit_ns: u64) -> Result<Vec<(f64, u64)>, ImportError> {
    let Json::Object(list) = place.value else { return Err(place.refuse("latencies by percent")) };
    let mut found = Vec::new();
    for (name, value) in list {
        let place = Place { path: format!("{}.{name}", place.path), value, ..*place };
        let percent = name.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        let percent =
            percent.ok_or_else(|| place.refuse("the name of a percentile is a number up to 100"))?;
        // fio 2.x pads the end of its list with zeroes.
        if percent > 0.0 {
            found.push((percent, place.whole(MOST / unit_ns)? * unit_ns));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    Ok(found)
}

/// The fact that describes the available latency.
fn kept(directions: &[&Direction]) -> Option<(String, String)> {
    let kept = directions.iter().find_map(|direction| direction.kept)?;
    Some(("latency".to_owned(), kept.to_owned()))
}

fn facts(whole: &Json, passed: usize) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: &Json| {
        if let Some(text) = value.as_str() {
            facts.push((name.to_owned(), text.to_owned()));
        }
    };
    add("fio", &whole["fio version"]);
    add("time", &whole["time"]);
    for host in whole["client_stats"].as_array().into_iter().flatten() {
        add("host", &host["hostname"]);
    }
    if passed > 0 {
        facts.push(("earlier reports in the file, not kept".to_owned(), passed.to_string()));
    }
    facts
}

/// Start time of a job: as newer versions of fio report it, else the time of the output minus the job's duration.
fn started_at(whole: &Json, job: &Json) -> Option<String> {
    let ms = match job["job_start"].as_i64() {
        Some(ms) => ms,
        None => {
            let end = whole["timestamp"].as_i64()?;
            end.checked_sub(job["elapsed"].as_i64().unwrap_or(0))?.checked_mul(1000)?
        }
    };
    jiff::Timestamp::from_millisecond(ms).ok().map(|at| at.to_string())
}

fn options(value: &Json) -> Options {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Json::Object(options) = value else { return Vec::new() };
    options.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// A value with its path, for errors.
struct Place<'a> {
    source: &'a Source,
    path: String,
    value: &'a Json,
}

impl<'a> Place<'a> {
    fn key(&self, key: &str) -> Result<Place<'a>, ImportError> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        match self.value.get(key) {
            Some(value) => Ok(Place { source: self.source, path, value }),
            None => Err(ImportError::file(&self.source.path, format!("`{path}` is missing"), ACCEPTED)),
        }
    }

    fn refuse(&self, accepted: &str) -> ImportError {
        let shown: String = self.value.to_string().chars().take(60).collect();
        let message = format!("`{}` is `{shown}`", self.path);
        ImportError::file(&self.source.path, message, accepted)
    }

    fn whole(&self, most: u64) -> Result<u64, ImportError> {
        let number = self.value.as_u64().filter(|number| *number <= most);
        number.ok_or_else(|| self.refuse(&format!("a whole number from 0 to {most}")))
    }

    fn number(&self) -> Result<f64, ImportError> {
        let number = self.value.as_f64().filter(|number| (0.0..=MOST as f64).contains(number));
        number.ok_or_else(|| self.refuse("a number from 0"))
    }
}
