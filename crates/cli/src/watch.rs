//! The live view of `run --watch`: the running cell's throughput and latency over time, what can be said of it so far,
//! the time left, and the cells that ended with their answers.
//!
//! It is drawn on standard error, by a thread of its own, a few times a second, on the terminal's other screen; what was
//! on the terminal comes back at the end, on Ctrl-C and on a panic. After Ctrl-C nothing more is drawn. Not here: what is
//! drawn where: `draw`.

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

/// The smallest terminal on which there is room.
const SMALLEST: (u16, u16) = (80, 24);
/// How often it is drawn.
const EVERY: Duration = Duration::from_millis(250);

/// A live view that is drawn.
pub struct Watch {
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    drawing: Mutex<Option<JoinHandle<()>>>,
}

/// Whether there is a terminal to draw on, and it is large enough.
fn is_possible() -> bool {
    // Of the terminal that is drawn on, which need not be the one that controls the process.
    let size = console::Term::stderr().size_checked();
    let large = size.is_some_and(|(lines, columns)| columns >= SMALLEST.0 && lines >= SMALLEST.1);
    large && std::io::stderr().is_terminal() && std::io::stdin().is_terminal()
}

impl Watch {
    /// Begins to draw; `None` where that is not possible.
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
        Some(Watch { state, ended, drawing: Mutex::new(Some(drawing)) })
    }

    /// Gives the terminal back.
    pub fn finish(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let drawing = self.drawing.lock().expect("nobody panics while holding it").take();
        if let Some(drawing) = drawing {
            // What the thread did wrong was said by its panic.
            let _ = drawing.join();
        }
        for note in self.state().take_notes() {
            output::say(note);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

/// Takes the terminal.
fn open() -> std::io::Result<()> {
    terminal::enable_raw_mode()?;
    execute!(std::io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)
}

/// Gives it back; no harm is done where it was given back already.
fn close() {
    // There is nobody to tell.
    let _ = execute!(std::io::stderr(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

fn keep_drawing(state: &Mutex<State>, ended: &AtomicBool, interrupt: &AtomicBool) {
    let Ok(mut screen) = Terminal::new(CrosstermBackend::new(std::io::stderr())) else { return close() };
    while !ended.load(Ordering::Relaxed) && !interrupt.load(Ordering::Relaxed) {
        let state = state.lock().expect("nobody panics while holding it").clone();
        if screen.draw(|frame| draw(frame, &state)).is_err() {
            break;
        }
        // In raw mode Ctrl-C is a key like others.
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
        self.state().spared(cells);
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
