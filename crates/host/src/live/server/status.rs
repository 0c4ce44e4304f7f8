//! Replies to NBD's block status request ([`status`]): the allocated parts of a range.

use super::super::drive::Drive;
use super::client::Client;
use crate::nbd::answer;
use crate::nbd::request::Header;

/// The most lookups for one reply. A lookup may read a page of the map.
const MOST_LOOKUPS: usize = 256;

/// The most extents in one reply.
pub(super) const MOST_EXTENTS: usize = 1024;

/// Replies with the allocation of a range. Adjacent runs of the same kind are merged.
///
/// Returns the number of lookups. The reply covers less than the range if that would take more than [`MOST_LOOKUPS`].
pub(super) fn status<D: Drive>(drive: &D, client: &mut Client, header: &Header, one: bool) -> usize {
    let most = if one { 1 } else { MOST_EXTENTS };
    let (mut at, end) = (header.offset, header.offset + u64::from(header.length));
    let mut runs: Vec<(u32, bool)> = Vec::new();
    let mut lookups = 0;
    while at < end && lookups < MOST_LOOKUPS {
        lookups += 1;
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
                return lookups;
            }
        }
    }
    answer::extents(client.reply(8 * runs.len()), header.cookie, &runs);
    lookups
}
