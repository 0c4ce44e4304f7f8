//! The published cost table (`published/e10`), recomputed from its prices, capacities and transactions.
//!
//! The transactions per minute are those of the source. `published/README.md` lists the arithmetic errors in the
//! comments under the post.

use lowtide_files::catalogue::{Study, study};

/// A recomputed row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Recomputed {
    /// The device's name in the source.
    pub device: String,
    /// Price in US dollars.
    pub price_usd: f64,
    /// The capacity by which the source divides, in GB.
    pub capacity_gb: f64,
    /// Price divided by capacity.
    pub usd_per_gb: f64,
    /// Dollars per GB as published.
    pub published_usd_per_gb: f64,
    /// Transactions per minute as published.
    pub tpm: f64,
    /// Transactions per minute divided by price.
    pub tpm_per_usd: f64,
    /// Transactions per dollar as published.
    pub published_tpm_per_usd: f64,
    /// Price divided by the capacity that remains when space is traded for speed, if the source states that capacity.
    pub usable_usd_per_gb: Option<f64>,
}

impl Recomputed {
    /// Returns whether both published numbers are the computed ones, truncated.
    pub fn agrees(&self) -> bool {
        is_truncated(self.usd_per_gb, self.published_usd_per_gb)
            && is_truncated(self.tpm_per_usd, self.published_tpm_per_usd)
    }
}

/// Returns whether `printed` is `exact` truncated after its last digit. The source prints at most one decimal.
fn is_truncated(exact: f64, printed: f64) -> bool {
    let tens = if printed.fract() == 0.0 { 1.0 } else { 10.0 };
    (exact * tens).floor() == (printed * tens).round()
}

/// The devices of `e10`, in its order.
///
/// # Panics
/// If the compiled-in table lacks a number, which a test rules out.
pub fn recomputed() -> Vec<Recomputed> {
    let study = study("e10").expect("the table is compiled in");
    let devices = study.rows.iter().filter(|row| row.metric == "TPM");
    devices
        .map(|row| {
            let value = |metric: &str| find(study, &row.device, metric).expect("the table has it");
            let capacity_gb = row.drive_capacity_gb.expect("the table has it");
            let price_usd = value("price");
            let usable = find(study, &row.device, "usable when trading space for performance");
            Recomputed {
                device: row.device.clone(),
                price_usd,
                capacity_gb,
                usd_per_gb: price_usd / capacity_gb,
                published_usd_per_gb: value("price per GB"),
                tpm: row.value,
                tpm_per_usd: row.value / price_usd,
                published_tpm_per_usd: value("TPM per dollar"),
                usable_usd_per_gb: usable.map(|gb| price_usd / gb),
            }
        })
        .collect()
}

fn find(study: &Study, device: &str, metric: &str) -> Option<f64> {
    study.rows.iter().find(|row| row.device == device && row.metric == metric).map(|row| row.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 2 to 4, 6 to 8 and 10 to 12: 5.2, 12.1 and 30 dollars a GB; 4.8, 27 and 3.6 transactions a dollar.
    #[test]
    fn the_published_table_follows_from_its_prices() {
        let all = recomputed();
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        let per_gb: Vec<f64> = all.iter().map(|it| round(it.usd_per_gb)).collect();
        let per_dollar: Vec<f64> = all.iter().map(|it| round(it.tpm_per_usd)).collect();
        assert_eq!(per_gb, [5.205, 12.188, 30.0]);
        assert_eq!(per_dollar, [4.895, 27.387, 3.619]);
        assert!(all.iter().all(Recomputed::agrees), "{all:?}");
        // 4800 dollars over 120 GB.
        assert_eq!((all[2].price_usd, all[2].usable_usd_per_gb), (4800.0, Some(40.0)));
        // Eight disks of 190 dollars, mirrored: half of eight times 73 GB.
        let disk = find(study("e10").expect("there"), &all[0].device, "price per disk");
        assert_eq!((disk, all[0].price_usd, all[0].capacity_gb), (Some(190.0), 8.0 * 190.0, 4.0 * 73.0));
    }

    #[test]
    fn published_digits_are_truncated() {
        assert!(is_truncated(4.894, 4.8) && is_truncated(27.387, 27.0) && is_truncated(12.1875, 12.1));
        assert!(!is_truncated(4.894, 4.9) && !is_truncated(27.6, 28.0));
    }
}
