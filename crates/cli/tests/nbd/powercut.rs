//! Power cuts of a served drive: flushed data survive, connections end, and the drive can be used again.
//!
//! The tests of `lowtide_device::power` cover the survival of writes that were not flushed.

use crate::common::Lab;
use crate::served::{Served, connect};
use lowtide_host::nbd::NbdClient;
use lowtide_host::nbd::wire::{command, flag};
use std::os::unix::net::UnixStream;

const BLOCK: u32 = 4096;

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
fn flushed_data_survive_a_power_cut() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock --cache volatile");
    let mut client = connect(&lab);
    (1..=20).for_each(|number| write(&mut client, 0, number));
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    (21..=40).for_each(|number| write(&mut client, flag::FUA, number));
    (41..=200).for_each(|number| write(&mut client, 0, number));
    lab.ok("drive powercut drive.sock");
    // The cut ended the connection; a new connection can use the drive.
    assert!(client.ask(command::READ, 0, 0, BLOCK, &mut vec![0; BLOCK as usize]).is_err());
    let mut client = connect(&lab);
    for number in 1..=40 {
        assert_eq!(read(&mut client, number), vec![number as u8; BLOCK as usize], "block {number}");
    }
    // The test is meaningful only if the cut lost an unflushed write.
    let lost =
        (41..=200).filter(|number| read(&mut client, *number) != vec![*number as u8; BLOCK as usize]).count();
    assert!(lost > 0);
    served.ends_well();
}

/// Zeroes that allocate space (NO_HOLE) are durable after a flush or with forced unit access, as NBD requires. Zeroes
/// without allocation are durable at once, like a trim, which is more than NBD requires.
#[test]
fn allocated_zeroes_are_durable_after_a_flush() {
    let lab = Lab::new();
    let served = Served::start(&lab, "--unix drive.sock --cache volatile");
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
    lab.ok("drive powercut drive.sock");
    let mut client = connect(&lab);
    let mut lost = 0;
    for number in 0..400 {
        let found = read(&mut client, number);
        // A write of 4 KiB is atomic.
        let (is_zero, is_old) = (found.iter().all(|byte| *byte == 0), found.iter().all(|byte| *byte == 9));
        assert!(is_zero || number >= 100 && is_old, "block {number} holds something else");
        lost += u64::from(is_old);
    }
    assert!((50..250).contains(&lost), "{lost} of 300 writes were taken back: about half should be");
    // After a flush, nothing is lost.
    (100..400).for_each(|number| {
        let offset = number * u64::from(BLOCK);
        let flags = flag::NO_HOLE;
        assert_eq!(client.ask(command::WRITE_ZEROES, flags, offset, BLOCK, &mut []).expect("answered"), 0);
    });
    assert_eq!(client.ask(command::FLUSH, 0, 0, 0, &mut []).expect("answered"), 0);
    lab.ok("drive powercut drive.sock");
    let mut client = connect(&lab);
    (0..400).for_each(|number| assert_eq!(read(&mut client, number), [0; BLOCK as usize], "block {number}"));
    served.ends_well();
}
