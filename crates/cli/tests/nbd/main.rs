//! `lowtide drive serve` with other programs as clients (nbdinfo, nbdcopy, qemu-img, qemu-io, fio, nbdkit) over every
//! transport, and with a thousand random sessions.
//!
//! If a program is missing, its test is skipped; with `LOWTIDE_REQUIRE_REAL=1` it fails. Drives answer at once
//! (`--no-delay`), and no test measures speed.
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
