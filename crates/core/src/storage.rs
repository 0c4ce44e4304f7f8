//! The devices of a modelled database in virtual time ([`Storage`]) and the requests in flight on them
//! ([`Requests`]).
//!
//! Data and log may share a device. The caller gives requests their meaning through tags.

use crate::block::{BlockDevice, Counters, DeviceError, Request, Tag};
use crate::in_flight::InFlight;
use crate::units::VirtualTime;

/// The beginning of a file on one of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the device.
    pub device: usize,
    /// First byte of the file.
    pub offset: u64,
}

/// A filesystem journal on a device, and the writes of one journal commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Journal {
    /// First byte of the journal.
    pub offset: u64,
    /// Length in bytes. The journal wraps around at its end.
    pub length: u64,
    /// Sizes of the writes of a commit, in bytes. Each write starts when the write before it has completed.
    pub commit: &'static [u64],
}

/// The devices that an engine uses.
pub struct Storage<'a> {
    /// One or two devices.
    pub devices: Vec<&'a mut (dyn BlockDevice + Send)>,
    /// Beginning of the data files, which follow one another.
    pub data: Place,
    /// Beginning of the log.
    pub log: Place,
}

impl Storage<'_> {
    /// Sum of the counters of all devices.
    pub fn counters(&self) -> Counters {
        self.devices.iter().map(|device| device.counters()).fold(Counters::default(), |sum, one| sum + one)
    }

    /// Completes every queued request.
    pub fn drain(&mut self) {
        for device in &mut self.devices {
            while device.next_done().is_some() {
                device.finish();
            }
        }
    }
}

/// Requests in flight with a known completion, ordered by instant.
#[derive(Debug, Default)]
pub struct Requests(InFlight<Tag>);

impl Requests {
    /// Submits a request to the device with index `device`.
    ///
    /// # Errors
    /// [`DeviceError`] if the device refuses the request or fails it at once.
    #[inline]
    pub fn begin(
        &mut self,
        storage: &mut Storage<'_>,
        now_ns: u64,
        device: usize,
        request: &Request,
        tag: Tag,
    ) -> Result<(), DeviceError> {
        let now = VirtualTime::from_nanos(now_ns);
        if let Some(completion) = storage.devices[device].begin(now, request, tag) {
            completion.status?;
            self.0.push(completion.at.as_nanos(), tag);
        }
        Ok(())
    }

    /// Removes the next request that completes by `until_ns` on any device. Returns the instant in nanoseconds and
    /// the tag, or `None` if no request completes by then.
    ///
    /// # Errors
    /// [`DeviceError`] of a queued request that failed.
    #[inline]
    pub fn next_done(
        &mut self,
        storage: &mut Storage<'_>,
        until_ns: u64,
    ) -> Result<Option<(u64, Tag)>, DeviceError> {
        loop {
            let first_ns = self.0.first_ns();
            let (mut next_ns, mut next) = (u64::MAX, 0);
            for (at, device) in storage.devices.iter().enumerate() {
                let at_ns = device.next_done().map_or(u64::MAX, |done| done.as_nanos());
                if at_ns < next_ns {
                    (next_ns, next) = (at_ns, at);
                }
            }
            if next_ns >= first_ns || next_ns > until_ns {
                return Ok(if first_ns <= until_ns { self.0.pop() } else { None });
            }
            if let Some((tag, completion)) = storage.devices[next].finish() {
                completion.status?;
                self.0.push(completion.at.as_nanos(), tag);
            }
        }
    }
}
