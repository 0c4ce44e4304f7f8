//! Many comparisons at once: of a hundred that find nothing, five look as if they did.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979: the chance that any
//! of the differences called significant is none stays below the level, whatever the comparisons have to do with each
//! other. Not here: procedures that find more and let some errors through.

/// The probabilities, each raised so that it may be held against a level as if it were the only one.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut largest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        let left = (probabilities.len() - rank) as f64;
        largest = largest.max(probabilities[index] * left).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::holm;

    #[test]
    fn as_r_does_it() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.02]), [0.02]);
        assert_eq!(holm(&[0.9, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
