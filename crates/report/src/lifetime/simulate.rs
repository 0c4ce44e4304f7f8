//! The write amplification of a model: filled, overwritten until it no longer changes, and its wear counted.
//!
//! The drive is a smaller one of the same kind (`DeviceSpec::scaled` keeps the share of live data), because write
//! amplification does not depend on size. Not here: pauses; it writes as fast as the model takes it, so nothing is
//! cleaned while idle; and filesystems, TRIM, and data that is written more often than other data.

use super::endurance::Wear;
use lowtide_core::rng::{Rng, below};
use lowtide_core::{BlockDevice, Bytes, DeviceError, Request, Seed, VirtualTime};
use lowtide_device::{AnyDevice, DeviceSpec, SpecError};

/// Bytes of a request while filling.
const CHUNK: u64 = 1 << 20;
/// A round is this share of the raw NAND, written by the host.
const ROUNDS_PER_RAW: u64 = 2;
/// Two rounds and the two before them may differ by this.
const TOLERANCE: f64 = 0.005;
/// Fewest rounds.
const LEAST_ROUNDS: usize = 6;
/// Rounds after which a drive that still changes is taken as it is.
const MOST_ROUNDS: usize = 40;
/// Fewest requests that the data must hold.
const LEAST_REQUESTS: u64 = 1024;
/// Standard deviations of the lasting spread of erases that are counted into wear levelling: one block in 740 of a
/// normal spread wears faster.
const SIGMAS: f64 = 3.0;

/// What is written, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Data as a share of the capacity that is in use.
    pub fill: f64,
    /// The share of the capacity that is never written.
    pub reserve: f64,
    /// Bytes of a request.
    pub block: Bytes,
    /// How many times smaller a drive is simulated.
    pub scale: u64,
    /// Of every random choice.
    pub seed: Seed,
}

/// The order of the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Uniform over the data.
    Random,
    /// From the first byte to the last, again and again.
    Sequential,
}

impl Pattern {
    /// `random` or `sequential`.
    pub fn word(self) -> &'static str {
        match self {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        }
    }
}

/// What the model does.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// What was written.
    pub pattern: Pattern,
    /// Write amplification, and how unevenly it wears.
    pub wear: Wear,
    /// Whether the write amplification no longer changed at the end.
    pub steady: bool,
    /// What the model takes of these writes, one at a time, in MiB/s.
    pub mib_per_s: f64,
    /// Mean erases of a block so far.
    pub erases_mean: f64,
    /// Erases of the block with the most so far.
    pub erases_most: u32,
    /// Host bytes written per byte of raw NAND.
    pub turnovers: f64,
}

/// Why a model cannot be worn.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The device has no NAND, or is more than one drive.
    #[error("it is not one flash drive")]
    NotFlash,
    /// The smaller drive is not valid.
    #[error("at 1/{scale} it is too small ({error})")]
    Spec {
        /// The scale.
        scale: u64,
        /// What is wrong.
        error: SpecError,
    },
    /// There is next to no data.
    #[error("{data} of data at 1/{scale} hold fewer than {LEAST_REQUESTS} requests of {block}")]
    LittleData {
        /// The data on the smaller drive.
        data: Bytes,
        /// The scale.
        scale: u64,
        /// Bytes of a request.
        block: Bytes,
    },
    /// The request is no multiple of the device's logical block.
    #[error("{block} is not a multiple of the logical block of {logical}")]
    Block {
        /// Bytes of a request.
        block: Bytes,
        /// Of the device.
        logical: Bytes,
    },
    /// The model refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Writes to a model until its write amplification is steady.
///
/// # Errors
/// [`SimulateError`] where the device has no NAND, or these conditions leave nothing to simulate.
pub fn simulate(
    spec: &DeviceSpec,
    conditions: &Conditions,
    pattern: Pattern,
) -> Result<Simulated, SimulateError> {
    let Conditions { fill, reserve, block, scale, seed } = *conditions;
    let raw = spec.scaled(scale).flash().ok_or(SimulateError::NotFlash)?.nand.raw.get();
    let seed = seed.part(pattern.word(), 0);
    let built = spec.scaled(scale).build(seed.part("device", 0));
    let mut drive = built.map_err(|error| SimulateError::Spec { scale, error })?;
    let logical = drive.logical_block();
    if block == Bytes::ZERO || !block.get().is_multiple_of(logical.get()) {
        return Err(SimulateError::Block { block, logical });
    }
    let data = Bytes::new((drive.capacity().get() as f64 * (1.0 - reserve) * fill) as u64).align_down(block);
    let blocks = data.get() / block.get();
    if blocks < LEAST_REQUESTS {
        return Err(SimulateError::LittleData { data, scale, block });
    }
    let mut load = Load {
        now: VirtualTime::START,
        block,
        data,
        pattern,
        rng: seed.part("load", 0).stream(),
        next: blocks - 1,
    };
    load.fill(&mut drive)?;
    let mut rounds = vec![Mark::of(&drive, load.now)];
    let requests = (raw / ROUNDS_PER_RAW / block.get()).max(LEAST_REQUESTS);
    let mut steady = false;
    while rounds.len() <= MOST_ROUNDS && !steady {
        load.write(&mut drive, requests)?;
        rounds.push(Mark::of(&drive, load.now));
        steady = rounds.len() > LEAST_ROUNDS && no_longer_changes(&rounds);
    }
    let last = rounds.len() - 1;
    let (from, to) = (&rounds[last - 2], &rounds[last]);
    let erases = drive.erase_counts();
    Ok(Simulated {
        pattern,
        wear: Wear {
            write_amplification: from.write_amplification(to),
            levelling: levelling(&rounds[last / 3], &rounds[last - last / 3], to),
        },
        steady,
        mib_per_s: Bytes::new(to.host() - from.host()).as_mib() / to.at.since(from.at).as_secs_f64(),
        erases_mean: mean(&erases),
        erases_most: erases.iter().copied().max().unwrap_or(0),
        turnovers: (to.host() - rounds[0].host()) as f64 / raw as f64,
    })
}

/// A load on one drive.
struct Load {
    now: VirtualTime,
    block: Bytes,
    data: Bytes,
    pattern: Pattern,
    rng: Rng,
    /// The number of the last block written in order.
    next: u64,
}

impl Load {
    fn fill(&mut self, drive: &mut AnyDevice) -> Result<(), DeviceError> {
        let data = self.data.get();
        (0..data.div_ceil(CHUNK))
            .try_for_each(|n| self.submit(drive, &Request::write(n * CHUNK, CHUNK.min(data - n * CHUNK))))
    }

    fn write(&mut self, drive: &mut AnyDevice, requests: u64) -> Result<(), DeviceError> {
        let blocks = self.data.get() / self.block.get();
        for _ in 0..requests {
            let number = match self.pattern {
                Pattern::Random => below(&mut self.rng, blocks),
                Pattern::Sequential => {
                    self.next = (self.next + 1) % blocks;
                    self.next
                }
            };
            self.submit(drive, &Request::write(number * self.block.get(), self.block.get()))?;
        }
        Ok(())
    }

    fn submit(&mut self, drive: &mut AnyDevice, request: &Request) -> Result<(), DeviceError> {
        let completion = drive.submit(self.now, request);
        self.now = completion.at;
        completion.status
    }
}

/// Where the drive stands between two rounds.
struct Mark {
    at: VirtualTime,
    counters: lowtide_core::Counters,
    erases: Vec<u32>,
}

impl Mark {
    fn of(drive: &AnyDevice, at: VirtualTime) -> Mark {
        Mark { at, counters: drive.counters(), erases: drive.erase_counts() }
    }

    fn host(&self) -> u64 {
        self.counters.host_written_bytes
    }

    fn write_amplification(&self, later: &Mark) -> f64 {
        later.counters.write_amplification_since(&self.counters).expect("a round writes")
    }
}

fn no_longer_changes(rounds: &[Mark]) -> bool {
    let last = rounds.len() - 1;
    let before = rounds[last - 4].write_amplification(&rounds[last - 2]);
    let now = rounds[last - 2].write_amplification(&rounds[last]);
    (now / before - 1.0).abs() < TOLERANCE
}

/// How much faster than the mean the fastest blocks wear in the long run.
///
/// Counts of a few erases scatter, and after thousands the scatter is next to nothing beside the mean. What lasts is
/// what two stretches of time have in common: the covariance of a block's erases in the first and in the second is
/// the variance of its lasting rate. One that chance alone may give (two standard errors) counts as none. The largest
/// count over the mean, which has the scatter in it, is an upper bound.
fn levelling(from: &Mark, middle: &Mark, to: &Mark) -> f64 {
    let stretch = |a: &Mark, b: &Mark| -> Vec<f64> {
        b.erases.iter().zip(&a.erases).map(|(b, a)| f64::from(b - a)).collect()
    };
    let (first, second) = (stretch(from, middle), stretch(middle, to));
    let count = first.len() as f64;
    let means = [&first, &second].map(|erases| erases.iter().sum::<f64>() / count);
    if means.iter().any(|mean| *mean <= 0.0) {
        return 1.0;
    }
    let products: Vec<f64> =
        first.iter().zip(&second).map(|(a, b)| (a / means[0] - 1.0) * (b / means[1] - 1.0)).collect();
    let covariance = products.iter().sum::<f64>() / count;
    let variance = products.iter().map(|p| (p - covariance).powi(2)).sum::<f64>() / count;
    if covariance <= 2.0 * (variance / count).sqrt() {
        return 1.0;
    }
    // Where the spread is not normal, some blocks being left out for good, no block wears faster than the most erased.
    let most = first.iter().zip(&second).map(|(a, b)| a + b).fold(0.0, f64::max);
    (1.0 + SIGMAS * covariance.sqrt()).min(most / (means[0] + means[1]))
}

fn mean(erases: &[u32]) -> f64 {
    erases.iter().map(|&erases| f64::from(erases)).sum::<f64>() / erases.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intel() -> DeviceSpec {
        lowtide_files::device::find("intel-320-160gb").expect("in the catalogue").spec
    }

    fn conditions() -> Conditions {
        Conditions { fill: 0.8, reserve: 0.0, block: Bytes::kib(16), scale: 64, seed: Seed::new(1) }
    }

    #[test]
    fn sequential_writes_wear_less_and_a_reserve_helps() {
        let full = Conditions { fill: 1.0, ..conditions() };
        let of = |conditions, pattern| simulate(&intel(), &conditions, pattern).expect("it runs");
        let random = of(full, Pattern::Random);
        let reserved = of(Conditions { reserve: 0.2, ..full }, Pattern::Random);
        let filled = of(Conditions { fill: 0.8, ..full }, Pattern::Random);
        let sequential = of(full, Pattern::Sequential);
        println!("seed 1: {random:?}\n{reserved:?}\n{sequential:?}");
        assert!(random.steady && reserved.steady && sequential.steady);
        assert!(random.wear.write_amplification > 1.3 * reserved.wear.write_amplification);
        assert!(reserved.wear.write_amplification > sequential.wear.write_amplification);
        // Above 1 in order, too: the policy takes the best of eight blocks, and with little spare NAND often none of
        // the eight is empty.
        assert!((1.0..2.0).contains(&sequential.wear.write_amplification));
        assert!(random.mib_per_s < reserved.mib_per_s && reserved.mib_per_s < sequential.mib_per_s);
        // What is never written is the same whether it is called reserve or the rest of the fill.
        assert_eq!(reserved, filled);
    }

    #[test]
    fn the_same_seed_gives_the_same_answer() {
        let once = simulate(&intel(), &conditions(), Pattern::Random).expect("it runs");
        assert_eq!(once, simulate(&intel(), &conditions(), Pattern::Random).expect("it runs"));
    }

    #[test]
    fn what_leaves_nothing_to_simulate_is_told() {
        let error =
            |conditions| simulate(&intel(), &conditions, Pattern::Random).expect_err("refused").to_string();
        let little = error(Conditions { fill: 0.0001, ..conditions() });
        assert!(little.contains("fewer than 1024 requests of 16KiB"), "{little}");
        let block = error(Conditions { block: Bytes::new(1000), ..conditions() });
        assert!(block.contains("1000B") || block.contains("1kB is not a multiple"), "{block}");
        let scale = error(Conditions { scale: 1_000_000, ..conditions() });
        assert!(scale.contains("at 1/1000000 it is too small"), "{scale}");
    }

    #[test]
    fn a_lasting_spread_counts_and_chance_does_not() {
        let mark = |erases: Vec<u32>| Mark { at: VirtualTime::START, counters: Default::default(), erases };
        let from = mark(vec![0; 4]);
        assert_eq!(levelling(&from, &mark(vec![5; 4]), &mark(vec![10; 4])), 1.0);
        // Uneven at first, the other way round afterwards.
        assert_eq!(levelling(&from, &mark(vec![4, 6, 4, 6]), &mark(vec![10; 4])), 1.0);
        // Half of the blocks wear a fifth faster than the mean, half a fifth slower.
        let uneven = levelling(&from, &mark(vec![4, 6, 4, 6]), &mark(vec![8, 12, 8, 12]));
        assert!((uneven - 1.2).abs() < 1e-9, "{uneven}");
    }
}
