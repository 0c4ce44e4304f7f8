//! The formula from rated erase cycles to host bytes, drive writes per day, and years.
//!
//! ```text
//!   TBW = raw NAND × cycles / (write amplification × wear levelling)
//! ```
//!
//! The source (`published/lifetime.csv`: AnandTech 7947, page 3) uses the capacity instead of the raw NAND. The
//! formula uses the raw NAND, because spare NAND wears like all other NAND.
//!
//! # Not modelled
//!
//! Retention, temperature, read disturb, early failures.

use super::rate::YEAR_DAYS;
use lowtide_core::Bytes;
use lowtide_device::flash::spec::Cycles;

/// The endurance of a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endurance {
    /// All NAND that holds data.
    pub raw: Bytes,
    /// The rated cycles of each block.
    pub cycles: Cycles,
}

/// The rate at which host writes wear a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wear {
    /// NAND bytes per host byte.
    pub write_amplification: f64,
    /// Erases of the fastest-wearing blocks divided by the mean; 1 for even wear.
    pub levelling: f64,
}

/// A range from the fewest to the most rated cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The value at the fewest cycles.
    pub low: f64,
    /// The value at the most cycles.
    pub high: f64,
}

impl Span {
    /// Applies `f` to both ends.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Span {
        Span { low: f(self.low), high: f(self.high) }
    }
}

impl Endurance {
    /// Host bytes until the rated cycles are used up ("TBW", in bytes).
    pub fn host_bytes(&self, wear: Wear) -> Span {
        let cycles = Span { low: self.cycles.fewest().into(), high: self.cycles.most().into() };
        cycles.map(|cycles| self.raw.get() as f64 * cycles / (wear.write_amplification * wear.levelling))
    }
}

/// Years until `host_bytes` are written at `bytes_per_day`.
pub fn years(host_bytes: f64, bytes_per_day: f64) -> f64 {
    host_bytes / bytes_per_day / YEAR_DAYS
}

/// Drive writes per day that use up `host_bytes` in `warranty_years` (Lenovo, Intel P4500 product guide:
/// TBW / (365 × years × capacity)).
pub fn dwpd(host_bytes: f64, warranty_years: f64, capacity: Bytes) -> f64 {
    host_bytes / (YEAR_DAYS * warranty_years * capacity.get() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endurance(raw: Bytes, cycles: &str) -> Endurance {
        Endurance { raw, cycles: cycles.parse().expect("cycles") }
    }

    fn wear(write_amplification: f64) -> Wear {
        Wear { write_amplification, levelling: 1.0 }
    }

    /// AnandTech 6337, page 4: 10 GiB a day at a write amplification of 10.
    #[test]
    fn published_years_of_consumer_drives() {
        for (gib, cycles, published) in
            [(128, "3000", 10.5), (256, "3000", 21.0), (128, "1000", 3.5), (256, "1000", 7.0)]
        {
            let bytes = endurance(Bytes::gib(gib), cycles).host_bytes(wear(10.0));
            let years = years(bytes.low, Bytes::gib(10).get() as f64);
            assert_eq!((years * 10.0).round() / 10.0, published, "{gib} GiB, {cycles} cycles: {years}");
            assert_eq!(bytes.low, bytes.high);
        }
    }

    /// Lenovo, Intel P4500 product guide: 1380 TB over 5 years on 1.0 TB are 756 GB a day and 0.75 drive writes, and
    /// 1.3 over 3 years. The guide truncates 0.756.
    #[test]
    fn published_drive_writes_per_day() {
        let capacity = Bytes::new(1_000_000_000_000);
        let five = dwpd(1380e12, 5.0, capacity);
        assert_eq!((five * 1000.0).round(), 756.0);
        assert_eq!((five * 100.0).floor() / 100.0, 0.75);
        let three = dwpd(1380e12, 3.0, capacity);
        assert_eq!((three * 1000.0).round(), 1260.0);
        assert_eq!((three * 10.0).round() / 10.0, 1.3);
    }

    /// `published/e13`: MLC is rated for 5,000 to 10,000 cycles.
    #[test]
    fn twice_the_cycles_are_twice_the_years() {
        let bytes = endurance(Bytes::gib(320), "5000..10000").host_bytes(wear(3.3));
        let span = bytes.map(|bytes| years(bytes, 5e12));
        assert_eq!(span.high, 2.0 * span.low);
        // 320 GiB × 5000 / 3.3 / 5 TB / 365 = 0.285 years.
        assert!((span.low - 0.285_27).abs() < 1e-4, "{span:?}");
    }

    /// Tom's Hardware, "Fusion-io ioDrive Details": 48 years at 5 TB a day for 160 GB of SLC, 16 for 320 GB of MLC.
    /// The implied cycles over write amplification are far above any rating: see `docs/models/lifetime.md`.
    #[test]
    fn cycles_implied_by_the_vendor_of_the_iodrive() {
        let implied = |years: f64, capacity: f64| years * YEAR_DAYS * 5e12 / capacity;
        assert_eq!(implied(48.0, 160e9), 547_500.0);
        assert_eq!(implied(16.0, 320e9), 91_250.0);
    }

    #[test]
    fn uneven_wear_shortens_life() {
        let endurance = endurance(Bytes::gib(100), "3000");
        let even = endurance.host_bytes(wear(2.0)).low;
        let uneven = endurance.host_bytes(Wear { write_amplification: 2.0, levelling: 1.25 }).low;
        assert_eq!(even, 1.25 * uneven);
    }
}
