//! Recording what a live drive is asked ([`Recorder`]), as a trace that can be replayed on any device.
//!
//! The loop must not wait for a disk, so a thread of its own writes the file. Not here: the format, which is
//! [`lowtide_files::trace::native`]'s.

use lowtide_core::Request;
use lowtide_core::trace::Traced;
use lowtide_files::output::{self, CommandFiles, OutputError, Role};
use lowtide_files::trace::native;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// What is written.
pub const RECORDING: Role = Role::new("the recording", "--record FILE");

/// So many requests go to the thread at once.
const BATCH: usize = 1024;

/// A recording that goes on.
#[derive(Debug)]
pub struct Recorder {
    batch: Vec<Traced>,
    to: Option<mpsc::Sender<Vec<Traced>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    begin_ns: Option<u64>,
    count: u64,
}

impl Recorder {
    /// A recording into a new file.
    ///
    /// # Errors
    /// [`OutputError`] where the file exists, or cannot be made.
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

    /// Records a request that came at an instant; the first is the trace's beginning.
    #[inline]
    pub(super) fn push(&mut self, now_ns: u64, request: Request) {
        let at_ns = now_ns - *self.begin_ns.get_or_insert(now_ns);
        self.batch.push(Traced { at_ns, request });
        self.count += 1;
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if let Some(to) = &self.to {
            // A writer that failed says so at the end.
            let _ = to.send(std::mem::take(&mut self.batch));
        }
    }

    /// Requests recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes what is left and closes the file; how many requests it holds.
    ///
    /// # Errors
    /// What the file's filesystem said, now or before.
    pub fn finish(mut self) -> io::Result<u64> {
        self.close()?;
        Ok(self.count)
    }

    fn close(&mut self) -> io::Result<()> {
        self.hand_over();
        self.to = None;
        match self.thread.take() {
            Some(thread) => thread.join().expect("the writer does not panic"),
            None => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The file is as good as it can be; who wants to know asks `finish`.
        let _ = self.close();
    }
}
