//! Limits on measurements and settings. All are checked before anything is computed from them.
//!
//! A search with checked input ends in bounded time and does not panic. Module `read` checks the syntax of tables,
//! and `fixed` the syntax of `--fix`.

use super::data::{Measured, Point};
use super::family::Family;
use super::{BLOCK, FitError, Fixed, MIB, Question, THREADS};
use lowtide_core::Bytes;
use std::ops::RangeInclusive;

/// Valid request sizes in bytes.
const BLOCKS: RangeInclusive<u64> = 512..=16 << 20;
/// Valid numbers of requests in flight.
const IN_FLIGHT: RangeInclusive<u32> = 1..=65_536;
/// Maximum number of levels at different sizes: each is simulated several times.
const MOST_LEVELS: usize = 100;
/// Maximum number of sizes to predict.
const MOST_PREDICTED: usize = 100;
/// The slowest valid level, in bytes/s.
const SLOWEST: f64 = 1024.0;
/// The fastest valid level, in bytes/s: faster than any drive. A family may have a lower limit.
const FASTEST: f64 = 1e12;
/// Valid standard deviations, as a share of the level.
const DEVIATIONS: RangeInclusive<f64> = 1e-4..=1.0;

/// Checked input of a search.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) family: Family,
    /// Range of raw NAND to search, in bytes.
    pub(super) raw: (f64, f64),
    /// Assumptions, a sentence each.
    pub(super) notes: Vec<String>,
}

/// Checks the settings alone.
///
/// # Errors
/// [`FitError::Setting`] with the option, its value and the accepted values.
pub(super) fn question(question: &Question) -> Result<(), FitError> {
    let refuse = |why: String| Err(FitError::Setting(why));
    if let Some(block) = question.block {
        self::block("--block ", block)?;
    }
    if question.capacity == Some(Bytes::ZERO) {
        return refuse("--capacity 0B: a drive has some; say what it reports, such as `160GB`".to_owned());
    }
    if let Some(threads) = question.threads.filter(|it| !IN_FLIGHT.contains(it)) {
        let (least, most) = IN_FLIGHT.into_inner();
        return refuse(format!("--threads {threads}: requests in flight are from {least} to {most}"));
    }
    if question.predict.len() > MOST_PREDICTED {
        let count = question.predict.len();
        return refuse(format!(
            "--predict: {count} sizes, and {MOST_PREDICTED} at most are simulated: give fewer"
        ));
    }
    if question.budget == 0 {
        return refuse(
            "--budget 0: nothing can be simulated; leave it out, or give some millions".to_owned(),
        );
    }
    Ok(())
}

/// Checks a level or the rate of an interval, in bytes/s.
///
/// # Errors
/// A message with the accepted range.
pub(super) fn rate(rate: f64) -> Result<f64, String> {
    if (SLOWEST..=FASTEST).contains(&rate) {
        return Ok(rate);
    }
    Err(format!(
        "a level of {} MiB/s: from {:.3} to {:.0} MiB/s are accepted; is the column in its unit (`throughput` in MiB/s, `iops` in \
         requests of `--block` a second)?",
        shown(rate / MIB),
        SLOWEST / MIB,
        FASTEST / MIB
    ))
}

/// Checks a standard deviation, as a share of its level. 0 means unknown and gives `None`.
///
/// # Errors
/// A message with the accepted range.
pub(super) fn deviation(share: f64) -> Result<Option<f64>, String> {
    if share == 0.0 {
        return Ok(None);
    }
    if DEVIATIONS.contains(&share) {
        return Ok(Some(share));
    }
    let (least, most) = DEVIATIONS.into_inner();
    Err(format!(
        "a deviation of {} % of its level: from {} % to {} % are accepted, in the unit of the level, or 0 where it is not known",
        shown(share * 100.0),
        least * 100.0,
        most * 100.0
    ))
}

/// Formats a number of any magnitude for a message.
fn shown(number: f64) -> String {
    if number == 0.0 || (1e-3..1e9).contains(&number.abs()) {
        format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{number:e}")
    }
}

fn block(option: &str, block: Bytes) -> Result<(), FitError> {
    if BLOCKS.contains(&block.get()) && block.get().is_multiple_of(512) {
        return Ok(());
    }
    let (least, most) = BLOCKS.into_inner();
    let (least, most) = (Bytes::new(least), Bytes::new(most));
    Err(FitError::Setting(format!(
        "{option}{block}: requests are a multiple of 512B, from {least} to {most}, such as `4KiB` or `16KiB`"
    )))
}

/// Checks the measurements against the settings, and both against the family of drives.
///
/// # Errors
/// [`FitError`] with the line or option, its value, the accepted values and a remedy.
pub(super) fn check(measured: &Measured, question: &Question) -> Result<Checked, FitError> {
    self::question(question)?;
    count(measured, &question.fixed)?;
    let capacity = question.capacity.or(measured.capacity).ok_or_else(|| {
        FitError::Setting(
            "how much the host may address is not known: say it with `--capacity`, as the drive reports it"
                .to_owned(),
        )
    })?;
    let mut notes = Vec::new();
    let mut assumed =
        |what: &str, value: String| notes.push(format!("assumed: {what} {value}; nothing says"));
    let block = question.block.or(measured.block).unwrap_or_else(|| {
        assumed("requests of", BLOCK.to_string());
        BLOCK
    });
    let threads = question.threads.or(measured.threads).unwrap_or_else(|| {
        assumed("requests in flight:", THREADS.to_string());
        THREADS
    });
    // A campaign may come from an untrusted store, so its values are checked too.
    self::block("requests of ", block)?;
    if !IN_FLIGHT.contains(&threads) {
        let (least, most) = IN_FLIGHT.into_inner();
        return Err(FitError::Data(format!(
            "{}: {threads} requests in flight; from {least} to {most} are fitted",
            measured.name
        )));
    }
    let family = Family::new(question.like.as_ref(), capacity, block, threads)?;
    let raw = raw(&family, &question.fixed, capacity)?;
    costs(&family, &question.fixed, capacity)?;
    let sizes = Sizes { least: family.least_data(raw.1), capacity };
    levels(measured, &family, &sizes)?;
    for size in &question.predict {
        sizes.check(*size).map_err(|why| FitError::Setting(format!("--predict {size}: {why}")))?;
    }
    Ok(Checked { family, raw, notes })
}

/// Checks that there are at least as many levels as unknowns, and at most [`MOST_LEVELS`].
fn count(measured: &Measured, fixed: &Fixed) -> Result<(), FitError> {
    let (found, least) = (measured.points.len(), least_points(fixed, measured.knee.is_some()));
    let refuse = |why: String| {
        Err(FitError::Data(format!("{} has {found} levels at different sizes, {why}", measured.name)))
    };
    if found < least {
        return refuse(format!(
            "and {least} are needed: measure more sizes, give a timeline, or say what is known (`--fix raw=…`, `--fix gc-cost=…`)"
        ));
    }
    if found > MOST_LEVELS {
        return refuse(format!(
            "and {MOST_LEVELS} at most are simulated: leave some out, or round sizes that are nearly the same"
        ));
    }
    Ok(())
}

/// The number of levels needed, which depends on the parameters that are fixed.
fn least_points(fixed: &Fixed, knee: bool) -> usize {
    let known = [fixed.raw.is_some(), fixed.write.is_some(), fixed.moved.is_some()];
    let unknown = known.iter().filter(|it| !**it).count();
    // The knee of a timeline also gives the peak rate and the point at which erased blocks ran out.
    unknown.saturating_sub(2 * usize::from(knee)).max(1)
}

/// The range of raw NAND to search, in bytes. A fixed value is both ends.
fn raw(family: &Family, fixed: &Fixed, capacity: Bytes) -> Result<(f64, f64), FitError> {
    let Some(raw) = fixed.raw else { return family.raw_range() };
    let size = Bytes::new(raw as u64);
    let refuse = |why: String| Err(FitError::Setting(format!("--fix raw={size}: {why}")));
    if raw <= capacity.get() as f64 {
        return refuse(format!("raw NAND is more than the capacity of {capacity}"));
    }
    match family.objection(raw) {
        Some(why) => refuse(format!("no drive of {capacity} works so: {why}")),
        None => Ok((raw, raw)),
    }
}

fn costs(family: &Family, fixed: &Fixed, capacity: Bytes) -> Result<(), FitError> {
    let refuse = |why: String| Err(FitError::Setting(why));
    if let Some(write) = fixed.write.filter(|write| *write < family.least_write()) {
        return refuse(format!(
            "--fix write-cost: {} MiB/s, and the link of {} carries {:.0} MiB/s",
            shown(1.0 / write / MIB),
            family.words(),
            1.0 / family.least_write() / MIB
        ));
    }
    if let Some(reach) = fixed.reach.filter(|reach| *reach > capacity.get() as f64) {
        let reach = Bytes::new(reach as u64);
        return refuse(format!(
            "--fix map-reach={reach}: more than the capacity of {capacity}; a table that reaches everything is assumed without it"
        ));
    }
    Ok(())
}

/// The valid sizes of data: at most the capacity, and large enough for the scaled-down model.
struct Sizes {
    least: Bytes,
    capacity: Bytes,
}

impl Sizes {
    fn check(&self, data: Bytes) -> Result<(), String> {
        let Sizes { least, capacity } = *self;
        if data > capacity {
            return Err(format!(
                "{data} of data do not fit {capacity} of capacity: correct the size, or say with `--capacity` what the drive reports"
            ));
        }
        if data < least {
            return Err(format!(
                "{data} of data are too few: of a drive of {capacity}, sizes from {least} on are simulated"
            ));
        }
        Ok(())
    }
}

fn levels(measured: &Measured, family: &Family, sizes: &Sizes) -> Result<(), FitError> {
    let fastest = 1.0 / family.least_write();
    for point in &measured.points {
        let Point { data, rate, deviation, .. } = *point;
        let refuse = |why: String| Err(FitError::Data(format!("{}{}: {why}", measured.name, point.place())));
        if let Err(why) = sizes.check(data) {
            return refuse(why);
        }
        if let Err(why) = self::rate(rate) {
            return refuse(why);
        }
        if let Some(Err(why)) = deviation.map(self::deviation) {
            return refuse(why);
        }
        if rate > fastest {
            return refuse(format!(
                "a level of {} MiB/s, and the link of {} carries {:.0} MiB/s: correct the level, or name a drive with a faster link \
                 by `--like`",
                shown(rate / MIB),
                family.words(),
                fastest / MIB
            ));
        }
    }
    if let Some(knee) = measured.knee {
        let refuse = |why: String| Err(FitError::Data(format!("{}: {why}", measured.name)));
        if let Err(why) = sizes.check(knee.data) {
            return refuse(why);
        }
        if let Err(why) = self::rate(knee.rate) {
            return refuse(why);
        }
        if knee.rate > fastest || !(1.0..1e18).contains(&knee.written) {
            return refuse(format!(
                "{} MiB/s until {} were written, and the link of {} carries {:.0} MiB/s",
                shown(knee.rate / MIB),
                super::write::size(knee.written),
                family.words(),
                fastest / MIB
            ));
        }
    }
    Ok(())
}
