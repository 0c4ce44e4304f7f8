//! SQLite through power cuts in virtual time: one thread, the same from the same seed, thousands of cuts in a minute.
//!
//! ```text
//!   TPC-C's transactions ─► SQLite ─► VFS ─► FileSystem ─► Drive: model, bytes, Pending ◄─ cut at a seeded event
//!         one after another                  page cache
//! ```
//!
//! The power is cut at an event that is drawn anew each time: a change that SQLite asks for, a write to the drive or a flush,
//! in the middle of transactions, checkpoints, recovery and the look that follows it. Then everything that was acknowledged is
//! looked for, TPC-C's conditions are checked and `PRAGMA integrity_check` is asked. One transaction comes after another,
//! so what is there must be what was there after one of them: a later one without an earlier one is corruption. What was found
//! corrupt, or has grown much, is replaced by the database as it was loaded.
//!
//! The salts of SQLite's logs come from a generator of the whole process; they have no influence, but for one chance in 2³²
//! that an old frame passes for a new one. Not here: the time of the host's processors.

mod drive;
mod filesystem;
mod metadata;

use super::ledger::Ledger;
use super::{Asked, PowercutError, Row, Setting, contradiction};
use drive::Drive;
use filesystem::{FileSystem, Host};
use lowtide_core::rng::{Rng, below};
use lowtide_core::{Bytes, Nanos};
use lowtide_engines::Settings;
use lowtide_engines::tpcc::random::{Random, RunConstants};
use lowtide_engines::tpcc::{Deck, Inputs, Scale};
use lowtide_host::sqlite_vfs::Registered;
use lowtide_live::Offer;
use lowtide_oltp::{Database, Instance, OltpError, Session, sqlite};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the drive that are used.
const ROOM: u64 = 8 << 20;
/// The log after which a checkpoint is made: a few transactions.
const LOG: Bytes = Bytes::kib(256);
/// The power is cut within so many events; of four cuts, one within the first few, where a database recovers.
const EVENTS: u64 = 600;
const FIRST_EVENTS: u64 = 40;
/// Transactions after which a database has grown much.
const MOST_ENTRIES: usize = 300;

/// Takes a database through power cuts.
///
/// # Errors
/// [`PowercutError`] where the device cannot be so, or `interrupt` is set.
pub(super) fn run(
    setting: &Setting,
    asked: &Asked,
    cuts: u64,
    interrupt: &AtomicBool,
) -> Result<Row, PowercutError> {
    let filesystem = made(setting, asked)?;
    Rounds::begin(setting, asked, filesystem)?.run(cuts, interrupt)
}

/// An empty filesystem on the drive.
fn made(setting: &Setting, asked: &Asked) -> Result<FileSystem, PowercutError> {
    let seed = asked.seed;
    let offer = Offer { scale: asked.scale, cache: Some(setting.cache), seed, ..Offer::of(&asked.device) };
    let known = offer.look_up()?;
    if known.usable().get() < ROOM {
        let why = format!("{} of `{}` is less than {}", known.usable(), asked.device, Bytes::new(ROOM));
        return Err(PowercutError::Setting(why + ": take a larger device, or a smaller `--scale`"));
    }
    let (model, _) = known.model()?;
    let drive = Drive::new(model, known.cache(), ROOM, seed);
    Ok(FileSystem::make(drive, setting.barrier, seed))
}

/// A database between power cuts.
struct Rounds {
    row: Row,
    host: Host,
    vfs: Registered,
    settings: Settings,
    scale: Scale,
    /// The drive as it was after the load.
    image: Vec<u8>,
    ledger: Ledger,
    deck: Deck,
    inputs: Inputs,
    rng: Rng,
    /// The first cut since the database was looked at.
    cut: Option<Nanos>,
    /// The power was not cut since it was as it was loaded.
    fresh: bool,
}

/// How a round goes on.
enum Now {
    /// The power is gone.
    Cut,
    /// The database is not what it was, or does not answer.
    Corrupt(String),
}

impl Rounds {
    /// Loads the database.
    fn begin(setting: &Setting, asked: &Asked, filesystem: FileSystem) -> Result<Rounds, PowercutError> {
        let host = Host::new(filesystem);
        let vfs = Registered::new(Box::new(host.clone()));
        let vfs =
            vfs.map_err(|said| OltpError::Sql { what: "registering files".to_owned(), message: said })?;
        let settings = Settings {
            engine: setting.engine,
            durability: Some(setting.durability),
            log_size: Some(LOG),
            options: vec![("journal_mode".to_owned(), setting.journal.pragma().to_owned())],
            ..Settings::default()
        };
        let scale = Scale { warehouses: 1..=1, customers: 20, items: 200 };
        let seed = asked.seed;
        let loading = sqlite::start_in(vfs.name(), &settings)?;
        loading.database().load(&scale, seed, &AtomicBool::new(false), &|_| {})?;
        loading.stop()?;
        let image = host.lock().image();
        host.lock().power_cut();
        let constants = RunConstants::of(seed);
        let random = |name| Random::new(seed.part(name, 0));
        let row = Row::of(setting, asked);
        Ok(Rounds {
            row,
            host,
            vfs,
            settings,
            image,
            ledger: Ledger::default(),
            deck: Deck::new(random("deck")),
            inputs: Inputs::new(&scale, (1, 1), constants, random("inputs")),
            scale,
            rng: seed.part("cuts", 0).stream(),
            cut: None,
            fresh: true,
        })
    }

    fn run(mut self, cuts: u64, interrupt: &AtomicBool) -> Result<Row, PowercutError> {
        while self.row.cuts < cuts {
            if interrupt.load(Ordering::Relaxed) {
                return Err(PowercutError::Interrupted);
            }
            let most = if below(&mut self.rng, 4) == 0 { FIRST_EVENTS } else { EVENTS };
            let event = 1 + below(&mut self.rng, most);
            self.round(Some(event));
            if self.ledger.len() > MOST_ENTRIES {
                // It has grown: what the last cut left is looked at before it is replaced.
                self.round(None);
                self.replace();
            }
        }
        self.round(None);
        Ok(self.row)
    }

    /// From power to its cut; without one, to the end of the look.
    fn round(&mut self, event: Option<u64>) {
        match self.until_cut(event) {
            Now::Cut if event.is_some() => {
                self.row.cuts += 1;
                self.cut.get_or_insert(self.clock());
                self.fresh = false;
            }
            Now::Cut => self.host.lock().power_cut(),
            Now::Corrupt(why) => {
                assert!(!self.fresh, "a database as it was loaded is sound, but: {why}");
                self.row.damaged(&why);
                self.row.lost += self.ledger.new_entries();
                self.replace();
            }
        }
    }

    /// The database is as it was loaded again.
    fn replace(&mut self) {
        self.host.lock().restore(&self.image);
        self.ledger = Ledger::default();
        (self.cut, self.fresh) = (None, true);
    }

    fn clock(&self) -> Nanos {
        Nanos::new(self.host.lock().now().as_nanos())
    }

    /// Why something failed.
    fn why(&self, said: impl ToString) -> Now {
        if self.host.lock().is_powered() { Now::Corrupt(said.to_string()) } else { Now::Cut }
    }

    fn until_cut(&mut self, event: Option<u64>) -> Now {
        let began = self.clock();
        if self.host.lock().power_on(event).is_err() {
            return Now::Corrupt("the filesystem has no metadata that is whole".to_owned());
        }
        let instance = match self.open() {
            Ok(instance) => instance,
            Err(error) => return self.why(error),
        };
        self.row.recovery.add(Nanos::new(self.clock().get() - began.get()));
        let database = instance.database();
        match self.look(&*database) {
            Ok(None) => {}
            // What a check says that had no power to its end says nothing.
            Ok(Some(why)) => return self.why(why),
            Err(error) => return self.why(error),
        }
        if event.is_none() {
            return Now::Cut;
        }
        match database.session() {
            Ok(mut session) => self.ask(&mut *session),
            Err(error) => self.why(error),
        }
    }

    /// Opens the database, which recovers with the first answer.
    fn open(&self) -> Result<Box<dyn Instance>, OltpError> {
        let instance = sqlite::start_in(self.vfs.name(), &self.settings)?;
        instance.database().number("SELECT count(*) FROM warehouse")?;
        Ok(instance)
    }

    /// Looks for everything that was acknowledged, and for contradictions; what cannot be, if something is.
    fn look(&mut self, database: &dyn Database) -> Result<Option<String>, OltpError> {
        if let Some(cut) = self.cut {
            let found = self.ledger.look(database, &self.scale, cut)?;
            self.row.lost += found.lost;
            self.row.returned += found.returned;
            self.row.oldest_lost = self.row.oldest_lost.max(found.oldest);
            if let Some(told) = found.told(true) {
                return Ok(Some(told));
            }
        }
        let told = contradiction(database, &self.scale)?;
        self.cut = self.cut.filter(|_| told.is_some());
        Ok(told)
    }

    /// Asks for one transaction after another until the power is gone.
    fn ask(&mut self, session: &mut dyn Session) -> Now {
        loop {
            let mut transaction = self.inputs.next(self.deck.deal());
            self.ledger.name(&mut transaction);
            match session.run(&transaction) {
                Ok(outcome) => {
                    let at = self.clock();
                    self.row.acknowledged += u64::from(self.ledger.acknowledge(&transaction, outcome, at));
                }
                Err(failure) => {
                    self.ledger.unknown(transaction);
                    return self.why(failure);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
