//! Tests of the analysis on synthetic series with a known settled level.
//!
//! Assertions count seeds, so results are equal on every machine. A failure prints the seeds. Real and simulated
//! devices have separate tests, which compare with much longer runs.

use super::shapes::Shape;
use super::*;

/// Runs a shape until the criterion ends the measurement, for at most `max` intervals.
fn online(shape: &Shape, criterion: Criterion, seed: u64, max: usize) -> (Option<Estimate>, Online) {
    let mut online = Online::new(shape.context(), criterion);
    let answer = shape.run(seed).take(max).find_map(|row| online.push(&row).expect("even intervals"));
    (answer, online)
}

fn fixed() -> Criterion {
    Criterion::Confidence(Confidence::fixed_duration())
}

fn estimate(verdict: Verdict) -> Option<Estimate> {
    match verdict {
        Verdict::Steady(estimate) => Some(estimate),
        Verdict::NoSteadyState { .. } => None,
    }
}

fn reason(verdict: Verdict) -> String {
    match verdict {
        Verdict::Steady(estimate) => panic!("steady: {estimate:?}"),
        Verdict::NoSteadyState { reason } => reason,
    }
}

/// MiB/s: 80 fresh, 10 in the dip, 70 after the dip, 30 settled.
fn deep() -> Shape {
    Shape::drive(100.0, 10.0, 70.0, 30.0)
}

/// Every shape with its name, with three kinds of noise.
fn shapes() -> Vec<(String, Shape)> {
    let mut all = Vec::new();
    for (noise, phi) in [(0.003, 0.0), (0.01, 0.5), (0.03, 0.8)] {
        let mut add = |name: &str, shape: Shape| {
            all.push((format!("{name}, noise {noise}, phi {phi}"), Shape { noise, phi, ..shape }));
        };
        add("reads", Shape::reads(200.0, noise, phi));
        add("deep", deep());
        add("deep, raw unknown", Shape { raw_known: false, ..deep() });
        add("nearly full", Shape::drive(140.0, 6.0, 30.0, 12.0));
        add("small file", Shape { fresh: 100.0, ..Shape::drive(10.0, 95.0, 97.0, 96.0) });
        add("sawtooth", Shape { sawtooth: (0.15, 300.0), ..deep() });
        add("slow sawtooth", Shape { sawtooth: (0.15, 1730.0), ..deep() });
        add("outliers", Shape { outlier: (0.02, 0.2), ..deep() });
        add("scaled down", scaled_down());
        for tau in [0.3, 1.0, 3.0] {
            for share in [0.3, 0.1, -0.1] {
                add(
                    &format!("relaxing by {share} over {tau} drive writes"),
                    Shape { relax: (share, tau), ..deep() },
                );
            }
        }
    }
    all.push(("reads, strongly correlated".into(), Shape::reads(200.0, 0.02, 0.95)));
    all
}

/// The deep shape a tenth as large, at one-second intervals.
fn scaled_down() -> Shape {
    Shape {
        capacity_gib: 14.9,
        raw_gib: 16.0,
        interval_s: 1.0,
        dip_s: 10.0,
        overshoot_tau_s: 10.0,
        ..Shape::drive(10.0, 10.0, 70.0, 30.0)
    }
}

#[test]
fn intervals_of_levels_cover_the_truth() {
    for phi in [0.0, 0.3, 0.5, 0.8] {
        for intervals in [360, 1000] {
            let shape = Shape::reads(100.0, 0.01, phi);
            for criterion in [Criterion::default(), fixed()] {
                let found: Vec<(u64, Estimate)> = (0..400)
                    .filter_map(|seed| {
                        Some((seed, estimate(steady(&shape.series(seed, intervals), &criterion))?))
                    })
                    .collect();
                let missed: Vec<u64> = found
                    .iter()
                    .filter(|(_, e)| (e.mean - 100.0).abs() > e.half_width)
                    .map(|(seed, _)| *seed)
                    .collect();
                println!("phi {phi}, {intervals} intervals: {} of {} missed", missed.len(), found.len());
                assert!(found.len() >= 360, "phi {phi}: only {} steady", found.len());
                assert!(
                    missed.len() * 100 <= found.len() * 7,
                    "phi {phi}, {intervals} intervals: seeds {missed:?}"
                );
            }
        }
    }
}

#[test]
fn a_stopped_measurement_is_within_3_percent_of_the_truth() {
    const SEEDS: u64 = 60;
    for (name, shape) in shapes() {
        let truth = shape.settled * (1.0 + shape.outlier.0 * (shape.outlier.1 - 1.0));
        let (mut stops, mut time, mut covered, mut wrong) = (0, 0, 0, Vec::new());
        for seed in 0..SEEDS {
            if let (Some(e), watcher) = online(&shape, Criterion::default(), seed, 15_000) {
                stops += 1;
                time += watcher.series().points().len();
                covered += u64::from((e.mean - truth).abs() <= e.half_width);
                if (e.mean / truth - 1.0).abs() > 0.03 {
                    wrong.push((seed, e.mean));
                }
                if !shape.read_only {
                    let points = watcher.series().points();
                    let from =
                        points.iter().position(|point| point.start_ns == e.from_ns).expect("an interval");
                    let written = watcher.series().written_at(from).as_gib();
                    assert!(
                        written >= shape.raw_gib,
                        "{name}, seed {seed}: begins in the honeymoon, {written} GiB"
                    );
                }
            }
        }
        println!(
            "{name}: {stops} of {SEEDS} stop after {} intervals, {} off, {covered} cover",
            time / stops.max(1),
            wrong.len()
        );
        assert!(stops as u64 * 100 >= SEEDS * 90, "{name}: only {stops} of {SEEDS} stop");
        assert!(wrong.len() * 100 <= stops * 5, "{name}: more than 3 % off at {wrong:?}");
    }
}

#[test]
fn only_the_rules_of_others_stop_in_the_honeymoon() {
    for raw_known in [true, false] {
        let shape = Shape { raw_known, noise: 0.003, ..deep() };
        // 60 GiB at 80 MiB/s: 768 s of plateau.
        for seed in 0..100 {
            let (stopped, watcher) = online(&shape, Criterion::default(), seed, 75);
            assert_eq!(stopped, None, "seed {seed}");
            assert!(
                watcher.why().expect("it looked").to_string().starts_with("still in the honeymoon"),
                "seed {seed}"
            );
            assert_eq!(estimate(steady(watcher.series(), &fixed())), None, "seed {seed}");
        }
        for criterion in [Criterion::Snia(Snia::default()), Criterion::FioSlope(FioSlope::default())] {
            let (stopped, watcher) = online(&shape, criterion, 1, 360);
            let answer = stopped.expect("it stops");
            assert!((answer.mean / 80.0 - 1.0).abs() < 0.01, "{criterion:?} takes the plateau: {answer:?}");
            assert_eq!(answer.to_ns, 300_000_000_000, "{criterion:?}");
            // Over the entire hour, the rule returns the answer with which it stopped the run.
            assert_eq!(estimate(steady(&shape.series(1, 360), &criterion)), Some(answer), "{criterion:?}");
            assert_eq!(watcher.series().points().len(), 30, "{criterion:?}");
        }
    }
}

#[test]
fn an_hour_on_a_drive_that_settles_at_once_is_enough() {
    for (shape, least) in
        [(deep(), 90), (Shape::drive(140.0, 6.0, 30.0, 12.0), 90), (Shape::reads(200.0, 0.01, 0.3), 95)]
    {
        let found: Vec<Estimate> =
            (0..100).filter_map(|seed| estimate(steady(&shape.series(seed, 360), &fixed()))).collect();
        assert!(found.len() >= least, "{shape:?}: only {} steady", found.len());
        assert!(found.iter().all(|e| (e.mean / shape.settled - 1.0).abs() < 0.03), "{shape:?}");
    }
}

#[test]
fn an_hour_that_falls_all_the_way_is_no_steady_state() {
    let shape = Shape { relax: (0.6, 0.5), noise: 0.003, ..deep() };
    for seed in 0..100 {
        for criterion in [Criterion::default(), fixed()] {
            let why = reason(steady(&shape.series(seed, 360), &criterion));
            assert!(why.starts_with("falling by "), "seed {seed}: {why}");
        }
    }
}

#[test]
fn reasons_name_the_missing_condition() {
    let noisy = |level, noise| Shape::reads(level, noise, 0.0);
    let empty = Series::new(noisy(1.0, 0.0).context());
    let default = Criterion::default();
    for (series, criterion, text) in [
        (
            deep().series(1, 30),
            default,
            "still in the honeymoon: 123 GiB written of the 168 GiB the drive can take before garbage collection",
        ),
        (empty, default, "too short: 0 intervals after the transient, at least 30 needed"),
        (noisy(0.0, 0.0).series(1, 50), default, "nothing was read or written"),
        (noisy(1.0, 0.0).series(1, 5), Criterion::Snia(Snia::default()), "the rule `snia` never held"),
    ] {
        assert_eq!(reason(steady(&series, &criterion)), text);
    }
    let why = reason(steady(&noisy(100.0, 0.9).series(1, 60), &fixed()));
    assert!(
        why.starts_with("confidence interval ±") && why.ends_with("is wider than ±10 %: measure longer"),
        "{why}"
    );
}

#[test]
fn the_interval_of_a_series_without_noise_has_no_width() {
    let series = Shape::reads(100.0, 0.0, 0.0).series(1, 100);
    let e = estimate(steady(&series, &Criterion::default())).expect("steady");
    assert!((e.mean - 100.0).abs() < 1e-6 && e.half_width < 1e-6, "{e:?}");
}

#[test]
fn a_disk_has_no_honeymoon_and_a_device_never_purged_may_have_one() {
    let context = Context { medium: Medium::Other, written_before: None, ..deep().context() };
    let series = |context: Context| {
        let mut series = Series::new(context);
        for i in 0..100u64 {
            let (start_ns, end_ns, write_bytes) = (i * 1_000, (i + 1) * 1_000, 1000 << 20);
            let row = crate::Row { start_ns, end_ns, write_bytes, ..crate::Row::default() };
            series.push(&row).expect("even intervals");
        }
        series
    };
    assert!(estimate(steady(&series(context), &Criterion::default())).is_some());
    let flash = Context { medium: Medium::Flash, ..context };
    assert!(
        reason(steady(&series(flash), &Criterion::default())).starts_with("still in the honeymoon: 98 GiB")
    );
}
