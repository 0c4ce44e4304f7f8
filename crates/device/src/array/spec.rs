//! The description of an array ([`ArraySpec`]): its members, and the table `[array]` of a device file
//! ([`ArrayParameters`]).
//!
//! `lowtide_files::device` resolves the names of members.

use crate::spec::durability::Cache;
use crate::spec::{DeviceSpec, SpecError, Wear, check_rate, check_times, fail};
use lowtide_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The most members.
const MOST: usize = 1024;
const LARGEST_CHUNK: Bytes = Bytes::gib(1);
const MOST_DEPTH: u32 = 1024;

/// An array with its members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArraySpec {
    /// Level, controller, cache.
    pub parameters: ArrayParameters,
    /// The members, in order. In a stripe of mirrors, each pair is a mirror.
    pub members: Vec<DeviceSpec>,
}

/// The parameters of an array, without its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ArrayParameters {
    /// How the members are joined.
    pub level: Level,
    /// Consecutive bytes on one member of a stripe.
    #[serde(default = "default_chunk")]
    pub chunk: Bytes,
    /// The choice of the copy to read.
    #[serde(default)]
    pub mirror_read: MirrorRead,
    /// Latency of interface, firmware and driver, added to every request. It does not occupy the controller.
    pub latency: Nanos,
    /// Time of the controller per request. It serves one request at a time.
    pub request: Nanos,
    /// Bytes per second of the link between controller and host, in both directions together; no limit if absent.
    #[serde(default)]
    pub link_rate: Option<Bytes>,
    /// A write-back cache with a battery.
    #[serde(default)]
    pub write_cache: Option<WriteCacheSpec>,
}

fn default_chunk() -> Bytes {
    Bytes::kib(64)
}

/// How members are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Chunks in turn (RAID 0).
    Stripe,
    /// Each member holds everything (RAID 1).
    Mirror,
    /// Chunks in turn over mirrors of two (RAID 10).
    StripeOfMirrors,
    /// One after the other (concatenation).
    Linear,
}

/// The choice of the copy of a mirror to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorRead {
    /// Always the first.
    Primary,
    /// Each in turn.
    Alternate,
    /// The copy with the fewest outstanding parts; among equals, each in turn.
    #[default]
    ShorterQueue,
    /// By address: each copy serves its own chunks, so that a disk's arm stays within its share of the rows.
    ByStripe,
}

/// A write-back cache whose contents survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WriteCacheSpec {
    /// Bytes that may wait to be written to the members.
    pub size: Bytes,
    /// Time from data in the controller to the acknowledgement of a write, or from request to data for a read hit.
    pub latency: Nanos,
    /// The most concurrent writes to each member or mirror.
    #[serde(default = "default_depth")]
    pub depth: u32,
}

fn default_depth() -> u32 {
    4
}

/// The distribution of addresses over members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The number of groups. The members of a group hold the same data.
    pub(super) groups: usize,
    /// Members in a group.
    pub(super) copies: usize,
    /// True if chunks go to the groups in turn; false for a linear array.
    pub(super) striped: bool,
}

impl Level {
    pub(super) fn shape(self, members: usize) -> Shape {
        match self {
            Level::Stripe => Shape { groups: members, copies: 1, striped: true },
            Level::Mirror => Shape { groups: 1, copies: members, striped: false },
            Level::StripeOfMirrors => Shape { groups: members / 2, copies: 2, striped: true },
            Level::Linear => Shape { groups: members, copies: 1, striped: false },
        }
    }
}

/// Usable bytes of each group, limited by its smallest member.
pub(super) fn group_sizes(shape: Shape, chunk: u64, members: impl Iterator<Item = u64>) -> Vec<u64> {
    let members: Vec<u64> = members.collect();
    let smallest = |group: &[u64]| group.iter().copied().min().unwrap_or(0);
    let sizes: Vec<u64> = members.chunks_exact(shape.copies.max(1)).map(smallest).collect();
    if !shape.striped {
        return sizes;
    }
    let rows = smallest(&sizes) / chunk.max(1) * chunk;
    vec![rows; sizes.len()]
}

impl ArraySpec {
    /// Bytes the host may address; zero if the members do not form an array.
    pub fn capacity(&self) -> Bytes {
        let shape = self.parameters.level.shape(self.members.len());
        let sizes = self.members.iter().map(|member| member.capacity().get());
        let groups = group_sizes(shape, self.parameters.chunk.get(), sizes);
        Bytes::new(groups.into_iter().fold(0, u64::saturating_add))
    }

    /// The capacity of the first member of a linear array; the whole capacity of any other array.
    pub fn first_part(&self) -> Bytes {
        match (self.parameters.level, self.members.first()) {
            (Level::Linear, Some(first)) => first.capacity(),
            _ => self.capacity(),
        }
    }

    /// The number of members with the same data.
    fn copies(&self) -> usize {
        self.parameters.level.shape(self.members.len()).copies
    }

    /// The wear of the array. A stripe wears all members equally.
    pub(crate) fn wear(&self) -> Wear {
        let members: Vec<Wear> = self.members.iter().map(DeviceSpec::wear).collect();
        if members.iter().all(|member| *member == Wear::Never) {
            return Wear::Never;
        }
        match members.first() {
            Some(&Wear::Rated { raw, cycles })
                if self.parameters.level == Level::Stripe
                    && members.iter().all(|member| *member == members[0]) =>
            {
                Wear::Rated { raw: raw * members.len() as u64, cycles }
            }
            _ => Wear::Unknown("an array that is no stripe of equal drives"),
        }
    }

    /// The write cache of the array: over copies the worst one, over groups the sum. A cache of the controller has a
    /// battery, and sends durable writes to the members, if the members honour forced unit access.
    pub(crate) fn cache(&self) -> Cache {
        let copies = self.copies().max(1);
        let groups = self
            .members
            .chunks(copies)
            .map(|group| group.iter().map(DeviceSpec::cache).reduce(Cache::or).unwrap_or(Cache::Protected));
        match groups.fold(Cache::Protected, Cache::beside) {
            Cache::Volatile { honours_flush: true, .. } if self.parameters.write_cache.is_some() => {
                Cache::Protected
            }
            members => members,
        }
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`SpecError`] names the invalid key. Keys of members begin with `members[n]`, from 0.
    pub fn validate(&self) -> Result<(), SpecError> {
        let ArrayParameters { level, chunk, latency, request, link_rate, write_cache, .. } = self.parameters;
        let count = self.members.len();
        if count == 0 || count > MOST {
            return fail("members", format!("{count} members; an array has 1 to {MOST}"));
        }
        if level == Level::StripeOfMirrors && !count.is_multiple_of(2) {
            return fail("members", format!("{count} members do not make pairs for a stripe of mirrors"));
        }
        if chunk.get() < 512 || !chunk.get().is_multiple_of(512) || chunk > LARGEST_CHUNK {
            return fail("chunk", format!("{chunk} is not a multiple of 512 bytes up to {LARGEST_CHUNK}"));
        }
        let cached = write_cache.map_or(Nanos::ZERO, |cache| cache.latency);
        check_times([("latency", latency), ("request", request), ("write-cache.latency", cached)])?;
        if write_cache.is_some() && cached + latency + request == Nanos::ZERO && link_rate.is_none() {
            let message = "a write that takes no time at all never ends; give it, or `latency`, `request` or `link-rate`";
            return fail("write-cache.latency", message);
        }
        link_rate.map_or(Ok(()), |rate| check_rate("link-rate", rate))?;
        if let Some(cache) = write_cache {
            if cache.size < chunk {
                return fail("write-cache.size", format!("{} does not hold a chunk of {chunk}", cache.size));
            }
            if cache.depth == 0 || cache.depth > MOST_DEPTH {
                return fail("write-cache.depth", format!("needs from 1 to {MOST_DEPTH}"));
            }
        }
        for (n, member) in self.members.iter().enumerate() {
            member.validate().map_err(|error| error.within(&format!("members[{n}]")))?;
        }
        if self.capacity() == Bytes::ZERO || self.capacity().get() > u64::MAX / 2 {
            return fail("members", format!("they make an array of {}", self.capacity()));
        }
        Ok(())
    }

    /// The array with members and cache at `1 / factor` of their size, and the same timings.
    pub fn scaled(&self, factor: u64) -> ArraySpec {
        let mut spec = self.clone();
        for member in &mut spec.members {
            *member = member.scaled(factor);
        }
        let chunk = spec.parameters.chunk;
        if let (Some(cache), true) = (&mut spec.parameters.write_cache, chunk > Bytes::ZERO) {
            cache.size = (cache.size / factor.max(1)).align_up(chunk).max(chunk).min(cache.size);
        }
        spec
    }
}
