//! Devices in front of another device ([`Wraps`]). A wrapper forwards every call that it does not handle.

use crate::block::{BlockDevice, Completion, Counters, Request, Tag};
use crate::state::StateError;
use crate::units::{Bytes, VirtualTime};
use std::io::{Read, Write};

/// Declares [`Wraps`] and implements [`BlockDevice`] for wrappers. The table below lists each forwarded call once.
macro_rules! wraps {
    (
        &self: $($query:ident($($in:ident: $In:ty),*) $(-> $Answer:ty)?;)+
        &mut self: $($change:ident($($with:ident: $With:ty),*) $(-> $Result:ty)?;)+
    ) => {
        /// A device in front of another one: a partition, faults, a pointer.
        ///
        /// A wrapper handles requests itself, so `submit` and `begin` are required. Every other call is forwarded to
        /// the inner device unless the wrapper overrides the method of this trait.
        pub trait Wraps {
            /// The device behind the wrapper.
            type Inner: BlockDevice + ?Sized;

            /// The device behind the wrapper.
            fn inner(&self) -> &Self::Inner;

            /// The device behind the wrapper, as a mutable reference.
            fn inner_mut(&mut self) -> &mut Self::Inner;

            /// [`BlockDevice::submit`] of the wrapper.
            fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion;

            /// [`BlockDevice::begin`] of the wrapper.
            fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion>;
            $(
                #[doc = concat!("[`BlockDevice::", stringify!($query), "`] of the wrapper.")]
                fn $query(&self, $($in: $In),*) $(-> $Answer)? {
                    self.inner().$query($($in),*)
                }
            )+
            $(
                #[doc = concat!("[`BlockDevice::", stringify!($change), "`] of the wrapper.")]
                fn $change(&mut self, $($with: $With),*) $(-> $Result)? {
                    self.inner_mut().$change($($with),*)
                }
            )+
        }

        // Without the lint, a call missing from the table would silently keep the default of `BlockDevice`.
        #[deny(clippy::missing_trait_methods)]
        impl<W: Wraps> BlockDevice for W {
            fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
                Wraps::submit(self, now, request)
            }
            fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
                Wraps::begin(self, now, request, tag)
            }
            $(fn $query(&self, $($in: $In),*) $(-> $Answer)? { Wraps::$query(self, $($in),*) })+
            $(fn $change(&mut self, $($with: $With),*) $(-> $Result)? { Wraps::$change(self, $($with),*) })+
        }
    };
}

wraps! {
    &self:
    capacity() -> Bytes;
    logical_block() -> Bytes;
    raw_capacity() -> Option<Bytes>;
    next_done() -> Option<VirtualTime>;
    warm(upcoming: &[Request]);
    busy_until() -> VirtualTime;
    counters() -> Counters;
    erase_counts() -> Vec<u32>;
    host_memory() -> Bytes;
    save(out: &mut dyn Write) -> Result<(), StateError>;

    &mut self:
    finish() -> Option<(Tag, Completion)>;
    idle_until(until: VirtualTime);
    power_cut(now: VirtualTime);
    secure_erase();
    restore(from: &mut dyn Read) -> Result<(), StateError>;
}

/// Makes a pointer to a device a device.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<D: BlockDevice + ?Sized> Wraps for $pointer {
            type Inner = D;

            fn inner(&self) -> &D {
                self
            }
            fn inner_mut(&mut self) -> &mut D {
                self
            }
            fn submit(&mut self, now: VirtualTime, request: &Request) -> Completion {
                (**self).submit(now, request)
            }
            fn begin(&mut self, now: VirtualTime, request: &Request, tag: Tag) -> Option<Completion> {
                (**self).begin(now, request, tag)
            }
        }
    };
}
pointer!(Box<D>);
pointer!(&mut D);
