//! Power cuts under databases in wall time: a database server on a kernel filesystem on an attached simulated drive.
//!
//! ```text
//!   terminals ─► server ─► xfs | ext4 ─► attached drive ◄─ power cut, in wall time
//!       └─► Ledger         mounted again ◄─ power on
//! ```
//!
//! The drive and its host lose power together. At the cut the server is killed, and the kernel can no longer write
//! dirty pages. Transactions acknowledged after the cut was requested do not count. At power-on the filesystem is
//! mounted and the server started. After both have recovered, all acknowledged transactions are looked up. Several
//! terminals run concurrently, so the order of commits is unknown and not checked. If the database is corrupt or its
//! filesystem cannot be mounted, a copy of the loaded database on a new drive replaces it. SQLite has one terminal
//! and exclusive access to its file. The run needs root access, FUSE and loop devices.
//!
//! # Not modelled
//! Log disks and performance.

use super::evidence::{self, Evidence};
use super::keep::Keeper;
use super::kernel::{self, KernelLog};
use super::ledger::Ledger;
use super::{Asked, PowercutError, Promise, Row, Setting, contradiction};
use lowtide_core::{Bytes, Nanos, Seed};
use lowtide_device::power::Tear;
use lowtide_engines::tpcc::random::{Random, RunConstants};
use lowtide_engines::tpcc::{Deck, Inputs, Scale};
use lowtide_engines::{Engine, Settings};
use lowtide_lab::prepare::{data_set, home};
use lowtide_live::Offer;
use lowtide_live::attached::{self, AttachOptions, Attached};
use lowtide_live::contract::{Contract, Findings};
use lowtide_live::request_log;
use lowtide_oltp::{
    Database, Failure, Folder, Instance, OltpError, Places, Session, instance, snapshot, sqlite,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Smallest and largest value of the random minimum of transactions between two cuts.
const COMMITS: [u32; 2] = [30, 300];
/// Longest delay from the last of these transactions to the cut, in milliseconds.
const WITHIN_MS: u32 = 100;
/// A database that completes no transaction for this time counts as dead.
const PATIENCE: Duration = Duration::from_secs(120);
/// The interval at which completed transactions are counted.
const POLL: Duration = Duration::from_millis(2);

/// Runs a database through power cuts.
///
/// # Errors
/// [`PowercutError`] if this machine cannot attach the drive or run the database, or `interrupt` is set.
pub(super) fn run(
    setting: &Setting,
    asked: &Asked,
    cuts: u64,
    interrupt: &Arc<AtomicBool>,
) -> Result<Row, PowercutError> {
    let mut rounds = Rounds::begin(setting, asked, interrupt)?;
    while rounds.row.cuts < cuts {
        if interrupt.load(Ordering::Relaxed) {
            return Err(PowercutError::Interrupted);
        }
        rounds.round()?;
    }
    Ok(rounds.row)
}

/// A database between power cuts.
struct Rounds<'a> {
    row: Row,
    asked: &'a Asked,
    interrupt: &'a Arc<AtomicBool>,
    settings: Settings,
    scale: Scale,
    /// `None` while the database does not run. Must be dropped before the drive, because the database uses the drive.
    instance: Option<Box<dyn Instance>>,
    drive: Option<Attached>,
    /// The loaded database, and the server's other files.
    own: Folder,
    ledger: Mutex<Ledger>,
    began: Instant,
    /// The number of drives so far.
    drives: u64,
    keeper: Option<Keeper<'a>>,
    /// Checks the requests to the drive. Used only if files are kept.
    contract: Contract,
    kernel: KernelLog,
}

impl<'a> Rounds<'a> {
    /// Loads the database on a new drive.
    fn begin(
        setting: &Setting,
        asked: &'a Asked,
        interrupt: &'a Arc<AtomicBool>,
    ) -> Result<Rounds<'a>, PowercutError> {
        attached::clean().map_err(attached::AttachedError::from)?;
        let (buffer_pool, log_size) = match setting.engine {
            // The pool is smaller than the data, so that pages are evicted and read back.
            Engine::Postgresql => (Bytes::mib(4), Bytes::mib(32)),
            _ => (Bytes::mib(8), Bytes::mib(8)),
        };
        let settings = Settings {
            engine: setting.engine,
            durability: Some(setting.durability),
            buffer_pool: Some(buffer_pool),
            log_size: Some(log_size),
            options: match setting.engine.has_journal_mode() {
                true => vec![("journal_mode".to_owned(), setting.journal.pragma().to_owned())],
                false => Vec::new(),
            },
            ..Settings::default()
        };
        let mut rounds = Rounds {
            row: Row::of(setting, asked),
            asked,
            interrupt,
            settings,
            scale: Scale { warehouses: 1..=1, customers: 300, items: 5_000 },
            instance: None,
            drive: None,
            own: home::own(&std::env::temp_dir()).map_err(attached::AttachedError::from)?,
            ledger: Mutex::default(),
            began: Instant::now(),
            drives: 0,
            keeper: asked.keep.as_deref().map(|directory| Keeper::new(directory, interrupt)),
            contract: Contract::new(),
            kernel: KernelLog::from_now(),
        };
        rounds.attach()?;
        data_set::make(&rounds.places())?;
        rounds.start_empty()?;
        rounds.database().load(&rounds.scale, asked.seed, interrupt, &|_| {})?;
        rounds.instance.take().expect("the database runs").stop()?;
        let (from, to) = (rounds.places().data, rounds.own.path().join("loaded"));
        snapshot::copy(&from, &to, interrupt, &|_| {})?;
        rounds.begin_from_copy()?;
        Ok(rounds)
    }

    /// Starts a copy of the loaded database on a new drive.
    fn begin_from_copy(&mut self) -> Result<(), PowercutError> {
        self.instance = None;
        self.attach()?;
        let places = self.places();
        snapshot::copy(&self.own.path().join("loaded"), &places.data, self.interrupt, &|_| {})?;
        *lock(&self.ledger) = Ledger::default();
        self.drive().at_its_pace()?;
        self.start()?;
        Ok(())
    }

    /// Attaches a new drive with an empty filesystem.
    fn attach(&mut self) -> Result<(), PowercutError> {
        self.drive = None;
        self.drives += 1;
        let setting = &self.row.setting;
        let filesystem = setting.filesystem.expect("`simulated` runs without one");
        let offer = Offer {
            name: Some("powercut".to_owned()),
            scale: self.asked.scale,
            cache: Some(setting.cache),
            seed: self.asked.seed.part("drive", self.drives),
            ..Offer::of(&self.asked.device)
        };
        self.drive = Some(Attached::new(AttachOptions {
            offer,
            history: None,
            filesystem,
            size: None,
            trims: false,
            options: if setting.barrier { "noatime" } else { "noatime,barrier=0" },
            server: attached::server(),
            interrupt: self.interrupt,
        })?);
        if self.keeper.is_some() {
            self.contract = Contract::new();
            self.drive().log_requests()?;
        }
        Ok(())
    }

    fn drive(&self) -> &Attached {
        self.drive.as_ref().expect("the drive is attached")
    }

    fn places(&self) -> Places {
        Places { data: self.drive().path().join("data"), log: None, run: self.own.path().join("run") }
    }

    /// Starts the loaded database and waits until it has recovered, which its first answer proves.
    fn start(&mut self) -> Result<(), OltpError> {
        self.start_empty()?;
        self.database().number("SELECT count(*) FROM warehouse").map(drop)
    }

    /// Starts the database. Creates the database if none exists.
    fn start_empty(&mut self) -> Result<(), OltpError> {
        let places = self.places();
        let started = match self.settings.engine.is_embedded() {
            // Shared memory in a file on the drive would raise SIGBUS in this process after the cut.
            true => sqlite::start_alone(&places, &self.settings),
            false => instance::start(&self.settings, &places, self.interrupt),
        };
        self.instance = Some(started?);
        Ok(())
    }

    fn database(&self) -> Arc<dyn Database> {
        self.instance.as_ref().expect("the database runs").database()
    }

    /// Writes until the power is cut, restores the power, and checks the database.
    fn round(&mut self) -> Result<(), PowercutError> {
        let seed = self.asked.seed.part("round", self.row.cuts);
        let mut devices = Vec::from_iter(kernel::loop_device(self.drive().path()));
        let Written { cut, failed, commits } = self.write_and_cut(seed)?;
        self.row.cuts += 1;
        let (before, lost_before) = (lock(&self.ledger).clone(), self.row.lost);
        let begin = Instant::now();
        let drive = self.drive.as_mut().expect("the drive is attached");
        drive.power_on()?;
        let mounted = drive.mount_after_power_cut();
        let mounting = begin.elapsed();
        let is_mounted = mounted.is_ok();
        if is_mounted {
            devices.extend(kernel::loop_device(self.drive().path()));
            if let Some(keeper) = &self.keeper {
                keeper.copy(&self.row, &self.places().data)?;
            }
        }
        let begin = Instant::now();
        let started = mounted.map_err(PowercutError::from).and_then(|()| Ok(self.start()?));
        let damage = match started {
            Ok(()) => {
                self.row.recovery.add(Nanos::new((mounting + begin.elapsed()).as_nanos() as u64));
                self.look(cut).unwrap_or_else(|error| Some(error.to_string()))
            }
            Err(error) => Some(error.to_string()),
        };
        let mut damage = failed.or(damage);
        if damage.is_some() {
            // If the drive's server process has ended, the run fails. The database is not damaged.
            self.drive().stat()?;
        }
        let kernel = self.kernel.of(&devices);
        let unreadable = match damage {
            // SQLite calls a database malformed if its file is unreadable.
            Some(_) if is_mounted => kernel::unreadable(&self.places().data),
            _ => Vec::new(),
        };
        if let (Some(damage), Some(why)) = (&mut damage, unreadable.first()) {
            damage.push_str(&format!("; the filesystem fails: {why}"));
        }
        if self.interrupt.load(Ordering::Relaxed) {
            if let Some(keeper) = &self.keeper {
                keeper.forget(&self.row);
            }
            return Err(PowercutError::Interrupted);
        }
        if self.keeper.is_some() {
            let lost = self.row.lost - lost_before;
            let evidence = Evidence { commits, unreadable, kernel, ..Evidence::default() };
            damage = self.keep_or_forget((damage, lost), evidence, (before, cut))?;
        }
        if let Some(why) = damage {
            self.row.damaged(&why);
            let unchecked = lock(&self.ledger).new_entries();
            self.row.lost += unchecked;
            self.begin_from_copy()?;
        }
        Ok(())
    }

    /// Keeps the files and the evidence of the round if the database is damaged, a promise was broken, or the drive
    /// violated its contract. Returns the damage, including a violation.
    fn keep_or_forget(
        &mut self,
        (damage, lost): (Option<String>, u64),
        mut evidence: Evidence,
        (ledger, cut): (Ledger, Nanos),
    ) -> Result<Option<String>, PowercutError> {
        let log = self.own.path().join("requests.log");
        let _ = std::fs::remove_file(&log);
        self.drive().take_log(&log)?;
        evidence.findings = self.follow(&log)?;
        let broke = (evidence.findings.broken > 0).then(|| "the drive broke its contract".to_owned());
        let keeper = self.keeper.as_ref().expect("files are kept");
        let missed = lost > 0 && self.row.setting.promise() == Promise::All;
        let damage = damage.or(broke);
        if damage.is_none() && !missed {
            keeper.forget(&self.row);
            return Ok(None);
        }
        let (copy, scratch) = (keeper.data(&self.row), self.own.path().join("opened"));
        let how = (&self.settings, &self.scale);
        evidence.copy = evidence::of_copy(&self.row, (&copy, &scratch), how, (ledger, cut));
        let why = damage.clone().unwrap_or_else(|| format!("{lost} acknowledged transactions are lost"));
        keeper.keep(&self.row, &format!("{why}\n{evidence}"), &log)?;
        Ok(damage)
    }

    /// Checks the drive's log against its contract.
    fn follow(&mut self, log: &Path) -> Result<Findings, PowercutError> {
        let failed = |source| OltpError::Io { path: log.to_owned(), source };
        let text = std::fs::read_to_string(log).map_err(failed)?;
        let requests = request_log::read(&text)
            .map_err(|why| OltpError::Invalid(format!("{}: {why}", log.display())))?;
        Ok(self.contract.follow(&requests))
    }

    /// Looks up all acknowledged transactions and checks the consistency conditions. Returns the first damage.
    fn look(&mut self, cut: Nanos) -> Result<Option<String>, OltpError> {
        let database = self.database();
        let found = lock(&self.ledger).look(&*database, &self.scale, cut)?;
        self.row.add(&found);
        match found.damage(false) {
            None => contradiction(&*database, &self.scale),
            damage => Ok(damage),
        }
    }

    /// Runs transactions until the power is cut in the middle of them.
    fn write_and_cut(&mut self, seed: Seed) -> Result<Written, PowercutError> {
        let mut random = Random::new(seed.part("cut", 0));
        let wanted = u64::from(random.between(COMMITS[0], COMMITS[1]));
        let pause = Duration::from_millis(random.between(0, WITHIN_MS).into());
        let terminals = if self.settings.engine.has_one_writer() { 1 } else { 4 };
        let database = self.database();
        let sessions = (0..terminals).map(|_| database.session()).collect::<Result<Vec<_>, _>>()?;
        drop(database);
        let instance = self.instance.take();
        let load = Load {
            ledger: &self.ledger,
            began: self.began,
            ended: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failure: OnceLock::new(),
        };
        let (cut, commits) = std::thread::scope(|scope| {
            let terminals: Vec<_> = sessions
                .into_iter()
                .zip(0u64..)
                .map(|(session, number)| {
                    let seed = seed.part("terminal", number);
                    let random = |name| Random::new(seed.part(name, 0));
                    let constants = RunConstants::of(self.asked.seed);
                    let home = (1, number as u32 + 1);
                    let inputs = Inputs::new(&self.scale, home, constants, random("inputs"));
                    let terminal = Terminal { session, deck: Deck::new(random("deck")), inputs, load: &load };
                    scope.spawn(move || terminal.run())
                })
                .collect();
            let (mut last, mut since) = (0, Instant::now());
            while load.ended.load(Ordering::Relaxed) < wanted && load.failure.get().is_none() {
                let now = load.ended.load(Ordering::Relaxed);
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                if since.elapsed() > PATIENCE || self.interrupt.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(POLL);
            }
            std::thread::sleep(pause);
            load.is_over.store(true, Ordering::SeqCst);
            let cut = load.clock();
            let lost = self.drive().power_cut(Tear::Page);
            // Unblocks the terminals: stopping the server gives its clients an error. The sessions of an embedded
            // database get an error from the drive.
            drop(instance);
            let commits = terminals.into_iter().flat_map(|terminal| terminal.join().unwrap_or_default());
            (lost.map(|_| cut), commits.collect::<Vec<_>>())
        });
        self.row.acknowledged += commits.len() as u64;
        Ok(Written { cut: cut?, failed: load.failure.into_inner(), commits })
    }
}

/// The result of the transactions before a power cut.
struct Written {
    /// The time of the cut.
    cut: Nanos,
    /// The first failure while the power was on.
    failed: Option<String>,
    /// Start and end of each acknowledged commit, in nanoseconds of `CLOCK_MONOTONIC`.
    commits: Vec<(u64, u64)>,
}

/// State shared by the terminals.
struct Load<'a> {
    ledger: &'a Mutex<Ledger>,
    began: Instant,
    /// The number of completed transactions.
    ended: AtomicU64,
    /// Set when the power is cut.
    is_over: AtomicBool,
    /// The first failure while the power was on.
    failure: OnceLock<String>,
}

impl Load<'_> {
    fn clock(&self) -> Nanos {
        Nanos::new(self.began.elapsed().as_nanos() as u64)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A terminal, which runs transactions one after another.
struct Terminal<'a> {
    session: Box<dyn Session + 'a>,
    deck: Deck,
    inputs: Inputs,
    load: &'a Load<'a>,
}

impl Terminal<'_> {
    /// Runs transactions until the power is cut. Returns the acknowledged commits whose loss would be visible; see
    /// [`Written::commits`].
    fn run(mut self) -> Vec<(u64, u64)> {
        let (load, mut commits) = (self.load, Vec::new());
        while !load.is_over() {
            let mut transaction = self.inputs.next(self.deck.deal());
            lock(load.ledger).name(&mut transaction);
            let asked_ns = request_log::monotonic_ns();
            let ended = loop {
                match self.session.run(&transaction) {
                    Err(Failure::Conflict(_)) if !load.is_over() => {}
                    ended => break ended,
                }
            };
            match ended {
                Ok(outcome) if !load.is_over() => {
                    let (at, ended_ns) = (load.clock(), request_log::monotonic_ns());
                    if lock(load.ledger).acknowledge(&transaction, outcome, at) {
                        commits.push((asked_ns, ended_ns));
                    }
                    load.ended.fetch_add(1, Ordering::Relaxed);
                }
                ended => {
                    if let (Err(failure), false) = (ended, load.is_over()) {
                        let message = format!("a transaction failed while the power was on: {failure}");
                        load.failure.get_or_init(|| message);
                    }
                    lock(load.ledger).unknown(transaction);
                    break;
                }
            }
        }
        commits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_engines::tpcc::Transaction;
    use lowtide_oltp::Outcome;

    /// A session that fails after a given number of transactions. Sets the flag, if any, before it reports the
    /// failure.
    struct Fails<'a>(u32, Option<&'a AtomicBool>);

    impl Session for Fails<'_> {
        fn run(&mut self, _: &Transaction) -> Result<Outcome, Failure> {
            match self.0.checked_sub(1) {
                Some(left) => self.0 = left,
                None => {
                    if let Some(over) = self.1 {
                        over.store(true, Ordering::SeqCst);
                    }
                    return Err(Failure::Refused("database disk image is malformed".to_owned()));
                }
            }
            Ok(Outcome::Committed)
        }
        fn statements(&self) -> u64 {
            0
        }
    }

    /// The failure of a terminal whose session fails after five transactions, with or without a power cut.
    fn failure(cut_before: bool) -> Option<String> {
        let (ledger, seed) = (Mutex::default(), Seed::new(1));
        let load = Load {
            ledger: &ledger,
            began: Instant::now(),
            ended: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failure: OnceLock::new(),
        };
        let random = |name| Random::new(seed.part(name, 0));
        let scale = Scale { warehouses: 1..=1, customers: 20, items: 200 };
        let inputs = Inputs::new(&scale, (1, 1), RunConstants::of(seed), random("inputs"));
        let session = Box::new(Fails(5, cut_before.then_some(&load.is_over)));
        Terminal { session, deck: Deck::new(random("deck")), inputs, load: &load }.run();
        assert_eq!(load.ended.into_inner(), 5);
        load.failure.into_inner()
    }

    #[test]
    fn only_failures_while_the_power_is_on_are_reported() {
        let failed = failure(false).expect("a failure without a cut");
        assert!(failed.contains("while the power was on: database disk image is malformed"), "{failed}");
        assert_eq!(failure(true), None);
    }
}
