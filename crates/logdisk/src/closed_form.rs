//! What cleaning costs by how full a log is: the closed form of the literature ([`by_age`]).
//!
//! Leaves out loads with hot blocks, which cost less.

/// Slots written for a block of the host's when a share of the slots is live, writes are uniform, and segments are cleaned in the order
/// of their age: `WA = a / (a + W(-a e^-a))`, `a` one over the share, `W` the branch of Lambert's function through 0 (Desnoyers,
/// "Analytic modeling of SSD write performance", 2012). Cleaning by cost and benefit is the same under such a load.
pub fn by_age(share: f64) -> f64 {
    let alpha = 1.0 / share;
    let x = -alpha * (-alpha).exp();
    // By Newton's steps.
    let mut w: f64 = 0.0;
    for _ in 0..100 {
        let e = w.exp();
        w -= (w * e - x) / (e * (w + 1.0));
    }
    alpha / (alpha + w)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_has_the_published_values() {
        for (share, expected) in [(0.5, 1.2550), (0.7, 1.8762), (0.8, 2.6927), (0.9, 5.1787), (0.95, 10.1724)]
        {
            let found = super::by_age(share);
            assert!((found - expected).abs() < 1e-3, "{share}: {found}");
        }
    }
}
