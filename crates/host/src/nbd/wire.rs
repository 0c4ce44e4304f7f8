//! The numbers of the NBD protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md). All are big-endian on the wire.
//!
//! Not here: what they mean to each phase, which stands in `negotiate` and `transmission`.

/// `NBDMAGIC`, the first thing a server says.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: fixed newstyle; before each option too.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before each chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// The longest string: names of exports, descriptions, queries.
pub const MAX_STRING: usize = 4096;
/// The most data in one request or reply.
pub const MAX_PAYLOAD: u32 = 32 << 20;
/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;

/// Handshake flags, from the server and back.
pub mod handshake {
    /// Fixed newstyle.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// No 124 zeroes after an export by name.
    pub const NO_ZEROES: u16 = 2;
}

/// Options a client may send.
pub mod option {
    /// Choose an export and begin; has no reply where it fails.
    pub const EXPORT_NAME: u32 = 1;
    /// Go away.
    pub const ABORT: u32 = 2;
    /// Which exports there are.
    pub const LIST: u32 = 3;
    /// Go on in TLS.
    pub const STARTTLS: u32 = 5;
    /// What an export is like.
    pub const INFO: u32 = 6;
    /// Choose an export and begin.
    pub const GO: u32 = 7;
    /// Replies come in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Which metadata contexts there are.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Requests and replies with long lengths.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// A piece of information on an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    /// Not allowed.
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    /// The request is wrong.
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    /// Not on this platform.
    pub const ERR_PLATFORM: u32 = (1 << 31) + 4;
    /// TLS first.
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// The server is going away.
    pub const ERR_SHUTDOWN: u32 = (1 << 31) + 7;
    /// Ask for block sizes first.
    pub const ERR_BLOCK_SIZE_REQD: u32 = (1 << 31) + 8;
    /// More than the server takes.
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Kinds of information on an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// A line for people.
    pub const DESCRIPTION: u16 = 2;
    /// Block sizes: minimum, preferred, largest payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod transmission {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1;
    /// Nothing may be changed.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Knows FLUSH.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Knows FUA.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Seeks cost time.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// Knows TRIM.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Knows WRITE_ZEROES.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Knows DF on reads; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// Several connections see the same: a flush on one covers what was answered on any.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Knows CACHE.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// Knows FAST_ZERO.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Go away; has no reply.
    pub const DISC: u16 = 2;
    /// Make durable what was answered.
    pub const FLUSH: u16 = 3;
    /// The range holds nothing of worth.
    pub const TRIM: u16 = 4;
    /// Fetch the range early.
    pub const CACHE: u16 = 5;
    /// Zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// What is allocated.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command.
pub mod flag {
    /// Durable before the answer.
    pub const FUA: u16 = 1;
    /// Zeroes must not become a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The read in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only where that is faster than a write.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of a structured reply.
pub mod chunk {
    /// The last one.
    pub const DONE: u16 = 1;
    /// Nothing but the end.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The metadata context of holes and zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The number this server gives it.
pub const BASE_ALLOCATION_ID: u32 = 1;

/// States of `base:allocation`.
pub mod state {
    /// Nothing is allocated.
    pub const HOLE: u32 = 1;
    /// Reads as zeroes.
    pub const ZERO: u32 = 2;
}

/// Errors of replies.
pub mod error {
    /// Not permitted.
    pub const EPERM: u32 = 1;
    /// Input or output.
    pub const EIO: u32 = 5;
    /// No memory.
    pub const ENOMEM: u32 = 12;
    /// Wrong request.
    pub const EINVAL: u32 = 22;
    /// Past the end of the export, for what changes it.
    pub const ENOSPC: u32 = 28;
    /// The answer does not fit one chunk.
    pub const EOVERFLOW: u32 = 75;
    /// Not supported: zeroes are not faster than a write.
    pub const ENOTSUP: u32 = 95;
    /// The server is going away.
    pub const ESHUTDOWN: u32 = 108;
}
