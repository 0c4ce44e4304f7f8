//! The work of a load: requests of a pattern, a trace, inserts into an index, or TPC-C.
//!
//! In a stored experiment, every kind of work except requests has a key. At most one of these keys is not null.

use super::inserts::Inserts;
use super::oltp::Oltp;
use super::replay::Replay;
use serde::{Deserialize, Serialize};

/// The work of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub enum Work {
    /// Requests of the load's pattern.
    #[default]
    Requests,
    /// Recorded requests.
    Trace(Replay),
    /// Inserts into an index.
    Inserts(Inserts),
    /// TPC-C on a database.
    Transactions(Box<Oltp>),
}

impl Work {
    /// The recorded requests, if the load is a trace.
    pub fn trace(&self) -> Option<&Replay> {
        match self {
            Work::Trace(replay) => Some(replay),
            Work::Requests | Work::Inserts(_) | Work::Transactions(_) => None,
        }
    }

    /// The inserts, if the load consists of inserts.
    pub fn inserts(&self) -> Option<&Inserts> {
        match self {
            Work::Inserts(inserts) => Some(inserts),
            Work::Requests | Work::Trace(_) | Work::Transactions(_) => None,
        }
    }

    /// The settings of TPC-C, if the load consists of transactions.
    pub fn transactions(&self) -> Option<&Oltp> {
        match self {
            Work::Transactions(oltp) => Some(oltp),
            Work::Requests | Work::Trace(_) | Work::Inserts(_) => None,
        }
    }

    /// The settings of TPC-C, for code that runs only for such loads.
    ///
    /// # Panics
    /// If the load consists of anything else.
    pub fn of_databases(&self) -> &Oltp {
        self.transactions().expect("the load consists of transactions")
    }

    /// Returns whether the load is TPC-C on a database.
    pub fn is_transactions(&self) -> bool {
        self.transactions().is_some()
    }
}

/// The stored form of the work: one key for each kind.
#[derive(Serialize, Deserialize)]
struct Keys {
    inserts: Option<Inserts>,
    oltp: Option<Box<Oltp>>,
    replay: Option<Replay>,
}

impl From<Work> for Keys {
    fn from(work: Work) -> Keys {
        let none = Keys { inserts: None, oltp: None, replay: None };
        match work {
            Work::Requests => none,
            Work::Trace(replay) => Keys { replay: Some(replay), ..none },
            Work::Inserts(inserts) => Keys { inserts: Some(inserts), ..none },
            Work::Transactions(oltp) => Keys { oltp: Some(oltp), ..none },
        }
    }
}

impl TryFrom<Keys> for Work {
    type Error = &'static str;

    fn try_from(keys: Keys) -> Result<Work, Self::Error> {
        match keys {
            Keys { inserts: None, oltp: None, replay: None } => Ok(Work::Requests),
            Keys { inserts: None, oltp: None, replay: Some(replay) } => Ok(Work::Trace(replay)),
            Keys { inserts: Some(inserts), oltp: None, replay: None } => Ok(Work::Inserts(inserts)),
            Keys { inserts: None, oltp: Some(oltp), replay: None } => Ok(Work::Transactions(oltp)),
            _ => Err("more than one of `inserts`, `oltp` and `replay`"),
        }
    }
}
