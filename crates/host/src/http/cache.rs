//! The pages of a site, rendered on demand ([`PageCache`]).
//!
//! One thread renders the pages for all clients. A page is rendered at most once per second, and not before [`REST`]
//! times the processor time of its last rendering has passed. A [`Site`] renders the contents of pages.

use crate::cpu;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The minimum time for which a page is fresh.
const FRESH: Duration = Duration::from_secs(1);

/// The time for which a page is fresh, in multiples of the processor time of its rendering.
const REST: u32 = 20;

/// A page of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Its path: `/`, `/metrics`.
    pub path: &'static str,
    /// Its content type.
    pub kind: &'static str,
}

/// The outcome of rendering a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendering {
    /// Its bytes.
    New(Vec<u8>),
    /// Nothing changed since it was last rendered.
    Unchanged,
}

/// Renders the pages of a server.
pub trait Site: Send + 'static {
    /// All pages. Every call must return the same pages.
    fn pages(&self) -> &'static [Page];

    /// Renders a page. Called on a single thread, which does not serve clients.
    ///
    /// # Errors
    /// The reason, for people. Clients get it with status 503.
    fn render(&mut self, page: &Page) -> Result<Rendering, String>;
}

/// The last rendering of a page, or its error.
pub(super) type Rendered = Result<Arc<[u8]>, Arc<str>>;

#[derive(Debug)]
pub(super) enum Lookup {
    /// A fresh page.
    Fresh(Rendered),
    /// The old page, if any, while a new one is rendered.
    Stale(Option<Rendered>),
}

#[derive(Debug)]
pub(super) struct PageCache {
    pages: &'static [Page],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    entries: Vec<Entry>,
    ended: bool,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    wanted: bool,
    /// The last rendering without an error.
    good: Option<Arc<[u8]>>,
    last: Option<Rendered>,
    fresh_until: Option<Instant>,
}

impl PageCache {
    pub(super) fn new(pages: &'static [Page]) -> PageCache {
        let state = State { entries: vec![Entry::default(); pages.len()], ended: false };
        PageCache { pages, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn pages(&self) -> &'static [Page] {
        self.pages
    }

    /// Looks up a page by its index, and requests its rendering if it is not fresh.
    pub(super) fn lookup(&self, page: usize, now: Instant) -> Lookup {
        let mut state = self.lock();
        let entry = &mut state.entries[page];
        match &entry.last {
            Some(last) if entry.fresh_until.is_some_and(|until| now < until) => Lookup::Fresh(last.clone()),
            last => {
                let last = last.clone();
                if !entry.wanted {
                    entry.wanted = true;
                    self.changed.notify_one();
                }
                Lookup::Stale(last)
            }
        }
    }

    /// Renders requested pages until [`PageCache::end`], and calls `rendered` after each.
    pub(super) fn run(&self, mut site: impl Site, rendered: impl Fn()) {
        while let Some(page) = self.wanted() {
            let before = cpu::thread_time();
            let outcome = site.render(&self.pages[page]);
            let used = cpu::thread_time().get() - before.get();
            let rest = (Duration::from_nanos(used) * REST).max(FRESH);
            let mut state = self.lock();
            let entry = &mut state.entries[page];
            entry.last = Some(match (outcome, &entry.good) {
                (Ok(Rendering::New(bytes)), _) => {
                    let page: Arc<[u8]> = bytes.into();
                    entry.good = Some(Arc::clone(&page));
                    Ok(page)
                }
                (Ok(Rendering::Unchanged), Some(page)) => Ok(Arc::clone(page)),
                (Ok(Rendering::Unchanged), None) => Err("there is no page yet".into()),
                (Err(reason), _) => Err(reason.into()),
            });
            entry.fresh_until = Some(Instant::now() + rest);
            entry.wanted = false;
            drop(state);
            rendered();
        }
    }

    fn wanted(&self) -> Option<usize> {
        let waits = |state: &mut State| !state.ended && state.entries.iter().all(|entry| !entry.wanted);
        let state = self.changed.wait_while(self.lock(), waits).expect(UNPOISONED);
        if state.ended { None } else { state.entries.iter().position(|entry| entry.wanted) }
    }

    /// Ends [`PageCache::run`] after the current page.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "nobody panics while holding it";
