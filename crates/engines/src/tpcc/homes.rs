//! Which warehouse and district a terminal is at home in ([`Homes`]).
//!
//! Leaves out how terminals go to the parts of a database.

use super::DISTRICTS;
use super::random::Random;

/// The warehouses that a terminal is at home in, and its district for Stock-Level (clause 2.8.1.1).
///
/// One of each, unless there are fewer terminals than warehouses. Then each speaks for as many as there are to a terminal, in
/// all their districts, as a session does that several terminals share: every warehouse is somebody's home, and the data that are
/// touched are the data that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Homes {
    first: u32,
    step: u32,
    count: u32,
    district: u32,
    /// Whether it speaks for terminals of all districts.
    shared: bool,
}

impl Homes {
    /// Those of terminal `number` of `terminals`, where there are `warehouses` from `first` on.
    pub fn of(first: u32, warehouses: u32, number: u32, terminals: u32) -> Homes {
        Homes {
            first: first + number % warehouses,
            step: terminals,
            count: warehouses.saturating_sub(number).div_ceil(terminals).max(1),
            district: number / warehouses % DISTRICTS + 1,
            shared: terminals < warehouses,
        }
    }
    /// Warehouse and district that it begins with, which are its own where it shares nothing.
    pub fn first(&self) -> (u32, u32) {
        (self.first, self.district)
    }
    /// Warehouse and district of the next transaction, each as likely as the others.
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

    /// Counts are those of equally likely values, within five deviations.
    fn assert_even(counts: &[u32], expected: &[u32]) {
        let found: Vec<u32> = (0..counts.len() as u32).filter(|at| counts[*at as usize] > 0).collect();
        assert_eq!(found, expected, "seed {SEED}");
        let mean = f64::from(counts.iter().sum::<u32>()) / expected.len() as f64;
        let even = |at: &u32| (f64::from(counts[*at as usize]) - mean).abs() < 5.0 * mean.sqrt();
        assert!(expected.iter().all(even), "seed {SEED}: {counts:?}");
    }

    #[test]
    fn fewer_terminals_than_warehouses_share_all_of_them_and_all_districts() {
        // Terminals 0 to 2 of warehouses 4 to 10.
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
    fn as_many_terminals_as_warehouses_or_more_have_one_each_for_good() {
        let mut random = Random::new(Seed::new(SEED));
        for (number, first, district) in [(0, 4, 1), (6, 10, 1), (7, 4, 2), (13, 10, 2), (70, 4, 1)] {
            let homes = Homes::of(4, 7, number, 71);
            assert_eq!(homes.first(), (first, district), "{number}");
            assert!((0..10).all(|_| homes.draw(&mut random) == (first, district)), "{number}");
        }
    }
}
