//! Control of drives that are served: a line of JSON in, a line of JSON out, over a unix socket.
//!
//! ```text
//! {"do":"stat"}                      {"ok":{"stats":[…]}}
//! {"do":"power-cut","tear":4096}     {"ok":{"losses":[{…}],…}}
//! ```
//!
//! Not here: who may; the socket's mode says that.

use super::drive::LiveDrive;
use super::figures::Figures;
use super::record::Recorder;
use super::request_log::RequestLog;
use super::stat::Stat;
use lowtide_core::Nanos;
use lowtide_device::fault::Faults;
use lowtide_device::power::{Loss, Tear};
use lowtide_host::live::Handle;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest line.
const LONGEST: u64 = 64 << 10;

/// The longest answer that is read.
const MOST_ANSWERED: u64 = 16 << 20;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long nobody is accepted when that has failed.
const REST: Duration = Duration::from_millis(100);

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// How the drives are.
    Stat,
    /// Cut the power.
    PowerCut {
        /// Granules that a write may tear into: 512 or 4096 bytes.
        tear: u32,
        /// Leave it off.
        stay_off: bool,
    },
    /// Give the power back.
    PowerOn,
    /// Let the drive's time stand still.
    Pause,
    /// Let it go on.
    Resume,
    /// Answer at once from now on.
    AtOnce,
    /// Answer when the model says so from now on.
    AtItsPace,
    /// Erase everything.
    SecureErase,
    /// Give it faults, in place of those it has.
    Fail {
        /// Which.
        faults: Faults,
        /// For how long requests are slow; for ever where nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<Nanos>,
    },
    /// Record requests into a new file.
    Record {
        /// The file, as the server's working directory sees it.
        path: PathBuf,
    },
    /// End the recording.
    StopRecording,
    /// Log what happens from now on, with checksums of all data.
    LogRequests,
    /// Write the log until now into a new file; a new one begins.
    TakeLog {
        /// The file, as the server's working directory sees it.
        path: PathBuf,
    },
    /// End the server in order.
    Shutdown,
}

/// A question, to one drive or to all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The drive's name; all of them where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// What to do.
    #[serde(flatten)]
    pub order: Order,
}

/// What comes back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done.
    Ok(Box<Report>),
    /// It is not.
    Error(String),
}

/// What was done, with what came of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// How the drives are now.
    pub stats: Vec<Stat>,
    /// How the log disks are, where those are served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_disks: Vec<Figures>,
    /// What the power cut took of each drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// The recording that ended, to be finished where nobody waits for the loop.
    #[serde(skip)]
    recorder: Option<Recorder>,
    /// The log that was taken, to be written where nobody waits for the loop.
    #[serde(skip)]
    log: Option<(RequestLog, PathBuf)>,
    /// Requests in the recording that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u64>,
}

impl Report {
    /// How log disks are.
    pub(crate) fn of_log_disks(log_disks: Vec<Figures>) -> Report {
        Report { log_disks, ..Report::default() }
    }
}

/// Does what is asked; for the loop's thread.
pub fn obey(drives: &mut [LiveDrive], now_ns: u64, question: Question) -> Answer {
    let Question { drive: wanted, order } = question;
    let named = |drive: &LiveDrive| wanted.as_ref().is_none_or(|wanted| drive.name() == wanted);
    if !drives.iter().any(named) {
        let names: Vec<&str> = drives.iter().map(LiveDrive::name).collect();
        let wanted = wanted.unwrap_or_default();
        return Answer::Error(format!("no drive is called `{wanted}`; there is {}", names.join(", ")));
    }
    let records = matches!(order, Order::Record { .. } | Order::StopRecording | Order::TakeLog { .. });
    if records && drives.iter().filter(|drive| named(drive)).count() > 1 {
        let names: Vec<&str> = drives.iter().map(LiveDrive::name).collect();
        return Answer::Error(format!("a recording is of one drive: say which, of {}", names.join(", ")));
    }
    let mut report = Report::default();
    for drive in drives.iter_mut().filter(|drive| named(drive)) {
        let done = one(drive, now_ns, &order, &mut report);
        if let Err(error) = done {
            return Answer::Error(format!("`{}`: {error}", drive.name()));
        }
        report.stats.push(drive.stat(now_ns));
    }
    Answer::Ok(Box::new(report))
}

fn one(drive: &mut LiveDrive, now_ns: u64, order: &Order, report: &mut Report) -> Result<(), String> {
    match order {
        Order::Stat | Order::Shutdown => {}
        Order::PowerCut { tear, stay_off } => {
            let tear = match tear {
                512 => Tear::Sector,
                4096 => Tear::Page,
                other => return Err(format!("a write tears at 512 or 4096 bytes, not at {other}")),
            };
            let block = drive.block();
            if tear.granule() < block.into() {
                let pieces = tear.granule();
                return Err(format!(
                    "its logical blocks have {block} bytes, and a power cut leaves each whole: take --tear {block}, or \
                     attach it with --block {pieces}"
                ));
            }
            let was_on = drive.is_powered();
            let loss = drive.power_cut(now_ns, tear).map_err(|error| {
                format!("its contents are not what survived, and its power stays off: {error}")
            })?;
            report.losses.push(loss);
            if was_on && !stay_off {
                drive.power_on(now_ns);
            }
        }
        Order::PowerOn => drive.power_on(now_ns),
        Order::Pause if !drive.is_powered() => return Err("its power is off".to_owned()),
        Order::Pause => drive.pause(now_ns),
        Order::Resume => drive.resume(now_ns),
        Order::AtOnce => drive.at_once(now_ns),
        Order::AtItsPace => drive.at_its_pace(now_ns),
        Order::SecureErase => drive.secure_erase().map_err(|error| error.to_string())?,
        Order::Fail { faults, span } => {
            drive.fail(now_ns, *faults, *span).map_err(|error| error.to_string())?;
        }
        Order::Record { path } => {
            let recorder = Recorder::new(path).map_err(|error| error.to_string())?;
            if let Some(before) = drive.record(Some(recorder)) {
                drive.record(Some(before));
                let _ = std::fs::remove_file(path);
                return Err("it is being recorded already".to_owned());
            }
        }
        Order::StopRecording => match drive.record(None) {
            Some(recorder) => report.recorder = Some(recorder),
            None => return Err("it is not being recorded".to_owned()),
        },
        Order::LogRequests => drop(drive.log_requests(now_ns)),
        Order::TakeLog { path } => match drive.log_requests(now_ns) {
            Some(log) => report.log = Some((log, path.clone())),
            None => return Err("its requests are not being logged".to_owned()),
        },
    }
    Ok(())
}

/// Answers questions until the program ends.
pub fn serve(listener: &UnixListener, answer: impl Fn(Question) -> Answer + Clone + Send + 'static) {
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            // No descriptors left, say: others may give some back.
            Err(_) => {
                std::thread::sleep(REST);
                continue;
            }
        };
        let answer = answer.clone();
        // One for whom there is no thread hears the end.
        let _ = std::thread::Builder::new().spawn(move || converse(&stream, answer));
    }
}

/// Answers one client, until it leaves or asks nothing for a while.
fn converse(stream: &UnixStream, answer: impl Fn(Question) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str::<Question>(&line) {
            Ok(question) => answer(question),
            Err(error) => Answer::Error(format!("it is not understood: {error}")),
        };
        let mut text = serde_json::to_string(&answer).map_err(io::Error::other)?;
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}

/// Has the loop of drives do what is asked.
pub(super) fn answer(question: Question, handle: &Handle<LiveDrive>) -> Answer {
    let shutdown = question.order == Order::Shutdown;
    let answer = handle.call(move |drives, now_ns| obey(drives, now_ns, question));
    let mut report = match answer {
        Some(Answer::Ok(report)) => *report,
        Some(refused) => return refused,
        None => return Answer::Error("the server is going away".to_owned()),
    };
    let clients = handle.usage().into();
    report.stats.iter_mut().for_each(|stat| stat.clients = Some(clients));
    if shutdown {
        handle.stop();
    }
    if let Some(recorder) = report.recorder.take() {
        match recorder.finish() {
            Ok(count) => report.recorded = Some(count),
            Err(error) => return Answer::Error(format!("the recording is not whole: {error}")),
        }
    }
    if let Some((log, path)) = report.log.take()
        && let Err(error) = log.write(&path)
    {
        return Answer::Error(format!("{}: {error}", path.display()));
    }
    Answer::Ok(Box::new(report))
}

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers there as a server of lowtide does.
    #[error("{}: {why}", socket.display())]
    Nobody {
        /// The socket.
        socket: PathBuf,
        /// What came instead.
        why: String,
    },
    /// The server says so.
    #[error("{0}")]
    Refused(String),
}

/// Asks a server at a socket.
///
/// # Errors
/// [`AskError`] where nobody answers, or the order was not carried out.
pub fn ask(socket: &Path, question: &Question) -> Result<Report, AskError> {
    let stream = UnixStream::connect(socket);
    let nobody = |error: io::Error| AskError::Nobody { socket: socket.to_owned(), why: error.to_string() };
    ask_over(stream.map_err(nobody)?, socket, question)
}

/// Asks a server over a connection to it; `socket` is what it is called.
///
/// # Errors
/// As [`ask`].
pub fn ask_over(mut stream: UnixStream, socket: &Path, question: &Question) -> Result<Report, AskError> {
    let nobody = |why: String| AskError::Nobody { socket: socket.to_owned(), why };
    let named = |error: io::Error| nobody(error.to_string());
    stream.set_read_timeout(Some(PATIENCE)).map_err(named)?;
    let mut text = serde_json::to_string(question).map_err(|error| nobody(error.to_string()))?;
    text.push('\n');
    stream.write_all(text.as_bytes()).map_err(named)?;
    let mut line = String::new();
    BufReader::new(stream).take(MOST_ANSWERED).read_line(&mut line).map_err(named)?;
    match serde_json::from_str(&line) {
        Ok(Answer::Ok(report)) => Ok(*report),
        Ok(Answer::Error(error)) => Err(AskError::Refused(error)),
        Err(_) if line.is_empty() => Err(nobody("the server left without an answer".to_owned())),
        Err(_) => Err(nobody("it is no control socket of lowtide".to_owned())),
    }
}
