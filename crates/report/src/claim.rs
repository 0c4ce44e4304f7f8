//! A sentence of a study and whether it holds: what whoever validates hands over, ready to show.
//!
//! Not here: the check.

/// A claim that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The study it comes from: `e02`.
    pub study: String,
    /// Its name: `larger-is-slower`.
    pub name: String,
    /// The sentence.
    pub says: String,
    /// The experiment that was run for it.
    pub experiment: String,
    /// The cells: `10GiB to 140GiB`.
    pub where_label: String,
    /// What was checked: `level throughput: falling`.
    pub check: String,
    /// What was found, or why nothing was.
    pub found: String,
    /// Whether it holds. One that could not be judged does not.
    pub holds: bool,
    /// Where a failure that is known is explained.
    pub left_out: Option<String>,
}
