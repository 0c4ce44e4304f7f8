//! Progress of several plans that run side by side: whose cell it is that something is told of.
//!
//! Not here: how it is shown.

use super::{Progress, Stage};
use crate::plan::{Plan, PlannedCell};
use lowtide_core::Nanos;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;

/// Tells of a plan's cells by names and numbers that no other plan's cells have.
pub struct Named<'a> {
    inner: &'a dyn Progress,
    cells: Vec<PlannedCell>,
}

impl<'a> Named<'a> {
    /// What hears of each plan's cells, and says whose they are, by the name of each plan.
    pub fn of_each<'p>(
        plans: impl IntoIterator<Item = (&'p Plan, &'p String)>,
        progress: &'a dyn Progress,
    ) -> Vec<Named<'a>> {
        let mut before = 0;
        let named = |(plan, name): (&Plan, &String)| {
            let cells = plan.cells.iter().map(|cell| {
                let step = cell.step.iter().fold(name.clone(), |name, step| format!("{name}, {step}"));
                PlannedCell { index: cell.index + before, step: Some(step), ..cell.clone() }
            });
            let named = Named { inner: progress, cells: cells.collect() };
            before += plan.cells.len() as u32;
            named
        };
        plans.into_iter().map(named).collect()
    }

    fn own(&self, cell: &PlannedCell) -> &PlannedCell {
        &self.cells[cell.index as usize]
    }
}

impl Progress for Named<'_> {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        self.inner.cell(self.own(cell), stage, share, last);
    }
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        self.inner.ended(self.own(cell), failure);
    }
    fn took(&self, cell: &PlannedCell, took: Nanos) {
        self.inner.took(self.own(cell), took);
    }
    fn spared(&self, cells: usize) {
        self.inner.spared(cells);
    }
    fn note(&self, text: &str) {
        self.inner.note(text);
    }
    fn begun(&self, campaign: i64) {
        self.inner.begun(campaign);
    }
    fn so_far(&self, cell: &PlannedCell, judge: &dyn Fn() -> Verdict) {
        self.inner.so_far(self.own(cell), judge);
    }
    fn judged(&self, cell: &PlannedCell, verdict: &Verdict) {
        self.inner.judged(self.own(cell), verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use lowtide_core::Seed;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(u32, String)>>);

    impl Progress for Heard {
        fn cell(&self, cell: &PlannedCell, _: Stage, _: f64, _: Option<&Row>) {
            self.0.lock().expect("alone").push((cell.index, cell.label()));
        }
        fn ended(&self, _: &PlannedCell, _: Option<&str>) {}
        fn note(&self, _: &str) {}
    }

    #[test]
    fn cells_of_plans_side_by_side_are_not_taken_for_one_another() {
        let text = "name = \"x\"\ntitle = \"x\"\nquestion = \"?\"\n[target]\ndevice = \"intel-320-160gb\"\n\
                    [workload]\npattern = \"random-write\"\nblock = \"16KiB\"\nduration = \"1s\"\n[sweep]\nutilisation = [0.1, 0.2]\n";
        let plan = || {
            let experiment = Experiment::parse("x.toml", text, &[]).expect("it is valid");
            Plan::new(experiment, Seed::new(1), 64).expect("it can be planned")
        };
        let (plans, names) = ([plan(), plan()], ["first".to_owned(), "second".to_owned()]);
        let heard = Heard::default();
        let named = Named::of_each(plans.iter().zip(&names), &heard);
        for (plan, named) in plans.iter().zip(&named) {
            plan.cells.iter().for_each(|cell| named.cell(cell, Stage::Measure, 0.5, None));
        }
        let heard = heard.0.into_inner().expect("alone");
        assert_eq!(heard.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(heard[1].1.contains("first") && heard[2].1.contains("second"), "{heard:?}");
    }
}
