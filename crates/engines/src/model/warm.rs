//! Warm-up of a modelled cache: transactions that access pages without device or processor time.

/// Maximum number of transactions.
const MAX_TRANSACTIONS: u64 = 4_000_000;
/// Minimum number of transactions, for the precision of the mean number of steps.
const MIN_TRANSACTIONS: u64 = 20_000;

/// Runs transactions of all sessions in turn until the caches are warm. Returns the mean number of steps.
///
/// `transaction` runs the transaction with the given number. It returns the number of steps, and `true` once the
/// caches are warm.
pub(super) fn warm_up<S>(
    sessions: &mut [S],
    mut transaction: impl FnMut(&mut S, u64) -> (usize, bool),
) -> f64 {
    let (mut transactions, mut steps, mut is_warm) = (0, 0, false);
    while transactions < MIN_TRANSACTIONS || (!is_warm && transactions < MAX_TRANSACTIONS) {
        let session = &mut sessions[(transactions % sessions.len() as u64) as usize];
        let (more, warm) = transaction(session, transactions);
        transactions += 1;
        steps += more as u64;
        is_warm = warm;
    }
    steps as f64 / transactions as f64
}
