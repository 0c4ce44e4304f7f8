//! Where new pages come from: extents of the data files in turn, and who takes pages of which file.
//!
//! Files of equal size that fill evenly are taken in turn (proportional fill). Leaves out the allocation pages
//! themselves: they stay in memory.

use super::EXTENT;

/// The data files.
#[derive(Debug)]
pub(super) struct Files {
    /// Connections that take pages of each file.
    users: Vec<u32>,
    /// Bytes allocated in each file.
    pub(super) allocated: Vec<u64>,
    next: usize,
}

impl Files {
    pub(super) fn new(count: u32) -> Self {
        let count = count as usize;
        Files { users: vec![0; count], allocated: vec![0; count], next: 0 }
    }

    /// A connection takes an extent of the next file: which, and whether others take pages of it too.
    #[inline]
    pub(super) fn take(&mut self) -> (usize, bool) {
        let file = self.next;
        self.next = if file + 1 == self.users.len() { 0 } else { file + 1 };
        let shared = self.users[file] > 0;
        self.users[file] += 1;
        self.allocated[file] += EXTENT;
        (file, shared)
    }

    /// A connection takes no more pages of `file` for now.
    #[inline]
    pub(super) fn leave(&mut self, file: usize) {
        self.users[file] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Files;

    #[test]
    fn a_file_is_shared_where_there_are_fewer_files_than_connections() {
        for (files, shared) in [(4, 12), (15, 1), (16, 0)] {
            let mut all = Files::new(files);
            assert_eq!((0..16).filter(|_| all.take().1).count(), shared, "{files} files");
        }
    }
}
