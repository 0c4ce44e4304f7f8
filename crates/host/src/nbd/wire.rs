//! The numbers of the NBD protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md). All are big-endian on the wire.
//!
//! Modules `negotiate`, `request` and `answer` use these numbers.

#![allow(missing_docs, reason = "the names are those of the protocol")]

/// `NBDMAGIC`, the start of the server's greeting.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`, in the greeting of newstyle and before each option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Magic number before each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number before each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number before each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic number before each chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// The maximum length of a string in bytes.
pub const MAX_STRING: usize = 4096;
/// The maximum data of a request or reply, in bytes.
pub const MAX_PAYLOAD: u32 = 32 << 20;
/// Length of a request header in bytes.
pub const REQUEST_BYTES: usize = 28;

/// Handshake flags, in the server's greeting and in the client's answer.
pub mod handshake {
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// Omit the 124 zeroes after an export by name.
    pub const NO_ZEROES: u16 = 2;
}

/// Options a client may send.
pub mod option {
    /// Choose an export and begin. A failure has no reply.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    /// Switch to TLS.
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options.
pub mod reply {
    /// Success, and end of the replies.
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// The client must ask for block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = (1 << 31) + 8;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Kinds of information on an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    /// Block sizes: minimum, preferred, largest payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: the features of an export.
pub mod transmission {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Supports DF on reads; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the answered writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    /// End the session. No reply.
    pub const DISC: u16 = 2;
    /// Make answered writes durable.
    pub const FLUSH: u16 = 3;
    /// The range is no longer needed.
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command.
pub mod flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1;
    /// Zeroes must be allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Reply to a read in one chunk.
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fail if zeroing is not faster than a write.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of a structured reply.
pub mod chunk {
    /// Flag of the last chunk.
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// The metadata context of allocation.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The number of `base:allocation` in this server.
pub const BASE_ALLOCATION_ID: u32 = 1;

/// States of `base:allocation`.
pub mod state {
    pub const HOLE: u32 = 1;
    pub const ZERO: u32 = 2;
}

/// Errors of replies.
pub mod error {
    pub const EPERM: u32 = 1;
    pub const EIO: u32 = 5;
    pub const ENOMEM: u32 = 12;
    pub const EINVAL: u32 = 22;
    /// Past the end of the export, for changes.
    pub const ENOSPC: u32 = 28;
    /// The reply does not fit one chunk.
    pub const EOVERFLOW: u32 = 75;
    /// Not supported, such as fast zeroes.
    pub const ENOTSUP: u32 = 95;
    pub const ESHUTDOWN: u32 = 108;
}
