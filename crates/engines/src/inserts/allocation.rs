//! Allocation of new pages: each connection takes an extent of the next data file (proportional fill).
//!
//! # Not modelled
//!
//! Allocation pages, which stay in memory.

/// The data files.
#[derive(Debug)]
pub(super) struct Files {
    /// For each file, the number of connections that take pages of it.
    users: Vec<u32>,
    next: usize,
}

impl Files {
    pub(super) fn new(count: u32) -> Self {
        Files { users: vec![0; count as usize], next: 0 }
    }

    /// Takes an extent of the next file for a connection. Returns the file, and `true` if other connections share it.
    #[inline]
    pub(super) fn take(&mut self) -> (usize, bool) {
        let file = self.next;
        self.next = if file + 1 == self.users.len() { 0 } else { file + 1 };
        let shared = self.users[file] > 0;
        self.users[file] += 1;
        (file, shared)
    }

    /// Records that a connection no longer takes pages of `file`.
    #[inline]
    pub(super) fn leave(&mut self, file: usize) {
        self.users[file] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Files;

    #[test]
    fn a_file_is_shared_if_there_are_fewer_files_than_connections() {
        for (files, shared) in [(4, 12), (15, 1), (16, 0)] {
            let mut all = Files::new(files);
            assert_eq!((0..16).filter(|_| all.take().1).count(), shared, "{files} files");
        }
    }
}
