//! A request of the transmission phase: its header and its validation ([`Header`], [`Command`]).
//!
//! Error numbers follow the protocol: `ENOSPC` for a write past the end, `EPERM` for a change of a read-only export,
//! and `EINVAL` for all other faults. The payload of a write follows the header and is not part of it.

use super::wire::{MAX_PAYLOAD, REQUEST_BYTES, REQUEST_MAGIC, command, error, flag};
use super::{Agreed, Export};

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Flags of the command.
    pub flags: u16,
    /// The command.
    pub kind: u16,
    /// The client's number of the request.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl Header {
    /// Parses a header; `None` if its magic number is wrong.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Header> {
        let number = |from: usize, length: usize| {
            bytes[from..from + length].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        (number(0, 4) == u64::from(REQUEST_MAGIC)).then(|| Header {
            flags: number(4, 2) as u16,
            kind: number(6, 2) as u16,
            cookie: number(8, 8),
            offset: number(16, 8),
            length: number(24, 4) as u32,
        })
    }

    /// The bytes of the header.
    pub fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Length of the payload in bytes.
    pub fn payload(&self) -> u32 {
        if self.kind == command::WRITE { self.length } else { 0 }
    }

    /// Validates the request.
    ///
    /// # Errors
    /// An error number of the protocol.
    pub fn command(&self, export: &Export, agreed: &Agreed) -> Result<Command, u32> {
        let Header { flags, kind, offset, length, .. } = *self;
        let Agreed { structured, base_allocation, block_sizes, .. } = *agreed;
        let fua = flags & flag::FUA != 0;
        let (allowed, command) = match kind {
            command::READ => (if structured { flag::DF } else { 0 }, Command::Read),
            command::WRITE => (0, Command::Write { fua }),
            command::DISC => return Ok(Command::Disconnect),
            command::FLUSH => (0, Command::Flush),
            command::TRIM => (0, Command::Trim { fua }),
            command::CACHE => (0, Command::Cache),
            command::WRITE_ZEROES => {
                let (hole, fast) = (flags & flag::NO_HOLE == 0, flags & flag::FAST_ZERO != 0);
                (flag::NO_HOLE | flag::FAST_ZERO, Command::WriteZeroes { fua, hole, fast })
            }
            command::BLOCK_STATUS if base_allocation => {
                (flag::REQ_ONE, Command::BlockStatus { one: flags & flag::REQ_ONE != 0 })
            }
            _ => return Err(error::EINVAL),
        };
        // All commands may have FUA, which has no effect on commands that change nothing.
        if flags & !(allowed | flag::FUA) != 0 {
            return Err(error::EINVAL);
        }
        if kind == command::FLUSH {
            return Ok(command);
        }
        let changes = matches!(kind, command::WRITE | command::TRIM | command::WRITE_ZEROES);
        if changes && export.read_only {
            return Err(error::EPERM);
        }
        if offset.checked_add(u64::from(length)).is_none_or(|end| end > export.size) {
            let grows = matches!(kind, command::WRITE | command::WRITE_ZEROES);
            return Err(if grows { error::ENOSPC } else { error::EINVAL });
        }
        let block = u64::from(export.minimum_block);
        let whole = offset.is_multiple_of(block) && u64::from(length).is_multiple_of(block);
        let too_long = matches!(kind, command::READ | command::WRITE) && length > MAX_PAYLOAD;
        // A client that does not know the block size may use any offset and length.
        if length == 0 || block_sizes && !whole || too_long {
            return Err(error::EINVAL);
        }
        match command {
            // Allocated zeroes and partial blocks are as slow as a write.
            Command::WriteZeroes { hole, fast: true, .. } if !(hole && whole) => Err(error::ENOTSUP),
            Command::WriteZeroes { fua, fast, .. } if !whole => {
                Ok(Command::WriteZeroes { fua, hole: false, fast })
            }
            command => Ok(command),
        }
    }
}

/// A valid command; its range is in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read,
    /// Write the payload.
    Write {
        /// Make the write durable before the reply.
        fua: bool,
    },
    /// End the session.
    Disconnect,
    /// Make answered writes durable.
    Flush,
    /// The range is no longer needed.
    Trim {
        /// Make the trim durable before the reply.
        fua: bool,
    },
    /// Prefetch the range.
    Cache,
    /// Write zeroes.
    WriteZeroes {
        /// Make the zeroes durable before the reply.
        fua: bool,
        /// The range may become unallocated.
        hole: bool,
        /// Fail if zeroing is not faster than a write.
        fast: bool,
    },
    /// Report the allocation.
    BlockStatus {
        /// One extent only.
        one: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_get_the_errors_of_the_protocol() {
        let export = |read_only| Export {
            name: String::new(),
            description: String::new(),
            size: 1 << 20,
            minimum_block: 512,
            preferred_block: 4096,
            read_only,
            rotational: false,
        };
        let ask = |kind, flags, offset, length, read_only, structured| {
            let agreed = Agreed { export: 0, structured, base_allocation: true, block_sizes: true };
            Header { flags, kind, cookie: 7, offset, length }.command(&export(read_only), &agreed)
        };
        let ok = |kind, flags| ask(kind, flags, 4096, 512, false, true);
        assert_eq!(ok(command::READ, flag::FUA | flag::DF), Ok(Command::Read));
        assert_eq!(ok(command::WRITE, flag::FUA), Ok(Command::Write { fua: true }));
        assert_eq!(ok(command::CACHE, flag::FUA), Ok(Command::Cache));
        assert_eq!(ok(command::BLOCK_STATUS, flag::REQ_ONE), Ok(Command::BlockStatus { one: true }));
        assert_eq!(ok(command::FLUSH, flag::FUA), Ok(Command::Flush));
        for (kind, flags, offset, length, read_only, structured, expected) in [
            (command::READ, flag::DF, 0, 512, false, false, error::EINVAL),
            (command::READ, 0, 1 << 20, 512, false, true, error::EINVAL),
            (command::READ, 0, u64::MAX - 511, 512, false, true, error::EINVAL),
            (command::READ, 0, 0, 0, false, true, error::EINVAL),
            (command::READ, 0, 100, 512, false, true, error::EINVAL),
            (command::WRITE, flag::NO_HOLE, 0, 512, false, true, error::EINVAL),
            (command::WRITE, 0, 0, 512, true, true, error::EPERM),
            (command::WRITE, 0, 1 << 20, 512, false, true, error::ENOSPC),
            (command::WRITE_ZEROES, 0, (1 << 20) - 512, 1024, false, true, error::ENOSPC),
            (command::WRITE_ZEROES, flag::NO_HOLE | flag::FAST_ZERO, 0, 512, false, true, error::ENOTSUP),
            (command::TRIM, 0, 1 << 20, 512, false, true, error::EINVAL),
            (command::TRIM, 0, 0, 512, true, true, error::EPERM),
            (99, 0, 0, 512, false, true, error::EINVAL),
        ] {
            let found = ask(kind, flags, offset, length, read_only, structured);
            assert_eq!(found, Err(expected), "{kind} {flags} {offset} {length}");
        }
        // A client that does not know the block size may use any offset and length.
        let untold = Agreed { export: 0, structured: false, base_allocation: false, block_sizes: false };
        let any = |kind, flags| {
            Header { flags, kind, cookie: 7, offset: 100, length: 3 }.command(&export(false), &untold)
        };
        assert_eq!(any(command::READ, 0), Ok(Command::Read));
        let zeroes = Command::WriteZeroes { fua: false, hole: false, fast: false };
        assert_eq!(any(command::WRITE_ZEROES, 0), Ok(zeroes), "partial blocks are written");
        assert_eq!(any(command::WRITE_ZEROES, flag::FAST_ZERO), Err(error::ENOTSUP));
    }

    #[test]
    fn a_header_reads_as_it_was_written() {
        let header = Header { flags: 3, kind: 6, cookie: u64::MAX - 1, offset: 1 << 40, length: 4096 };
        let mut bytes = header.bytes();
        assert_eq!(Header::parse(&bytes), Some(header));
        bytes[0] ^= 1;
        assert_eq!(Header::parse(&bytes), None);
    }
}
