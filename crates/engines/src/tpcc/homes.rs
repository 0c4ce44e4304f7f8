//! Home warehouse and district of a terminal ([`Homes`]).

use super::DISTRICTS;
use super::random::Random;

/// Home warehouses of a terminal, and its district for Stock-Level (clause 2.8.1.1).
///
/// A terminal has one warehouse and one district, unless terminals are fewer than warehouses. In that case the
/// warehouses are divided among the terminals. For each transaction, a terminal then chooses a random warehouse and
/// district of its share, so the load touches the whole database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Homes {
    first: u32,
    step: u32,
    count: u32,
    district: u32,
    /// `true` if the terminal acts for all districts of several warehouses.
    shared: bool,
}

impl Homes {
    /// Homes of terminal `number` (from 0) of `terminals`, for `warehouses` warehouses numbered from `first`.
    pub fn of(first: u32, warehouses: u32, number: u32, terminals: u32) -> Homes {
        Homes {
            first: first + number % warehouses,
            step: terminals,
            count: warehouses.saturating_sub(number).div_ceil(terminals).max(1),
            district: number / warehouses % DISTRICTS + 1,
            shared: terminals < warehouses,
        }
    }
    /// Initial warehouse and district. They are constant unless the terminal has several warehouses.
    pub fn first(&self) -> (u32, u32) {
        (self.first, self.district)
    }
    /// Draws the warehouse and district of the next transaction, uniformly.
    pub fn draw(&self, random: &mut Random) -> (u32, u32) {
        match self.shared {
            false => self.first(),
            true => {
                (self.first + self.step * random.between(0, self.count - 1), random.between(1, DISTRICTS))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::Seed;

    const SEED: u64 = 31;

    /// Asserts a uniform distribution over `expected`, within five standard deviations.
    fn assert_even(counts: &[u32], expected: &[u32]) {
        let found: Vec<u32> = (0..counts.len() as u32).filter(|at| counts[*at as usize] > 0).collect();
        assert_eq!(found, expected, "seed {SEED}");
        let mean = f64::from(counts.iter().sum::<u32>()) / expected.len() as f64;
        let even = |at: &u32| (f64::from(counts[*at as usize]) - mean).abs() < 5.0 * mean.sqrt();
        assert!(expected.iter().all(even), "seed {SEED}: {counts:?}");
    }

    #[test]
    fn fewer_terminals_than_warehouses_share_all_warehouses_and_districts() {
        // Three terminals share warehouses 4 to 10.
        for (number, expected) in [(0, [4, 7, 10].as_slice()), (1, &[5, 8]), (2, &[6, 9])] {
            let homes = Homes::of(4, 7, number, 3);
            let mut random = Random::new(Seed::new(SEED).part("speakers", number.into()));
            let (mut warehouses, mut districts) = ([0; 11], [0; 11]);
            for _ in 0..3_000 {
                let (warehouse, district) = homes.draw(&mut random);
                warehouses[warehouse as usize] += 1;
                districts[district as usize] += 1;
            }
            assert_even(&warehouses, expected);
            assert_even(&districts, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        }
    }

    #[test]
    fn with_as_many_terminals_as_warehouses_each_keeps_its_home() {
        let mut random = Random::new(Seed::new(SEED));
        for (number, first, district) in [(0, 4, 1), (6, 10, 1), (7, 4, 2), (13, 10, 2), (70, 4, 1)] {
            let homes = Homes::of(4, 7, number, 71);
            assert_eq!(homes.first(), (first, district), "{number}");
            assert!((0..10).all(|_| homes.draw(&mut random) == (first, district)), "{number}");
        }
    }
}
