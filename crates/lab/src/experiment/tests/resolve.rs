//! Tests that valid experiments resolve correctly.

use super::{GOOD, good, render, with};
use crate::experiment::{
    FactorName, Filesystem, Fill, Form, Length, Level, Measure, Of, Order, Pace, Pattern, Purge, SteadyRule,
    Target,
};
use lowtide_core::workload::{Access, Arrival, BlockShare, Distribution, Zone};
use lowtide_core::{Bytes, Nanos};

fn point(levels: &[Level]) -> String {
    levels.iter().map(|level| format!("{} {level}", level.factor())).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_default_is_filled_in() {
    let experiment = good(GOOD, &[]);
    assert_eq!((experiment.name.as_str(), experiment.title.as_str()), ("small", "small"));
    assert_eq!(experiment.target, Target::Device("intel-320-160gb".to_owned()));
    assert_eq!((experiment.repeat.times, experiment.repeat.order), (1, Order::AsWritten));
    let load = &experiment.load;
    assert_eq!((load.threads, load.depth, load.streams, load.pace), (1, 1, 1, Pace::Closed));
    assert_eq!((load.interval, load.steady), (Nanos::from_secs(10), SteadyRule::Lowtide));
    let [step] = experiment.steps.as_slice() else { panic!("one step") };
    assert_eq!((&step.name, step.purge_before), (&None, Purge::None));
    assert_eq!((step.preparation.purge, step.preparation.fill), (Purge::None, Fill::None));
    assert!(!step.preparation.forgets_history());
    assert_eq!(good(&with("\"1h\"", "\"5s\""), &[]).load.interval, Nanos::from_millis(500));
}

#[test]
fn a_device_is_a_name_or_a_table_that_composes_it() {
    let device = |value: &str| good(&with("\"intel-320-160gb\"", value), &[]).resolved.target;
    let half = "fusionio-duo-640-mlc-half";
    for (value, name) in [
        (format!("'{half}:windows'"), "fusionio-duo-640-mlc-half-windows"),
        (format!("{{ data = '{half}', mode = 'windows' }}"), "fusionio-duo-640-mlc-half-windows"),
        (
            format!("{{ data = '{half}', mode = 'windows', log = 'sas-15k-73gb:shallow' }}"),
            "fusionio-duo-640-mlc-half-windows+sas-15k-73gb-shallow",
        ),
        ("{ data = './a.toml', mode = 'x', log = 'b.toml:y' }".to_owned(), "./a.toml:x+b.toml:y"),
        ("'no-such-device:x'".to_owned(), "no-such-device:x"),
    ] {
        assert_eq!(device(&value), Target::Device(name.to_owned()), "{value}");
    }
    let text = with(
        "file_size = [",
        "device = ['mtron-32gb', { data = 'mtron-32gb', log = 'sas-15k-73gb' }]\nfile_size = [",
    );
    let levels = ["mtron-32gb", "mtron-32gb+sas-15k-73gb"].map(|name| Level::Device(name.to_owned()));
    assert_eq!(good(&text, &[]).steps[0].factor(FactorName::Device).expect("swept").levels, levels);
    let one = with("file_size = [", "device = { data = 'mtron-32gb', log = 'sas-15k-73gb' }\nfile_size = [");
    assert_eq!(good(&one, &[]).steps[0].factor(FactorName::Device).expect("swept").levels, levels[1..]);
}

#[test]
fn cells_are_the_product_of_the_factors_in_the_order_written() {
    let text = with("[sweep]", "[sweep]\nthreads = { from = 1, to = 4, factor = 2 }");
    let experiment = good(&text, &[]);
    let points: Vec<String> = experiment.steps[0].points().map(|levels| point(&levels)).collect();
    assert_eq!(
        points,
        [
            "threads 1, file_size 10GiB",
            "threads 1, file_size 20GiB",
            "threads 2, file_size 10GiB",
            "threads 2, file_size 20GiB",
            "threads 4, file_size 10GiB",
            "threads 4, file_size 20GiB",
        ]
    );
    let levels = experiment.steps[0].points().nth(3).expect("there is one");
    let settings = experiment.settings(&experiment.steps[0], &levels);
    assert_eq!((settings.load.threads, settings.load.file_size), (2, Some(Bytes::gib(20))));
    assert_eq!(settings.device.as_deref(), Some("intel-320-160gb"));
}

#[test]
fn several_devices_are_the_slowest_factor() {
    let experiment = good(&with("\"intel-320-160gb\"", "[\"b\", \"a\"]"), &[]);
    let devices: Vec<String> = experiment.steps[0].points().map(|levels| levels[0].to_string()).collect();
    assert_eq!(devices, ["b", "b", "a", "a"]);
    let last = experiment.steps[0].points().last().expect("there are points");
    assert_eq!(experiment.settings(&experiment.steps[0], &last).device.as_deref(), Some("a"));
}

#[test]
fn a_mix_makes_the_short_patterns_whole() {
    let experiment = good(&with("\"random-write\"", "\"random\"\nmix = 0.83"), &[]);
    assert_eq!(
        (experiment.load.pattern, experiment.load.workload().read_share),
        (Pattern::RandomMixed, 0.83)
    );
    let reading = good(&with("\"random-write\"", "\"sequential-read\"\nstreams = 2"), &[]).load.workload();
    assert_eq!((reading.access, reading.read_share, reading.streams), (Access::Sequential, 1.0, 2));
}

#[test]
fn skew_and_pace_reach_the_workload() {
    let more =
        "block = \"16KiB\"\nhot-cold = { data = 0.2, access = 0.8 }\nrate = 1000\narrival = \"poisson\"";
    let workload = good(&with("block = \"16KiB\"", more), &[]).load.workload();
    assert_eq!(workload.distribution, Distribution::hot_cold(Zone { data: 0.2, access: 0.8 }));
    assert_eq!(workload.arrival, Arrival::Poisson { per_second: 1000.0 });
    let experiment = good(&with("[sweep]", "[sweep]\nrate = [10]\nzipf = [1.1]"), &[]);
    let levels = experiment.steps[0].points().next().expect("there is one");
    let workload = experiment.settings(&experiment.steps[0], &levels).load.workload();
    assert_eq!(workload.arrival, Arrival::Fixed { per_second: 10.0 });
    assert_eq!(workload.distribution, Distribution::Zipf { exponent: 1.1 });
}

#[test]
fn several_sizes_and_zones_reach_the_workload() {
    let more = "blocks = [{ size = \"64KiB\", share = 0.3 }, { size = \"1536B\", share = 0.7 }]\n\
                zones = [{ data = 0.1, access = 0.7 }, { data = 0.2, access = 0.2 }, { data = 0.7, access = 0.1 }]";
    let load = good(&with("block = \"16KiB\"", more), &[]).resolved.load;
    let workload = load.workload();
    assert_eq!((load.block, workload.granule()), (Bytes::kib(64), Bytes::new(512)));
    let blocks: Vec<BlockShare> = workload.blocks.iter().flat_map(|blocks| blocks.iter()).copied().collect();
    let small = BlockShare { size: Bytes::new(1536), share: 0.7 };
    assert_eq!(blocks, [BlockShare { size: Bytes::kib(64), share: 0.3 }, small]);
    let zones = [(0.1, 0.7), (0.2, 0.2), (0.7, 0.1)].map(|(data, access)| Zone { data, access });
    assert_eq!(workload.distribution, Distribution::Zones(zones.to_vec()));
}

#[test]
fn one_size_takes_the_place_of_several_and_the_other_way_round() {
    let several = "blocks = [{ size = \"64KiB\", share = 0.3 }, { size = \"1536B\", share = 0.7 }]";
    let set = format!("blocks={}", several.trim_start_matches("blocks = "));
    let load = good(&with("block = \"16KiB\"", several), &["block=4KiB", "zipf=1.1"]).resolved.load;
    assert_eq!((load.block, load.blocks), (Bytes::kib(4), None));
    let load = good(&with("block = \"16KiB\"", "block = \"16KiB\"\nzipf = 1.1"), &[&set]).resolved.load;
    assert_eq!(load.block, Bytes::kib(64));
    // Tables under their own headers cannot be replaced from the command line.
    let headed = "[[workload.blocks]]\nsize = \"64KiB\"\nshare = 0.3\n[[workload.blocks]]\nsize = \"512B\"\nshare = 0.7";
    let text = with("block = \"16KiB\"\n", "").replace("[sweep]", &format!("{headed}\n[sweep]"));
    assert_eq!(good(&text, &[]).load.block, Bytes::kib(64));
    let error = super::parse(&text, &["block=4KiB"]).expect_err("a table under its own header");
    assert!(error.contains("blocks"), "{error}");
}

#[test]
fn a_steady_end_has_its_limits() {
    let load = good(&with("duration = \"1h\"", "until = \"steady\"\nsteady = \"snia\""), &[]).resolved.load;
    assert_eq!(load.length, Length::UntilSteady { max: Nanos::from_secs(14400), precision: 0.015 });
    assert_eq!(load.steady, SteadyRule::Snia);
}

#[test]
fn a_step_says_only_what_differs() {
    let text = with(
        "[sweep]",
        "[before-each-cell]\nlayout = { filesystem = \"ext4\", files = 2 }\nfill = \"random\"\n\
         [[step]]\nname = \"first\"\npurge-before = \"secure-erase\"\n\
         [[step]]\nname = \"second\"\nlayout = { partition = \"120GB\" }\nsweep = { threads = [1, 2], file_size = \"5GiB\" }\n\
         [sweep]",
    );
    let experiment = good(&text, &[]);
    let [first, second] = experiment.steps.as_slice() else { panic!("two steps") };
    assert_eq!((first.purge_before, second.purge_before), (Purge::SecureErase, Purge::None));
    let layout = &second.preparation.layout;
    assert_eq!((layout.filesystem, layout.files), (Filesystem::Ext4, 2));
    assert_eq!(layout.partition, Some(Bytes::new(120_000_000_000)));
    assert_eq!(second.preparation.fill, Fill::Random);
    let names =
        |step: &crate::experiment::Step| step.sweep.iter().map(|factor| factor.name).collect::<Vec<_>>();
    assert_eq!(names(first), [FactorName::FileSize]);
    assert_eq!(names(second), [FactorName::FileSize, FactorName::Threads]);
    assert_eq!(second.points().count(), 2);
}

#[test]
fn a_comparison_holds_its_published_number_and_finds_its_cells() {
    let text = with(
        "[sweep]",
        "[[published]]\nstudy = \"e02\"\nline = 6\nmeasure = \"mean-after\"\nafter = \"2500s\"\n\
         where = { file_size = { from = \"15GiB\", to = \"70GiB\" } }\n[sweep]",
    );
    let experiment = good(&text, &[]);
    let [comparison] = experiment.published.as_slice() else { panic!("one") };
    assert_eq!((comparison.published.value, comparison.published.unit.as_str()), (40.0, "MiB/s"));
    let finding = &comparison.finding;
    assert_eq!((finding.measure, finding.after), (Measure::MeanAfter, Nanos::from_secs(2500)));
    assert_eq!((finding.of, finding.form), (Of::Throughput, Form::Value));
    let step = &experiment.steps[0];
    let meant: Vec<String> = step
        .points()
        .filter(|levels| finding.cells.includes(step, levels, 1))
        .map(|levels| point(&levels))
        .collect();
    assert_eq!(meant, ["file_size 20GiB"]);
}

#[test]
fn later_stages_point_at_a_key_or_at_the_table_around_a_default() {
    let experiment = good(GOOD, &["threads=2"]);
    let blame = |path: &str| render(&experiment.blame(path, "20GiB do not fit on 16GiB", "at most 16GiB"));
    insta::assert_snapshot!(blame("sweep.file_size.1"), @r#"
     × 20GiB do not fit on 16GiB
       ╭─[small.toml:12:23]
    11 │ [sweep]
    12 │ file_size = ["10GiB", "20GiB"]
       ·                       ───┬───
       ·                          ╰── here
       ╰────
     help: at most 16GiB
    "#);
    assert!(blame("target.device").contains("[small.toml:4:10]"));
    assert!(blame("workload.depth").contains("[small.toml:6:1]"));
    assert!(blame("workload.threads").contains("[--set threads=2:1:9]"));
    let span = experiment.span_of("workload.block").expect("it is written");
    assert_eq!(&experiment.text()[span], "\"16KiB\"");
}
