//! A checked claim of a study, as the caller of a report supplies it.

/// A claim that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The study it comes from: `e02`.
    pub study: String,
    /// Its name: `larger-is-slower`.
    pub name: String,
    /// The claim as a sentence.
    pub says: String,
    /// The experiment that was run for it.
    pub experiment: String,
    /// The cells: `10GiB to 140GiB`.
    pub where_label: String,
    /// What was checked: `level throughput: falling`.
    pub check: String,
    /// The number found, or the reason for its absence.
    pub found: String,
    /// Whether the claim holds. A claim that could not be judged does not hold.
    pub holds: bool,
    /// The document that explains a known failure.
    pub left_out: Option<String>,
}
