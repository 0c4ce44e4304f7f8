//! Metadata contexts: which of them a list of queries means. There is one, `base:allocation`.
//!
//! Not here: the extents themselves, which the transmission gives.

use super::wire::BASE_ALLOCATION;

/// Whether `base:allocation` is listed: where nothing is asked, by its name, and by its namespace alone.
pub(super) fn lists(queries: &[&str]) -> bool {
    queries.is_empty() || queries.iter().any(|query| matches!(*query, BASE_ALLOCATION | "base:"))
}

/// Whether `base:allocation` is selected: only by its name. A namespace alone lists and selects nothing, as in other
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
