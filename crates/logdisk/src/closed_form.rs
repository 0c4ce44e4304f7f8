//! The cost of cleaning at a share of live slots: a closed form of the literature ([`by_age`]).
//!
//! # Not modelled
//! Loads with hot blocks, which cost less.

/// Slots written per block of the host, under uniform writes and FIFO cleaning, when `share` of the slots is live:
/// `WA = a / (a + W(-a e^-a))`, with `a = 1 / share` and `W` the branch of Lambert's function through 0 (Desnoyers,
/// "Analytic modeling of SSD write performance", 2012). Cost-benefit cleaning has the same cost under such a load.
pub fn by_age(share: f64) -> f64 {
    let alpha = 1.0 / share;
    let x = -alpha * (-alpha).exp();
    // Newton's method.
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
