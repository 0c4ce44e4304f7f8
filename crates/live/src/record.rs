//! Records the requests to a live drive ([`Recorder`]), as a trace that any device can replay.
//!
//! A separate thread writes the file, because the server must not wait for a disk. The format is in
//! [`lowtide_files::trace::native`].

use lowtide_core::Request;
use lowtide_core::trace::Traced;
use lowtide_files::output::{self, CommandFiles, OutputError, Role};
use lowtide_files::trace::native;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The role of a recording, for errors.
pub const RECORDING: Role = Role::new("the recording", "--record FILE");

/// Number of requests that are sent to the thread together.
const BATCH: usize = 1024;

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    batch: Vec<Traced>,
    to: Option<mpsc::Sender<Vec<Traced>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    begin_ns: Option<u64>,
    count: u64,
}

impl Recorder {
    /// Starts a recording to a new file.
    ///
    /// # Errors
    /// [`OutputError`] if the file exists or cannot be created.
    pub fn new(path: &Path) -> Result<Recorder, OutputError> {
        let mut file = BufWriter::new(output::create_new(RECORDING, path, &CommandFiles::default())?);
        let head = file.write_all(native::HEAD.as_bytes());
        head.map_err(|source| OutputError::Write { path: path.to_owned(), source, role: RECORDING })?;
        let (to, from) = mpsc::channel::<Vec<Traced>>();
        let thread = std::thread::spawn(move || {
            for batch in from {
                for traced in batch {
                    native::write(&mut file, &traced)?;
                }
            }
            file.flush()
        });
        Ok(Recorder { batch: Vec::new(), to: Some(to), thread: Some(thread), begin_ns: None, count: 0 })
    }

    /// Records a request that arrived at `now_ns`. The trace begins with the first request.
    #[inline]
    pub(super) fn push(&mut self, now_ns: u64, request: Request) {
        let at_ns = now_ns - *self.begin_ns.get_or_insert(now_ns);
        self.batch.push(Traced { at_ns, request });
        self.count += 1;
        if self.batch.len() == BATCH {
            self.send_batch();
        }
    }

    fn send_batch(&mut self) {
        if let Some(to) = &self.to {
            // `finish` reports errors of the writer.
            let _ = to.send(std::mem::take(&mut self.batch));
        }
    }

    /// Number of recorded requests.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the remaining requests, closes the file, and returns the number of requests.
    ///
    /// # Errors
    /// The first error of the file.
    pub fn finish(mut self) -> io::Result<u64> {
        self.close()?;
        Ok(self.count)
    }

    fn close(&mut self) -> io::Result<()> {
        self.send_batch();
        self.to = None;
        match self.thread.take() {
            Some(thread) => thread.join().expect("the writer does not panic"),
            None => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Errors are reported by `finish`.
        let _ = self.close();
    }
}
