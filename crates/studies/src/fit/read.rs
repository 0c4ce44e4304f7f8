//! Reads levels from a CSV table or from a campaign.
//!
//! | column | meaning |
//! |---|---|
//! | `data` (or `file_size`) | bytes of data: `100GiB`, or a number of bytes |
//! | `utilisation` | data as a share of the capacity: `0.8` or `80%` |
//! | `throughput` | MiB/s |
//! | `iops` | requests per second, of the request size in the question |
//! | `deviation` | standard deviation of the level, in the unit of the level |
//! | `time` | seconds. Makes the table a timeline of one data size, which the caller gives |

use super::data::{Measured, Point, timeline};
use super::{BLOCK, FitError, MIB, Question, limits};
use lowtide_core::Bytes;
use lowtide_core::suggest::nearest;
use lowtide_core::workload::{Access, Distribution};
use lowtide_lab::experiment::Resolved;
use lowtide_record::analysis::Verdict;
use lowtide_record::{Campaign, Cell, Quantity, Status};
use std::path::Path;

/// Maximum rows of a table: a timeline of a day with ten rows a second.
const MOST_ROWS: usize = 1_000_000;
/// Maximum time in a timeline, in seconds: thirty years.
const LATEST: f64 = 1e9;
/// Maximum characters of a table cell in an error message.
const SHOWN: usize = 40;

const COLUMNS: [&str; 7] = ["data", "file_size", "utilisation", "throughput", "iops", "deviation", "time"];

/// Reads a CSV table. `data` is the data size of a timeline.
///
/// # Errors
/// [`FitError::Read`] with the line and the accepted values; [`FitError::Setting`] if the question is invalid.
pub fn of_csv(
    path: &Path,
    text: &str,
    question: &Question,
    data: Option<Bytes>,
) -> Result<Measured, FitError> {
    limits::question(question)?;
    let fail = |why: String| FitError::Read { path: path.to_owned(), why };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| fail(error.to_string()))?.clone();
    if let Some(unknown) = head.iter().find(|name| !COLUMNS.contains(name)) {
        let near =
            nearest(unknown, COLUMNS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let unknown = short(unknown);
        return Err(fail(format!("there is no column `{unknown}`{near} Columns are {}", COLUMNS.join(", "))));
    }
    if let Some(twice) = (1..head.len()).find(|at| head.iter().take(*at).any(|name| name == &head[*at])) {
        return Err(fail(format!("the column `{}` stands there twice: remove one of them", &head[twice])));
    }
    let column = |name: &str| head.iter().position(|it| it == name);
    let (size, share) = (column("data").or(column("file_size")), column("utilisation"));
    let (rate, iops, deviation, time) =
        (column("throughput"), column("iops"), column("deviation"), column("time"));
    let block = question.block.unwrap_or(BLOCK);
    let to_bytes = match (rate, iops) {
        (Some(_), _) => MIB,
        (None, Some(_)) => block.get() as f64,
        (None, None) => return Err(fail("a column `throughput` (MiB/s) or `iops` is needed".to_owned())),
    };
    let level = rate.or(iops).expect("one of them is there");
    let mut points = Vec::new();
    let mut series: Vec<(f64, f64)> = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| fail(error.to_string()))?;
        let line = row.position().map_or(0, csv::Position::line);
        let wrong = |what: String| fail(format!("line {line}: {what}"));
        if points.len() + series.len() >= MOST_ROWS {
            return Err(wrong(format!("more than {MOST_ROWS} rows: take the mean of several")));
        }
        let number = |column: usize| {
            let text = row.get(column).unwrap_or_default();
            let value = text.strip_suffix('%').map_or(text, str::trim).parse::<f64>();
            let value = value.ok().filter(|value| value.is_finite() && *value >= 0.0);
            let value = value.map(|value| if text.ends_with('%') { value / 100.0 } else { value });
            value.ok_or_else(|| {
                let (text, column) = (short(text), &head[column]);
                wrong(format!("`{text}` in column `{column}` is no number from 0 on, such as `120.5`"))
            })
        };
        let rate = number(level)? * to_bytes;
        if let Some(time) = time {
            let time = number(time)?;
            if time > LATEST {
                return Err(wrong(format!("a time of {time} s: from 0 to {LATEST} s are accepted")));
            }
            // A rate of 0 is valid: a timeline may have intervals without writes.
            if rate > 0.0 {
                limits::rate(rate).map_err(wrong)?;
            }
            series.push((time, rate));
            continue;
        }
        limits::rate(rate).map_err(wrong)?;
        let data = match (size, share) {
            (Some(size), _) => {
                let text = row.get(size).unwrap_or_default();
                let read = text.parse::<u64>().map(Bytes::new).or_else(|_| text.parse::<Bytes>());
                read.map_err(|error| {
                    let (text, column, accepted) = (short(text), &head[size], error.accepted);
                    wrong(format!("`{text}` in column `{column}` is no size: {accepted}"))
                })?
            }
            (None, Some(share)) => {
                let capacity = question.capacity.ok_or_else(|| {
                    fail("utilisation is a share of the capacity: say it with `--capacity`".to_owned())
                })?;
                let share = number(share)?;
                if !(0.0..=1.0).contains(&share) {
                    let line =
                        wrong(format!("a utilisation of {share} is not between 0 and 1, or 0 % and 100 %"));
                    return Err(line);
                }
                Bytes::new((capacity.get() as f64 * share) as u64)
            }
            (None, None) => {
                return Err(fail(
                    "a column `data` or `utilisation` is needed, or `time` for a timeline".to_owned(),
                ));
            }
        };
        if data < block {
            return Err(wrong(format!("{data} of data hold no request of {block}")));
        }
        let deviation = deviation.map(number).transpose()?.unwrap_or(0.0);
        let deviation = limits::deviation(deviation * to_bytes / rate).map_err(wrong)?;
        points.push(Point { data: data.align_down(block), rate, deviation, line: Some(line) });
    }
    let mut measured = Measured {
        name: path.display().to_string(),
        points,
        knee: None,
        capacity: None,
        block: None,
        threads: None,
        notes: Vec::new(),
    };
    if time.is_some() {
        let data = data.filter(|data| *data > Bytes::ZERO);
        let data = data.ok_or_else(|| {
            fail("a timeline is of one size: say it with `--data`, such as `--data 100GiB`".to_owned())
        })?;
        of_series(&mut measured, &series, data).map_err(fail)?;
    }
    Ok(measured.sorted())
}

/// Shortens the text of a table cell for an error message.
fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn of_series(measured: &mut Measured, series: &[(f64, f64)], data: Bytes) -> Result<(), String> {
    let rising = series.windows(2).all(|pair| pair[1].0 > pair[0].0);
    if !rising || series.len() < 2 {
        return Err("times of a timeline rise, and there is more than one".to_owned());
    }
    let seconds = (series[series.len() - 1].0 - series[0].0) / (series.len() - 1) as f64;
    let rates: Vec<f64> = series.iter().map(|(_, rate)| *rate).collect();
    let (knee, point) = timeline(&rates, seconds, data).ok_or(
        "the rate does not fall for good in it: it begins fresh, and goes on until the drive has settled",
    )?;
    measured.points.push(point);
    measured.knee = Some(knee);
    measured.notes.push(format!(
        "of the timeline: {:.1} MiB/s until {} were written, and {:.1} MiB/s in its last quarter",
        knee.rate / MIB,
        super::write::size(knee.written),
        point.rate / MIB
    ));
    Ok(())
}

/// Reads the levels of a campaign of random writes.
///
/// # Errors
/// [`FitError::Data`] if no cell is done, or if the cells are not uniform random writes of one request size.
pub fn of_campaign(campaign: &Campaign) -> Result<Measured, FitError> {
    let done: Vec<&Cell> = campaign.cells.iter().filter(|cell| cell.status == Status::Done).collect();
    let refuse = |why: &str| Err(FitError::Data(format!("campaign `{}`: {why}", campaign.name)));
    if done.is_empty() {
        return refuse("no cell is done");
    }
    if campaign.quantity() != Quantity::Throughput || done.iter().any(|cell| cell.read_share > 0.0) {
        return refuse("what is fitted is random writes, and nothing else");
    }
    let (mut block, mut threads) = (None, None);
    let asked = Resolved::of(campaign).map_err(|error| FitError::Data(error.to_string()))?;
    if let Some(asked) = asked {
        let mut loads =
            asked.steps.iter().flat_map(|step| step.points().map(|point| asked.settings(step, &point).load));
        let first = loads.next().expect("a campaign has cells");
        let workload = first.workload();
        let uniform = workload.access == Access::Random && workload.distribution == Distribution::Uniform;
        if !uniform || workload.blocks.is_some() || loads.any(|it| it.block != first.block) {
            return refuse("its loads are not all random writes of one size of request");
        }
        (block, threads) = (Some(first.block), Some(workload.threads.saturating_mul(workload.depth)));
    }
    let mut notes = Vec::new();
    let full_size = |size: Bytes| size.get().checked_mul(campaign.scale).map(Bytes::new);
    let mut points = Vec::new();
    for cell in &done {
        let (from, to, steady) = cell.window();
        if !steady {
            notes.push(format!("{}: no steady state, so the mean of its last quarter", cell.label()));
        }
        let Some(rate) = cell.mean_rate_between(from, to).map(|rate| rate * MIB).filter(|rate| *rate > 0.0)
        else {
            continue;
        };
        let deviation = match &cell.verdict {
            // A 95 % half-width is two deviations. The lower bound is the accuracy of the model.
            Some(Verdict::Steady(it)) => Some((it.half_width / it.mean / 2.0).max(0.005)),
            _ => None,
        };
        let Some(data) = full_size(cell.data) else {
            return refuse(&format!(
                "{} times {} of data are more than any drive holds",
                campaign.scale, cell.data
            ));
        };
        points.push(Point { data, rate, deviation, line: None });
    }
    let capacity = done.iter().filter_map(|cell| full_size(cell.capacity)).max();
    let name = format!("campaign {}", campaign.name);
    Ok(Measured { name, points, knee: None, capacity, block, threads, notes }.sorted())
}
