//! Saved device state: everything that depends on history, so that a restored drive continues exactly where the saved
//! one stopped.
//!
//! ```text
//!   header ─► frames, each with a checksum ─► sections of each device ─► end
//! ```
//!
//! The layout is in `docs/formats.md`. The header contains a digest of the device's description, and only a device
//! with the same description accepts the state.
//!
//! # Not supported
//! Contents of blocks, and other versions of the format. A state in another version is rejected, not converted.

mod frame;
mod section;

pub(crate) use section::{Sink, Source, sense};

use crate::spec::{AnyDevice, DeviceSpec};
use frame::{FrameReader, FrameWriter};
use lowtide_core::{BlockDevice, Seed, StateError, VirtualTime};
use std::io::{self, Read, Write};

/// The marker at the beginning of a saved state.
const MAGIC: &str = "lowtide state\n";

/// Format version. Increased whenever a device changes its sections.
const VERSION: u32 = 5;

/// Length of the header in bytes, from the end of the marker to the header's checksum.
const HEADER: usize = 4 + 8 + 8 + 8;

/// A device restored from a saved state.
pub struct Restored {
    /// The device.
    pub device: AnyDevice,
    /// The seed with which the device was made.
    pub seed: Seed,
    /// The instant of saving. Requests must not be earlier.
    pub now: VirtualTime,
}

impl std::fmt::Debug for Restored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a device of {:?} at {:?}", self.seed, self.now)
    }
}

/// Digest of a description. Different descriptions are unlikely to have the same digest.
pub fn digest(spec: &DeviceSpec) -> u64 {
    // FNV-1a over the serialised description. Quantities are serialised as text with their units.
    let bytes = postcard::to_stdvec(spec).expect("descriptions are plain values");
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Saves the state at `now` of a device made from `spec` and `seed`.
///
/// # Errors
/// [`StateError`] if writing fails or the device cannot be saved.
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

/// Makes a device of `spec` with the saved state. Reads nothing past the end of the state.
///
/// # Errors
/// [`StateError`] if reading fails, the state is damaged, or the state belongs to another version or device.
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

/// Reads the header and verifies its checksum. Returns the bytes after the marker, and the checksum.
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
    // The version comes before the checksum, because another version may have a header of another length.
    let found = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    if found != VERSION {
        return Err(StateError::Version { found, known: VERSION });
    }
    if crc32c::crc32c_append(crc32c::crc32c(&magic), &header) != checksum {
        return Err(StateError::Damaged { at: (MAGIC.len() + HEADER + 4) as u64 });
    }
    Ok((header, checksum))
}

/// Unwraps the [`StateError`] that a frame reader wrapped in an I/O error.
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
