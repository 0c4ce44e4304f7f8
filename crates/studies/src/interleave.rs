//! Interleaves the cells of several experiments, so that a drift of the machine affects all of them.
//!
//! ```text
//!   Plan, Plan ─► Turns (rounds of like cells) ─► one store, a campaign for each ─► compare, pair by pair
//! ```
//!
//! A round contains the matching cells (same step, factors and repetition) of every experiment. The order of the
//! experiments is reversed from one round to the next (A B, B A, A B, …), so that a steady drift affects all alike.
//! The seed decides which experiment is first. On a host, the target of every cell is prepared again, because a cell
//! of another experiment ran before it. Virtual time does not drift, so cells on models run concurrently. Comparing
//! the results is in `lowtide_report::compare`.

use lowtide_core::rng::below;
use lowtide_lab::campaign::{self, CampaignError, Cells, Named, Outcome, Progress, on_all_cores};
use lowtide_lab::experiment::{Fill, Purge};
use lowtide_lab::plan::{Plan, PlanTarget, PlannedCell};
use lowtide_lab::prepare::drives;
use lowtide_lab::store::{About, Store, Writer};
use lowtide_record::INTERLEAVED;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An error that prevents interleaving.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum InterleaveError {
    /// The experiments have no cell in common to compare.
    #[error("`{first}` and `{second}` have no cell in common: {cells}")]
    #[diagnostic(help(
        "cells are alike where step, factors and repetition are; sweep the same levels in both"
    ))]
    NothingInCommon {
        /// The first experiment.
        first: String,
        /// The second experiment.
        second: String,
        /// An example cell of each experiment.
        cells: String,
    },
    /// Some experiments run in virtual time and some in wall time.
    #[error("`{simulated}` runs on a model and `{host}` on this machine: in virtual time nothing drifts")]
    #[diagnostic(help("run them one after the other, and compare"))]
    Mixed {
        /// The experiment on a model.
        simulated: String,
        /// The experiment on the host.
        host: String,
    },
    /// A cell depends on the data that an earlier cell of the same experiment left.
    #[error(
        "`{name}` measures cells on the history of those before, and in turns another cell lies between: {what}"
    )]
    #[diagnostic(help("{advice}"))]
    History {
        /// The experiment.
        name: String,
        /// The reason, for the message.
        what: String,
        /// A remedy, for the user.
        advice: &'static str,
    },
}

/// Experiments that can be interleaved.
#[derive(Debug)]
pub struct Turns {
    plans: Vec<Plan>,
    /// Unique names of the experiments.
    names: Vec<String>,
    /// Rounds of (plan, cell), in the order in which they run.
    rounds: Vec<Vec<(usize, usize)>>,
}

impl Turns {
    /// Combines two or more plans.
    ///
    /// # Errors
    /// [`InterleaveError`] if two plans have no cell in common, or if a cell depends on earlier cells.
    pub fn of(mut plans: Vec<Plan>) -> Result<Turns, InterleaveError> {
        let names = names(&plans);
        let host = plans.iter().position(|plan| !plan.target.is_simulated());
        let simulated = plans.iter().position(|plan| plan.target.is_simulated());
        if let (Some(host), Some(simulated)) = (host, simulated) {
            let (simulated, host) = (names[simulated].clone(), names[host].clone());
            return Err(InterleaveError::Mixed { simulated, host });
        }
        for (plan, name) in plans.iter().zip(&names) {
            own_history(plan, name)?;
        }
        for (plan, name) in plans.iter().zip(&names).skip(1) {
            common(&plans[0], &names[0], plan, name)?;
        }
        let rounds = rounds(&plans);
        let all = names.join(", ");
        for (position, plan) in plans.iter_mut().enumerate() {
            plan.identity_suffix = format!("\nin turns, {position} of {all}");
        }
        Ok(Turns { plans, names, rounds })
    }

    /// The plans, in order.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Total number of cells.
    pub fn cells(&self) -> usize {
        self.plans.iter().map(|plan| plan.cells.len()).sum()
    }

    /// Runs all plans into the store at `path`, with a campaign for each. If `resume`, continues the latest campaigns
    /// of the same interleaved plans.
    ///
    /// # Errors
    /// The errors of [`campaign::run`].
    pub fn run(
        &self,
        path: &Path,
        about: &About,
        resume: bool,
        interrupt: &Arc<AtomicBool>,
        progress: &dyn Progress,
    ) -> Result<(Store, Vec<Outcome>), CampaignError> {
        for plan in &self.plans {
            campaign::check_outputs(plan, path)?;
            // The target is checked before anything is written. Each cell reserves it again.
            campaign::check_target(plan)?;
        }
        let mut store = campaign::open(path, resume)?;
        let together =
            (INTERLEAVED.to_owned(), format!("{} from {}", self.names.join(", "), about.started_at));
        let mut begun = Vec::new();
        for plan in &self.plans {
            let mut environment = plan.environment();
            environment.push(together.clone());
            let about = About { environment, ..about.clone() };
            begun.push(campaign::begin(&mut store, plan, &about, resume)?);
        }
        let writer = Writer::start(store, Arc::clone(interrupt));
        let shown = Named::of_each(self.plans.iter().zip(&self.names), progress);
        let running = self.plans.iter().zip(begun).zip(&shown).map(|((plan, begun), shown)| {
            let sender = writer.sender(begun.campaign);
            Cells::new(plan, begun, interrupt, shown, sender)
        });
        let running: Vec<Cells<'_>> = running.collect();
        if self.plans[0].target.is_simulated() {
            let most = self.plans.iter().map(|plan| plan.groups.len()).max().unwrap_or(0);
            let like = |n| {
                running.iter().zip(&self.plans).filter_map(move |(r, plan)| Some((r, plan.groups.get(n)?)))
            };
            let groups: Vec<(&Cells<'_>, &Vec<usize>)> = (0..most).flat_map(like).collect();
            on_all_cores(&groups, |(cells, group)| cells.run_group(group));
        } else {
            self.rounds.iter().flatten().for_each(|(plan, cell)| running[*plan].run_alone(*cell));
        }
        let outcomes = running.into_iter().map(Cells::finish).collect();
        Ok((writer.finish()?, outcomes))
    }
}

/// The experiments' names. Duplicate names receive a number.
fn names(plans: &[Plan]) -> Vec<String> {
    let name = |plan: &Plan| plan.experiment.name.clone();
    let number = |(position, plan): (usize, &Plan)| {
        let twins = plans.iter().filter(|other| other.experiment.name == plan.experiment.name).count();
        if twins > 1 { format!("{} {}", name(plan), position + 1) } else { name(plan) }
    };
    plans.iter().enumerate().map(number).collect()
}

/// The key by which cells of several plans match: step, factors and repetition.
type Likeness = (Option<String>, Vec<(String, String)>, u32);

fn likeness(cell: &PlannedCell) -> Likeness {
    let factors = cell.factors().into_iter().map(|it| (it.name, it.level)).collect();
    (cell.step.clone(), factors, cell.repetition)
}

fn common(first: &Plan, first_name: &str, second: &Plan, second_name: &str) -> Result<(), InterleaveError> {
    let own: std::collections::BTreeSet<Likeness> = first.cells.iter().map(likeness).collect();
    if second.cells.iter().any(|cell| own.contains(&likeness(cell))) {
        return Ok(());
    }
    let example = |plan: &Plan| plan.cells.first().map_or_else(|| "none".to_owned(), PlannedCell::label);
    Err(InterleaveError::NothingInCommon {
        first: first_name.to_owned(),
        second: second_name.to_owned(),
        cells: format!("`{}` in one, `{}` in the other", example(first), example(second)),
    })
}

/// Refuses a plan whose cells depend on earlier cells, since cells of other plans would run in between.
fn own_history(plan: &Plan, name: &str) -> Result<(), InterleaveError> {
    let refuse = |what: String, advice| Err(InterleaveError::History { name: name.to_owned(), what, advice });
    if plan.target.is_simulated() {
        return Ok(());
    }
    if plan.experiment.steps.len() > 1 {
        let what = format!("it has {} steps", plan.experiment.steps.len());
        return refuse(what, "steps run on one history; interleave experiments without steps");
    }
    let keeps = |cell: &&PlannedCell| {
        let preparation = &cell.settings.preparation;
        preparation.purge == Purge::None && preparation.fill == Fill::None
    };
    // Each cell on simulated drives opens new drives, so it cannot continue with a drive of an earlier cell.
    let goes_on = |cell: &&PlannedCell| {
        let before = plan.cells.iter().take_while(|it| it.index < cell.index);
        let used: Vec<&str> = before.flat_map(|it| drives::devices(&it.settings)).collect();
        !drives::erases(cell) && drives::devices(&cell.settings).any(|name| used.contains(&name))
    };
    match &plan.target {
        PlanTarget::Block(_) => plan.cells.iter().find(keeps).map_or(Ok(()), |cell| {
            refuse(
                format!("`{}` neither purges nor fills", cell.label()),
                "give [before-each-cell] a `purge` or a `fill`",
            )
        }),
        PlanTarget::Attached(_) => plan.cells.iter().find(goes_on).map_or(Ok(()), |cell| {
            refuse(
                format!("`{}` goes on from what the cells before it left on the same drive", cell.label()),
                "begin each cell with a drive as new: `purge = \"secure-erase\"` in [before-each-cell]",
            )
        }),
        PlanTarget::Simulated(_) | PlanTarget::Host(_) => Ok(()),
    }
}

/// The cells of all plans by round. Matching cells form a round, in the order of the first plan that has them.
fn rounds(plans: &[Plan]) -> Vec<Vec<(usize, usize)>> {
    let mut order: Vec<Likeness> = Vec::new();
    let mut found: std::collections::BTreeMap<Likeness, Vec<(usize, usize)>> = Default::default();
    for (position, plan) in plans.iter().enumerate() {
        for (index, cell) in plan.cells.iter().enumerate() {
            let cells = found.entry(likeness(cell)).or_insert_with(|| {
                order.push(likeness(cell));
                Vec::new()
            });
            cells.push((position, index));
        }
    }
    let first = plans.first().map_or(0, |plan| below(&mut plan.seed.part("turns", 0).stream(), 2));
    let round = |(number, likeness): (u64, &Likeness)| {
        let mut cells = found[likeness].clone();
        if (number + first) % 2 == 1 {
            cells.reverse();
        }
        cells
    };
    (0..).zip(&order).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;
    use lowtide_lab::experiment::Experiment;

    fn plan(name: &str, target: &str, rest: &str) -> Plan {
        let text = format!(
            "name = \"{name}\"\n{target}\n[workload]\npattern = \"random-write\"\nblock = \"4KiB\"\nduration = \"1s\"\n{rest}"
        );
        Plan::new(Experiment::parse("test.toml", &text, &[]).expect("valid"), Seed::new(1), 1).expect("plans")
    }

    const FILES: &str = "target.directory = \"/tmp\"";
    const MODEL: &str = "target.device = \"intel-320-160gb\"";

    #[test]
    fn like_cells_lie_side_by_side_and_the_order_turns_round() {
        let sweep = "[sweep]\nfile_size = [\"1MiB\", \"2MiB\"]\n[repeat]\ntimes = 2\n";
        let wider = "[sweep]\nfile_size = [\"2MiB\", \"4MiB\", \"1MiB\"]\n[repeat]\ntimes = 2\n";
        let turns =
            Turns::of(vec![plan("a", FILES, sweep), plan("b", FILES, wider)]).expect("they go together");
        let label = |(p, c): &(usize, usize)| {
            let cell = &turns.plans[*p].cells[*c];
            format!("{} {} {}", turns.names[*p], cell.factors()[0].level, cell.repetition)
        };
        let rounds: Vec<Vec<String>> = turns.rounds.iter().map(|r| r.iter().map(label).collect()).collect();
        let mut wanted = vec![
            vec!["a 1MiB 1", "b 1MiB 1"],
            vec!["b 1MiB 2", "a 1MiB 2"],
            vec!["a 2MiB 1", "b 2MiB 1"],
            vec!["b 2MiB 2", "a 2MiB 2"],
            vec!["b 4MiB 1"],
            vec!["b 4MiB 2"],
        ];
        if rounds[0][0].starts_with('b') {
            wanted.iter_mut().for_each(|round| round.reverse());
        }
        assert_eq!(rounds, wanted, "seed 1");
        assert_eq!(turns.cells(), 10);
        assert_ne!(
            turns.plans[0].identity(),
            plan("a", FILES, sweep).identity(),
            "alone it is another campaign"
        );
    }

    #[test]
    fn twins_are_numbered_and_keep_apart() {
        let turns = Turns::of(vec![
            plan("a", MODEL, "file_size = \"1GiB\""),
            plan("a", MODEL, "file_size = \"1GiB\""),
        ]);
        let turns = turns.expect("they go together");
        assert_eq!(turns.names, ["a 1", "a 2"]);
        assert_ne!(turns.plans[0].identity(), turns.plans[1].identity());
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_a_reason() {
        let refused = |plans: Vec<Plan>| Turns::of(plans).expect_err("refused").to_string();
        let one = plan("a", FILES, "[sweep]\nfile_size = [\"1MiB\"]");
        let other = plan("b", FILES, "[sweep]\nfile_size = [\"2MiB\"]");
        let said = refused(vec![one.clone(), other]);
        assert!(
            said.contains("`a` and `b` have no cell in common") && said.contains("file_size 2MiB"),
            "{said}"
        );
        let said = refused(vec![one.clone(), plan("m", MODEL, "[sweep]\nfile_size = [\"1MiB\"]")]);
        assert!(said.contains("`m` runs on a model and `a` on this machine"), "{said}");
        let steps = plan(
            "s",
            FILES,
            "[sweep]\nfile_size = [\"1MiB\"]\n[[step]]\nname = \"x\"\n[[step]]\nname = \"y\"\n",
        );
        let said = refused(vec![one, steps]);
        assert!(said.contains("`s` measures cells on the history of those before"), "{said}");
    }

    /// Symptom: in interleaved runs, repetitions that should continue on the same drive were each measured on a new
    /// drive. Cause: every cell opens its target anew. Fix: such plans are refused.
    #[test]
    fn databases_on_simulated_drives_begin_each_turn_with_a_drive_as_new() {
        let plan = |name: &str, rest: &str| {
            let text = format!(
                "name = \"{name}\"\n{MODEL}\n[oltp]\nduration = \"1s\"\n[before-each-cell]\n\
                 layout = {{ filesystem = \"xfs\" }}\n{rest}"
            );
            let experiment = Experiment::parse("test.toml", &text, &[]).expect("valid");
            Plan::new(experiment, Seed::new(1), 1).expect("plans")
        };
        let of = |rest: &str| Turns::of(vec![plan("a", rest), plan("b", rest)]).map(drop);
        let said = of("[repeat]\ntimes = 2\n").expect_err("refused").to_string();
        assert!(said.contains("`a` measures cells on the history of those before"), "{said}");
        of("").expect("one cell has nothing before it");
        of("purge = \"secure-erase\"\n[repeat]\ntimes = 2\n").expect("each is as new");
        let devices = "[sweep]\ndevice = [\"intel-320-160gb\", \"intel-x25-e-32gb\"]\n";
        of(devices).expect("a drive each");
    }
}
