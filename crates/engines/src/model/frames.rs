//! Frames of a modelled cache: the page table, and linked lists that order the frames.

/// Sentinel for "no frame".
const NONE: u32 = u32::MAX;

/// Result of looking up a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The page is in this frame.
    Resident(u32),
    /// The page is being read into this frame.
    Reading(u32),
    /// The page is not in memory.
    Absent,
}

/// The frame of each page in memory.
#[derive(Debug, Default)]
pub(super) struct PageTable(Vec<u32>);

impl PageTable {
    #[inline]
    pub(super) fn get(&self, page: u32) -> Option<u32> {
        self.0.get(page as usize).copied().filter(|frame| *frame != NONE)
    }
    pub(super) fn insert(&mut self, page: u32, frame: u32) {
        if page as usize >= self.0.len() {
            self.0.resize(page as usize + 1, NONE);
        }
        self.0[page as usize] = frame;
    }
    pub(super) fn remove(&mut self, page: u32) {
        self.0[page as usize] = NONE;
    }
}

#[derive(Debug, Clone, Copy)]
struct Links {
    newer: u32,
    older: u32,
}

/// A doubly linked list of frames, the newest first.
#[derive(Debug)]
pub(super) struct List {
    links: Vec<Links>,
    first: u32,
    last: u32,
    length: u32,
}

impl List {
    /// An empty list for frames 0 to `frames` − 1.
    pub(super) fn new(frames: u32) -> List {
        let links = vec![Links { newer: NONE, older: NONE }; frames as usize];
        List { links, first: NONE, last: NONE, length: 0 }
    }
    pub(super) fn len(&self) -> u32 {
        self.length
    }
    /// The oldest frame.
    pub(super) fn last(&self) -> Option<u32> {
        Some(self.last).filter(|frame| *frame != NONE)
    }
    /// The next newer frame.
    pub(super) fn newer(&self, frame: u32) -> Option<u32> {
        Some(self.links[frame as usize].newer).filter(|frame| *frame != NONE)
    }
    /// The next older frame.
    pub(super) fn older(&self, frame: u32) -> Option<u32> {
        Some(self.links[frame as usize].older).filter(|frame| *frame != NONE)
    }
    pub(super) fn push_front(&mut self, frame: u32) {
        self.insert(frame, NONE, self.first);
    }
    /// Inserts `frame` directly before `older`.
    pub(super) fn insert_before(&mut self, older: u32, frame: u32) {
        self.insert(frame, self.links[older as usize].newer, older);
    }
    fn insert(&mut self, frame: u32, newer: u32, older: u32) {
        self.links[frame as usize] = Links { newer, older };
        self.set_older(newer, frame);
        self.set_newer(older, frame);
        self.length += 1;
    }
    pub(super) fn unlink(&mut self, frame: u32) {
        let Links { newer, older } = self.links[frame as usize];
        self.set_older(newer, older);
        self.set_newer(older, newer);
        self.length -= 1;
    }
    fn set_older(&mut self, frame: u32, older: u32) {
        match frame {
            NONE => self.first = older,
            frame => self.links[frame as usize].older = older,
        }
    }
    fn set_newer(&mut self, frame: u32, newer: u32) {
        match frame {
            NONE => self.last = newer,
            frame => self.links[frame as usize].newer = newer,
        }
    }
}
