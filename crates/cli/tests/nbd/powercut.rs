//! The power of a served drive is cut: what was flushed is there afterwards, connections end, and the drive comes back.
//!
//! Not here: which of the other writes survive, which the tests of `lowtide_device::power` show.

use crate::common::Lab;
use crate::served::Served;
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::{command, flag};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A drive with a volatile cache.
const BLOCK: u32 = 4096;

fn connect(lab: &Lab) -> NbdClient<UnixStream> {
    let stream = UnixStream::connect(lab.path("drive.sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    NbdClient::connect(stream, "").expect("agreed")
}

fn write(client: &mut NbdClient<UnixStream>, flags: u16, number: u64) {
    let mut data = vec![number as u8; BLOCK as usize];
    let offset = number * u64::from(BLOCK);
    assert_eq!(client.ask(command::WRITE, flags, offset, BLOCK, &mut data).expect("answered"), 0);
}

fn read(client: &mut NbdClient<UnixStream>, number: u64) -> Vec<u8> {
    let mut data = vec![0xff; BLOCK as usize];
    let offset = number * u64::from(BLOCK);
    assert_eq!(client.ask(command::READ, 0, offset, BLOCK, &mut data).expect("answered"), 0);
    data
}

#[test]
fn what_was_flushed_survives_a_power_cut() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--unix", "drive.sock", "--cache", "volatile"]);
    let mut client = connect(&lab);
    (1..=20).for_each(|number| write(&mut client, 0, number));
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    (21..=40).for_each(|number| write(&mut client, flag::FUA, number));
    (41..=200).for_each(|number| write(&mut client, 0, number));
    lab.ok(&["drive", "powercut", "drive.sock"]);
    // This connection has ended, a new one finds the drive.
    assert!(client.ask(command::READ, 0, 0, BLOCK, &mut vec![0; BLOCK as usize]).is_err());
    let mut client = connect(&lab);
    for number in 1..=40 {
        assert_eq!(read(&mut client, number), vec![number as u8; BLOCK as usize], "block {number}");
    }
    // Of what was not flushed something is lost: a cut that loses nothing shows nothing.
    let lost =
        (41..=200).filter(|number| read(&mut client, *number) != vec![*number as u8; BLOCK as usize]).count();
    assert!(lost > 0);
    served.ends_well();
}

/// Zeroes are durable when NBD says so, after a flush or with forced unit access: those that take room (NO_HOLE) are
/// a write until then. Those that take none are durable at once, as a trim is, which is more than NBD asks for.
#[test]
fn zeroes_that_take_room_are_durable_when_they_were_flushed() {
    let lab = Lab::new();
    let served = Served::start(&lab, &["--unix", "drive.sock", "--cache", "volatile"]);
    let mut client = connect(&lab);
    (0..400).for_each(|number| {
        let mut data = vec![9; BLOCK as usize];
        let offset = number * u64::from(BLOCK);
        assert_eq!(client.ask(command::WRITE, 0, offset, BLOCK, &mut data).expect("answered"), 0);
    });
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    let mut zero = |flags: u16, number: u64| {
        let offset = number * u64::from(BLOCK);
        assert_eq!(client.ask(command::WRITE_ZEROES, flags, offset, BLOCK, &mut []).expect("answered"), 0);
    };
    (0..50).for_each(|number| zero(flag::NO_HOLE | flag::FUA, number));
    (50..100).for_each(|number| zero(0, number));
    (100..400).for_each(|number| zero(flag::NO_HOLE, number));
    lab.ok(&["drive", "powercut", "drive.sock"]);
    let mut client = connect(&lab);
    let mut lost = 0;
    for number in 0..400 {
        let found = read(&mut client, number);
        // 4 KiB are written whole or not at all.
        let (is_zero, is_old) = (found.iter().all(|byte| *byte == 0), found.iter().all(|byte| *byte == 9));
        assert!(is_zero || number >= 100 && is_old, "block {number} holds something else");
        lost += u64::from(is_old);
    }
    assert!((50..250).contains(&lost), "{lost} of 300 writes were taken back: about half should be");
    // What was flushed stays.
    (100..400).for_each(|number| {
        let offset = number * u64::from(BLOCK);
        let flags = flag::NO_HOLE;
        assert_eq!(client.ask(command::WRITE_ZEROES, flags, offset, BLOCK, &mut []).expect("answered"), 0);
    });
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    lab.ok(&["drive", "powercut", "drive.sock"]);
    let mut client = connect(&lab);
    (0..400).for_each(|number| assert_eq!(read(&mut client, number), [0; BLOCK as usize], "block {number}"));
    served.ends_well();
}
