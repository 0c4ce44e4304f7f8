//! The published table of dollars (`published/e10`) computed again from its own prices, capacities and transactions.
//!
//! The transactions per minute are the source's. Not here: what the comments under the
//! post add up wrongly (see `published/README.md`).

use lowtide_files::catalogue::{Study, study};

/// A device of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Recomputed {
    /// Its name in the source.
    pub device: String,
    /// Its price in US dollars.
    pub price_usd: f64,
    /// The capacity that the source divides by, in GB.
    pub capacity_gb: f64,
    /// Price over capacity.
    pub usd_per_gb: f64,
    /// As printed.
    pub published_usd_per_gb: f64,
    /// Transactions per minute, as printed.
    pub tpm: f64,
    /// Those over the price.
    pub tpm_per_usd: f64,
    /// As printed.
    pub published_tpm_per_usd: f64,
    /// Price over the capacity that is left when space is traded for speed, where the source names one.
    pub usable: Option<(f64, f64)>,
}

impl Recomputed {
    /// Whether both printed numbers are the computed ones with the further digits cut off.
    pub fn agrees(&self) -> bool {
        is_cut(self.usd_per_gb, self.published_usd_per_gb)
            && is_cut(self.tpm_per_usd, self.published_tpm_per_usd)
    }
}

/// Whether `printed` is `exact` cut off after its last digit; the source prints up to one decimal.
fn is_cut(exact: f64, printed: f64) -> bool {
    let tens = if printed.fract() == 0.0 { 1.0 } else { 10.0 };
    (exact * tens).floor() == (printed * tens).round()
}

/// The devices of `e10`, in its order.
///
/// # Panics
/// Where the compiled-in table lacks a number, which a test would find.
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
                usable: usable.map(|gb| (gb, price_usd / gb)),
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
        assert_eq!(all[2].usable, Some((120.0, 40.0)));
        // Eight disks of 190 dollars, mirrored: half of eight times 73 GB.
        let disk = find(study("e10").expect("there"), &all[0].device, "price per disk");
        assert_eq!((disk, all[0].price_usd, all[0].capacity_gb), (Some(190.0), 8.0 * 190.0, 4.0 * 73.0));
    }

    #[test]
    fn digits_are_cut_off() {
        assert!(is_cut(4.894, 4.8) && is_cut(27.387, 27.0) && is_cut(12.1875, 12.1));
        assert!(!is_cut(4.894, 4.9) && !is_cut(27.6, 28.0));
    }
}
