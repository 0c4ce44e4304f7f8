//! Control of a server over a unix socket, with one line of JSON for each question and each answer.
//!
//! ```text
//! {"do":"stat"}                      {"ok":{"stats":[…]}}
//! {"do":"power-cut","tear":4096}     {"ok":{"losses":[{…}],…}}
//! ```
//!
//! The mode of the socket decides who may connect; the protocol has no permissions of its own.

use super::drive::LiveDrive;
use super::figures::Figures;
use super::record::Recorder;
use super::request_log::RequestLog;
use super::stat::Stat;
use lowtide_core::Nanos;
use lowtide_device::fault::Faults;
use lowtide_device::power::{Loss, Tear};
use lowtide_host::live::{Drive, Handle};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The maximum length of a question, in bytes.
const LONGEST: u64 = 64 << 10;

const MOST_ANSWERED: u64 = 16 << 20;

/// Timeout of reads and writes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause after a failed accept(2).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A query or a command to a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Report statistics.
    Stat,
    /// Cut the power.
    PowerCut {
        /// Size of the pieces into which a write may tear: 512 or 4096 bytes.
        tear: u32,
        /// Leave the power off.
        stay_off: bool,
    },
    /// Restore the power.
    PowerOn,
    /// Stop the drive's clock.
    Pause,
    /// End a pause.
    Resume,
    /// Answer without delay from now on.
    AtOnce,
    /// Answer with the model's timing from now on.
    AtItsPace,
    /// Erase everything.
    SecureErase,
    /// Replace the injected faults.
    Fail {
        /// The new faults.
        faults: Faults,
        /// Duration for which requests are slow. Default: unlimited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<Nanos>,
    },
    /// Record requests to a new file.
    Record {
        /// The file, relative to the server's working directory.
        path: PathBuf,
    },
    /// End the recording.
    StopRecording,
    /// Start a log of all events with checksums of the data.
    LogRequests,
    /// Write the log to a new file, and start a new log.
    TakeLog {
        /// The file, relative to the server's working directory.
        path: PathBuf,
    },
    /// Shut the server down cleanly.
    Shutdown,
}

/// An order and its addressee: one drive or all drives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The drive's name. Default: all drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// The order.
    #[serde(flatten)]
    pub order: Order,
}

/// The answer to a question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The order succeeded.
    Ok(Box<Report>),
    /// The order failed, for this reason.
    Error(String),
}

/// The result of an order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Statistics of the drives after the order.
    pub stats: Vec<Stat>,
    /// Status of the log disks, if the server serves log disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_disks: Vec<Figures>,
    /// Losses of each drive in a power cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// The recording that ended. Another thread completes its file.
    #[serde(skip)]
    pub(crate) recorder: Option<Recorder>,
    /// The log that was taken, and its path. Another thread writes it.
    #[serde(skip)]
    pub(crate) log: Option<(RequestLog, PathBuf)>,
    /// Number of requests in the recording that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u64>,
}

/// Carries out an order on the server's thread.
pub fn obey(drives: &mut [LiveDrive], now_ns: u64, question: Question) -> Answer {
    let Question { drive: wanted, order } = question;
    let named = |drive: &LiveDrive| wanted.as_ref().is_none_or(|wanted| drive.name() == wanted);
    let names = || drives.iter().map(LiveDrive::name).collect::<Vec<_>>().join(", ");
    let records = matches!(order, Order::Record { .. } | Order::StopRecording | Order::TakeLog { .. });
    match drives.iter().filter(|drive| named(drive)).count() {
        0 => {
            let wanted = wanted.unwrap_or_default();
            return Answer::Error(format!("there is no drive `{wanted}`; the drives are {}", names()));
        }
        2.. if records => return Answer::Error(format!("name one drive for this order: {}", names())),
        _ => {}
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
                    "a power cut never tears its logical blocks of {block} bytes: use --tear {block}, or attach it with \
                     --block {pieces}"
                ));
            }
            let was_on = drive.is_powered();
            let loss = drive.power_cut(now_ns, tear).map_err(|error| {
                format!("the contents are not those that survived, and the power stays off: {error}")
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
                return Err("a recording is already in progress".to_owned());
            }
        }
        Order::StopRecording => match drive.record(None) {
            Some(recorder) => report.recorder = Some(recorder),
            None => return Err("there is no recording to end".to_owned()),
        },
        Order::LogRequests => drop(drive.log_requests(now_ns)),
        Order::TakeLog { path } => match drive.log_requests(now_ns) {
            Some(log) => report.log = Some((log, path.clone())),
            None => return Err("there is no log".to_owned()),
        },
    }
    Ok(())
}

/// Answers questions of any number of clients until the process ends.
pub fn serve(listener: &UnixListener, answer: impl Fn(Question) -> Answer + Clone + Send + 'static) {
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            // The cause is probably a lack of file descriptors, which may be temporary.
            Err(_) => {
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        let answer = answer.clone();
        // If no thread can be started, the connection is closed.
        let _ = std::thread::Builder::new().spawn(move || converse(&stream, answer));
    }
}

/// Answers one client until it disconnects or times out.
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
            Err(error) => Answer::Error(format!("the question is invalid: {error}")),
        };
        let mut text = serde_json::to_string(&answer).map_err(io::Error::other)?;
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}

/// A drive that can be controlled over a socket.
pub trait Controlled: Drive + Sized + 'static {
    /// Answers a question about the drives behind `handle`.
    fn answer(question: Question, handle: &Handle<Self>) -> Answer;
}

impl Controlled for LiveDrive {
    fn answer(question: Question, handle: &Handle<LiveDrive>) -> Answer {
        let shutdown = question.order == Order::Shutdown;
        let answer = handle.call(move |drives, now_ns| obey(drives, now_ns, question));
        let mut report = match answer {
            Some(Answer::Ok(report)) => *report,
            Some(refused) => return refused,
            None => return Answer::Error("the server is ending".to_owned()),
        };
        let clients = handle.usage();
        report.stats.iter_mut().for_each(|stat| stat.clients = Some(clients));
        if shutdown {
            handle.stop();
        }
        if let Some(recorder) = report.recorder.take() {
            match recorder.finish() {
                Ok(count) => report.recorded = Some(count),
                Err(error) => return Answer::Error(format!("the recording is incomplete: {error}")),
            }
        }
        if let Some((log, path)) = report.log.take()
            && let Err(error) = log.write(&path)
        {
            return Answer::Error(format!("{}: {error}", path.display()));
        }
        Answer::Ok(Box::new(report))
    }
}

/// A failed order.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No lowtide server answers at the socket.
    #[error("{}: {why}", socket.display())]
    Nobody {
        /// The socket.
        socket: PathBuf,
        /// The reason.
        why: String,
    },
    /// The server refused, for this reason.
    #[error("{0}")]
    Refused(String),
}

/// Sends a question to the server at a socket.
///
/// # Errors
/// [`AskError`] if there is no answer or the order failed.
pub fn ask(socket: &Path, question: &Question) -> Result<Report, AskError> {
    let stream = UnixStream::connect(socket);
    let nobody = |error: io::Error| AskError::Nobody { socket: socket.to_owned(), why: error.to_string() };
    ask_over(stream.map_err(nobody)?, socket, question)
}

/// Sends a question over a connection. `socket` is the path shown in errors.
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
        Err(_) if line.is_empty() => {
            Err(nobody("the server closed the connection without an answer".to_owned()))
        }
        Err(_) => Err(nobody("not a control socket of lowtide".to_owned())),
    }
}
