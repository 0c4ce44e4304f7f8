//! Rounds: repetitions of a sweep that end when the tracked value is steady.
//!
//! The cells of one step on one device are a *course*: each round runs all points once, on the history of the round
//! before. After each round the rule of the SNIA specification tests the last five values of every tracked point.
//! When it holds for all points, the cells of later rounds are skipped. The result depends only on the plan and on
//! measured rows, so a resumed campaign ends with the same round as an uninterrupted campaign. Module `campaign` runs
//! and stores cells.

mod value;

#[cfg(test)]
mod tests;

pub use value::{steady_after, value};

use crate::experiment::Of;
use crate::plan::{Plan, PlannedCell};
use lowtide_record::Row;
use lowtide_record::analysis::Snia;
use std::collections::BTreeMap;

/// The courses of a plan, and their progress.
#[derive(Debug)]
pub struct Rounds {
    /// The course of each cell; `None` if its step tracks no value.
    course_of: Vec<Option<usize>>,
    /// The position of each tracked cell among the tracked points of its course.
    tracked: BTreeMap<u32, usize>,
    courses: Vec<Course>,
}

/// The rounds of one step on one device.
#[derive(Debug)]
struct Course {
    of: Of,
    /// Only the beginning of a cell counts: this many nanoseconds of the scaled measurement.
    first_ns: u64,
    /// The value of each round, for each tracked point; `None` for a round without a value.
    values: Vec<Vec<Option<f64>>>,
    /// The last round, after which the course was steady.
    ended: Option<u32>,
    /// The index and the round of each cell.
    cells: Vec<(u32, u32)>,
}

impl Rounds {
    /// The courses of a plan, without values.
    pub fn new(plan: &Plan) -> Self {
        let mut rounds =
            Rounds { course_of: vec![None; plan.cells.len()], tracked: BTreeMap::new(), courses: Vec::new() };
        let mut known: BTreeMap<(usize, Option<&str>), usize> = BTreeMap::new();
        let mut points: Vec<Vec<Vec<String>>> = Vec::new();
        for cell in &plan.cells {
            let steps = &plan.experiment.steps;
            let number = steps.iter().position(|step| step.name == cell.step).expect("a cell has a step");
            let Some(track) = &steps[number].repeat.track else { continue };
            let course = *known.entry((number, cell.settings.device.as_deref())).or_insert_with(|| {
                let first_ns = track.first.map_or(u64::MAX, |first| (first.get() / plan.scale).max(1));
                let (values, cells) = (Vec::new(), Vec::new());
                rounds.courses.push(Course { of: track.of, first_ns, values, ended: None, cells });
                points.push(Vec::new());
                rounds.courses.len() - 1
            });
            rounds.course_of[cell.index as usize] = Some(course);
            rounds.courses[course].cells.push((cell.index, cell.repetition));
            if track.cells.includes(&steps[number], &cell.point, cell.repetition) {
                let names: Vec<String> = cell.point.iter().map(ToString::to_string).collect();
                let place = points[course].iter().position(|point| *point == names).unwrap_or_else(|| {
                    points[course].push(names);
                    rounds.courses[course].values.push(Vec::new());
                    points[course].len() - 1
                });
                rounds.tracked.insert(cell.index, place);
            }
        }
        rounds
    }

    /// Returns whether a cell must be measured, because its course was not steady before its round.
    pub fn needs(&self, cell: &PlannedCell) -> bool {
        let course = self.course_of[cell.index as usize].map(|course| &self.courses[course]);
        course.and_then(|course| course.ended).is_none_or(|ended| cell.repetition <= ended)
    }

    /// Returns whether a cell is at a tracked point.
    pub fn tracks(&self, cell: u32) -> bool {
        self.tracked.contains_key(&cell)
    }

    /// Takes the rows of a measured cell. If the cell made its course steady, returns the cells that are skipped.
    pub fn measured(&mut self, cell: &PlannedCell, rows: &[Row]) -> Vec<u32> {
        let (Some(&point), Some(course)) =
            (self.tracked.get(&cell.index), self.course_of[cell.index as usize])
        else {
            return Vec::new();
        };
        let course = &mut self.courses[course];
        let round = cell.repetition as usize - 1;
        let values = &mut course.values[point];
        values.resize(values.len().max(round + 1), None);
        values[round] = value(course.of, rows, course.first_ns);
        if course.ended.is_some() {
            return Vec::new();
        }
        course.ended = steady_after(&Snia::default(), &course.values);
        let Some(ended) = course.ended else { return Vec::new() };
        course.cells.iter().filter(|(_, round)| *round > ended).map(|(cell, _)| *cell).collect()
    }
}
