//! Cholesky factors of small, symmetric positive-definite matrices.
//!
//! Matrices are stored row by row. The algorithms are not optimised for large matrices: a curve has few sizes.

/// The lower triangular factor, row by row.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    size: usize,
    lower: Vec<f64>,
}

impl Factor {
    /// Factors a matrix of `size` rows. `None` if it is not positive definite.
    pub(super) fn of(matrix: &[f64], size: usize) -> Option<Factor> {
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let done: f64 = (0..column).map(|n| lower[row * size + n] * lower[column * size + n]).sum();
                let rest = matrix[row * size + column] - done;
                if row != column {
                    lower[row * size + column] = rest / lower[column * size + column];
                } else if rest > 0.0 {
                    lower[row * size + row] = rest.sqrt();
                } else {
                    return None;
                }
            }
        }
        Some(Factor { size, lower })
    }

    /// Solves `lower · z = right` in place.
    pub(super) fn forward(&self, right: &mut [f64]) {
        for row in 0..self.size {
            let done: f64 = (0..row).map(|n| self.lower[row * self.size + n] * right[n]).sum();
            right[row] = (right[row] - done) / self.lower[row * self.size + row];
        }
    }

    /// The logarithm of the square root of the determinant.
    pub(super) fn ln_root(&self) -> f64 {
        (0..self.size).map(|n| self.lower[n * self.size + n].ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_solves_and_knows_the_determinant() {
        // Computed by hand: [[4, 2], [2, 5]] has the factor [[2, 0], [1, 2]] and the determinant 16.
        let factor = Factor::of(&[4.0, 2.0, 2.0, 5.0], 2).expect("positive definite");
        let mut right = [2.0, 5.0];
        factor.forward(&mut right);
        assert_eq!((right, factor.ln_root()), ([1.0, 2.0], 4f64.ln()));
        assert!(Factor::of(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
    }
}
