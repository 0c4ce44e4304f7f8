//! The state of a device as bytes: all that history changed, so that a drive can go on where another ended.
//!
//! ```text
//!   header ─► frames, each with a checksum ─► sections of each device ─► end
//! ```
//!
//! The layout is in `docs/formats.md`. A header names the description that the state belongs to, by a digest: only a
//! device of the same description can take it. Leaves out contents of the blocks, and other versions of the format: a
//! state whose layout has changed is refused, not converted.

mod frame;
mod section;

pub(crate) use section::{Sink, Source, sense};

use crate::spec::{AnyDevice, DeviceSpec};
use frame::{FrameReader, FrameWriter};
use lowtide_core::{BlockDevice, Seed, StateError, VirtualTime};
use std::io::{self, Read, Write};

/// What a saved state begins with.
const MAGIC: &str = "lowtide state\n";

/// Raised with every change of what a device writes.
const VERSION: u32 = 5;

/// Bytes of the header between the magic and its checksum.
const HEADER: usize = 4 + 8 + 8 + 8;

/// A device that goes on where another ended.
pub struct Restored {
    /// The device.
    pub device: AnyDevice,
    /// The seed it was made with.
    pub seed: Seed,
    /// The instant at which it was saved: it is asked nothing before it.
    pub now: VirtualTime,
}

impl std::fmt::Debug for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a device of {:?} at {:?}", self.seed, self.now)
    }
}

/// A number that descriptions which differ are unlikely to share.
pub fn digest(spec: &DeviceSpec) -> u64 {
    // FNV-1a. Units are written as text, so that no two descriptions have the same bytes.
    let bytes = postcard::to_stdvec(spec).expect("descriptions are plain values");
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Saves a device that was made from `spec` and `seed`, at `now`.
///
/// # Errors
/// [`StateError`] where it cannot be written.
pub fn save(
    out: &mut dyn Write,
    spec: &DeviceSpec,
    seed: Seed,
    now: VirtualTime,
    device: &dyn BlockDevice,
) -> Result<(), StateError> {
    let mut header = Vec::with_capacity(MAGIC.len() + HEADER);
    header.extend(MAGIC.as_bytes());
    header.extend(VERSION.to_le_bytes());
    header.extend([digest(spec), seed.get(), now.as_nanos()].iter().flat_map(|number| number.to_le_bytes()));
    let checksum = crc32c::crc32c(&header);
    out.write_all(&header)?;
    out.write_all(&checksum.to_le_bytes())?;
    let mut frames = FrameWriter::new(out, checksum);
    device.save(&mut frames)?;
    Ok(frames.finish()?)
}

/// Makes a device of `spec` that goes on where the saved one ended. Reads no further than the end of the state.
///
/// # Errors
/// [`StateError`] says what is wrong with what is read.
pub fn restore(from: &mut dyn Read, spec: &DeviceSpec) -> Result<Restored, StateError> {
    let (header, checksum) = read_header(from)?;
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let (found, wanted) = (number(4), digest(spec));
    if found != wanted {
        return Err(StateError::OtherDevice { found, wanted });
    }
    let (seed, now) = (Seed::new(number(12)), VirtualTime::from_nanos(number(20)));
    let mut device =
        spec.build(seed).map_err(|_| StateError::Nonsense { what: "its description is of no device" })?;
    let mut frames = FrameReader::new(from, (MAGIC.len() + HEADER + 4) as u64, checksum);
    device.restore(&mut frames).map_err(plain)?;
    frames.finish().map_err(|error| plain(StateError::Io(error)))?;
    Ok(Restored { device, seed, now })
}

/// The header after its magic, and its checksum, which is right.
fn read_header(from: &mut dyn Read) -> Result<([u8; HEADER], u32), StateError> {
    let mut magic = [0; MAGIC.len()];
    let foreign = StateError::Foreign { magic: MAGIC.trim_end() };
    match from.read_exact(&mut magic) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(foreign),
        read => read?,
    }
    if magic != MAGIC.as_bytes() {
        return Err(foreign);
    }
    let mut rest = [0; HEADER + 4];
    match from.read_exact(&mut rest) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(StateError::Short { at: MAGIC.len() as u64 });
        }
        read => read?,
    }
    let (header, checksum): ([u8; HEADER], _) = (
        rest[..HEADER].try_into().expect("as long"),
        u32::from_le_bytes(rest[HEADER..].try_into().expect("four")),
    );
    // Another version may end its header elsewhere.
    let found = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    if found != VERSION {
        return Err(StateError::Version { found, known: VERSION });
    }
    if crc32c::crc32c_append(crc32c::crc32c(&magic), &header) != checksum {
        return Err(StateError::Damaged { at: (MAGIC.len() + HEADER + 4) as u64 });
    }
    Ok((header, checksum))
}

/// The error as it was before it went through a reader.
fn plain(error: StateError) -> StateError {
    let StateError::Io(error) = error else { return error };
    match error.downcast::<StateError>() {
        Ok(error) => error,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            StateError::Nonsense { what: "it ends before the device's state does" }
        }
        Err(error) => StateError::Io(error),
    }
}
