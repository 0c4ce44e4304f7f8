//! An external server whose errors name its address, without the password.
//!
//! The engine's module implements the database itself.

use crate::{Counter, Database, Failure, OltpError, Outcome, Session};
use lowtide_core::Seed;
use lowtide_engines::tpcc::{Scale, Transaction};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A database and its address without the password.
pub(crate) struct Named {
    database: Arc<dyn Database>,
    address: Arc<str>,
}

impl Named {
    pub(crate) fn new(database: Arc<dyn Database>, address: &str) -> Named {
        Named { database, address: crate::without_password(address).into() }
    }
    fn told<T>(&self, result: Result<T, OltpError>) -> Result<T, OltpError> {
        result.map_err(|error| match error {
            OltpError::Sql { what, message } => {
                OltpError::Sql { what: format!("{}: {what}", self.address), message }
            }
            OltpError::Invalid(why) => OltpError::Invalid(format!("{}: {why}", self.address)),
            other => other,
        })
    }
}

impl Database for Named {
    fn version(&self) -> &str {
        self.database.version()
    }
    fn session(&self) -> Result<Box<dyn Session>, OltpError> {
        let session = self.told(self.database.session())?;
        Ok(Box::new(NamedSession { session, address: Arc::clone(&self.address) }))
    }
    fn most_sessions(&self) -> Result<Option<u32>, OltpError> {
        self.told(self.database.most_sessions())
    }
    fn load(
        &self,
        scale: &Scale,
        seed: Seed,
        interrupt: &AtomicBool,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(), OltpError> {
        self.told(self.database.load(scale, seed, interrupt, progress))
    }
    fn number(&self, query: &str) -> Result<i64, OltpError> {
        self.told(self.database.number(query))
    }
    fn numbers(&self, query: &str) -> Result<Vec<Vec<i64>>, OltpError> {
        self.told(self.database.numbers(query))
    }
    fn damage(&self) -> Result<Vec<String>, OltpError> {
        self.told(self.database.damage())
    }
    fn execute(&self, statement: &str) -> Result<(), OltpError> {
        self.told(self.database.execute(statement))
    }
    fn counters(&self) -> Result<Vec<Counter>, OltpError> {
        self.told(self.database.counters())
    }
}

/// A session of a [`Named`] server.
struct NamedSession {
    session: Box<dyn Session>,
    address: Arc<str>,
}

impl Session for NamedSession {
    fn run(&mut self, transaction: &Transaction) -> Result<Outcome, Failure> {
        self.session.run(transaction).map_err(|failure| match failure {
            Failure::Conflict(why) => Failure::Conflict(why),
            Failure::Lost(why) => Failure::Lost(format!("{}: {why}", self.address)),
            Failure::Refused(why) => Failure::Refused(format!("{}: {why}", self.address)),
        })
    }
    fn statements(&self) -> u64 {
        self.session.statements()
    }
}
