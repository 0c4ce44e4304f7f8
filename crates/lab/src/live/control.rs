//! Control of drives that are served: a line of JSON in, a line of JSON out, over a unix socket.
//!
//! ```text
//! {"do":"stat"}                      {"ok":{"stats":[…]}}
//! {"do":"power-cut","tear":4096}     {"ok":{"losses":[{…}],…}}
//! ```
//!
//! Leaves out who may: the socket's mode says that.

use super::drive::LiveDrive;
use super::record::Recorder;
use super::stat::Stat;
use lowtide_core::Nanos;
use lowtide_device::fault::Faults;
use lowtide_device::power::{Loss, Tear};
use lowtide_host::live::Handle;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest line.
const LONGEST: u64 = 64 << 10;

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done.
    Ok(Report),
    /// It is not.
    Error(String),
}

/// What was done, with what came of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// How the drives are now.
    pub stats: Vec<Stat>,
    /// What the power cut took of each drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Requests in the recording that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u64>,
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
    let mut report = Report::default();
    for drive in drives.iter_mut().filter(|drive| named(drive)) {
        let done = one(drive, now_ns, &order, &mut report);
        if let Err(error) = done {
            return Answer::Error(format!("`{}`: {error}", drive.name()));
        }
        report.stats.push(drive.stat(now_ns));
    }
    Answer::Ok(report)
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
            let loss = drive.power_cut(now_ns, tear);
            report.losses.push(loss);
            if !stay_off {
                drive.power_on();
            }
        }
        Order::PowerOn => drive.power_on(),
        Order::Pause => drive.pause(now_ns),
        Order::Resume => drive.resume(now_ns),
        Order::SecureErase => drive.secure_erase().map_err(|error| error.to_string())?,
        Order::Fail { faults, span } => {
            drive.fail(now_ns, *faults, *span).map_err(|error| error.to_string())?;
        }
        Order::Record { path } => {
            let recorder = Recorder::new(path).map_err(|error| format!("{}: {error}", path.display()))?;
            if let Some(before) = drive.record(Some(recorder)) {
                drive.record(Some(before));
                let _ = std::fs::remove_file(path);
                return Err("it is being recorded already".to_owned());
            }
        }
        Order::StopRecording => match drive.record(None) {
            Some(recorder) => {
                let count = recorder.finish().map_err(|error| format!("the recording: {error}"))?;
                *report.recorded.get_or_insert(0) += count;
            }
            None => return Err("it is not being recorded".to_owned()),
        },
    }
    Ok(())
}

/// Answers questions until the loop has ended, or somebody asks for the end.
pub fn serve(listener: &UnixListener, handle: &Handle<LiveDrive>) {
    for stream in listener.incoming() {
        // A client that fails leaves; the next one is served.
        let Ok(stream) = stream else { continue };
        let handle = handle.clone();
        std::thread::spawn(move || converse(&stream, &handle));
    }
}

fn converse(stream: &UnixStream, handle: &Handle<LiveDrive>) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str::<Question>(&line) {
            Ok(question) => {
                let shutdown = question.order == Order::Shutdown;
                let answer = handle
                    .call(move |drives, now_ns| obey(drives, now_ns, question))
                    .unwrap_or_else(|| Answer::Error("the server is going away".to_owned()));
                if shutdown {
                    handle.stop();
                }
                answer
            }
            Err(error) => Answer::Error(format!("it is not understood: {error}")),
        };
        let mut text = serde_json::to_string(&answer).map_err(io::Error::other)?;
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}

/// Asks a server at a socket.
///
/// # Errors
/// In words, where nobody answers or the order was not carried out.
pub fn ask(socket: &Path, question: &Question) -> Result<Report, String> {
    let named = |error: io::Error| format!("{}: {error}", socket.display());
    let mut stream = UnixStream::connect(socket).map_err(named)?;
    let mut text = serde_json::to_string(question).map_err(|error| error.to_string())?;
    text.push('\n');
    stream.write_all(text.as_bytes()).map_err(named)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(named)?;
    match serde_json::from_str(&line) {
        Ok(Answer::Ok(report)) => Ok(report),
        Ok(Answer::Error(error)) => Err(error),
        Err(_) => Err(format!("{}: it is no control socket of lowtide", socket.display())),
    }
}
