//! Destinations of outputs: a store, an input of the same command or a device is refused, and files are replaced
//! atomically.
//!
//! Every verb that writes a file is in a table here. Tests on block devices and mounts need root, and one needs
//! strace; otherwise they are skipped.

mod common;

#[path = "../../host/tests/common/loopback.rs"]
mod loopback;

use common::{Lab, plain};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// Placeholder for the output in the arguments of a verb.
const OUT: &str = "OUT";

const RUN: &str = "run ./tiny.toml --scale 1/256 --store new.db --report OUT";
const RUN_TWO: &str = "run --interleave ./tiny.toml ./again.toml --scale 1/256 --store new.db --report OUT";
const EXPORT_JOB: &str = "store export --format fio --experiment ./tiny.toml -o OUT";
const FIT: &str = "fit levels.csv -o OUT";
const RUN_STORE: &str = "run ./tiny.toml --scale 1/256 --store OUT";
const IMPORT: &str = "store import fio.json --store OUT";

/// Verbs that replace a file.
const REPLACING: [&str; 11] = [
    "report 1 -o OUT",
    "report 1 --store other.db -o OUT",
    "store export 1 -o OUT",
    "store export 1 --format fio -o OUT",
    EXPORT_JOB,
    RUN,
    RUN_TWO,
    "compare 1 other.db:1 --report OUT",
    "validate raid10-random-write --scale 1/16 --report OUT",
    "advise --data 10GB --writes 1MB/s -o OUT",
    FIT,
];

/// Verbs that create a file, or write into a file. Other rules apply if the output is a device.
const IN_PLACE: [&str; 8] = [
    "drive serve intel-320-160gb --scale 1/256 --tcp 127.0.0.1:0 --state OUT",
    "drive serve intel-320-160gb --scale 1/256 --tcp 127.0.0.1:0 --data OUT",
    "drive serve intel-320-160gb --scale 1/256 --tcp 127.0.0.1:0 --record OUT",
    "drive record start no-server OUT",
    "logdisk format OUT --size 64MiB --overwrite",
    "bench logdisk --size 64MiB --file OUT",
    "run ./tiny.toml --scale 1/65536 --store new.db --target file:OUT",
    "powercut oltp --cuts 1 --keep OUT",
];

/// Verbs that write a store. The store may exist already.
const STORING: [&str; 3] = [RUN_STORE, IMPORT, "store merge other.db -o OUT"];

/// Runs a verb, and checks that it is refused for safety with these words and changes no file.
fn refused(lab: &Lab, command: &str, output: &str, says: &[&str]) {
    let before = contents(lab);
    lab.refuses(&command.replace(OUT, output), 3, says);
    assert!(contents(lab) == before, "lowtide {command}: changed a file");
}

/// The contents of all files, by name.
fn contents(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let names = lab.names().into_iter().filter(|name| lab.path(name).is_file());
    names.map(|name| (name.clone(), lab.read_bytes(&name))).collect()
}

/// A directory with two stores, links to one of them, and inputs of the verbs.
fn lab() -> Lab {
    let lab = Lab::new();
    for store in ["lowtide.db", "other.db"] {
        lab.ok(&format!("run ./tiny.toml --scale 1/256 --store {store} --report r.html"));
    }
    lab.write("levels.csv", "data_gib,mib_per_s\n20,100\n40,50\n80,30\n");
    lab.write("fio.json", "{}");
    lab.write("again.toml", common::TINY.replace("16KiB", "4KiB"));
    symlink("lowtide.db", lab.path("link.db")).expect("a link can be made");
    symlink("link.db", lab.path("link-to-link.db")).expect("a link can be made");
    symlink("lowtide.db-wal", lab.path("link-to-log")).expect("a link can be made");
    std::fs::hard_link(lab.path("lowtide.db"), lab.path("hard.db")).expect("a link can be made");
    lab
}

/// A block device that the tests try to overwrite; `None` if none can be made.
fn block_device(lab: &Lab) -> Option<loopback::Loop> {
    let device = loopback::Loop::new(8, &[])?;
    device.put(0, b"data of the user");
    symlink(&device.node, lab.path("disk")).expect("a link can be made");
    Some(device)
}

#[test]
fn no_output_goes_onto_a_store_or_its_companions() {
    let lab = lab();
    for verb in REPLACING.iter().chain(&IN_PLACE) {
        for store in ["lowtide.db", "other.db", "link.db", "link-to-link.db", "hard.db", "./lowtide.db"] {
            refused(&lab, verb, store, &["is a store: ", "name another"]);
        }
    }
    for verb in REPLACING.iter().chain(&IN_PLACE).chain(&STORING) {
        for companion in ["lowtide.db-wal", "lowtide.db-shm", "other.db-journal", "link-to-log"] {
            refused(&lab, verb, companion, &["belongs to the store"]);
        }
    }
}

#[test]
fn no_output_goes_onto_a_device() {
    let lab = lab();
    for verb in REPLACING.iter().chain(&STORING) {
        refused(&lab, verb, "/dev/random", &["is a character device: "]);
    }
    let Some(device) = block_device(&lab) else { return };
    let before = device.checksum();
    for verb in REPLACING.iter().chain(&STORING) {
        for path in [plain(&device.node), "disk"] {
            refused(&lab, verb, path, &["is a block device", "name another file"]);
        }
    }
    // A redirection to the device by the shell.
    let opened = std::fs::OpenOptions::new().append(true).open(&device.node).expect("opened");
    let mut command = lab.command("report 1 -o /dev/stdout");
    assert_eq!(command.stdout(opened).status().expect("it runs").code(), Some(3));
    assert_eq!(device.checksum(), before);
    assert!(device.node.metadata().expect("it is there").file_type().is_block_device());
}

#[test]
fn no_output_goes_onto_another_file_of_the_command() {
    let lab = lab();
    lab.write("mine.toml", "like = 'intel-320-160gb'\nname = 'mine'\ntitle = 'Mine'\n");
    lab.write("mine-too.toml", "like = './mine.toml'\nname = 'mine-too'\ntitle = 'Mine, too'\n");
    lab.write("mine-run.toml", common::TINY.replace("intel-320-160gb", "./mine-too.toml"));
    lab.write("requests.trace", "lowtide trace 1\n0 read 0 4096\n81250 write-fua 4096 4096\n90125 flush\n");
    symlink("tiny.toml", lab.path("alias")).expect("a link can be made");
    lab.make_directory("folder");
    lab.ok("run replay --store replayed.db");
    let run = "run ./mine-run.toml --scale 1/256 --store new.db --report OUT";
    let replay = "run replay --store new.db --report OUT";
    let serve = "drive serve ./mine-too.toml --scale 1/256 --tcp 127.0.0.1:0";
    let advise = "advise --data 1GB --writes 1MB/s";
    for (command, outputs, says) in [
        (
            RUN,
            &["tiny.toml", "./folder/../tiny.toml"][..],
            "the experiment of this command: the report would",
        ),
        (RUN, &["alias"], "is ./tiny.toml, the experiment of this command"),
        (RUN, &["new.db", "folder/../new.db"], "the store of this command: the report would"),
        (RUN, &["new.db-wal"], "new.db: the report would damage it"),
        (RUN_TWO, &["again.toml", "tiny.toml"], "the experiment of this command"),
        (EXPORT_JOB, &["tiny.toml"], "the experiment of this command: the export would"),
        (FIT, &["levels.csv"], "is the file of measurements of this command"),
        (run, &["mine-run.toml"], "the experiment of this command"),
        (run, &["mine-too.toml"], "the device file of this command"),
        (run, &["mine.toml"], "a device file of this command"),
        (replay, &["requests.trace"], "is the trace of this command"),
        ("fit levels.csv --like ./mine.toml -o OUT", &["mine.toml"], "the device file of this command"),
        (&format!("{advise} --device ./mine.toml -o OUT"), &["mine.toml"], "the device file of this command"),
        ("fit levels.csv --like ./mine-too.toml -o OUT", &["mine.toml"], "a device file of this command"),
        (
            &format!("{advise} --device ./mine-too.toml -o OUT"),
            &["mine.toml"],
            "a device file of this command",
        ),
        (
            "store export --store replayed.db --format fio -o OUT",
            &["requests.trace"],
            "is the trace of this command",
        ),
        (RUN_STORE, &["tiny.toml", "alias"], "the experiment of this command: the store would"),
        (IMPORT, &["fio.json"], "is an input of this command: the store would"),
        ("run ./mine-run.toml --scale 1/256 --store OUT", &["mine.toml"], "a device file of this command"),
        (&format!("{serve} --state OUT"), &["mine.toml", "mine-too.toml"], "device file of this command"),
        (&format!("{serve} --data OUT"), &["mine-too.toml"], "device file of this command"),
        (&format!("{serve} --data new --state OUT"), &["new"], "the data of this command"),
        (&format!("{serve} --state new --record OUT"), &["new"], "the state of this command"),
        (
            "validate raid10-random-write --keep folder --report OUT",
            &["folder/raid10-random-write.db"],
            "the store of this command",
        ),
        ("run ./tiny.toml --target file:data --store new.db --report OUT", &["data"], "the file under test"),
    ] {
        for output in outputs {
            refused(&lab, command, output, &[says]);
        }
    }
}

#[test]
fn figures_go_into_a_directory_and_onto_nothing_else() {
    let lab = lab();
    for directory in ["lowtide.db", "link.db", "lowtide.db-wal"] {
        refused(&lab, "report --figures OUT", directory, &["store", "name another directory"]);
    }
    lab.refuses("report --figures tiny.toml", 2, &["tiny.toml is no directory"]);
    lab.ok("report --figures figures");
    let names = common::names(&lab.path("figures"));
    let first = lab.path(&format!("figures/{}", names[0]));
    std::fs::remove_file(&first).expect("removed");
    symlink("../other.db", &first).expect("a link can be made");
    // Refused before the page or another figure is written.
    lab.remove("report.html");
    refused(&lab, "report --figures OUT", "figures", &["is a store"]);
    std::fs::remove_file(&first).expect("removed");
    refused(&lab, "report --figures figures -o OUT", plain(&first), &["the report of this command"]);
}

#[test]
fn a_directory_or_a_missing_one_is_refused_before_the_work() {
    let lab = lab();
    lab.make_directory("folder");
    for verb in REPLACING {
        for (output, says) in [
            ("folder", "folder is a directory, but"),
            ("folder/", "folder/ is a directory, but"),
            ("none/x", "there is no directory for"),
            ("tiny.toml/x", "there is no directory for"),
        ] {
            lab.refuses(&verb.replace(OUT, output), 2, &[says]);
        }
    }
}

/// Runs a shell command line, with lowtide as `$L`.
fn shell(lab: &Lab, line: &str) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_lowtide");
    let mut command = Command::new("bash");
    command.args(["-c", line]).env("L", program).current_dir(lab.path("")).stdin(Stdio::null());
    command.output().expect("the shell runs")
}

#[test]
fn pipes_and_descriptors_are_written_to_as_they_are() {
    let lab = lab();
    lab.ok("store export -o all.csv");
    let all = lab.read("all.csv");
    let device = Path::new("/dev/stdout").read_link().ok();
    for (line, made) in [
        ("$L export -o /dev/stdout | cat > out", all.clone()),
        ("$L export -o /dev/stdout > out", all.clone()),
        ("$L export -o /dev/fd/1 > out", all.clone()),
        ("$L export -o /proc/self/fd/2 2> out", all.clone()),
        ("echo before > out; $L export -o /dev/stdout >> out", format!("before\n{all}")),
        ("(echo before; $L export -o /dev/stdout; echo after) > out", format!("before\n{all}after\n")),
        ("exec 5> out; $L export -o /dev/fd/5", all.clone()),
        (
            "$L export -o >(cat > out); for i in {1..600}; do [ -s out ] && break; sleep 0.1; done; sleep 0.5",
            all.clone(),
        ),
        ("mkfifo pipe; cat pipe > out & $L export -o pipe; wait", all.clone()),
        ("$L export -o /dev/null && $L export -o /dev/null > out", String::new()),
        ("touch out; rm -f gone; exec 5> gone; rm gone; $L export -o /dev/fd/5", String::new()),
    ] {
        let ended = shell(&lab, line);
        assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
        assert!(lab.read("out") == made, "{line}:\n{}", lab.read("out"));
        lab.remove("out");
    }
    assert_eq!(Path::new("/dev/stdout").read_link().ok(), device, "the link in /dev stays");
    let ended = shell(&lab, "$L export -o /dev/full");
    assert_eq!(ended.status.code(), Some(1));
    let before = contents(&lab);
    assert_eq!(shell(&lab, "$L export -o /dev/stdout >> other.db").status.code(), Some(3));
    assert!(contents(&lab) == before, "a store is not appended to");
    let line = "cp other.db t.db; ln t.db keep.db; exec 3<> t.db; rm t.db; $L export -o /dev/fd/3";
    assert_eq!(shell(&lab, line).status.code(), Some(3));
    assert!(lab.path("keep.db").exists() && contents(&lab)["keep.db"] == before["other.db"]);
    assert_eq!(shell(&lab, "$L export -o /dev/fd/3 3>> other.db-journal").status.code(), Some(3));
    assert_eq!(lab.read("other.db-journal"), "");
}

#[test]
fn a_folder_of_another_mount_is_not_mistaken_for_one_of_the_same_path() {
    let lab = lab();
    lab.make_directory("folder");
    lab.write("folder/x", "not named");
    // A process whose mount namespace has another filesystem or file at this path.
    let apart = "unshare --mount --propagation private sh -c";
    for (mounted, named) in [
        ("mount -t tmpfs none folder && echo named > folder/x", "folder"),
        ("echo named > other && mount --bind other folder/x", "folder"),
        ("mount -t tmpfs none folder && mkdir folder/deep && echo named > folder/deep/x", "folder/deep"),
    ] {
        let line = format!(
            "mkfifo ready; {apart} '({mounted}) && echo ready > ready; exec sleep 60' & \
             read -t 10 word <> ready; rm ready; \
             [ \"$word\" = ready ] || {{ kill $!; exit 77; }}; \
             $L export -o /proc/$!/root$PWD/{named}/x; code=$?; \
             [ $(cat /proc/$!/root$PWD/{named}/x) = named ] || code=1; kill $!; exit $code"
        );
        let ended = shell(&lab, &line);
        if ended.status.code() == Some(77) {
            return loopback::skipped("no mount namespace can be made");
        }
        assert_eq!(ended.status.code(), Some(3), "{mounted}: {}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(lab.read("folder/x"), "not named", "{mounted}");
    }
}

#[test]
fn a_file_that_becomes_a_store_during_the_fsync_is_not_replaced() {
    let lab = lab();
    if !shell(&lab, "strace -qq -o /dev/null true").status.success() {
        return loopback::skipped("strace cannot trace");
    }
    // The temporary file exists before its fsync begins.
    let line = "strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:delay_enter=4000000 $L export -o late.db & \
                for i in {1..600}; do [ -s .lowtide-*.part ] && break; sleep 0.1; done; sleep 0.5; \
                cp other.db late.db; wait $!";
    let ended = shell(&lab, line);
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(std::fs::read(lab.path("late.db")).ok() == std::fs::read(lab.path("other.db")).ok());
}

#[test]
fn an_existing_report_is_replaced_with_its_mode_and_through_its_link() {
    let lab = lab();
    lab.make_directory("folder");
    lab.write("folder/page.html", "old");
    std::fs::set_permissions(lab.path("folder/page.html"), PermissionsExt::from_mode(0o604)).expect("set");
    symlink("folder/page.html", lab.path("page.html")).expect("a link can be made");
    lab.ok("report 1 -o page.html");
    assert!(lab.path("page.html").is_symlink());
    assert!(lab.read("folder/page.html").starts_with("<!DOCTYPE html>"));
    let mode = lab.path("folder/page.html").metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o604);
    assert_eq!(common::names(&lab.path("folder")), ["page.html"]);
}

#[test]
fn an_existing_export_is_kept_if_the_command_is_killed_while_it_writes() {
    let lab = lab();
    lab.write("all.json", "old");
    // The kernel kills a program that writes a file beyond its size limit, which is larger than the files
    // next to the store.
    let ended = shell(&lab, "ulimit -f 33; exec $L export 1 --format json -o all.json");
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended.status);
    assert_eq!(signal, Some(25), "SIGXFSZ ends it: {}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(lab.read("all.json"), "old");
    let (code, _, error) = common::decoded(&shell(&lab, "$L export 1 --format json -o all.json"));
    assert_eq!(code, Some(0), "{error}");
    assert!(lab.read("all.json").len() > 40 << 10, "it was more than it could write");
}
