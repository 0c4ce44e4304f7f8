//! Progress of plans that run concurrently: gives every cell a unique number and the name of its plan.
//!
//! The display is in crate `lowtide-cli`.

use super::{Progress, Stage};
use crate::plan::{Plan, PlannedCell};
use lowtide_core::Nanos;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;

/// Reports the cells of a plan under numbers and names that are unique among all plans.
pub struct Named<'a> {
    inner: &'a dyn Progress,
    cells: Vec<PlannedCell>,
}

impl<'a> Named<'a> {
    /// The reporters for plans with these names, in order.
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
    struct Recorded(Mutex<Vec<(u32, String)>>);

    impl Progress for Recorded {
        fn cell(&self, cell: &PlannedCell, _: Stage, _: f64, _: Option<&Row>) {
            self.0.lock().expect("no other thread has it").push((cell.index, cell.label()));
        }
        fn ended(&self, _: &PlannedCell, _: Option<&str>) {}
        fn note(&self, _: &str) {}
    }

    #[test]
    fn cells_of_concurrent_plans_have_unique_numbers_and_names() {
        let text = "name = \"x\"\ntitle = \"x\"\nquestion = \"?\"\n[target]\ndevice = \"intel-320-160gb\"\n\
                    [workload]\npattern = \"random-write\"\nblock = \"16KiB\"\nduration = \"1s\"\n[sweep]\nutilisation = [0.1, 0.2]\n";
        let plan = || {
            let experiment = Experiment::parse("x.toml", text, &[]).expect("valid");
            Plan::new(experiment, Seed::new(1), 64).expect("plans")
        };
        let (plans, names) = ([plan(), plan()], ["first".to_owned(), "second".to_owned()]);
        let recorded = Recorded::default();
        let named = Named::of_each(plans.iter().zip(&names), &recorded);
        for (plan, named) in plans.iter().zip(&named) {
            plan.cells.iter().for_each(|cell| named.cell(cell, Stage::Measure, 0.5, None));
        }
        let recorded = recorded.0.into_inner().expect("no other thread has it");
        assert_eq!(recorded.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(recorded[1].1.contains("first") && recorded[2].1.contains("second"), "{recorded:?}");
    }
}
