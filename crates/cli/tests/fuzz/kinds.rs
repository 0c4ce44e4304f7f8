//! The kinds of input: valid samples, cases made from them, the function that runs a case, and the arguments for the
//! command.
//!
//! `main` and `worker` run and supervise the cases.

use super::entries::{self, Options, Outcome};
use super::mutate::{Pool, Random, edge};
use super::{common, databases};
use std::path::{Path, PathBuf};

/// A kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Experiment,
    Device,
    Fit,
    Prices,
    FioJson,
    Trace,
    Store,
    Parts,
}

impl Kind {
    /// All kinds, each with its share of the cases in percent. Kinds with slow cases have small shares.
    pub const ALL: [(Kind, u64); 8] = [
        (Kind::Experiment, 22),
        (Kind::Device, 18),
        (Kind::Fit, 6),
        (Kind::Prices, 12),
        (Kind::FioJson, 14),
        (Kind::Trace, 16),
        (Kind::Store, 8),
        (Kind::Parts, 4),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Experiment => "experiment",
            Kind::Device => "device",
            Kind::Fit => "fit",
            Kind::Prices => "prices",
            Kind::FioJson => "fio-json",
            Kind::Trace => "trace",
            Kind::Store => "store",
            Kind::Parts => "parts",
        }
    }

    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().map(|(kind, _)| kind).find(|kind| kind.name() == name)
    }
}

/// A case: an input and the way to run it.
#[derive(Debug, Default)]
pub struct Case {
    /// Names of the files; the first file is the input.
    pub files: Vec<String>,
    /// Overrides of an experiment.
    set: Vec<String>,
    options: Options,
    /// Arguments of the command for these files.
    pub arguments: Vec<String>,
}

/// Valid inputs of one kind.
pub struct Samples {
    kind: Kind,
    pool: Pool,
    /// Stores and parts, by path.
    stores: Vec<PathBuf>,
}

/// A store that no case changes.
const REPORTED: &str = "ask-the-store.db";

impl Samples {
    /// Reads the samples that [`prepare`] put into a folder.
    pub fn read(kind: Kind, folder: &Path) -> Samples {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let all = |folder: &str| files(&root.join(folder)).iter().map(|path| read(path)).collect::<Vec<_>>();
        let texts: Vec<Vec<u8>> = match kind {
            Kind::Experiment => {
                let mut texts = all("experiments");
                texts.extend([common::TINY, common::READS].map(|text| text.as_bytes().to_vec()));
                texts
            }
            Kind::Device => all("devices"),
            Kind::Fit => TABLES.iter().map(|text| text.as_bytes().to_vec()).collect(),
            Kind::Prices => PRICES.iter().map(|text| text.as_bytes().to_vec()).collect(),
            Kind::FioJson => {
                let mut texts: Vec<Vec<u8>> = (1..=3).map(|jobs| fio_json(jobs).into_bytes()).collect();
                texts.extend(LOGS.iter().map(|text| text.as_bytes().to_vec()));
                texts
            }
            Kind::Trace => {
                let mut texts: Vec<Vec<u8>> = TRACES.iter().map(|text| text.as_bytes().to_vec()).collect();
                texts.push(read(&root.join("crates/files/src/trace/sample.blkparse")));
                texts
            }
            Kind::Store | Kind::Parts => Vec::new(),
        };
        let names: &[&str] = match kind {
            Kind::Store => &["whole.db", "imported.db", "part1.db"],
            Kind::Parts => &["part1.db", "part2.db", "whole.db"],
            _ => &[],
        };
        let stores = names.iter().map(|name| folder.join(name)).collect();
        Samples { kind, pool: Pool::new(texts), stores }
    }

    /// Makes a case in a folder.
    pub fn make(&self, seed: u64, number: u64, folder: &Path) -> Case {
        let random = &mut Random::new(seed, self.kind.name(), number);
        let mut case = Case::default();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.join(name), bytes).expect("the folder can be written");
            name.to_owned()
        };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
        match self.kind {
            Kind::Experiment => {
                case.files.push(write("f.toml", &self.pool.make(random)));
                if random.one_in(4) {
                    let keys = ["threads", "file_size", "block", "oltp.servers", "duration"];
                    let more = ["pattern", "sweep.file_size", "target.device", "x"];
                    let keys = [&keys[..], &more].concat();
                    case.set.push(format!("{}={}", random.pick(&keys), edge(random)));
                }
                let verbs = [
                    "plan ./f.toml",
                    "plan ./f.toml --format json",
                    "experiments show ./f.toml",
                    "plan ./f.toml --scale 1/64",
                ];
                case.arguments = words(random.pick(&verbs));
                if case.arguments[0] == "plan" {
                    for set in &case.set {
                        case.arguments.extend(["--set".to_owned(), set.replace('\0', "")]);
                    }
                }
            }
            Kind::Device => {
                case.files.push(write("f.toml", &self.pool.make(random)));
                write("tiny.toml", common::TINY.as_bytes());
                let verbs = [
                    "devices show ./f.toml",
                    "plan ./tiny.toml --target device:./f.toml",
                    "plan ./tiny.toml --target device:./f.toml --scale 1/256",
                ];
                case.arguments = words(random.pick(&verbs));
            }
            Kind::Fit => {
                case.files.push(write("f.csv", &self.pool.make(random)));
                case.options = options(random);
                case.arguments = words("fit f.csv");
                let Options { capacity, block, data, like, threads, predict, fix, budget } = &case.options;
                let named = [("capacity", capacity), ("block", block), ("data", data), ("like", like)];
                let mut more = Vec::new();
                for (name, value) in named {
                    more.extend(value.iter().map(|value| format!("--{name}={value}")));
                }
                more.extend(threads.iter().map(|threads| format!("--threads={threads}")));
                more.extend(predict.iter().map(|size| format!("--predict={size}")));
                more.extend(fix.iter().map(|pair| format!("--fix={pair}")));
                more.push(format!("--budget={budget}"));
                case.arguments.extend(more);
            }
            Kind::Prices => {
                let name = if random.one_in(2) { "f.csv" } else { "f.toml" };
                case.files.push(write(name, &self.pool.make(random)));
                case.arguments = words(&format!("cost 1 --store ../{REPORTED} --prices {name}"));
            }
            Kind::FioJson => {
                let names = ["f.json", "f_bw.1.log", "f_clat_hist.1.log", "f.log"];
                let name = names[if random.one_in(4) { random.below(4) } else { 0 }];
                case.files.push(write(name, &self.pool.make(random)));
                case.arguments = words(&format!("store import {name} --store out.db"));
            }
            Kind::Trace => {
                case.files.push(write("f.trace", &self.pool.make(random)));
                write("replay.toml", REPLAY.as_bytes());
                case.arguments = words("plan ./replay.toml");
            }
            Kind::Store => {
                case.files.push(self.changed(random, "f.db", folder));
                let verbs = [
                    "report --store f.db -o r.html",
                    "store show --store f.db",
                    "store export --store f.db --format csv",
                    "store export --store f.db --format json",
                    "compare f.db ../ask-the-store.db",
                    "fit f.db --budget 1000",
                    "cost f.db",
                ];
                case.arguments = words(random.pick(&verbs));
            }
            Kind::Parts => {
                case.files.push(self.changed(random, "f.db", folder));
                case.files.push(self.changed(random, "g.db", folder));
                case.arguments = words("store merge f.db g.db -o out.db");
            }
        }
        case
    }

    /// A changed copy of one of the stores.
    fn changed(&self, random: &mut Random, name: &str, folder: &Path) -> String {
        let path = folder.join(name);
        std::fs::copy(&self.stores[random.below(self.stores.len())], &path)
            .expect("the folder can be written");
        databases::change(&path, random);
        name.to_owned()
    }

    /// Runs a case in this process.
    pub fn run(&self, case: &Case, folder: &Path) -> Outcome {
        let input = folder.join(&case.files[0]);
        let bytes = || read(&input);
        match self.kind {
            Kind::Experiment => entries::experiment(&bytes(), &case.set),
            Kind::Device => entries::device(&bytes()),
            Kind::Fit => entries::fitted(&bytes(), &case.options),
            Kind::Prices => entries::prices(&bytes(), case.files[0].ends_with(".toml")),
            Kind::FioJson => entries::imported(&input, &folder.join("out.db")),
            Kind::Trace => entries::traced(&bytes()),
            Kind::Store => entries::stored(&input),
            Kind::Parts => {
                let parts: Vec<PathBuf> = case.files.iter().map(|name| folder.join(name)).collect();
                entries::merged(&parts, &folder.join("out.db"))
            }
        }
    }
}

/// Makes the stores from which cases are made, in a folder.
pub fn prepare(folder: &Path) {
    let lab = common::Lab::new();
    lab.ok("run ./tiny.toml --scale 1/256 --store whole.db");
    lab.ok("run ./reads.toml --scale 1/256 --store whole.db");
    for part in [1, 2] {
        lab.ok(&format!("run ./tiny.toml --scale 1/256 --part {part}/2 --store part{part}.db"));
    }
    lab.write("run.json", fio_json(2));
    lab.ok("store import run.json --store imported.db");
    lab.ok(&format!("run ./tiny.toml --scale 1/256 --store {REPORTED}"));
    for name in ["whole.db", "part1.db", "part2.db", "imported.db", REPORTED] {
        std::fs::copy(lab.path(name), folder.join(name)).expect("the folder can be written");
    }
}

fn options(random: &mut Random) -> Options {
    let mut maybe = |good: &[&str], odds: usize| -> Option<String> {
        match random.below(10) {
            0 => Some(edge(random).trim_matches('"').to_owned()),
            at if at <= odds => Some(random.pick(good).to_owned()),
            _ => None,
        }
    };
    let capacity = maybe(&["1GiB", "2GiB", "4GiB"], 8);
    let block = maybe(&["256KiB", "1MiB", "64KiB"], 8);
    let data = maybe(&["512MiB", "1GiB"], 3);
    let like = maybe(&["intel-320-160gb", "datacentre-tlc-nvme", "sata-7k2-1tb"], 0);
    let predict = maybe(&["700MiB", "1GiB", "900MiB,300MiB"], 2);
    let mut fix = Vec::new();
    for pair in
        ["raw=2GiB", "write-cost=4us", "gc-cost=9us", "policy=fifo", "policy=greedy", "map-reach=512MiB"]
    {
        if random.one_in(4) {
            let key = pair.split_once('=').map_or(pair, |(key, _)| key);
            let is_odd = random.one_in(6);
            fix.push(if is_odd {
                format!("{key}={}", edge(random).trim_matches('"'))
            } else {
                pair.to_owned()
            });
        }
    }
    let threads = random.one_in(3).then(|| [0, 1, 16, 4096, u32::MAX][random.below(5)]);
    // Most budgets end before a simulation, some after a few, and a few find a drive.
    let budget = if random.one_in(30) { 3_000_000 } else { [0, 1000, 1000, 1000, 200_000][random.below(5)] };
    let predict = predict.iter().flat_map(|sizes| sizes.split(',')).map(str::to_owned).collect();
    Options { capacity, block, data, like, threads, predict, fix, budget }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Levels of small drives, in every form of table.
const TABLES: [&str; 5] = [
    "data,throughput\n128MiB,200\n256MiB,198\n512MiB,190\n700MiB,160\n900MiB,120\n",
    "utilisation,throughput,deviation\n20%,200,2\n0.4,198,2\n0.6,180,3\n# full\n0.95,90,3\n",
    "file_size,iops\n200000000,3000\n400000000,2900\n800000000,1500\n1000000000,1000\n",
    "time,throughput\n0,100\n1,100\n2,101\n3,100\n4,99\n5,100\n6,60\n7,50\n8,40\n9,40\n10,40\n11,40\n12,41\n13,40\n14,40\n15,40\n",
    "data,throughput\n128MiB,200\n256MiB,198\n300MiB,190\n500MiB,160\n1000MiB,100\n",
];

const PRICES: [&str; 3] = [
    "# Percona, 2010-06-15\nname,usd\nintel-x25-e-32gb, 390\nfusionio-160gb-slc,$6308.99\nintel-320-160gb,299\n",
    "intel-320-160gb = 299\n\"fusionio-160gb-slc\" = 6308.99\nvirident-tachion-400 = \"$13600\"\n",
    "intel-320-160gb,299\n\"a, quoted\",1e3\n",
];

/// Traces: native, and in both versions of fio's format.
const TRACES: [&str; 3] = [
    "lowtide trace 1\n0 read 0 4096\n1000 write 4096 4096\n2000 flush\n3000 trim 8192 4096\n4000 write 65536 131072\n",
    "fio version 3 iolog\n17 /a add\n18 /b add\n119 /a open\n127 /a read 8192 4096\n314 /b write 0 512\n315 /b sync 815104 0\n\
     400 /a trim 0 4096\n500 /b close\n",
    "fio version 2 iolog\n/a add\n/a open\n/a wait 500 0\n/a read 0 4096\n/a write 4096 4096\n/a wait 1000 0\n/a datasync 0 0\n\
     /a wait 250 0\n/a read 512 512\n/a close\n",
];

/// Logs of fio, which are imported like its JSON: bandwidth, one line for each request, and histograms.
const LOGS: [&str; 3] = [
    "500, 4000, 0, 4096\n1000, 4100, 0, 4096\n1500, 3900, 1, 4096\n2000, 4000, 1, 4096\n2500, 4000, 0, 4096\n",
    "1, 1200, 0, 4096, 0, 0\n2, 1300, 0, 4096, 4096, 0\n3, 1500, 1, 4096, 8192, 0\n10, 900, 0, 4096, 0, 0\n",
    "1000, 0, 4096, 0, 0, 5, 7, 1, 0\n2000, 0, 4096, 0, 1, 4, 9, 0, 0\n3000, 1, 4096, 2, 2, 2, 0, 0, 0\n",
];

const REPLAY: &str =
    "name = \"replay\"\ntarget.device = \"intel-320-160gb\"\n[workload]\ntrace = \"f.trace\"\nwrap = true\n";

/// The output of fio 3 for a number of jobs.
fn fio_json(jobs: u32) -> String {
    let none = r#"{"io_bytes": 0, "io_kbytes": 0, "runtime": 0, "total_ios": 0}"#;
    let job = |n: u32| {
        format!(
            r#"{{"jobname": "job{n}", "error": 0, "job options": {{"rw": "randread", "bs": "4k", "iodepth": "{n}", "size": "1g"}},
 "read": {{"io_bytes": 4096000, "io_kbytes": 4000, "runtime": 2000, "total_ios": 1000,
 "clat_ns": {{"min": 1, "max": 70000, "mean": 1500.5, "stddev": 12.5, "N": 1000,
 "percentile": {{"50.000000": 1000, "95.000000": 5000, "99.000000": 9000, "99.900000": 20000}},
 "bins": {{"1000": 500, "5000": 480, "70000": 20}}}}}},
 "write": {none},
 "trim": {none}}}"#
        )
    };
    let jobs: Vec<String> = (1..=jobs).map(job).collect();
    format!(
        "{{\"fio version\": \"fio-3.36\", \"timestamp\": 1700000000,\n\"jobs\": [\n{}\n]}}\n",
        jobs.join(",\n")
    )
}
