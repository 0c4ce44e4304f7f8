//! Power cuts under SQLite in virtual time: one thread, deterministic from the seed, thousands of cuts per minute.
//!
//! ```text
//!   TPC-C's transactions ─► SQLite ─► VFS ─► FileSystem ─► Drive: model, bytes, Pending ◄─ cut at a seeded event
//!         one after another                  page cache
//! ```
//!
//! The power is cut at a random event: a change by SQLite, a write to the drive or a flush, during transactions,
//! checkpoints, recovery or the lookup after recovery. After recovery, all acknowledged transactions are looked up,
//! the TPC-C consistency conditions are checked and `PRAGMA integrity_check` is run. Because transactions are
//! sequential, a found transaction after a lost transaction is corruption. The loaded database replaces a database
//! that is corrupt or has grown large.
//!
//! The salts in SQLite's logs come from a process-wide generator, which the seed does not control. The salts have no
//! influence, except that an old frame is taken for a new frame with a probability of 2⁻³².
//!
//! # Not modelled
//! The processor time of the host.

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

/// The size of the simulated drive in bytes.
const ROOM: u64 = 8 << 20;
/// The log size that triggers a checkpoint: a few transactions.
const LOG: Bytes = Bytes::kib(256);
/// The largest number of events before a cut.
const EVENTS: u64 = 600;
/// The largest number of events before a quarter of the cuts, chosen to hit recovery.
const FIRST_EVENTS: u64 = 40;
/// A database with more ledger entries is replaced.
const MOST_ENTRIES: usize = 300;

/// Runs a database through power cuts.
///
/// # Errors
/// [`PowercutError`] if the device is unsuitable, or `interrupt` is set.
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
        return Err(PowercutError::Setting(why + ": use a larger device, or a smaller `--scale`"));
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
    /// The contents of the drive after the load.
    image: Vec<u8>,
    ledger: Ledger,
    deck: Deck,
    inputs: Inputs,
    rng: Rng,
    /// The first cut since the last lookup.
    cut: Option<Nanos>,
    /// `true` until the first power cut after the database was loaded or replaced.
    fresh: bool,
}

/// The end of a round.
enum End {
    /// The power was cut.
    Cut,
    /// The database is corrupt, or does not answer.
    Corrupt(String),
}

impl Rounds {
    /// Loads the database.
    fn begin(setting: &Setting, asked: &Asked, filesystem: FileSystem) -> Result<Rounds, PowercutError> {
        let host = Host::new(filesystem);
        let vfs = Registered::new(Box::new(host.clone()))
            .map_err(|message| OltpError::Sql { what: "registering files".to_owned(), message })?;
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
        let random = |name| Random::new(seed.part(name, 0));
        Ok(Rounds {
            row: Row::of(setting, asked),
            host,
            vfs,
            settings,
            image,
            ledger: Ledger::default(),
            deck: Deck::new(random("deck")),
            inputs: Inputs::new(&scale, (1, 1), RunConstants::of(seed), random("inputs")),
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
                // Check the database after its last cut, before it is replaced.
                self.round(None);
                self.replace();
            }
        }
        self.round(None);
        Ok(self.row)
    }

    /// Runs from power-on to the power cut at `event`, or to the end of the lookup without an event.
    fn round(&mut self, event: Option<u64>) {
        match self.until_cut(event) {
            End::Cut if event.is_some() => {
                self.row.cuts += 1;
                self.cut.get_or_insert(self.clock());
                self.fresh = false;
            }
            End::Cut => self.host.lock().power_cut(),
            End::Corrupt(why) => {
                assert!(!self.fresh, "a loaded database is sound, but: {why}");
                self.row.damaged(&why);
                self.row.lost += self.ledger.new_entries();
                self.replace();
            }
        }
    }

    /// Replaces the database by the loaded one.
    fn replace(&mut self) {
        self.host.lock().restore(&self.image);
        self.ledger = Ledger::default();
        (self.cut, self.fresh) = (None, true);
    }

    fn clock(&self) -> Nanos {
        Nanos::new(self.host.lock().now().as_nanos())
    }

    fn until_cut(&mut self, event: Option<u64>) -> End {
        let began = self.clock();
        if self.host.lock().power_on(event).is_err() {
            return End::Corrupt("the filesystem has no valid metadata".to_owned());
        }
        let instance = match self.open() {
            Ok(instance) => instance,
            Err(error) => return self.end_of(error),
        };
        self.row.recovery.add(Nanos::new(self.clock().get() - began.get()));
        let database = instance.database();
        match self.look(&*database) {
            Ok(None) => {}
            Ok(Some(damage)) => return self.end_of(damage),
            Err(error) => return self.end_of(error),
        }
        if event.is_none() {
            return End::Cut;
        }
        match database.session() {
            Ok(mut session) => self.run_transactions(&mut *session),
            Err(error) => self.end_of(error),
        }
    }

    /// Classifies a failure. After a power cut, failures are expected and do not count as corruption.
    fn end_of(&self, failure: impl ToString) -> End {
        if self.host.lock().is_powered() { End::Corrupt(failure.to_string()) } else { End::Cut }
    }

    /// Opens the database and waits for its first answer, which completes recovery.
    fn open(&self) -> Result<Box<dyn Instance>, OltpError> {
        let instance = sqlite::start_in(self.vfs.name(), &self.settings)?;
        instance.database().number("SELECT count(*) FROM warehouse")?;
        Ok(instance)
    }

    /// Looks up all acknowledged transactions and checks the consistency conditions. Returns the first damage.
    fn look(&mut self, database: &dyn Database) -> Result<Option<String>, OltpError> {
        if let Some(cut) = self.cut {
            let found = self.ledger.look(database, &self.scale, cut)?;
            self.row.add(&found);
            if let Some(damage) = found.damage(true) {
                return Ok(Some(damage));
            }
        }
        let damage = contradiction(database, &self.scale)?;
        self.cut = self.cut.filter(|_| damage.is_some());
        Ok(damage)
    }

    /// Runs transactions until one fails.
    fn run_transactions(&mut self, session: &mut dyn Session) -> End {
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
                    return self.end_of(failure);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
