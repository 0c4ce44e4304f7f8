//! Answers to NBD's block status request ([`status`]): which parts of a range are allocated.

use super::super::drive::Drive;
use super::client::Client;
use crate::nbd::answer;
use crate::nbd::request::Header;

/// Most lookups for one answer: each may read a page of a map.
const MOST_LOOKS: usize = 256;

/// Most extents in one answer.
pub(super) const MOST_EXTENTS: usize = 1024;

/// Answers which parts of a range are allocated; neighbouring parts that are alike are one extent.
///
/// Returns the number of lookups. An answer may cover less than was asked for, if that takes many lookups.
pub(super) fn status<D: Drive>(drive: &D, client: &mut Client, header: &Header, one: bool) -> usize {
    let most = if one { 1 } else { MOST_EXTENTS };
    let (mut at, end) = (header.offset, header.offset + u64::from(header.length));
    let mut runs: Vec<(u32, bool)> = Vec::new();
    let mut looks = 0;
    while at < end && looks < MOST_LOOKS {
        looks += 1;
        match drive.run(at, end - at) {
            Ok(run) => {
                let full = runs.len() == most;
                match runs.last_mut() {
                    Some((length, allocated)) if *allocated == run.allocated => *length += run.length as u32,
                    _ if full => break,
                    _ => runs.push((run.length as u32, run.allocated)),
                }
                at += run.length;
            }
            Err(errno) => {
                let error = answer::error_number(errno);
                answer::failed(client.reply(0), true, header.cookie, error);
                return looks;
            }
        }
    }
    answer::extents(client.reply(8 * runs.len()), header.cookie, &runs);
    looks
}
