//! What a described device keeps acknowledged writes in ([`DeviceSpec::cache`]), and the same device with a cache of
//! another kind ([`DeviceSpec::with_cache`]).
//!
//! Of a device made of others it is the most that may be lost: the sizes of what is volatile are added, and one part
//! that does not honour a flush makes the whole dishonest. Leaves out the order in which a log layer gives back what it did
//! not flush; and writes that are larger than the protected cache of
//! an array and go past it to members whose own is volatile.

use super::{Cache, CacheKind};
use crate::array::ArraySpec;
use crate::cache::spec::Mode;
use crate::disk::spec::WriteCache;
use crate::flash::spec::WriteBuffer;
use crate::spec::{DeviceSpec, SpecError};
use lowtide_core::Bytes;

impl DeviceSpec {
    /// What the device keeps acknowledged writes in.
    pub fn cache(&self) -> Cache {
        match self {
            DeviceSpec::Flash(flash) => {
                let WriteBuffer { size, protected, honours_flush } = flash.write_buffer;
                if protected { Cache::Protected } else { Cache::Volatile { size, honours_flush } }
            }
            DeviceSpec::Disk(disk) => match disk.write_cache {
                Some(WriteCache { size, honours_flush }) if size > Bytes::ZERO => {
                    Cache::Volatile { size, honours_flush }
                }
                _ => Cache::Protected,
            },
            DeviceSpec::Array(array) => array_cache(array),
            // Without write-back, all that the flash holds is a copy.
            DeviceSpec::Cache(cache) if cache.parameters.mode == Mode::WriteThrough => cache.backing.cache(),
            DeviceSpec::Cache(cache) => cache.flash.cache().beside(cache.backing.cache()),
            DeviceSpec::Volume(_) => Cache::Protected,
            // What was not flushed is lost with anything before it in the log, so there is no less than between two checkpoints.
            DeviceSpec::Log(log) => {
                Cache::Volatile { size: log.unflushed(), honours_flush: true }.beside(log.over.cache())
            }
        }
    }

    /// The same device with a cache of another kind, in its timing too. A disk has a protected cache when it has none.
    ///
    /// # Errors
    /// [`SpecError`] where the device cannot have such a cache: a volume, a disk without memory for writes, and an array
    /// whose own has a battery are always protected; a log layer never is.
    pub fn with_cache(&self, kind: CacheKind) -> Result<DeviceSpec, SpecError> {
        let mut spec = self.clone();
        set(&mut spec, kind);
        let found = spec.cache().kind();
        if found == kind {
            return Ok(spec);
        }
        let message = format!("cannot be {kind} here: the device as described is always {found}");
        Err(SpecError { key: "cache".to_owned(), message })
    }
}

fn set(spec: &mut DeviceSpec, kind: CacheKind) {
    let honours_flush = kind != CacheKind::Lying;
    match spec {
        DeviceSpec::Flash(flash) => {
            let protected = kind == CacheKind::Protected;
            flash.write_buffer = WriteBuffer { protected, honours_flush, ..flash.write_buffer };
        }
        DeviceSpec::Disk(disk) if kind == CacheKind::Protected => disk.write_cache = None,
        DeviceSpec::Disk(disk) => {
            disk.write_cache = disk.write_cache.map(|cache| WriteCache { honours_flush, ..cache });
        }
        DeviceSpec::Array(array) => array.members.iter_mut().for_each(|member| set(member, kind)),
        DeviceSpec::Cache(cache) => {
            set(&mut cache.flash, kind);
            set(&mut cache.backing, kind);
        }
        DeviceSpec::Log(log) => set(&mut log.over, kind),
        DeviceSpec::Volume(_) => {}
    }
}

/// Of copies, the one that may lose most; of groups, all of them. A controller's own cache has a battery, and gives its
/// members writes that are durable when they are complete, if the members honour that.
fn array_cache(array: &ArraySpec) -> Cache {
    let copies = array.copies().max(1);
    let groups = array
        .members
        .chunks(copies)
        .map(|group| group.iter().map(DeviceSpec::cache).reduce(Cache::or).unwrap_or(Cache::Protected));
    match groups.fold(Cache::Protected, Cache::beside) {
        Cache::Volatile { honours_flush: true, .. } if array.parameters.write_cache.is_some() => {
            Cache::Protected
        }
        members => members,
    }
}

impl Cache {
    /// Two devices that hold different data.
    fn beside(self, other: Cache) -> Cache {
        self.with(other, |one, other| Bytes::new(one.get().saturating_add(other.get())))
    }

    /// Two devices of which either may be read.
    fn or(self, other: Cache) -> Cache {
        self.with(other, Bytes::max)
    }

    fn with(self, other: Cache, sizes: impl Fn(Bytes, Bytes) -> Bytes) -> Cache {
        match (self, other) {
            (Cache::Protected, cache) | (cache, Cache::Protected) => cache,
            (
                Cache::Volatile { size, honours_flush },
                Cache::Volatile { size: other, honours_flush: also },
            ) => Cache::Volatile { size: sizes(size, other), honours_flush: honours_flush && also },
        }
    }
}
