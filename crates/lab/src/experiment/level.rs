//! Factors of a sweep and their levels.
//!
//! A [`Level`] is checked when it is read, so a swept value and a value of `[workload]` obey the same limits. Lists
//! and ranges of levels are in module `sweep`, and the settings that a level changes in module `step`.

use super::load::{Pattern, Sync};
use super::prepare::Filesystem;
use super::read::Entry;
use super::target;
use lowtide_core::{Bytes, Nanos};
use lowtide_engines::{Durability, Engine};
use lowtide_record::{FactorLevel, LevelKind};
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! factors {
    ($($(#[$doc:meta])* $variant:ident($type:ty) = $name:literal),+ $(,)?) => {
        /// The name of a factor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum FactorName {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        /// One value of a factor.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Level {
            $($(#[$doc])* #[serde(rename = $name)] $variant($type),)+
        }

        impl FactorName {
            /// Every factor's name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
            /// Every factor's name, each followed by a space.
            pub(super) const WORDS: &'static str = concat!($($name, " "),+);

            /// The name as written.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FactorName::$variant => $name,)+
                }
            }

            /// The factor with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(FactorName::$variant),)+
                    _ => None,
                }
            }

            /// The kind of its levels.
            pub fn kind(self) -> LevelKind {
                match self {
                    $(FactorName::$variant => <$type as Value>::KIND,)+
                }
            }

            /// The level with the value `raw`, which must have the factor's kind.
            fn level_of(self, raw: Raw) -> Level {
                match self {
                    $(FactorName::$variant => Level::$variant(Value::from_raw(raw)),)+
                }
            }
        }

        impl Level {
            /// The factor of the level.
            pub const fn factor(&self) -> FactorName {
                match self {
                    $(Level::$variant(_) => FactorName::$variant,)+
                }
            }
        }

        /// The value as written: `10GiB`, `random-write`, `0.83`.
        impl fmt::Display for Level {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Level::$variant(value) => value.fmt(f),)+
                }
            }
        }
    };
}

/// The type of the value of a level.
trait Value: Sized {
    const KIND: LevelKind;

    /// The value of a number.
    fn from_raw(raw: Raw) -> Self {
        unreachable!("{raw:?} is not a {:?}", Self::KIND)
    }
}

macro_rules! values {
    ($($type:ty: $kind:ident $(= $raw:ident($number:ident) => $value:expr)?;)+) => {$(
        impl Value for $type {
            const KIND: LevelKind = LevelKind::$kind;
            $(
                fn from_raw(raw: Raw) -> Self {
                    match raw {
                        Raw::$raw($number) => $value,
                        other => unreachable!("{other:?} is not a {:?}", Self::KIND),
                    }
                }
            )?
        }
    )+};
}

values! {
    Bytes: Size = Whole(number) => Bytes::new(number);
    Nanos: Time = Whole(number) => Nanos::new(number);
    u32: Count = Whole(number) => number as u32;
    f64: Number = Fraction(number) => number;
    bool: Flag;
    String: Word;
    Pattern: Word;
    Sync: Word;
    Filesystem: Word;
    Engine: Word;
    Durability: Word;
}

factors! {
    /// Bytes of data under test.
    FileSize(Bytes) = "file_size",
    /// The data as a share of the space for data.
    Utilisation(f64) = "utilisation",
    /// Threads that issue requests.
    Threads(u32) = "threads",
    /// Requests that each thread keeps in flight.
    Depth(u32) = "depth",
    /// Bytes of each request.
    Block(Bytes) = "block",
    /// The access pattern.
    Pattern(Pattern) = "pattern",
    /// The share of requests that read, for a mixed pattern.
    Mix(f64) = "mix",
    /// The exponent of the Zipf distribution of addresses.
    Zipf(f64) = "zipf",
    /// The share of the capacity that the host leaves unused.
    Reserve(f64) = "reserve",
    /// The partition made on the device.
    Partition(Bytes) = "partition",
    /// Idle time of the target before the measurement.
    Idle(Nanos) = "idle",
    /// Idle time of the target after each burst of a load.
    Pause(Nanos) = "pause",
    /// Data files of a database.
    DataFiles(u32) = "data_files",
    /// The simulated device.
    Device(String) = "device",
    /// Sequential streams.
    Streams(u32) = "streams",
    /// When a write counts as complete.
    Sync(Sync) = "sync",
    /// Requests per second of an open loop.
    Rate(f64) = "rate",
    /// The filesystem made on the device.
    Filesystem(Filesystem) = "filesystem",
    /// The mount options of the filesystem.
    MountOptions(String) = "mount_options",
    /// The I/O scheduler of a real device.
    Scheduler(String) = "scheduler",
    /// The database.
    Engine(Engine) = "engine",
    /// The directory of the server's programs, which selects its version.
    Programs(String) = "programs",
    /// Warehouses of TPC-C.
    Warehouses(u32) = "warehouses",
    /// Terminals that run transactions.
    Terminals(u32) = "terminals",
    /// Concurrent servers, which share the warehouses and the terminals.
    Instances(u32) = "instances",
    /// Buffer pool of each instance.
    BufferPool(Bytes) = "buffer_pool",
    /// The durability that a commit waits for.
    Durability(Durability) = "durability",
    /// The method of writing data files.
    FlushMethod(String) = "flush_method",
    /// Whether pages are protected against torn writes.
    Doublewrite(bool) = "doublewrite",
    /// Whether neighbouring dirty pages are written with a page.
    FlushNeighbours(bool) = "flush_neighbours",
    /// Page writes per second of which the server assumes its device capable.
    IoCapacity(u32) = "io_capacity",
    /// Pages read ahead.
    ReadAhead(u32) = "read_ahead",
    /// Bytes of log before a checkpoint.
    LogSize(Bytes) = "log_size",
    /// The simulated device of the log, if it differs from the device of the data.
    LogDevice(String) = "log_device",
}

impl From<&Level> for FactorLevel {
    fn from(level: &Level) -> Self {
        let factor = level.factor();
        FactorLevel { name: factor.name().to_owned(), level: level.to_string(), kind: factor.kind() }
    }
}

/// Converts a factor that was recorded without the kind of its levels.
pub fn untyped(name: &str, level: String) -> FactorLevel {
    let kind = FactorName::from_name(name).map_or_else(|| LevelKind::of_text(&level), FactorName::kind);
    FactorLevel { name: name.to_owned(), level, kind }
}

/// Returns whether `factors` are the factors of a cell at `point`.
pub fn is_at(factors: &[FactorLevel], point: &[Level]) -> bool {
    point.len() == factors.len()
        && point.iter().zip(factors).all(|(level, factor)| level.to_string() == factor.level)
}

impl fmt::Display for FactorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The number of a level: a whole number (bytes, nanoseconds or a count) or a fraction.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Raw {
    Whole(u64),
    Fraction(f64),
}

/// The fault of a number that its factor does not accept, and the accepted numbers.
pub(super) struct Fault(pub(super) String, pub(super) &'static str);

impl FactorName {
    /// Reads a level from a single value.
    pub(super) fn read(self, entry: &Entry<'_>) -> Option<Level> {
        match self {
            FactorName::Pattern => entry.word().map(Level::Pattern),
            FactorName::Sync => entry.word().map(Level::Sync),
            FactorName::Device => target::device(entry).map(Level::Device),
            FactorName::Filesystem => entry.word().map(Level::Filesystem),
            FactorName::MountOptions => entry.text("\"noatime\"").map(Level::MountOptions),
            FactorName::Scheduler => entry.text("\"none\"").map(Level::Scheduler),
            FactorName::Engine => entry.word().map(Level::Engine),
            FactorName::Durability => entry.word().map(Level::Durability),
            FactorName::Programs => entry.text("\"/opt/mysql/bin\"").map(Level::Programs),
            FactorName::FlushMethod => entry.text("\"O_DIRECT\"").map(Level::FlushMethod),
            FactorName::LogDevice => target::device(entry).map(Level::LogDevice),
            FactorName::Doublewrite => entry.boolean().map(Level::Doublewrite),
            FactorName::FlushNeighbours => entry.boolean().map(Level::FlushNeighbours),
            _ => {
                let raw = self.raw(entry)?;
                match self.level(raw) {
                    Ok(level) => Some(level),
                    Err(Fault(fault, accepted)) => entry.refuse(fault, accepted),
                }
            }
        }
    }

    /// Reads `block`, or the size of one of several blocks.
    pub(super) fn read_block(entry: &Entry<'_>) -> Option<Bytes> {
        match FactorName::Block.read(entry)? {
            Level::Block(block) => Some(block),
            other => unreachable!("{other:?} is not a block"),
        }
    }

    /// Returns whether a level is understood without the factor's name: `10GiB`, but not `4`.
    pub(super) fn names_itself(self) -> bool {
        self == FactorName::FileSize || self.kind() == LevelKind::Word
    }

    /// Returns whether the levels are numbers, so that a range can give them.
    pub(super) fn is_numeric(self) -> bool {
        !matches!(self.kind(), LevelKind::Word | LevelKind::Flag)
    }

    /// Reads a number of the factor's kind.
    pub(super) fn raw(self, entry: &Entry<'_>) -> Option<Raw> {
        match self.kind() {
            LevelKind::Size => entry.bytes().map(|bytes| Raw::Whole(bytes.get())),
            LevelKind::Time => entry.nanos().map(|span| Raw::Whole(span.get())),
            LevelKind::Count => {
                let number = entry.integer()?;
                match u64::try_from(number) {
                    Ok(number) => Some(Raw::Whole(number)),
                    Err(_) => entry.refuse(format!("{number} is below 0"), "a whole number from 1"),
                }
            }
            LevelKind::Number | LevelKind::Word | LevelKind::Flag => entry.number("0.5").map(Raw::Fraction),
        }
    }

    /// The level with the number `raw`, if it is within the factor's limits.
    pub(super) fn level(self, raw: Raw) -> Result<Level, Fault> {
        const BLOCKS: &str = "a multiple of 512 bytes above 0, such as `\"4KiB\"` or `\"16KiB\"`";
        let out_of_range = |number: u64| format!("{number} is out of range");
        let (is_within, fault, accepted) = match (self, raw) {
            (FactorName::Idle | FactorName::Pause, Raw::Whole(_)) => (true, String::new(), ""),
            (FactorName::FileSize, Raw::Whole(size)) => {
                (size > 0, "no data at all".to_owned(), "a size above 0, such as `\"10GiB\"`")
            }
            (FactorName::Partition, Raw::Whole(size)) => {
                (size > 0, "a partition of no bytes".to_owned(), "a size above 0, such as `\"120GB\"`")
            }
            (FactorName::Block, Raw::Whole(0)) => (false, "a block of no bytes".to_owned(), BLOCKS),
            (FactorName::Block, Raw::Whole(size)) => {
                let fault = format!("{} is not a multiple of 512 bytes", Bytes::new(size));
                (size.is_multiple_of(512), fault, BLOCKS)
            }
            (FactorName::BufferPool | FactorName::LogSize, Raw::Whole(size)) => {
                let fault = format!("{} is too small", Bytes::new(size));
                (size >= 1 << 20, fault, "a size from `\"1MiB\"` on, such as `\"1GiB\"`")
            }
            (FactorName::ReadAhead, Raw::Whole(pages)) => {
                (pages <= 1_000, out_of_range(pages), "a whole number from 0 to 1000")
            }
            (FactorName::IoCapacity, Raw::Whole(writes)) => {
                let is_within = (100..=10_000_000).contains(&writes);
                (is_within, out_of_range(writes), "page writes per second from 100 on")
            }
            (_, Raw::Whole(count)) => {
                let is_within = (1..=65_536).contains(&count);
                (is_within, out_of_range(count), "a whole number from 1 to 65536")
            }
            (FactorName::Utilisation, Raw::Fraction(share)) => {
                let accepted = "the share of the room for data that holds data, above 0 and up to 1";
                (share > 0.0 && share <= 1.0, format!("{share} is not such a share"), accepted)
            }
            (FactorName::Mix, Raw::Fraction(share)) => {
                let is_within = (0.0..=1.0).contains(&share);
                (is_within, format!("{share} is not a share"), "the share of reads, from 0 to 1")
            }
            (FactorName::Reserve, Raw::Fraction(share)) => {
                let accepted = "the share of the capacity left unused, from 0 to below 1";
                ((0.0..1.0).contains(&share), format!("{share} is not a share"), accepted)
            }
            (FactorName::Zipf, Raw::Fraction(exponent)) => {
                let fault = format!("{exponent} is not an exponent");
                (exponent > 0.0, fault, "an exponent above 0, such as `1.1`")
            }
            (_, Raw::Fraction(rate)) => {
                let fault = format!("{rate} is not a rate");
                (rate > 0.0, fault, "requests per second above 0, such as `1000`")
            }
        };
        if is_within { Ok(self.level_of(raw)) } else { Err(Fault(fault, accepted)) }
    }
}

impl Level {
    /// The value as a number: bytes, nanoseconds, a count or a fraction; `None` for words and flags.
    pub fn number(&self) -> Option<f64> {
        FactorLevel::from(self).number()
    }
}
