//! The rounds of a step on one device: points, values, and the steady window.
//!
//! A course is reconstructed from the stored experiment and the measured cells. Tables and figures are in the modules
//! of these names.

use crate::find::mean;
use crate::group::distinct;
use lowtide_lab::experiment::{Level, Of, Resolved, Step, Track, is_at};
use lowtide_lab::rounds::{steady_after, value};
use lowtide_record::analysis::{Snia, Window};
use lowtide_record::{Campaign, Cell, Status};
use std::ops::Range;

/// The rounds of a step on one device.
pub(crate) struct Course<'c> {
    pub step: &'c Step,
    pub track: &'c Track,
    pub points: Vec<Point<'c>>,
    /// The number of complete rounds: those with a measurement of every tracked point.
    pub rounds: usize,
    /// The rounds of the result, from 0: the steady window, or else the last rounds.
    pub window: Range<usize>,
    /// Whether `window` is steady.
    pub steady: bool,
    first_ns: u64,
}

/// One combination of levels with its cell in each round.
#[derive(Clone)]
pub(crate) struct Point<'c> {
    pub levels: Vec<Level>,
    pub tracked: bool,
    cells: Vec<Option<&'c Cell>>,
}

impl<'c> Course<'c> {
    /// The courses of a campaign, in the order of the steps.
    pub fn all(experiment: &'c Resolved, campaign: &'c Campaign) -> Vec<Course<'c>> {
        let tracked = experiment.steps.iter().filter_map(|step| Some((step, step.repeat.track.as_ref()?)));
        let courses = |(step, track): (&'c Step, &'c Track)| {
            let points = points(step, track, campaign);
            let devices = distinct(points.iter().map(|point| device_of(&point.levels).map(str::to_owned)));
            devices.into_iter().map(move |device| {
                let own = points.iter().filter(|point| device_of(&point.levels) == device.as_deref());
                Course::of(step, track, own.cloned().collect(), campaign.scale)
            })
        };
        tracked.flat_map(courses).collect()
    }

    fn of(step: &'c Step, track: &'c Track, points: Vec<Point<'c>>, scale: u64) -> Self {
        let first_ns = track.first.map_or(u64::MAX, |first| (first.get() / scale.max(1)).max(1));
        let mut course = Course { step, track, points, rounds: 0, window: 0..0, steady: false, first_ns };
        let values: Vec<Vec<Option<f64>>> = course.tracked().map(|point| course.values(point)).collect();
        let complete = |values: &Vec<Option<f64>>| values.iter().take_while(|value| value.is_some()).count();
        course.rounds = values.iter().map(complete).min().unwrap_or(0);
        let rule = Snia::default();
        let ended = steady_after(&rule, &values).map(|end| end as usize);
        course.steady = ended.is_some();
        let end = ended.unwrap_or(course.rounds);
        course.window = end.saturating_sub(rule.rounds)..end;
        course
    }

    /// The tracked points.
    pub fn tracked(&self) -> impl Iterator<Item = &Point<'c>> {
        self.points.iter().filter(|point| point.tracked)
    }

    /// The tracked quantity of a point, round by round.
    pub fn values(&self, point: &Point<'c>) -> Vec<Option<f64>> {
        let of = |cell: &Option<&Cell>| value(self.track.of, &cell.as_ref()?.rows, self.first_ns);
        point.cells.iter().map(of).collect()
    }

    /// The rule's statistics of a tracked point over the window; `None` for an incomplete window.
    pub fn seen(&self, point: &Point<'c>) -> Option<Window> {
        let rule = Snia::default();
        let values: Option<Vec<f64>> = self.values(point).get(self.window.clone())?.iter().copied().collect();
        values.filter(|values| values.len() == rule.rounds).map(|values| rule.window(&values))
    }

    /// The cells of a point in the window.
    pub fn cells(&self, point: &Point<'c>) -> impl Iterator<Item = &'c Cell> {
        point.cells.get(self.window.clone()).unwrap_or_default().iter().flatten().copied()
    }

    /// The mean of a quantity over the cells of a point in the window.
    pub fn mean(&self, point: &Point<'c>, of: Of) -> Option<f64> {
        let values = self.cells(point).filter_map(|cell| value(of, &cell.rows, u64::MAX));
        mean(&values.collect::<Vec<f64>>())
    }

    /// The latency of the slowest request of a point in the window, in nanoseconds.
    pub fn longest_ns(&self, point: &Point<'c>) -> Option<f64> {
        let rows = self.cells(point).flat_map(|cell| cell.rows.iter());
        rows.map(|row| row.read.max_ns.max(row.write.max_ns)).max().map(|ns| ns as f64)
    }

    /// The device, if the experiment varies it.
    pub fn device(&self) -> Option<&str> {
        device_of(&self.points.first()?.levels)
    }
}

/// The points of a step with their measured cells.
fn points<'c>(step: &'c Step, track: &Track, campaign: &'c Campaign) -> Vec<Point<'c>> {
    let of_step = |cell: &&Cell| cell.step == step.name && cell.status == Status::Done;
    let cells: Vec<&Cell> = campaign.cells.iter().filter(of_step).collect();
    let mut points: Vec<Point<'c>> = step
        .points()
        .map(|levels| Point { tracked: track.cells.includes(step, &levels, 1), levels, cells: Vec::new() })
        .collect();
    for cell in cells {
        let same = |point: &&mut Point<'_>| is_at(&cell.factors, &point.levels);
        if let Some(point) = points.iter_mut().find(same) {
            let round = cell.repetition as usize;
            point.cells.resize(point.cells.len().max(round), None);
            point.cells[round - 1] = Some(cell);
        }
    }
    points
}

fn device_of(levels: &[Level]) -> Option<&str> {
    levels.iter().find_map(|level| match level {
        Level::Device(name) => Some(name.as_str()),
        _ => None,
    })
}
