//! Factors and their levels: what a sweep varies, and one value of it.
//!
//! A [`Level`] is checked when it is made, so a swept value and the base value of `[workload]` obey the same
//! limits. Not here: how levels are listed (`sweep`) and what they change (`settings`).

use super::error::Problems;
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

            /// The name as written.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FactorName::$variant => $name,)+
                }
            }

            /// The factor of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(FactorName::$variant),)+
                    _ => None,
                }
            }
        }

        impl Level {
            /// The factor it is a value of.
            pub const fn factor(&self) -> FactorName {
                match self {
                    $(Level::$variant(_) => FactorName::$variant,)+
                }
            }
        }

        /// The value as it is written: `10GiB`, `random-write`, `0.83`.
        impl fmt::Display for Level {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Level::$variant(value) => value.fmt(f),)+
                }
            }
        }
    };
}

factors! {
    /// Bytes of data under test.
    FileSize(Bytes) = "file_size",
    /// The share of the room for data that holds data.
    Utilisation(f64) = "utilisation",
    /// Threads that issue requests.
    Threads(u32) = "threads",
    /// Requests each thread keeps in flight.
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
    /// How long the target is left alone before the measurement.
    Idle(Nanos) = "idle",
    /// How long the target is left alone after each burst of a load.
    Pause(Nanos) = "pause",
    /// Data files of a database.
    DataFiles(u32) = "data_files",
    /// The simulated device.
    Device(String) = "device",
    /// Sequential streams.
    Streams(u32) = "streams",
    /// When a write counts as done.
    Sync(Sync) = "sync",
    /// Requests per second of an open loop.
    Rate(f64) = "rate",
    /// The file system made on the device.
    Filesystem(Filesystem) = "filesystem",
    /// The options it is mounted with.
    MountOptions(String) = "mount_options",
    /// The I/O scheduler of a real device.
    Scheduler(String) = "scheduler",
    /// The database.
    Engine(Engine) = "engine",
    /// The directory of the server's programs: another version.
    Programs(String) = "programs",
    /// Warehouses of TPC-C.
    Warehouses(u32) = "warehouses",
    /// Terminals that ask the database.
    Terminals(u32) = "terminals",
    /// Servers side by side, which share the warehouses and the terminals.
    Instances(u32) = "instances",
    /// Memory for pages, of each instance.
    BufferPool(Bytes) = "buffer_pool",
    /// What a commit waits for.
    Durability(Durability) = "durability",
    /// How data files are written.
    FlushMethod(String) = "flush_method",
    /// Whether pages are protected against torn writes.
    Doublewrite(bool) = "doublewrite",
    /// Whether neighbouring dirty pages are written with a page.
    FlushNeighbours(bool) = "flush_neighbours",
    /// Page writes per second that a server takes its device for.
    IoCapacity(u32) = "io_capacity",
    /// Pages read ahead.
    ReadAhead(u32) = "read_ahead",
    /// Bytes of log before a checkpoint.
    LogSize(Bytes) = "log_size",
    /// The simulated device that the log lies on, where that is another than the data's.
    LogDevice(String) = "log_device",
}

impl From<&Level> for FactorLevel {
    fn from(level: &Level) -> Self {
        let factor = level.factor();
        FactorLevel { name: factor.name().to_owned(), level: level.to_string(), kind: factor.kind() }
    }
}

/// A factor that was recorded without the kind of its levels.
pub fn untyped(name: &str, level: String) -> FactorLevel {
    let kind = FactorName::from_name(name).map_or_else(|| LevelKind::of_text(&level), FactorName::kind);
    FactorLevel { name: name.to_owned(), level, kind }
}

/// Whether these are the factors of a cell at `point`.
pub fn is_at(factors: &[FactorLevel], point: &[Level]) -> bool {
    point.len() == factors.len()
        && point.iter().zip(factors).all(|(level, factor)| level.to_string() == factor.level)
}

impl fmt::Display for FactorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A number that becomes a level.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Raw {
    Size(u64),
    Time(u64),
    Count(u64),
    Number(f64),
}

/// Why a number is not a level: what is wrong, and what is accepted.
pub(super) struct Fault(pub(super) String, pub(super) &'static str);

impl FactorName {
    /// Reads a level from a single value.
    pub(super) fn read(self, entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Level> {
        match self {
            FactorName::Pattern => entry.word(problems).map(Level::Pattern),
            FactorName::Sync => entry.word(problems).map(Level::Sync),
            FactorName::Device => target::device(entry, problems).map(Level::Device),
            FactorName::Filesystem => entry.word(problems).map(Level::Filesystem),
            FactorName::MountOptions => entry.text("\"noatime\"", problems).map(Level::MountOptions),
            FactorName::Scheduler => entry.text("\"none\"", problems).map(Level::Scheduler),
            FactorName::Engine => entry.word(problems).map(Level::Engine),
            FactorName::Durability => entry.word(problems).map(Level::Durability),
            FactorName::Programs => entry.text("\"/opt/mysql/bin\"", problems).map(Level::Programs),
            FactorName::FlushMethod => entry.text("\"O_DIRECT\"", problems).map(Level::FlushMethod),
            FactorName::LogDevice => target::device(entry, problems).map(Level::LogDevice),
            FactorName::Doublewrite => entry.boolean(problems).map(Level::Doublewrite),
            FactorName::FlushNeighbours => entry.boolean(problems).map(Level::FlushNeighbours),
            _ => {
                let raw = self.raw(entry, problems)?;
                match self.level(raw) {
                    Ok(level) => Some(level),
                    Err(Fault(fault, accepted)) => entry.refuse(fault, accepted, problems),
                }
            }
        }
    }

    /// Whether people know from a level alone what it is a level of: `10GiB`, but not `4`.
    pub(super) fn names_itself(self) -> bool {
        match self {
            FactorName::FileSize => true,
            FactorName::Doublewrite | FactorName::FlushNeighbours => false,
            _ => !self.is_numeric(),
        }
    }

    /// Whether its levels are numbers, so that a range of them makes sense.
    pub(super) fn is_numeric(self) -> bool {
        !matches!(self.kind(), LevelKind::Word | LevelKind::Flag)
    }

    /// What its levels are.
    pub fn kind(self) -> LevelKind {
        match self {
            FactorName::Pattern
            | FactorName::Sync
            | FactorName::Device
            | FactorName::Filesystem
            | FactorName::MountOptions
            | FactorName::Scheduler
            | FactorName::Engine
            | FactorName::Durability
            | FactorName::Programs
            | FactorName::FlushMethod
            | FactorName::LogDevice => LevelKind::Word,
            FactorName::Doublewrite | FactorName::FlushNeighbours => LevelKind::Flag,
            FactorName::FileSize
            | FactorName::Block
            | FactorName::Partition
            | FactorName::BufferPool
            | FactorName::LogSize => LevelKind::Size,
            FactorName::Idle | FactorName::Pause => LevelKind::Time,
            FactorName::Threads
            | FactorName::Depth
            | FactorName::Streams
            | FactorName::DataFiles
            | FactorName::Warehouses
            | FactorName::Terminals
            | FactorName::Instances
            | FactorName::IoCapacity
            | FactorName::ReadAhead => LevelKind::Count,
            FactorName::Utilisation
            | FactorName::Mix
            | FactorName::Zipf
            | FactorName::Reserve
            | FactorName::Rate => LevelKind::Number,
        }
    }

    /// Reads a number of the kind this factor takes.
    pub(super) fn raw(self, entry: &Entry<'_>, problems: &mut Problems<'_>) -> Option<Raw> {
        match self.kind() {
            LevelKind::Size => entry.bytes(problems).map(|bytes| Raw::Size(bytes.get())),
            LevelKind::Time => entry.nanos(problems).map(|span| Raw::Time(span.get())),
            LevelKind::Count => {
                let number = entry.integer(problems)?;
                match u64::try_from(number) {
                    Ok(number) => Some(Raw::Count(number)),
                    Err(_) => entry.refuse(format!("{number} is below 0"), "a whole number from 1", problems),
                }
            }
            LevelKind::Number | LevelKind::Word | LevelKind::Flag => {
                entry.number("0.5", problems).map(Raw::Number)
            }
        }
    }

    /// The level of that number, if it is within the factor's limits.
    pub(super) fn level(self, raw: Raw) -> Result<Level, Fault> {
        let require =
            |fine: bool, fault: String, accepted| if fine { Ok(()) } else { Err(Fault(fault, accepted)) };
        match (self, raw) {
            (FactorName::FileSize, Raw::Size(size)) => {
                require(size > 0, "no data at all".to_owned(), "a size above 0, such as `\"10GiB\"`")?;
                Ok(Level::FileSize(Bytes::new(size)))
            }
            (FactorName::Utilisation, Raw::Number(share)) => {
                let accepted = "the share of the room for data that holds data, above 0 and up to 1";
                require(share > 0.0 && share <= 1.0, format!("{share} is not such a share"), accepted)?;
                Ok(Level::Utilisation(share))
            }
            (FactorName::Partition, Raw::Size(size)) => {
                require(
                    size > 0,
                    "a partition of no bytes".to_owned(),
                    "a size above 0, such as `\"120GB\"`",
                )?;
                Ok(Level::Partition(Bytes::new(size)))
            }
            (FactorName::Idle, Raw::Time(span)) => Ok(Level::Idle(Nanos::new(span))),
            (FactorName::Pause, Raw::Time(span)) => Ok(Level::Pause(Nanos::new(span))),
            (FactorName::Block, Raw::Size(size)) => {
                let accepted = "a multiple of 512 bytes above 0, such as `\"4KiB\"` or `\"16KiB\"`";
                require(size > 0, "a block of no bytes".to_owned(), accepted)?;
                let fault = format!("{} is not a multiple of 512 bytes", Bytes::new(size));
                require(size.is_multiple_of(512), fault, accepted)?;
                Ok(Level::Block(Bytes::new(size)))
            }
            (FactorName::BufferPool | FactorName::LogSize, Raw::Size(size)) => {
                let fine = size >= 1 << 20;
                let accepted = "a size from `\"1MiB\"` on, such as `\"1GiB\"`";
                require(fine, format!("{} is too small", Bytes::new(size)), accepted)?;
                Ok(match self {
                    FactorName::BufferPool => Level::BufferPool(Bytes::new(size)),
                    _ => Level::LogSize(Bytes::new(size)),
                })
            }
            (FactorName::ReadAhead, Raw::Count(count)) => {
                let fine = count <= 1_000;
                require(fine, format!("{count} is out of range"), "a whole number from 0 to 1000")?;
                Ok(Level::ReadAhead(count as u32))
            }
            (FactorName::IoCapacity, Raw::Count(count)) => {
                let fine = (100..=10_000_000).contains(&count);
                require(fine, format!("{count} is out of range"), "page writes per second from 100 on")?;
                Ok(Level::IoCapacity(count as u32))
            }
            (
                FactorName::Threads
                | FactorName::Depth
                | FactorName::Streams
                | FactorName::DataFiles
                | FactorName::Warehouses
                | FactorName::Terminals
                | FactorName::Instances,
                Raw::Count(count),
            ) => {
                let fine = (1..=65_536).contains(&count);
                require(fine, format!("{count} is out of range"), "a whole number from 1 to 65536")?;
                let count = count as u32;
                Ok(match self {
                    FactorName::Threads => Level::Threads(count),
                    FactorName::Depth => Level::Depth(count),
                    FactorName::DataFiles => Level::DataFiles(count),
                    FactorName::Warehouses => Level::Warehouses(count),
                    FactorName::Terminals => Level::Terminals(count),
                    FactorName::Instances => Level::Instances(count),
                    _ => Level::Streams(count),
                })
            }
            (FactorName::Mix, Raw::Number(share)) => {
                let fine = (0.0..=1.0).contains(&share);
                require(fine, format!("{share} is not a share"), "the share of reads, from 0 to 1")?;
                Ok(Level::Mix(share))
            }
            (FactorName::Zipf, Raw::Number(exponent)) => {
                let fine = exponent > 0.0;
                require(
                    fine,
                    format!("{exponent} is not an exponent"),
                    "an exponent above 0, such as `1.1`",
                )?;
                Ok(Level::Zipf(exponent))
            }
            (FactorName::Reserve, Raw::Number(share)) => {
                let fine = (0.0..1.0).contains(&share);
                let accepted = "the share of the capacity left unused, from 0 to below 1";
                require(fine, format!("{share} is not a share"), accepted)?;
                Ok(Level::Reserve(share))
            }
            (FactorName::Rate, Raw::Number(rate)) => {
                let fine = rate > 0.0;
                require(
                    fine,
                    format!("{rate} is not a rate"),
                    "requests per second above 0, such as `1000`",
                )?;
                Ok(Level::Rate(rate))
            }
            _ => unreachable!("a factor's number has the factor's kind"),
        }
    }
}

impl Level {
    /// Its value as a number, where it is one: bytes, a count, a share.
    pub fn number(&self) -> Option<f64> {
        match self {
            Level::FileSize(size)
            | Level::Block(size)
            | Level::Partition(size)
            | Level::BufferPool(size)
            | Level::LogSize(size) => Some(size.get() as f64),
            Level::Idle(span) | Level::Pause(span) => Some(span.get() as f64),
            Level::Threads(count)
            | Level::Depth(count)
            | Level::Streams(count)
            | Level::DataFiles(count)
            | Level::Warehouses(count)
            | Level::Terminals(count)
            | Level::Instances(count)
            | Level::IoCapacity(count)
            | Level::ReadAhead(count) => Some(f64::from(*count)),
            Level::Utilisation(number)
            | Level::Mix(number)
            | Level::Zipf(number)
            | Level::Reserve(number)
            | Level::Rate(number) => Some(*number),
            Level::Pattern(_)
            | Level::Sync(_)
            | Level::Device(_)
            | Level::Filesystem(_)
            | Level::MountOptions(_)
            | Level::Scheduler(_)
            | Level::Engine(_)
            | Level::Durability(_)
            | Level::Programs(_)
            | Level::FlushMethod(_)
            | Level::LogDevice(_)
            | Level::Doublewrite(_)
            | Level::FlushNeighbours(_) => None,
        }
    }
}
