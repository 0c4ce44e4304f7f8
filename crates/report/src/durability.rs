//! The plausibility of durable writes: their latency against the physical limits of the medium.
//!
//! The sentences need an experiment that varies `sync`. A disk makes at most one write per revolution durable at one
//! address: 250 per second at 15 000 revolutions per minute. NAND takes at least 75 µs to program a page (XL-FLASH;
//! R. Yamashita et al., "A 128Gb 1-bit/cell 96-word-line-layer 3D flash memory …", ISSCC 2019); planar SLC and
//! today's TLC take several times that. A faster drive keeps data in a protected cache, in a medium other than NAND,
//! or nowhere.
//!
//! # Not modelled
//!
//! Power cuts, the only way to distinguish these cases.

use super::number::{significant, span};
use crate::answer::Answer;
use lowtide_record::Campaign;

/// Revolutions per second of the fastest disk.
const REVOLUTIONS_PER_S: f64 = 250.0;
/// The shortest time to program a NAND page, in nanoseconds.
const PROGRAM_NS: f64 = 75_000.0;
/// Ratios below this count as equal.
const NEGLIGIBLE: f64 = 1.2;
const ONLY_POWER_CUTS: &str = "Only a power cut shows which writes survive.";

/// The sentences about durable writes; none unless `sync` varies.
pub(crate) fn sentences(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<String> {
    let level = |word: &str| {
        let mut of = answers.iter().filter(|answer| answer.cell.level("sync") == Some(word));
        // With the fewest threads, because concurrent writes share flushes.
        let first = of.clone().map(|answer| answer.cell.threads).min()?;
        let answer = of.find(|answer| answer.cell.threads == first)?;
        Some((answer.latency_ns(50.0)?, answer.iops?))
    };
    let (none, fua, flush) = (level("none"), level("fua"), level("flush"));
    let Some(durable) = flush.or(fua) else { return Vec::new() };
    let levels =
        [("acknowledged", none), ("durable by forced unit access", fua), ("durable by a flush", flush)];
    let levels = levels.into_iter().filter_map(|(what, level)| {
        let (median_ns, iops) = level?;
        Some(format!("{what} in {} ({} per second)", span(median_ns), significant(iops)))
    });
    let levels = levels.collect::<Vec<_>>().join(", ");
    let mut out = vec![format!("Half of the writes are {levels}; the rates are means.")];
    let fact = |name: &str| {
        let found = campaign.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let Some(cache) = fact("write-cache") else { return out };
    out.push(match cache {
        "write through" => "The device reports no volatile write cache, so the kernel sends it no flushes: \
                            acknowledged data must be durable."
            .to_owned(),
        _ => {
            "The device reports a volatile write cache: a power cut loses acknowledged data that was not flushed."
                .to_owned()
        }
    });
    // A virtual machine does not know the medium of its virtual disks.
    let virtual_disk = ["/dev/vd", "/dev/xvd", "/dev/loop", "/dev/nbd", "/dev/zram", "/dev/ram"];
    if let Some(device) =
        fact("device").filter(|device| virtual_disk.iter().any(|name| device.starts_with(name)))
    {
        out.push(format!(
            "{device} is not a drive: durability depends on its host, which is not visible here."
        ));
        out.push(ONLY_POWER_CUTS.to_owned());
        return out;
    }
    // Of the two ways to make writes durable, the faster one is less plausible.
    let (median_ns, iops) =
        [flush, fua].into_iter().flatten().fold(durable, |a, b| if b.0 < a.0 { b } else { a });
    let elsewhere = "the device keeps them in a protected cache, or not at all";
    out.push(if fact("rotational") == Some("yes") && iops > REVOLUTIONS_PER_S * NEGLIGIBLE {
        format!(
            "{} durable writes per second are more than the {REVOLUTIONS_PER_S} revolutions of the fastest disk: \
             {elsewhere}.",
            significant(iops)
        )
    } else if fact("rotational") == Some("no") && median_ns < PROGRAM_NS {
        format!(
            "A durable write in {} is faster than NAND can be programmed ({}): {elsewhere}, or the medium is not NAND.",
            span(median_ns),
            span(PROGRAM_NS)
        )
    } else if none.is_some_and(|(plain_ns, _)| median_ns < plain_ns * NEGLIGIBLE) {
        format!("Durable writes cost next to nothing: {elsewhere}, or every write goes to the medium.")
    } else {
        "Durable writes take as long as a medium needs, which does not prove that they reach it.".to_owned()
    });
    out.push(ONLY_POWER_CUTS.to_owned());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use lowtide_record::FactorLevel;

    /// The sentences for a cell per value of `sync` with its write latency in nanoseconds.
    fn judged(levels: &[(&str, u64)], cache: &str, rotational: &str) -> Vec<String> {
        let mut campaign = sample::intel(&[10], 40);
        campaign.environment = vec![
            ("rotational".to_owned(), rotational.to_owned()),
            ("write-cache".to_owned(), cache.to_owned()),
        ];
        let cell = campaign.cells[0].clone();
        campaign.cells = levels
            .iter()
            .map(|(word, took_ns)| {
                let mut cell = cell.clone();
                cell.factors = vec![FactorLevel::word("sync", word)];
                let mut latency = lowtide_core::Latency::default();
                latency.record(lowtide_core::Nanos::new(*took_ns));
                (cell.read_latency, cell.write_latency) = (Default::default(), latency.into());
                for row in std::sync::Arc::make_mut(&mut cell.rows) {
                    row.reads = 0;
                    row.writes = (row.seconds() * 1e9 / *took_ns as f64) as u64;
                }
                cell
            })
            .collect();
        sentences(&campaign, &Answer::of_all(&campaign))
    }

    #[test]
    fn implausibly_fast_durable_writes_are_reported() {
        let honest = judged(&[("none", 20_000), ("flush", 900_000)], "write back", "no").join(" ");
        assert!(
            honest.contains("as long as a medium needs") && honest.contains("volatile write cache"),
            "{honest}"
        );
        let fast = judged(&[("none", 20_000), ("flush", 25_000)], "write back", "no").join(" ");
        assert!(fast.contains("faster than NAND can be programmed"), "{fast}");
        let disk = judged(&[("none", 100_000), ("flush", 200_000)], "write back", "yes").join(" ");
        assert!(disk.contains("5000 durable writes per second are more than the 250"), "{disk}");
        let slow = judged(&[("none", 100_000), ("flush", 8_000_000)], "write back", "yes").join(" ");
        assert!(slow.contains("as long as a medium needs"), "{slow}");
        let through = judged(&[("none", 400_000), ("fua", 410_000)], "write through", "no").join(" ");
        assert!(
            through.contains("sends it no flushes") && through.contains("cost next to nothing"),
            "{through}"
        );
        assert!(judged(&[("none", 20_000)], "write back", "no").is_empty());
    }
}
