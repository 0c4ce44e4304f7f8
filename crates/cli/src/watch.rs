//! The live view of `run --watch`: the running cell's throughput, latency and preliminary verdict, the remaining
//! time, and the results of the cells that ended.
//!
//! A thread draws it four times a second on standard error, on the alternate screen of the terminal. The terminal is
//! restored at the end, on Ctrl-C and on a panic. `draw` has the layout.

mod draw;
mod state;

use crate::output;
use draw::draw;
use lowtide_lab::campaign::{Progress, Stage};
use lowtide_lab::plan::PlannedCell;
use lowtide_record::Row;
use lowtide_record::analysis::Verdict;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use signal_hook::consts::SIGINT;
use state::State;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Minimum size of the terminal: columns and lines.
const SMALLEST: (u16, u16) = (80, 24);
/// Interval between drawings.
const EVERY: Duration = Duration::from_millis(250);

/// A live view. Dropping it restores the terminal.
pub struct Watch {
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    drawing: Option<JoinHandle<()>>,
}

/// Returns whether standard error is a terminal, and large enough.
fn is_possible() -> bool {
    // The size of this terminal, which need not be the controlling terminal of the process.
    let size = console::Term::stderr().size_checked();
    let large = size.is_some_and(|(lines, columns)| columns >= SMALLEST.0 && lines >= SMALLEST.1);
    large && std::io::stderr().is_terminal() && std::io::stdin().is_terminal()
}

impl Watch {
    /// Begins to draw; `None` if that is impossible.
    pub fn begin(title: &str, cells: usize, interrupt: Arc<AtomicBool>) -> Option<Watch> {
        if !is_possible() || open().is_err() {
            return None;
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            close();
            before(panic);
        }));
        let state = Arc::new(Mutex::new(State::new(title, cells)));
        let ended = Arc::new(AtomicBool::new(false));
        let (drawn, until) = (Arc::clone(&state), Arc::clone(&ended));
        let drawing = std::thread::spawn(move || keep_drawing(&drawn, &until, &interrupt));
        Some(Watch { state, ended, drawing: Some(drawing) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect(UNPOISONED)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(drawing) = self.drawing.take() {
            // A panic of the thread has already been printed.
            let _ = drawing.join();
        }
        for note in self.state().take_notes() {
            output::say(note);
        }
    }
}

const UNPOISONED: &str = "no thread panics while holding it";

/// Switches to the alternate screen.
fn open() -> std::io::Result<()> {
    terminal::enable_raw_mode()?;
    execute!(std::io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)
}

/// Restores the terminal; idempotent.
fn close() {
    // Without a terminal, the errors cannot be shown.
    let _ = execute!(std::io::stderr(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

fn keep_drawing(state: &Mutex<State>, ended: &AtomicBool, interrupt: &AtomicBool) {
    let Ok(mut screen) = Terminal::new(CrosstermBackend::new(std::io::stderr())) else {
        return close();
    };
    while !ended.load(Ordering::Relaxed) && !interrupt.load(Ordering::Relaxed) {
        let state = state.lock().expect(UNPOISONED).clone();
        if screen.draw(|frame| draw(frame, &state)).is_err() {
            break;
        }
        // In raw mode Ctrl-C is an ordinary key.
        if event::poll(EVERY).unwrap_or(false)
            && let Ok(Event::Key(key)) = event::read()
            && key.code == KeyCode::Char('c')
            && key.modifiers.contains(KeyModifiers::CONTROL)
        {
            let _ = signal_hook::low_level::raise(SIGINT);
        }
    }
    close();
}

impl Progress for Watch {
    fn cell(&self, cell: &PlannedCell, stage: Stage, share: f64, last: Option<&Row>) {
        self.state().cell(cell, stage, share, last);
    }
    fn ended(&self, cell: &PlannedCell, failure: Option<&str>) {
        self.state().ended(cell, failure);
    }
    fn spared(&self, cells: usize) {
        self.state().skip(cells);
    }
    fn note(&self, text: &str) {
        self.state().note(text);
    }
    fn so_far(&self, cell: &PlannedCell, judge: &dyn Fn() -> Verdict) {
        if self.state().wants_verdict(cell) {
            let verdict = judge();
            self.state().verdict(cell, &verdict);
        }
    }
    fn judged(&self, cell: &PlannedCell, verdict: &Verdict) {
        self.state().verdict(cell, verdict);
    }
}
