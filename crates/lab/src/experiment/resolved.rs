//! The resolved experiment. A store keeps it in addition to the text, so that reports need not parse the text.
//!
//! # Not kept
//! Events, the requests of a trace and the addresses of servers, which reports do not need.

use super::step::too_many_cells;
use super::{Claim, Comparison, Experiment, FactorName, Level, Load, Repeat, Settings, Step, Target};
use lowtide_record::Campaign;
use serde::{Deserialize, Serialize};

/// The name of an experiment's text in errors.
const IN_STORE: &str = "the experiment in the store";

/// A resolved experiment. It has at least one step, and every step has at least one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// The target under test.
    pub target: Target,
    /// The load, before the levels of a cell are applied.
    pub load: Load,
    /// The passes over the sweep, in order.
    pub steps: Vec<Step>,
    /// Repetitions, and the order of the cells.
    pub repeat: Repeat,
    /// Published numbers to compare with.
    pub published: Vec<Comparison>,
    /// Claims to check.
    pub claims: Vec<Claim>,
}

/// The error for a campaign whose experiment is unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the experiment of campaign `{campaign}` does not read back: {why}")]
pub struct Unreadable {
    /// The name of the campaign.
    pub campaign: String,
    /// The reason.
    pub why: String,
}

impl Resolved {
    /// The resolved experiment of a campaign; `None` if another program measured the campaign.
    ///
    /// # Errors
    /// [`Unreadable`] if this version reads neither the resolved experiment nor the text.
    pub fn of(campaign: &Campaign) -> Result<Option<Resolved>, Unreadable> {
        if campaign.is_imported() {
            return Ok(None);
        }
        if let Some(resolved) = campaign.resolved.as_deref().and_then(Resolved::from_json) {
            return Ok(Some(resolved));
        }
        // Stores up to format 4 have only the text, and the JSON may be damaged or of a later version.
        match Experiment::parse(IN_STORE, &campaign.experiment, &[]) {
            Ok(experiment) => Ok(Some(experiment.resolved)),
            Err(error) => Err(Unreadable { campaign: campaign.name.clone(), why: error.to_string() }),
        }
    }

    /// Reads a JSON text; `None` if it is not a valid resolved experiment. The text is untrusted, as is the store.
    fn from_json(json: &str) -> Option<Resolved> {
        let resolved: Resolved = serde_json::from_str(json).ok()?;
        let is_step = |step: &Step| {
            step.sweep.iter().enumerate().all(|(at, factor)| {
                let is_own = |level: &Level| level.factor() == factor.name;
                let is_first = step.sweep[..at].iter().all(|before| before.name != factor.name);
                is_first && !factor.levels.is_empty() && factor.levels.iter().all(is_own)
            })
        };
        let sound = !resolved.steps.is_empty()
            && too_many_cells(&resolved.steps).is_none()
            && resolved.steps.iter().all(is_step);
        sound.then_some(resolved)
    }

    /// Resolves the text of an experiment to the JSON for a store; `None` if this version does not read the text.
    pub(crate) fn json_of_text(text: &str) -> Option<String> {
        let experiment = Experiment::parse(IN_STORE, text, &[]).ok()?;
        Some(experiment.without_passwords(&experiment.to_json()))
    }

    /// The JSON for a store.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain values serialise")
    }

    /// Returns whether the experiment runs modelled databases, in virtual time.
    pub fn is_modelled(&self) -> bool {
        let Some(oltp) = self.load.work.transactions() else { return false };
        let swept = self.steps.iter().filter_map(|step| step.factor(FactorName::Engine));
        let mut levels = swept.flat_map(|factor| &factor.levels).peekable();
        match levels.peek() {
            None => oltp.settings.engine.is_modelled(),
            Some(_) => levels.any(|level| matches!(level, Level::Engine(engine) if engine.is_modelled())),
        }
    }

    /// The settings of the cell at `point` of `step`.
    pub fn settings(&self, step: &Step, point: &[Level]) -> Settings {
        let device = match &self.target {
            Target::Device(name) => Some(name.clone()),
            _ => None,
        };
        let mut settings =
            Settings { device, preparation: step.preparation.clone(), load: self.load.clone() };
        point.iter().for_each(|level| settings.set(level));
        if let Some(duration) = step.duration {
            settings.lasts(duration);
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TEXT: &str = "name = 't'\ntarget.device = 'intel-320-160gb'\n[before-each-cell]\npurge = 'secure-erase'\n\
        [workload]\npattern = 'random-write'\nblock = '4KiB'\nduration = '1min'\n[sweep]\nthreads = [1, 2, 3, 4]\n";

    fn resolved() -> Resolved {
        Experiment::parse("t.toml", TEXT, &[]).expect("valid").resolved
    }

    fn campaign(experiment: &str, resolved: &str) -> Campaign {
        Campaign {
            name: "t".to_owned(),
            title: String::new(),
            experiment: experiment.to_owned(),
            resolved: Some(resolved.to_owned()),
            target: "device:intel-320-160gb".to_owned(),
            devices: Vec::new(),
            seed: 1,
            scale: 1,
            version: String::new(),
            started_at: String::new(),
            command: String::new(),
            environment: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Damaged JSON texts that are not valid resolved experiments.
    fn harms() -> Vec<(&'static str, Value)> {
        let factor = |name: &str, levels: Value| json!({ "name": name, "levels": levels });
        let sound = serde_json::to_value(resolved()).expect("plain values serialise");
        let with = |change: &dyn Fn(&mut Value)| {
            let mut changed = sound.clone();
            change(&mut changed);
            changed
        };
        let threads = sound["steps"][0]["sweep"][0]["levels"].clone();
        let many = |name: &&str| factor(name, (1..1000).map(|level| json!({ *name: level })).collect());
        let all: Vec<Value> =
            ["threads", "depth", "streams", "warehouses", "terminals"].iter().map(many).collect();
        let sweep = |sweep: Value| with(&move |it| it["steps"][0]["sweep"] = sweep.clone());
        vec![
            ("no steps", with(&|it| it["steps"] = json!([]))),
            ("a factor without levels", sweep(json!([factor("threads", json!([]))]))),
            (
                "a factor twice",
                sweep(json!([factor("threads", threads.clone()), factor("threads", threads.clone())])),
            ),
            ("levels of another factor", sweep(json!([factor("depth", threads.clone())]))),
            (
                "too many repetitions",
                with(&|it| it["steps"][0]["repeat"]["times"] = json!(4_000_000_000_u32)),
            ),
            ("too many points", sweep(json!(all))),
            ("no JSON", json!("{")),
            ("a key of a later version", with(&|it| it["load"]["pattern"] = json!("later"))),
        ]
    }

    /// Symptom: `fit` panicked and reports looped on a damaged or hostile store. Cause: any JSON of the right types
    /// was accepted. Fix: JSON that is not a valid resolved experiment is ignored, and the text is used instead.
    #[test]
    fn the_text_replaces_damaged_json() {
        for (name, harm) in harms() {
            let read = Resolved::of(&campaign(TEXT, &harm.to_string()));
            assert_eq!(read, Ok(Some(resolved())), "{name}");
            let error = Resolved::of(&campaign("name = 't'", &harm.to_string())).expect_err(name);
            assert!(error.to_string().contains("does not read back"), "{name}: {error}");
        }
    }

    #[test]
    fn a_text_of_too_many_cells_is_refused() {
        let range = "{ from = 1, to = 999, step = 1 }";
        let text = TEXT.replace("[1, 2, 3, 4]", &format!("{range}\ndepth = {range}"));
        let error = Resolved::of(&campaign(&text, "{}")).expect_err("too many");
        assert!(error.why.contains("998001 cells"), "{error}");
    }
}
