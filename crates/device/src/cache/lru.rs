//! A least-recently-used list of numbers.

use serde::{Deserialize, Serialize};

/// Numbers below a limit, each in the list at most once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Lru {
    /// Predecessor and successor of each number. The last entry is the head.
    links: Vec<[u32; 2]>,
}

const OLDER: usize = 0;
const NEWER: usize = 1;
const NOT_IN: u32 = u32::MAX;

impl Lru {
    /// An empty list of numbers below `count`.
    pub(super) fn new(count: u32) -> Self {
        let mut links = vec![[NOT_IN; 2]; count as usize];
        links.push([count; 2]);
        Lru { links }
    }

    fn head(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    fn holds(&self, number: u32) -> bool {
        self.links[number as usize][NEWER] != NOT_IN
    }

    /// Makes a number the most recently used one.
    pub(super) fn touch(&mut self, number: u32) {
        self.remove(number);
        let head = self.head();
        let newest = self.links[head as usize][OLDER];
        self.links[number as usize] = [newest, head];
        self.links[newest as usize][NEWER] = number;
        self.links[head as usize][OLDER] = number;
    }

    /// Removes a number from the list.
    pub(super) fn remove(&mut self, number: u32) {
        if self.holds(number) {
            let [older, newer] = self.links[number as usize];
            self.links[older as usize][NEWER] = newer;
            self.links[newer as usize][OLDER] = older;
            self.links[number as usize] = [NOT_IN; 2];
        }
    }

    /// Removes the least recently used number.
    pub(super) fn take_oldest(&mut self) -> Option<u32> {
        let head = self.head();
        let oldest = self.links[head as usize][NEWER];
        (oldest != head).then(|| {
            self.remove(oldest);
            oldest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut lru = Lru::new(4);
        assert_eq!(lru.take_oldest(), None);
        for number in [2, 0, 1, 2, 3] {
            lru.touch(number);
        }
        lru.remove(1);
        lru.remove(1);
        let order: Vec<u32> = std::iter::from_fn(|| lru.take_oldest()).collect();
        assert_eq!(order, [0, 2, 3]);
    }
}
