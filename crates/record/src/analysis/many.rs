//! Correction for multiple comparisons. Of a hundred comparisons without a true difference, five look significant at
//! 5 %.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979. The probability of
//! any false difference is at most the significance level, even if the comparisons depend on each other. Procedures
//! that control the false discovery rate are not implemented.

/// Adjusts p-values so that each can be compared with the significance level as if there were only one comparison.
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
    fn adjusted_probabilities_equal_those_of_r() {
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
