//! The devices that hold the data and the log of a database in virtual time, and what is in flight on them.
//!
//! Data and log may be on one device. Leaves out what the requests mean: tags say it.

use crate::block::{BlockDevice, Counters, DeviceError, Request, Tag};
use crate::in_flight::InFlight;
use crate::units::VirtualTime;

/// Where a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which of the devices.
    pub device: usize,
    /// First byte.
    pub offset: u64,
}

/// Where the journal of a filesystem lies on its device, and what is written to commit to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Journal {
    /// First byte.
    pub offset: u64,
    /// Bytes, after which it begins anew.
    pub length: u64,
    /// Bytes of what a commit writes, one after the other: what comes next waits for what is before.
    pub commit: &'static [u64],
}

/// The devices of an engine.
pub struct Storage<'a> {
    /// One, or two.
    pub devices: Vec<&'a mut (dyn BlockDevice + Send)>,
    /// Where the data files begin; they follow one another.
    pub data: Place,
    /// Where the log begins.
    pub log: Place,
}

impl Storage<'_> {
    /// What the devices counted, together.
    pub fn counters(&self) -> Counters {
        self.devices.iter().map(|device| device.counters()).fold(Counters::default(), |sum, one| sum + one)
    }

    /// Lets what is still queued complete.
    pub fn drain(&mut self) {
        for device in &mut self.devices {
            while device.next_done().is_some() {
                device.finish();
            }
        }
    }
}

/// Requests that a device answered at once, by completion.
#[derive(Debug, Default)]
pub struct Requests(InFlight<Tag>);

impl Requests {
    /// Begins a request on one of the devices.
    ///
    /// # Errors
    /// Where the device refuses it.
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

    /// The next request to complete, where that is by `until_ns`.
    ///
    /// # Errors
    /// Where one failed.
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
