//! Databases through power cuts on this machine: a server, a filesystem of the kernel, an attached drive that is simulated.
//!
//! ```text
//!   terminals ─► server ─► xfs | ext4 ─► attached drive ◄─ the power is cut, in wall time
//!       └─► Ledger         mounted again ◄─ the power is on again
//! ```
//!
//! With the power of the drive that of its host goes: what the server acknowledges from the moment on at which the cut is
//! ordered does not count, the server is killed, and what the kernel has in memory cannot be written any more. Then the filesystem
//! is mounted again and the server started, both recover, and everything that was acknowledged is looked for. Several
//! terminals ask at once, so nothing is said about which commit came first. A database that was found corrupt, or whose
//! filesystem cannot be mounted, is replaced by the one that was loaded, on a new drive. SQLite has one terminal, and its
//! file to itself. Not here: log disks, and how fast all this is. It needs root, FUSE and loop devices.

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

/// Transactions between two cuts, at least: drawn between these.
const COMMITS: [u32; 2] = [30, 300];
/// The power is cut within so many milliseconds after them.
const WITHIN_MS: u32 = 100;
/// So long without a transaction's end, and a database is taken for dead.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked whether there were enough.
const LOOK: Duration = Duration::from_millis(2);

/// Takes a database through power cuts.
///
/// # Errors
/// [`PowercutError`] where this machine does not have what it takes, or `interrupt` is set.
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
    // Who uses the drive is dropped first.
    /// `None` where the database does not run.
    instance: Option<Box<dyn Instance>>,
    drive: Option<Attached>,
    /// The loaded database, and what the server needs beside the drive.
    own: Folder,
    ledger: Mutex<Ledger>,
    began: Instant,
    /// Drives so far.
    drives: u64,
    keeper: Option<Keeper<'a>>,
    /// Follows the drive, where files are kept.
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
            // Less than there is: pages are read back, and written when others need their place.
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
        rounds.instance.take().expect("it runs").stop()?;
        let (from, to) = (rounds.places().data, rounds.own.path().join("loaded"));
        snapshot::copy(&from, &to, interrupt, &|_| {})?;
        rounds.begin_from_copy()?;
        Ok(rounds)
    }

    /// The loaded database on a new drive.
    fn begin_from_copy(&mut self) -> Result<(), PowercutError> {
        self.instance = None;
        self.attach()?;
        let places = self.places();
        snapshot::copy(&self.own.path().join("loaded"), &places.data, self.interrupt, &|_| {})?;
        self.lock().clone_from(&Ledger::default());
        self.drive().at_its_pace()?;
        self.start()?;
        Ok(())
    }

    /// A new drive with an empty filesystem.
    fn attach(&mut self) -> Result<(), PowercutError> {
        self.drive = None;
        self.drives += 1;
        let setting = &self.row.setting;
        let filesystem = setting.filesystem.expect("a simulated one is cut in virtual time");
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
        self.drive.as_ref().expect("it is attached")
    }

    fn places(&self) -> Places {
        Places { data: self.drive().path().join("data"), log: None, run: self.own.path().join("run") }
    }

    /// Starts the loaded database, which recovers with the first answer at the latest.
    fn start(&mut self) -> Result<(), OltpError> {
        self.start_empty()?;
        self.database().number("SELECT count(*) FROM warehouse").map(drop)
    }

    /// Starts the database, made where there is none.
    fn start_empty(&mut self) -> Result<(), OltpError> {
        let places = self.places();
        let started = match self.settings.engine.is_embedded() {
            // Memory that is shared through a file of the drive would go with its power, and take this process along.
            true => sqlite::start_alone(&places, &self.settings),
            false => instance::start(&self.settings, &places, self.interrupt),
        };
        self.instance = Some(started?);
        Ok(())
    }

    fn database(&self) -> Arc<dyn Database> {
        self.instance.as_ref().expect("it runs").database()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> Nanos {
        Nanos::new(self.began.elapsed().as_nanos() as u64)
    }

    /// Writes until the power is cut, brings everything up again, and looks.
    fn round(&mut self) -> Result<(), PowercutError> {
        let seed = self.asked.seed.part("round", self.row.cuts);
        let mut devices = Vec::from_iter(kernel::loop_device(self.drive().path()));
        let Written { cut, failed, commits } = self.write_and_cut(seed)?;
        self.row.cuts += 1;
        let (before, lost_before) = (self.lock().clone(), self.row.lost);
        let begin = Instant::now();
        let drive = self.drive.as_mut().expect("it is attached");
        drive.power_on()?;
        let up = drive.mount_after_power_cut();
        let mounting = begin.elapsed();
        if up.is_ok() {
            devices.extend(kernel::loop_device(self.drive().path()));
            if let Some(keeper) = &self.keeper {
                keeper.copy(&self.row, &self.places().data)?;
            }
        }
        let mounted = up.is_ok();
        let begin = Instant::now();
        let started = up.map_err(PowercutError::from).and_then(|()| Ok(self.start()?));
        let told = match started {
            Ok(()) => {
                self.row.recovery.add(Nanos::new((mounting + begin.elapsed()).as_nanos() as u64));
                self.look(cut).unwrap_or_else(|error| Some(error.to_string()))
            }
            Err(error) => Some(error.to_string()),
        };
        let mut told = failed.or(told);
        if told.is_some() {
            // Without its server a drive answers nothing, and the database on it is not at fault for that.
            self.drive().stat()?;
        }
        let kernel = self.kernel.of(&devices);
        let unreadable = match told {
            // SQLite calls a database malformed whose file cannot be read.
            Some(_) if mounted => kernel::unreadable(&self.places().data),
            _ => Vec::new(),
        };
        if let (Some(told), Some(why)) = (&mut told, unreadable.first()) {
            told.push_str(&format!("; the filesystem fails: {why}"));
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
            told = self.keep_or_forget((told, lost), evidence, (before, cut))?;
        }
        if let Some(why) = told {
            self.row.damaged(&why);
            let unseen = self.lock().new_entries();
            self.row.lost += unseen;
            self.begin_from_copy()?;
        }
        Ok(())
    }

    /// Keeps what is known of the round where something was lost that may not be, or the drive broke its contract; what is
    /// wrong then.
    fn keep_or_forget(
        &mut self,
        (told, lost): (Option<String>, u64),
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
        if told.is_none() && broke.is_none() && !missed {
            keeper.forget(&self.row);
            return Ok(None);
        }
        let (copy, scratch) = (keeper.data(&self.row), self.own.path().join("opened"));
        let how = (&self.settings, &self.scale);
        evidence.copy = evidence::of_copy(&self.row, (&copy, &scratch), how, (ledger, cut));
        let told = told.or(broke);
        let why = told.clone().unwrap_or_else(|| format!("{lost} acknowledged transactions are lost"));
        keeper.keep(&self.row, &format!("{why}\n{evidence}"), &log)?;
        Ok(told)
    }

    /// What the drive's log says of it.
    fn follow(&mut self, log: &Path) -> Result<Findings, PowercutError> {
        let failed = |source| OltpError::Io { path: log.to_owned(), source };
        let text = std::fs::read_to_string(log).map_err(failed)?;
        let requests = request_log::read(&text)
            .map_err(|why| OltpError::Invalid(format!("{}: {why}", log.display())))?;
        Ok(self.contract.follow(&requests))
    }

    /// Looks for everything that was acknowledged, and for contradictions; what cannot be, if something is.
    fn look(&mut self, cut: Nanos) -> Result<Option<String>, OltpError> {
        let database = self.database();
        let found = self.lock().look(&*database, &self.scale, cut)?;
        self.row.lost += found.lost;
        self.row.returned += found.returned;
        self.row.oldest_lost = self.row.oldest_lost.max(found.oldest);
        match found.told(false) {
            None => contradiction(&*database, &self.scale),
            told => Ok(told),
        }
    }

    /// Asks for transactions until the power is cut in the middle of them.
    fn write_and_cut(&mut self, seed: Seed) -> Result<Written, PowercutError> {
        let mut random = Random::new(seed.part("cut", 0));
        let wanted = u64::from(random.between(COMMITS[0], COMMITS[1]));
        let pause = Duration::from_millis(random.between(0, WITHIN_MS).into());
        let terminals = if self.settings.engine.has_one_writer() { 1 } else { 4 };
        let database = self.database();
        let sessions = (0..terminals).map(|_| database.session()).collect::<Result<Vec<_>, _>>()?;
        drop(database);
        let instance = self.instance.take();
        let (ended, over, broken) = (AtomicU64::new(0), AtomicBool::new(false), OnceLock::new());
        let commits = Mutex::default();
        let (cut, acknowledged) = std::thread::scope(|scope| {
            let writers: Vec<_> = sessions
                .into_iter()
                .zip(0u64..)
                .map(|(session, number)| {
                    let seed = seed.part("terminal", number);
                    let random = |name| Random::new(seed.part(name, 0));
                    let constants = RunConstants::of(self.asked.seed);
                    let writer = Writer {
                        session,
                        deck: Deck::new(random("deck")),
                        inputs: Inputs::new(&self.scale, (1, number as u32 + 1), constants, random("inputs")),
                        ledger: &self.ledger,
                        began: self.began,
                        ended: &ended,
                        over: &over,
                        broken: &broken,
                        commits: &commits,
                    };
                    scope.spawn(move || writer.run())
                })
                .collect();
            let (mut last, mut since) = (0, Instant::now());
            while ended.load(Ordering::Relaxed) < wanted && broken.get().is_none() {
                let now = ended.load(Ordering::Relaxed);
                if now != last {
                    (last, since) = (now, Instant::now());
                }
                if since.elapsed() > PATIENCE || self.interrupt.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(LOOK);
            }
            std::thread::sleep(pause);
            over.store(true, Ordering::SeqCst);
            let cut = self.clock();
            let lost = self.drive().power_cut(Tear::Page);
            // Its clients hear of it; who has no server hears from the drive.
            drop(instance);
            let acknowledged: u64 = writers.into_iter().map(|it| it.join().unwrap_or(0)).sum();
            (lost.map(|_| cut), acknowledged)
        });
        self.row.acknowledged += acknowledged;
        let commits = commits.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Written { cut: cut?, failed: broken.into_inner(), commits })
    }
}

/// What was written until the power was cut.
struct Written {
    /// When that was.
    cut: Nanos,
    /// What failed while the power was on.
    failed: Option<String>,
    /// Commits that were acknowledged: from when to when, in nanoseconds of `CLOCK_MONOTONIC`.
    commits: Vec<(u64, u64)>,
}

/// One that asks for transactions.
struct Writer<'a> {
    session: Box<dyn Session + 'a>,
    deck: Deck,
    inputs: Inputs,
    ledger: &'a Mutex<Ledger>,
    began: Instant,
    ended: &'a AtomicU64,
    over: &'a AtomicBool,
    /// What failed first before it was over.
    broken: &'a OnceLock<String>,
    /// Those that were acknowledged; see [`Written::commits`].
    commits: &'a Mutex<Vec<(u64, u64)>>,
}

impl Writer<'_> {
    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks until it is over; how many transactions were acknowledged that can be lost.
    fn run(mut self) -> u64 {
        let mut acknowledged = 0;
        while !self.over.load(Ordering::SeqCst) {
            let mut transaction = self.inputs.next(self.deck.deal());
            self.lock().name(&mut transaction);
            let asked_ns = request_log::monotonic_ns();
            let ended = loop {
                match self.session.run(&transaction) {
                    Err(Failure::Conflict(_)) if !self.over.load(Ordering::SeqCst) => {}
                    ended => break ended,
                }
            };
            match ended {
                Ok(outcome) if !self.over.load(Ordering::SeqCst) => {
                    let at = Nanos::new(self.began.elapsed().as_nanos() as u64);
                    let commit = (asked_ns, request_log::monotonic_ns());
                    if self.lock().acknowledge(&transaction, outcome, at) {
                        acknowledged += 1;
                        self.commits.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
                    }
                    self.ended.fetch_add(1, Ordering::Relaxed);
                }
                ended => {
                    if let (Err(failure), false) = (ended, self.over.load(Ordering::SeqCst)) {
                        let told = format!("a transaction failed while the power was on: {failure}");
                        self.broken.get_or_init(|| told);
                    }
                    self.lock().unknown(transaction);
                    break;
                }
            }
        }
        acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_engines::tpcc::Transaction;
    use lowtide_oltp::Outcome;

    /// Commits so many transactions and then fails; the power goes before it says so, or not.
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

    /// What is told of a session that fails after five transactions.
    fn told(cut_before: bool) -> Option<String> {
        let (ledger, ended, over, broken) =
            (Mutex::default(), AtomicU64::new(0), AtomicBool::new(false), OnceLock::new());
        let commits = Mutex::default();
        let seed = Seed::new(1);
        let random = |name| Random::new(seed.part(name, 0));
        let scale = Scale { warehouses: 1..=1, customers: 20, items: 200 };
        let writer = Writer {
            session: Box::new(Fails(5, cut_before.then_some(&over))),
            deck: Deck::new(random("deck")),
            inputs: Inputs::new(&scale, (1, 1), RunConstants::of(seed), random("inputs")),
            ledger: &ledger,
            began: Instant::now(),
            ended: &ended,
            over: &over,
            broken: &broken,
            commits: &commits,
        };
        writer.run();
        assert_eq!(ended.into_inner(), 5);
        broken.into_inner()
    }

    #[test]
    fn what_fails_while_the_power_is_on_is_told_and_what_fails_with_it_is_not() {
        let failed = told(false).expect("it failed by itself");
        assert!(failed.contains("while the power was on: database disk image is malformed"), "{failed}");
        assert_eq!(told(true), None);
    }
}
