//! "Did you mean …?": the valid name nearest to a mistyped one ([`nearest`]).
//!
//! Callers word the message.

/// Longest input to compare, in characters. The comparison's memory grows with the length.
const LONGEST: usize = 64;

/// Returns the name in `valid` nearest to `given`, ignoring case, if the two are similar.
///
/// Two names are similar if their Damerau–Levenshtein distance is at most a third of the longer one, or if one is a
/// prefix of the other and `given` has at least three bytes. The result is `None` if `given` has more than 64
/// characters.
pub fn nearest<'a>(given: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().nth(LONGEST).is_some() {
        return None;
    }
    let given = given.to_lowercase();
    valid
        .into_iter()
        .map(|name| {
            let lower = name.to_lowercase();
            let prefix = given.len() >= 3 && (lower.starts_with(&given) || given.starts_with(&lower));
            let distance = strsim::damerau_levenshtein(&given, &lower);
            let limit = if prefix {
                usize::MAX
            } else {
                given.chars().count().max(lower.chars().count()).div_ceil(3)
            };
            (distance, limit, name)
        })
        .filter(|(distance, limit, _)| distance <= limit)
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn offers_a_near_name_and_nothing_when_all_are_far() {
        let valid = ["random-write", "random-read", "sequential-write"];
        assert_eq!(nearest("random_write", valid), Some("random-write"));
        assert_eq!(nearest("random-raed", valid), Some("random-read"));
        assert_eq!(nearest("seq", valid), Some("sequential-write"));
        assert_eq!(nearest("zebra", valid), None);
        assert_eq!(nearest(&"random-read".repeat(9), valid), None);
    }
}
