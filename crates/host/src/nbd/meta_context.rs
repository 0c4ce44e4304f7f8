//! The metadata contexts that queries match. There is only `base:allocation`.
//!
//! The extents of a context belong to the transmission phase.

use super::wire::BASE_ALLOCATION;

/// Returns whether queries list `base:allocation`: without a query, by its name, or by its namespace.
pub(super) fn lists(queries: &[&str]) -> bool {
    queries.is_empty() || queries.iter().any(|query| matches!(*query, BASE_ALLOCATION | "base:"))
}

/// Returns whether queries select `base:allocation`: only by its name. A namespace alone selects nothing, as in other
/// servers.
pub(super) fn selects(queries: &[&str]) -> bool {
    queries.contains(&BASE_ALLOCATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_list_and_select_what_they_name() {
        let cases: [(&[&str], bool, bool); 6] = [
            (&[], true, false),
            (&["base:"], true, false),
            (&["base:allocation"], true, true),
            (&["x-other:", "base:allocation", "base:allocation"], true, true),
            (&["base:allocations", "base", "qemu:dirty-bitmap:b"], false, false),
            (&["BASE:allocation"], false, false),
        ];
        for (queries, listed, selected) in cases {
            assert_eq!((lists(queries), selects(queries)), (listed, selected), "{queries:?}");
        }
    }
}
