//! The identity of an adaptive plan: that of the whole plan, and the precision it is measured to.
//!
//! Not here: the identity of the whole ([`super::Plan`]).

/// What tells the identity of an adaptive plan from that of the whole one; its precision, a share, comes after it.
pub const BESIDE: &str = "\nadaptive, precision ";

/// The identity of the whole plan in that of a plan, and the precision of an adaptive one, a share.
pub(crate) fn apart(identity: &str) -> (&str, Option<f64>) {
    let apart = identity.rsplit_once(BESIDE).and_then(|(whole, share)| Some((whole, share.parse().ok()?)));
    apart.map_or((identity, None), |(whole, precision)| (whole, Some(precision)))
}
