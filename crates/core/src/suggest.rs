//! "Did you mean …?": the nearest valid name to one that was mistyped.
//!
//! Leaves out the sentence around it: callers say what kind of name it is.

/// Characters of a word for which a near name is looked for; comparing takes memory in proportion.
const LONGEST: usize = 64;

/// The name in `valid` nearest to `given`, if it is near enough to be worth offering.
///
/// Near enough: a Damerau–Levenshtein distance of at most a third of the longer word, or one word is a prefix
/// of the other.
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
