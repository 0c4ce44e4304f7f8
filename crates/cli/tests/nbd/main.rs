//! `lowtide drive serve` met by real clients: nbdinfo, nbdcopy, qemu-img, qemu-io, fio and nbdkit, over every transport; and a
//! thousand random sessions beside one that is in order.
//!
//! Where a program is missing, its test says that it was skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. Drives answer at
//! once (`--no-delay`), so no number depends on time. Not here: how fast anything is.
#![allow(clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../../../host/tests/common/loopback.rs"]
mod loopback;

mod copies;
mod hostile;
mod info;
mod logdisk;
mod memory;
mod parts;
mod powercut;
mod refusals;
mod requests;
mod served;
mod signals;
mod tls;
