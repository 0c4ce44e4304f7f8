//! Slope and range of equidistant values, for the steady-state rules of SNIA and fio.

/// The slope of the least-squares line through `values` at 0, 1, 2 …
pub fn slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centre = (n - 1.0) / 2.0;
    let products: f64 = values.iter().enumerate().map(|(i, y)| (i as f64 - centre) * y).sum();
    let squares = n * (n * n - 1.0) / 12.0;
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// The largest value minus the smallest.
pub fn range(values: &[f64]) -> f64 {
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - values.iter().copied().fold(f64::INFINITY, f64::min)
}
