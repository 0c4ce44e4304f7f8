//! What an experiment asks, resolved: the part of it that a store keeps beside its text, so that whoever reads results later
//! need not parse it again.
//!
//! # Not kept
//! Events, the requests of a trace and addresses of servers: results do not depend on reading them again.

use super::{Claim, Comparison, Experiment, FactorName, Level, Load, Repeat, Settings, Step, Target};
use lowtide_record::Campaign;
use serde::{Deserialize, Serialize};

/// What an experiment asks. There is at least one step, and every step has at least one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// What is under test.
    pub target: Target,
    /// The load, before a cell's levels are put in place.
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

/// The experiment of a campaign cannot be read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the experiment of campaign `{campaign}` does not read back: {why}")]
pub struct Unreadable {
    /// The campaign.
    pub campaign: String,
    /// Why.
    pub why: String,
}

impl Resolved {
    /// The resolved experiment of a campaign; `None` where another program measured it.
    ///
    /// # Errors
    /// [`Unreadable`] where the store holds neither this nor a text that this version reads.
    pub fn of(campaign: &Campaign) -> Result<Option<Resolved>, Unreadable> {
        let unreadable = |why: String| Unreadable { campaign: campaign.name.clone(), why };
        match &campaign.resolved {
            _ if campaign.is_imported() => Ok(None),
            Some(json) => serde_json::from_str(json).map(Some).map_err(|error| unreadable(error.to_string())),
            // Stores up to format 4 have only the text.
            None => match Experiment::parse("the experiment in the store", &campaign.experiment, &[]) {
                Ok(experiment) => Ok(Some(experiment.resolved)),
                Err(error) => Err(unreadable(error.to_string())),
            },
        }
    }

    /// As the store keeps it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain values serialise")
    }

    /// Whether it asks for databases that are models, in virtual time.
    pub fn is_modelled(&self) -> bool {
        let Some(oltp) = &self.load.oltp else { return false };
        let swept = self.steps.iter().filter_map(|step| step.factor(FactorName::Engine));
        let mut levels = swept.flat_map(|factor| &factor.levels).peekable();
        match levels.peek() {
            None => oltp.settings.engine.is_modelled(),
            Some(_) => levels.any(|level| matches!(level, Level::Engine(engine) if engine.is_modelled())),
        }
    }

    /// All settings of the cell at `point` of `step`.
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
