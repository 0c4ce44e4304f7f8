//! The position of each byte on the disk ([`Surface`]): one spiral from the outermost to the innermost track.
//!
//! The place of a byte is the time that the head needs to reach it from byte 0 in one long transfer:
//!
//! * The place modulo the time of a revolution is the angle.
//! * The place divided by the time of a revolution and by the number of surfaces is the cylinder.
//! * The difference of two places is the time of a transfer.
//!
//! The rated rate of long transfers includes track and cylinder skew, so places include both, too.
//!
//! # Not modelled
//! Spare sectors.

use super::SECTOR;
use super::spec::DiskSpec;

/// Fraction bits of the fixed-point nanoseconds per byte.
const FRACTION: u32 = 32;

/// The disk has at least 2 to the power of this many slices of equal size, which find the zone of a byte without a
/// search.
const SLICES_BITS: u32 = 8;

/// Tracks of equal capacity.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_byte: u64,
    first_place: u64,
    /// Nanoseconds per byte, fixed point.
    ns_per_byte: u64,
    rate: u64,
}

/// The position of each byte.
#[derive(Debug, Clone)]
pub struct Surface {
    zones: Vec<Zone>,
    /// The zone in which each slice begins.
    slices: Vec<u32>,
    /// A slice has 2 to the power of this many bytes.
    slice_bits: u32,
    revolution_ns: u64,
    cylinder_ns: u64,
    end_place: u64,
}

impl Surface {
    /// The surface of a valid description.
    pub(super) fn new(spec: &DiskSpec) -> Self {
        let count = u64::from(spec.zones);
        let (outer, inner) = (spec.outer_rate.get(), spec.inner_rate.get());
        // The circumference is linear in the radius, and so is the capacity of a track. All zones have the same
        // width.
        let rate = |zone: u64| outer - (outer - inner) * (2 * zone + 1) / (2 * count);
        let total: u128 = (0..count).map(|zone| u128::from(rate(zone))).sum();
        let revolution_ns = spec.revolution().get();
        let mut zones: Vec<Zone> = Vec::new();
        let (mut first_byte, mut first_place) = (0, 0);
        let mut weight = 0u128;
        for zone in 0..count {
            let rate = rate(zone);
            let ns_per_byte = (1_000_000_000u64 << FRACTION) / rate;
            zones.push(Zone { first_byte, first_place, ns_per_byte, rate });
            weight += u128::from(rate);
            let end = (u128::from(spec.capacity.get()) * weight / total) as u64;
            first_place += places(end - first_byte, ns_per_byte);
            first_byte = end;
        }
        let cylinder_ns = revolution_ns * u64::from(spec.surfaces);
        let slice_bits = first_byte.max(1).ilog2().saturating_sub(SLICES_BITS);
        let slices = 0..=first_byte >> slice_bits;
        let slices = slices.map(|slice| last_before(&zones, slice << slice_bits) as u32).collect();
        Surface { zones, slices, slice_bits, revolution_ns, cylinder_ns, end_place: first_place }
    }

    #[inline]
    fn zone(&self, byte: u64) -> &Zone {
        let slice = self.slices.len().min((byte >> self.slice_bits) as usize + 1) - 1;
        let mut index = self.slices[slice] as usize;
        while let Some(next) = self.zones.get(index + 1)
            && next.first_byte <= byte
        {
            index += 1;
        }
        &self.zones[index]
    }

    /// The place of a byte, in nanoseconds of a long transfer from byte 0.
    #[inline]
    pub fn place(&self, byte: u64) -> u64 {
        let zone = self.zone(byte);
        zone.first_place + places(byte - zone.first_byte, zone.ns_per_byte)
    }

    /// The first sector at or after a place. Returns its first byte.
    #[inline]
    pub fn sector(&self, place: u64) -> u64 {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_place <= place).max(1) - 1];
        let bytes = (place - zone.first_place) as f64 * zone.rate as f64 / 1e9;
        let mut byte = (zone.first_byte + bytes as u64).next_multiple_of(SECTOR);
        while self.place(byte) < place {
            byte += SECTOR;
        }
        byte
    }

    /// The rate of a long transfer at a byte, in bytes per second.
    #[inline]
    pub fn rate(&self, byte: u64) -> u64 {
        self.zone(byte).rate
    }

    /// The cylinder at a place.
    #[inline]
    pub fn cylinder(&self, place: u64) -> u64 {
        place / self.cylinder_ns
    }

    /// Number of cylinders.
    pub fn cylinders(&self) -> u64 {
        self.end_place.div_ceil(self.cylinder_ns)
    }

    /// Time of a revolution in nanoseconds.
    #[inline]
    pub fn revolution_ns(&self) -> u64 {
        self.revolution_ns
    }

    /// Share of the disk's bytes in each zone. The zones have equal width, and the shares add up to 1.
    pub(super) fn weights(&self) -> Vec<f64> {
        let total: f64 = self.zones.iter().map(|zone| zone.rate as f64).sum();
        self.zones.iter().map(|zone| zone.rate as f64 / total).collect()
    }
}

/// Index of the last zone that begins at or before `byte`.
fn last_before(zones: &[Zone], byte: u64) -> usize {
    zones.partition_point(|zone| zone.first_byte <= byte).max(1) - 1
}

#[inline]
fn places(bytes: u64, ns_per_byte: u64) -> u64 {
    ((u128::from(bytes) * u128::from(ns_per_byte)) >> FRACTION) as u64
}
