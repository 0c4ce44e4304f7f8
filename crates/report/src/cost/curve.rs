//! Levels by the amount of data on a device, with its price, and the amount of data that keeps a floor.
//!
//! Cells without a settled level have no cost per level.

use super::price::Prices;
use crate::answer::Answer;
use crate::find::mean;
use lowtide_files::device;
use lowtide_record::{Campaign, Cell, Quantity};

/// The factors that change only the amount of data.
const SIZES: [&str; 3] = ["file_size", "utilisation", "warehouses"];

/// One load on one device at every measured size.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The device's name, or the target of a campaign on the host.
    pub device: String,
    /// The label of the load: `second pass, threads 4`; may be empty.
    pub load: String,
    /// The experiment.
    pub experiment: String,
    /// The quantity of the levels.
    pub quantity: Quantity,
    /// Price in US dollars.
    pub price_usd: f64,
    /// The sizes in ascending order.
    pub points: Vec<Point>,
}

/// One size, averaged over its repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Bytes of data.
    pub data_bytes: f64,
    /// Data as a share of the capacity.
    pub fill: Option<f64>,
    /// The settled level, or the reason for its absence.
    pub level: Result<f64, String>,
    /// Requests per second in the same window, for a database those of its device; `None` without a level.
    pub iops: Option<f64>,
}

/// A device without a known price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no price of {device} is known{}", near.as_ref().map(|near| format!("; the list has `{near}`")).unwrap_or_default())]
pub struct Unpriced {
    /// The device's name, or the target.
    pub device: String,
    /// The nearest name in the list.
    pub near: Option<String>,
}

/// The amount of data that keeps a floor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fit {
    /// An amount interpolated linearly between two measured sizes.
    Between {
        /// Bytes that keep the floor.
        data_bytes: f64,
        /// The measured size below, which keeps the floor.
        below: f64,
        /// The measured size above, which does not.
        above: f64,
    },
    /// The largest measured size keeps the floor; more data may also keep it.
    AtLeast {
        /// Bytes of the largest measured size.
        data_bytes: f64,
    },
    /// No measured size keeps the floor.
    Never,
    /// No measured size has a settled level.
    Unknown,
}

impl Fit {
    /// Bytes that keep the floor.
    pub fn data_bytes(self) -> Option<f64> {
        match self {
            Fit::Between { data_bytes, .. } | Fit::AtLeast { data_bytes } => Some(data_bytes),
            Fit::Never | Fit::Unknown => None,
        }
    }
}

impl Curve {
    /// The most data at which the settled level is at least `floor`, in the curve's own unit.
    pub fn fit(&self, floor: f64) -> Fit {
        let levels: Vec<(f64, f64)> = self
            .points
            .iter()
            .filter_map(|point| Some((point.data_bytes, *point.level.as_ref().ok()?)))
            .collect();
        let Some(last) = levels.iter().rposition(|(_, level)| *level >= floor) else {
            return if levels.is_empty() { Fit::Unknown } else { Fit::Never };
        };
        let (below, high) = levels[last];
        match levels.get(last + 1) {
            None => Fit::AtLeast { data_bytes: below },
            Some(&(above, low)) => Fit::Between {
                data_bytes: below + (above - below) * (high - floor) / (high - low),
                below,
                above,
            },
        }
    }
}

/// The curves of campaigns, one for each combination of campaign, device and load.
///
/// # Errors
/// [`Unpriced`] if neither the list nor the device file has a price.
pub fn curves(campaigns: &[Campaign], prices: &Prices) -> Result<Vec<Curve>, Unpriced> {
    let mut curves: Vec<Curve> = Vec::new();
    for campaign in campaigns {
        let first = curves.len();
        for answer in Answer::of_all(campaign) {
            let (device, own_price) = named(campaign, answer.cell);
            let (load, quantity) = (load(answer.cell), answer.quantity);
            let same =
                |curve: &Curve| (&curve.device, &curve.load, curve.quantity) == (&device, &load, quantity);
            let known = curves[first..].iter().position(same);
            let at = match known {
                Some(at) => first + at,
                None => {
                    let price_usd = prices.of(&device).or(own_price).ok_or_else(|| Unpriced {
                        near: prices.nearest(&device).map(str::to_owned),
                        device: device.clone(),
                    })?;
                    let experiment = campaign.name.clone();
                    curves.push(Curve { device, load, experiment, quantity, price_usd, points: Vec::new() });
                    curves.len() - 1
                }
            };
            curves[at].points.push(Point {
                data_bytes: answer.data_bytes(),
                fill: answer.fill(),
                level: match (answer.settled, &answer.unsettled) {
                    (Some(settled), _) => Ok(settled.mean),
                    (None, reason) => Err(reason.clone().unwrap_or_default()),
                },
                iops: answer.settled.and(answer.iops),
            });
        }
    }
    curves.iter_mut().for_each(|curve| curve.points = by_size(std::mem::take(&mut curve.points)));
    Ok(curves)
}

/// The device of a cell, and the price in its device file.
fn named(campaign: &Campaign, cell: &Cell) -> (String, Option<f64>) {
    match device::of_cell(campaign, cell) {
        Some(device) => (device.name, device.price_usd),
        None => (campaign.target.strip_prefix("device:").unwrap_or(&campaign.target).to_owned(), None),
    }
}

/// The label of a load, without device and size.
fn load(cell: &Cell) -> String {
    let factors = cell.factors.iter().filter(|it| !SIZES.contains(&it.name.as_str()) && it.name != "device");
    let parts = cell.step.iter().cloned().chain(factors.map(|it| format!("{} {}", it.name, it.level)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Points in order of size. Repetitions become one point with the mean of the settled ones.
fn by_size(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.data_bytes.total_cmp(&b.data_bytes));
    let groups = points.chunk_by(|a, b| a.data_bytes == b.data_bytes);
    groups
        .map(|group| {
            let levels: Vec<f64> = group.iter().filter_map(|point| point.level.clone().ok()).collect();
            let iops: Vec<f64> = group.iter().filter_map(|point| point.iops).collect();
            Point {
                level: mean(&levels).map_or_else(|| group[0].level.clone(), Ok),
                iops: mean(&iops),
                ..group[0].clone()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use lowtide_core::Bytes;

    fn curve(points: &[(f64, Option<f64>)]) -> Curve {
        let point = |&(data_bytes, level): &(f64, Option<f64>)| Point {
            data_bytes,
            fill: None,
            level: level.ok_or_else(|| "no".to_owned()),
            iops: level,
        };
        Curve {
            device: "drive".to_owned(),
            load: String::new(),
            experiment: "test".to_owned(),
            quantity: Quantity::Throughput,
            price_usd: 390.0,
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn the_data_that_keeps_a_floor_is_interpolated() {
        let curve = curve(&[(10e9, Some(100.0)), (20e9, None), (30e9, Some(60.0)), (40e9, Some(20.0))]);
        // From 60 to 20 over 10 GB: the level is at least 50 up to 32.5 GB.
        assert_eq!(curve.fit(50.0), Fit::Between { data_bytes: 32.5e9, below: 30e9, above: 40e9 });
        assert_eq!(curve.fit(60.0).data_bytes(), Some(30e9));
        assert_eq!(curve.fit(20.0), Fit::AtLeast { data_bytes: 40e9 });
        assert_eq!(curve.fit(101.0), Fit::Never);
        assert_eq!(self::curve(&[(10e9, None)]).fit(1.0), Fit::Unknown);
    }

    #[test]
    fn a_dip_does_not_hide_a_larger_size_that_keeps_the_floor() {
        let curve = curve(&[(10e9, Some(30.0)), (20e9, Some(80.0)), (30e9, Some(40.0))]);
        assert_eq!(curve.fit(60.0), Fit::Between { data_bytes: 25e9, below: 20e9, above: 30e9 });
    }

    #[test]
    fn campaigns_become_curves_at_full_size() {
        let mut campaign = sample::intel(&[10, 70, 140], 300);
        campaign.scale = 2;
        let prices = Prices::parse("p.csv", "intel-320-160gb,299").expect("a list");
        let curves = curves(std::slice::from_ref(&campaign), &prices).expect("priced");
        assert_eq!(curves.len(), 1);
        let data: Vec<f64> = curves[0].points.iter().map(|point| point.data_bytes).collect();
        assert_eq!(data, [20, 140, 280].map(|gib| Bytes::gib(gib).get() as f64));
        // 16 KiB requests: 64 a MiB.
        for point in &curves[0].points {
            let level = point.level.clone().expect("settled");
            assert!((point.iops.expect("counted") / level / 64.0 - 1.0).abs() < 0.01, "{point:?}");
        }
    }

    #[test]
    fn a_device_without_a_price_is_rejected() {
        let campaign = sample::intel(&[10], 300);
        let prices = Prices::parse("p.csv", "intel-320-160,299").expect("a list");
        let error = curves(&[campaign], &prices).expect_err("no price").to_string();
        assert_eq!(error, "no price of intel-320-160gb is known; the list has `intel-320-160`");
    }

    #[test]
    fn repetitions_are_one_point() {
        let points =
            by_size(curve(&[(2.0, Some(9.0)), (1.0, Some(10.0)), (1.0, Some(20.0)), (1.0, None)]).points);
        assert_eq!(points.len(), 2);
        assert_eq!(points[0].level, Ok(15.0));
    }
}
