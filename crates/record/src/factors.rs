//! How the cells of a campaign differ: the step and the factors of each, and which of them vary.
//!
//! Leaves out what is drawn or compared over them (crate `lowtide-report`).

use super::Cell;

/// Step and factors of a cell; what identifies it apart from its repetition.
pub fn identity(cell: &Cell) -> Vec<(String, String)> {
    let step = cell.step.iter().map(|step| ("step".to_owned(), step.clone()));
    step.chain(cell.factors.iter().cloned()).collect()
}

/// Names of steps and factors, in sweep order, that take more than one value.
pub fn varying<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> Vec<String> {
    let mut seen: Vec<(String, Vec<Option<String>>)> = Vec::new();
    let identities: Vec<Vec<(String, String)>> = cells.into_iter().map(identity).collect();
    for (name, _) in identities.iter().flatten() {
        if !seen.iter().any(|(known, _)| known == name) {
            seen.push((name.clone(), Vec::new()));
        }
    }
    for (name, values) in &mut seen {
        for identity in &identities {
            let value = identity.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    seen.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name).collect()
}

/// A factor's value for people: words and sizes speak for themselves, bare numbers, yes and no need their name.
pub fn describe(name: &str, value: &str) -> String {
    let bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
    if bare { format!("{} {value}", name.replace('_', " ")) } else { value.to_owned() }
}
