//! The saved state of a log disk on a model: counters, headers, other blocks, and then the state of the drive.
//!
//! ```text
//!   u64 length, then words:      the clock, the counters, the completion of each write in flight
//!   u64 length, then runs:       u32 first block, u32 blocks; a header for each
//!   u64 length, then blocks:     u64 number; 4096 bytes
//! ```
//!
//! Restoring opens the log from these bytes, as after a clean close. All numbers are little-endian. The state file
//! that contains these bytes has a checksum.

use super::timed::Timed;
use crate::format::BLOCK;
use crate::format::slot::HEADER;
use lowtide_core::{BlockDevice, StateError, VirtualTime};
use std::io::{Read, Write};

/// Length of a run without its headers, in bytes.
const RUN: usize = 8;

const RICH: u64 = 8 + BLOCK as u64;

fn nonsense() -> StateError {
    StateError::Nonsense { what: "a part of it is not from a log" }
}

/// Writes a medium and the caller's `counts`.
pub(super) fn save<D: BlockDevice>(
    medium: &Timed<D>,
    counts: &[u64],
    out: &mut dyn Write,
) -> Result<(), StateError> {
    let under_way = medium.under_way.borrow();
    let mut words = vec![medium.clock.get().as_nanos()];
    words.extend(counts);
    words.extend(under_way.iter().map(|at| at.as_nanos()));
    number(out, words.len() as u64 * 8)?;
    words.into_iter().try_for_each(|word| number(out, word))?;

    let heads = medium.heads.borrow();
    let runs = runs(&heads);
    let headers: usize = runs.iter().map(|(_, count)| count).sum();
    number(out, (runs.len() * RUN + headers * HEADER) as u64)?;
    for (first, count) in runs {
        out.write_all(&(first as u32).to_le_bytes())?;
        out.write_all(&(count as u32).to_le_bytes())?;
        out.write_all(heads[first..first + count].as_flattened())?;
    }

    let rich = medium.rich.borrow();
    number(out, rich.len() as u64 * RICH)?;
    for (block, bytes) in rich.iter() {
        number(out, *block)?;
        out.write_all(bytes)?;
    }
    medium.device.borrow().save(out)
}

/// Restores the state that [`save`] wrote to a medium of the same drive. Returns the `N` counts.
pub(super) fn restore<D: BlockDevice, const N: usize>(
    medium: &mut Timed<D>,
    from: &mut dyn Read,
) -> Result<[u64; N], StateError> {
    let length = read_number(from)?;
    let words = usize::try_from(length / 8).map_err(|_| nonsense())?;
    if !length.is_multiple_of(8) || words < 1 + N {
        return Err(nonsense());
    }
    medium.clock.set(VirtualTime::from_nanos(read_number(from)?));
    medium.now.set(medium.clock.get());
    let mut counts = [0; N];
    for count in &mut counts {
        *count = read_number(from)?;
    }
    let under_way = medium.under_way.get_mut();
    under_way.clear();
    for _ in 0..words - 1 - N {
        let at = VirtualTime::from_nanos(read_number(from)?);
        if under_way.back().is_some_and(|before| *before > at) {
            return Err(nonsense());
        }
        under_way.push_back(at);
    }

    let heads = medium.heads.get_mut();
    heads.fill([0; HEADER]);
    let mut left = read_number(from)?;
    while left > 0 {
        let (first, count) = (word(from)? as usize, word(from)? as usize);
        let bytes = (RUN + count * HEADER) as u64;
        let run = heads.get_mut(first..first + count).filter(|_| count > 0 && bytes <= left);
        from.read_exact(run.ok_or_else(nonsense)?.as_flattened_mut())?;
        left -= bytes;
    }
    let blocks = heads.len() as u64;

    let rich = medium.rich.get_mut();
    rich.clear();
    let mut left = read_number(from)?;
    if !left.is_multiple_of(RICH) || left / RICH > blocks {
        return Err(nonsense());
    }
    while left > 0 {
        let block = read_number(from)?;
        let mut bytes = vec![0; BLOCK].into_boxed_slice();
        from.read_exact(&mut bytes)?;
        if block >= blocks || rich.insert(block, bytes).is_some() {
            return Err(nonsense());
        }
        left -= RICH;
    }
    medium.device.get_mut().restore(from)?;
    Ok(counts)
}

/// The runs of blocks with headers: the first block, and the number of blocks.
fn runs(heads: &[[u8; HEADER]]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (block, _) in heads.iter().enumerate().filter(|(_, head)| **head != [0; HEADER]) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == block => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

fn number(out: &mut dyn Write, number: u64) -> Result<(), StateError> {
    Ok(out.write_all(&number.to_le_bytes())?)
}

fn read_number(from: &mut dyn Read) -> Result<u64, StateError> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn word(from: &mut dyn Read) -> Result<u32, StateError> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
