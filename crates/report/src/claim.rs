//! A checked claim of a study, as the caller of a report supplies it.

/// A claim that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The study that makes the claim: `e02`.
    pub study: String,
    /// The name of the claim: `larger-is-slower`.
    pub name: String,
    /// The claim as a sentence.
    pub says: String,
    /// The experiment that was run for it.
    pub experiment: String,
    /// The cells that were checked: `10GiB to 140GiB`.
    pub where_label: String,
    /// The checked condition: `level throughput: falling`.
    pub check: String,
    /// The measured number, or the reason for a missing number.
    pub found: String,
    /// Whether the claim holds. A claim that could not be judged does not hold.
    pub holds: bool,
    /// The document that explains a known failure.
    pub left_out: Option<String>,
}
