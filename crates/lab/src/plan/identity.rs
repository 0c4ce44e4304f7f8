//! The identity of an adaptive plan: the identity of the complete plan, and the precision.
//!
//! The identity of a complete plan is [`super::Plan::identity`].

/// The separator in the identity of an adaptive plan: the identity of the complete plan comes before it, the
/// precision (a share) after it.
pub const ADAPTIVE: &str = "\nadaptive, precision ";

/// Splits an identity into the identity of the complete plan and the precision of an adaptive plan (a share).
pub(crate) fn apart(identity: &str) -> (&str, Option<f64>) {
    let parts = identity.rsplit_once(ADAPTIVE);
    let parts = parts.and_then(|(complete, share)| Some((complete, share.parse().ok()?)));
    parts.map_or((identity, None), |(complete, precision)| (complete, Some(precision)))
}
