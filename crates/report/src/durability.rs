//! Whether durable writes can be true: what they took, held against what the medium can do at best.
//!
//! Speaks where an experiment varies `sync`. Limits of media: a disk makes no more than one write a turn durable in one
//! place, at 15 000 turns a minute 250 a second; NAND takes at least 75 µs to program a page (XL-FLASH; R. Yamashita et
//! al., "A 128Gb 1-bit/cell 96-word-line-layer 3D flash memory …", ISSCC 2019), and planar SLC and today's TLC several
//! times that. Whoever is faster keeps data elsewhere: in a cache that is protected, in a medium that is not NAND, or
//! nowhere. Not here: power cuts, which alone tell these apart.

use super::number::{significant, span};
use crate::answer::Answer;
use lowtide_record::Campaign;

/// Turns a second of the fastest disk.
const TURNS_PER_S: f64 = 250.0;
/// Nanoseconds that NAND takes to program a page, at least.
const PROGRAM_NS: f64 = 75_000.0;
/// Durable writes that are slower than others by less than this cost nothing to speak of.
const NOTHING: f64 = 1.2;

/// The sentences about durable writes; none where `sync` is not varied.
pub(crate) fn sentences(campaign: &Campaign, answers: &[Answer<'_>]) -> Vec<String> {
    let level = |word: &str| {
        let mut of = answers.iter().filter(|answer| answer.cell.level("sync") == Some(word));
        // The fewest threads: others share flushes.
        let first = of.clone().map(|answer| answer.cell.threads).min()?;
        let answer = of.find(|answer| answer.cell.threads == first)?;
        Some((answer.latency_ns(50.0)?, answer.iops?))
    };
    let (none, fua, flush) = (level("none"), level("fua"), level("flush"));
    let Some(durable) = flush.or(fua) else { return Vec::new() };
    let told = [("taken", none), ("durable by forced unit access", fua), ("durable by a flush", flush)];
    let told: Vec<String> = told
        .iter()
        .filter_map(|(what, level)| {
            let (median_ns, iops) = (*level)?;
            Some(format!("{what} in {} ({} a second)", span(median_ns), significant(iops)))
        })
        .collect();
    let mut out = vec![format!("Half of the writes are {}; the rates are means.", told.join(", "))];
    let fact = |name: &str| {
        let found = campaign.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let Some(cache) = fact("write-cache") else { return out };
    out.push(match cache {
        "write through" => "The device says that it has no volatile write cache, so the kernel sends it no flushes: \
                            data that it has taken must be durable."
            .to_owned(),
        _ => "The device says that its write cache is volatile: what is only taken is lost when the power fails."
            .to_owned(),
    });
    // What is below a virtual disk, its host knows.
    let virtual_disk = ["/dev/vd", "/dev/xvd", "/dev/loop", "/dev/nbd", "/dev/zram", "/dev/ram"];
    if let Some(device) =
        fact("device").filter(|device| virtual_disk.iter().any(|name| device.starts_with(name)))
    {
        out.push(format!("{device} is no drive: what is below it decides, which cannot be seen from here."));
        out.push("Only cutting the power tells what survives.".to_owned());
        return out;
    }
    // The faster of the two is the harder to believe.
    let (median_ns, iops) =
        [flush, fua].into_iter().flatten().fold(durable, |a, b| if b.0 < a.0 { b } else { a });
    let elsewhere = "it keeps them in a cache that is protected, or not at all";
    if fact("rotational") == Some("yes") && iops > TURNS_PER_S * NOTHING {
        out.push(format!(
            "{} durable writes a second are more than the {TURNS_PER_S} that the fastest disk has turns for: {elsewhere}.",
            significant(iops)
        ));
    } else if fact("rotational") == Some("no") && median_ns < PROGRAM_NS {
        out.push(format!(
            "A durable write in {} is faster than NAND can be programmed ({}): {elsewhere}, or it is not NAND.",
            span(median_ns),
            span(PROGRAM_NS)
        ));
    } else if none.is_some_and(|(plain_ns, _)| median_ns < plain_ns * NOTHING) {
        out.push(format!(
            "Durability costs nothing to speak of: {elsewhere}, or every write goes to the medium."
        ));
    } else {
        out.push(
            "Durable writes take as long as a medium needs, which does not prove that they reach it."
                .to_owned(),
        );
    }
    out.push("Only cutting the power tells what survives.".to_owned());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use lowtide_record::FactorLevel;

    /// The sample with a cell for each word of `sync`, whose writes take so long.
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
    fn what_no_medium_can_do_is_called_by_its_name() {
        let honest = judged(&[("none", 20_000), ("flush", 900_000)], "write back", "no").join(" ");
        assert!(honest.contains("as long as a medium needs") && honest.contains("is volatile"), "{honest}");
        let fast = judged(&[("none", 20_000), ("flush", 25_000)], "write back", "no").join(" ");
        assert!(fast.contains("faster than NAND can be programmed"), "{fast}");
        let disk = judged(&[("none", 100_000), ("flush", 200_000)], "write back", "yes").join(" ");
        assert!(disk.contains("5000 durable writes a second are more than the 250"), "{disk}");
        let slow = judged(&[("none", 100_000), ("flush", 8_000_000)], "write back", "yes").join(" ");
        assert!(slow.contains("as long as a medium needs"), "{slow}");
        let through = judged(&[("none", 400_000), ("fua", 410_000)], "write through", "no").join(" ");
        assert!(through.contains("sends it no flushes") && through.contains("costs nothing"), "{through}");
        assert!(judged(&[("none", 20_000)], "write back", "no").is_empty());
    }
}
