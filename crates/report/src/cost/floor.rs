//! Level floors: `100MiB/s`, or `5000NOTPM` for databases.

use crate::lifetime::WriteRate;
use crate::number;
use lowtide_core::Bytes;
use lowtide_record::Quantity;
use std::fmt;
use std::str::FromStr;

/// The lowest acceptable level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// The level, in the unit of `quantity`.
    pub level: f64,
    /// The quantity; curves of other quantities are not compared with the floor.
    pub quantity: Quantity,
}

/// A text that is not a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write a throughput such as `100MiB/s`, or new orders per minute such as `5000NOTPM`")]
pub struct NoFloor;

impl FromStr for Floor {
    type Err = NoFloor;

    fn from_str(text: &str) -> Result<Self, NoFloor> {
        let unit = Quantity::NewOrders.unit();
        let split = text.len().checked_sub(unit.len()).and_then(|at| text.split_at_checked(at));
        let (level, quantity) = match split.filter(|(_, end)| end.eq_ignore_ascii_case(unit)) {
            Some((number, _)) => (number.trim().parse().ok(), Quantity::NewOrders),
            None => match text.parse() {
                Ok(WriteRate::BytesPerDay(bytes)) => {
                    (Some(bytes / 86_400.0 / Bytes::mib(1).get() as f64), Quantity::Throughput)
                }
                Ok(WriteRate::Dwpd(_)) | Err(_) => return Err(NoFloor),
            },
        };
        let level = level.filter(|level: &f64| level.is_finite() && *level > 0.0).ok_or(NoFloor)?;
        Ok(Floor { level, quantity })
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number::level(self.level, self.quantity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_floor_gives_its_quantity() {
        let read = |text: &str| text.parse::<Floor>().map(|it| (it.level, it.quantity));
        assert_eq!(read("100MiB/s"), Ok((100.0, Quantity::Throughput)));
        assert_eq!(read("5000NOTPM"), Ok((5000.0, Quantity::NewOrders)));
        assert_eq!(read("5000 notpm"), Ok((5000.0, Quantity::NewOrders)));
        for wrong in
            ["", "100", "100MiB", "1DWPD", "NOTPM", "-1NOTPM", "nanNOTPM", "infNOTPM", "ö", "5000NOTPö"]
        {
            assert_eq!(read(wrong), Err(NoFloor), "{wrong}");
        }
    }
}
