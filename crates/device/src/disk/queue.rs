//! Commands that wait for the surface, and the choice of the next command ([`Queue`]).
//!
//! Commands beyond the depth wait outside in order of arrival, and the scheduler ignores them.
//!
//! # Not modelled
//! * Priorities.
//! * Ordering of commands that overlap: a caller that needs an order waits for the first command.

use super::mechanism::{Aim, Mechanism};
use super::spec::{self, Scheduler};
use lowtide_core::Tag;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A command for the surface.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Command {
    pub(super) tag: Tag,
    /// Time of arrival.
    pub(super) since_ns: u64,
    /// Earliest start of work.
    pub(super) ready_ns: u64,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) write: bool,
}

/// Commands that wait for the surface. The scheduler's candidates are stored by column, which makes the choice fast.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Queue {
    scheduler: Scheduler,
    depth: usize,
    aging_ns: u64,
    commands: Vec<Command>,
    since: Vec<u64>,
    first: Vec<u64>,
    cylinders: Vec<i32>,
    angles: Vec<u32>,
    settles: Vec<u32>,
    costs: Vec<u32>,
    outside: VecDeque<Command>,
}

impl Queue {
    pub(super) fn new(spec: &spec::Queue) -> Self {
        Queue {
            scheduler: spec.scheduler,
            depth: spec.depth as usize,
            aging_ns: spec.aging.map_or(u64::MAX, |aging| aging.get()),
            commands: Vec::new(),
            since: Vec::new(),
            first: Vec::new(),
            cylinders: Vec::new(),
            angles: Vec::new(),
            settles: Vec::new(),
            costs: Vec::new(),
            outside: VecDeque::new(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    #[inline]
    pub(super) fn push(&mut self, command: Command, mechanism: &Mechanism) {
        if self.commands.len() >= self.depth {
            self.outside.push_back(command);
        } else {
            self.admit(command, mechanism);
        }
    }

    #[inline]
    fn admit(&mut self, command: Command, mechanism: &Mechanism) {
        let aim = if self.scheduler == Scheduler::Sptf {
            mechanism.aim(mechanism.surface.place(command.first), command.write)
        } else {
            Aim { cylinder: 0, angle: 0, settle: 0 }
        };
        self.commands.push(command);
        self.since.push(command.since_ns);
        self.first.push(command.first);
        self.cylinders.push(aim.cylinder);
        self.angles.push(aim.angle);
        self.settles.push(aim.settle);
    }

    /// Removes and returns the next command. The queue must not be empty.
    #[inline]
    pub(super) fn take(&mut self, mechanism: &Mechanism) -> Command {
        let index = if self.commands.len() == 1 { 0 } else { self.choose(mechanism) };
        let command = self.commands.remove(index);
        self.since.remove(index);
        self.first.remove(index);
        self.cylinders.remove(index);
        self.angles.remove(index);
        self.settles.remove(index);
        if let Some(next) = self.outside.pop_front() {
            self.admit(next, mechanism);
        }
        command
    }

    fn choose(&mut self, mechanism: &Mechanism) -> usize {
        // Commands are in order of arrival, so the first is the oldest.
        if mechanism.free_ns.saturating_sub(self.since[0]) > self.aging_ns {
            return 0;
        }
        match self.scheduler {
            Scheduler::Fifo => 0,
            Scheduler::Elevator => lowest(self.first.iter().map(|first| first.wrapping_sub(mechanism.byte))),
            Scheduler::Sptf => {
                mechanism.costs(&self.cylinders, &self.angles, &self.settles, &mut self.costs);
                lowest(self.costs.iter().copied())
            }
        }
    }

    /// Removes every command.
    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.since.clear();
        self.first.clear();
        self.cylinders.clear();
        self.angles.clear();
        self.settles.clear();
        self.outside.clear();
    }
}

/// Index of the lowest value; the first of equal values. There must be at least one value.
#[inline]
fn lowest<T: Ord>(values: impl Iterator<Item = T>) -> usize {
    values.enumerate().min_by(|(_, a), (_, b)| a.cmp(b)).map_or(0, |(index, _)| index)
}
