//! Tests of output files: atomic replacement, and protection of stores and other files.

use super::*;
use crate::application::APPLICATION_ID;
use rusqlite::Connection;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

const ROLE: Role = Role::stored("the report", "--report FILE");

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder") }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.at(name), text).expect("written");
        self.at(name)
    }

    /// A file with the application id of a store.
    fn store(&self, name: &str) -> PathBuf {
        let store = Connection::open(self.at(name)).expect("a database");
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}; CREATE TABLE t (n);");
        store.execute_batch(&mark).expect("a table");
        self.at(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = self.folder.path().read_dir().expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }
}

fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    Output::file(ROLE, path, &CommandFiles::default())?.write(text.as_bytes())
}

fn error(path: &Path, others: &CommandFiles) -> String {
    Output::file(ROLE, path, others).expect_err(&path.display().to_string()).to_string()
}

#[test]
fn a_file_is_replaced_with_its_permissions_and_a_new_one_has_those_of_new_ones() {
    let bench = Bench::new();
    let (old, plain) = (bench.write("old", "old"), bench.write("plain", ""));
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).expect("set");
    for (name, mode) in [("old", 0o640), ("new", plain.metadata().expect("there").mode() & 0o777)] {
        write(&bench.at(name), "new").expect("written");
        let found = bench.at(name).metadata().expect("there");
        assert_eq!(
            (fs::read_to_string(bench.at(name)).expect("text"), found.mode() & 0o777),
            ("new".into(), mode)
        );
    }
    assert_eq!(bench.names(), ["new", "old", "plain"], "nothing is left beside them");
}

#[test]
fn a_file_stays_as_it_was_where_writing_fails() {
    let bench = Bench::new();
    for name in ["old", "new"] {
        if name == "old" {
            bench.write(name, "old");
        }
        let output =
            Output::file(ROLE, &bench.at(name), &CommandFiles::default()).expect("it can be written");
        let failed = output.write_with(|out| {
            // More than one buffer.
            out.write_all(&vec![b'x'; 4 << 20])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(matches!(failed, Err(OutputError::Write { .. })), "{failed:?}");
    }
    assert_eq!(bench.names(), ["old"]);
    assert_eq!(fs::read_to_string(bench.at("old")).expect("text"), "old");
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let bench = Bench::new();
    fs::create_dir(bench.at("folder")).expect("made");
    bench.write("folder/old", "old");
    for (link, to, leads) in
        [("a", "folder/old", "folder/old"), ("b", "a", "folder/old"), ("c", "folder/new", "folder/new")]
    {
        symlink(to, bench.at(link)).expect("a link");
        write(&bench.at(link), link).expect("written");
        assert_eq!(bench.at(link).read_link().expect("still a link"), Path::new(to));
        assert_eq!(fs::read_to_string(bench.at(leads)).expect("text"), link);
    }
    symlink("loop", bench.at("loop")).expect("a link");
    symlink("none/x", bench.at("nowhere")).expect("a link");
    assert!(error(&bench.at("loop"), &CommandFiles::default()).contains("symbolic links"));
    assert!(error(&bench.at("nowhere"), &CommandFiles::default()).contains("there is no directory"));
}

#[test]
fn a_store_is_known_under_every_name_and_so_is_what_lies_beside_it() {
    let bench = Bench::new();
    let store = bench.store("a #1%.db");
    symlink("a #1%.db", bench.at("link")).expect("a link");
    fs::hard_link(&store, bench.at("hard")).expect("a link");
    let content = fs::read(&store).expect("there");
    let none = CommandFiles::default();
    for name in ["a #1%.db", "link", "hard"] {
        assert!(error(&bench.at(name), &none).contains("is a store: the report would overwrite"), "{name}");
    }
    for ending in ["-wal", "-shm", "-journal"] {
        let beside = bench.at(&format!("a #1%.db{ending}"));
        assert!(error(&beside, &none).contains("belongs to the store"), "{ending}");
        symlink(&beside, bench.at("beside")).expect("a link");
        assert!(error(&bench.at("beside"), &none).contains("belongs to the store"), "{ending}");
        fs::remove_file(bench.at("beside")).expect("removed");
        assert!(create_new(ROLE, &beside, &none).is_err() && in_place(ROLE, &beside, &none).is_err());
        assert!(OutputFolder::new(ROLE, &beside, &none).is_err());
    }
    assert!(create_new(ROLE, &store, &none).is_err_and(|error| error.is_refusal()));
    assert!(fs::read(&store).expect("there") == content);
    assert_eq!(bench.names(), ["a #1%.db", "hard", "link"], "looking makes no files");
}

#[test]
fn other_files_are_no_stores() {
    let bench = Bench::new();
    let none = CommandFiles::default();
    for length in [0, 1, 15, 16, 71, 99, 100, 511, 512, 4096, 10_000] {
        for byte in [0, b'x'] {
            let path = bench.write("file", &String::from_utf8(vec![byte; length]).expect("ASCII"));
            Output::file(ROLE, &path, &none).unwrap_or_else(|error| panic!("{length}: {error}"));
        }
    }
    let other = bench.at("other.db");
    let connection = Connection::open(&other).expect("a database");
    connection.execute_batch("CREATE TABLE t (n); PRAGMA application_id = 1;").expect("a table");
    Output::file(ROLE, &other, &none).expect("another database");
    Output::file(ROLE, &bench.at("other.db-wal"), &none).expect("beside another database");
    // The application id of a store, in a truncated page.
    let content = fs::read(bench.store("a.db")).expect("there");
    fs::write(bench.at("half"), &content[..2000]).expect("written");
    assert!(error(&bench.at("half"), &none).contains("is a store"));
}

#[test]
fn looking_at_a_store_drops_no_lock_of_this_process() {
    let bench = Bench::new();
    let path = bench.at("a.db");
    let mut connection = Connection::open(&path).expect("a database");
    connection.execute_batch("PRAGMA application_id = 1819244404; CREATE TABLE t (n);").expect("a table");
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).expect("begun");
    assert!(error(&path, &CommandFiles::default()).contains("is a store"));
    // A process cannot test its own locks with `fcntl`, so they are read from `/proc/locks`.
    let inode = path.metadata().expect("there").ino();
    let locks = fs::read_to_string("/proc/locks").expect("locks are listed");
    let own = format!(" {} ", std::process::id());
    let held = locks.lines().filter(|line| line.contains(&own) && line.contains(&format!(":{inode} ")));
    assert!(held.count() > 0, "{locks}");
    drop(transaction);
}

#[test]
fn nothing_goes_onto_what_the_command_reads_or_writes_otherwise() {
    let bench = Bench::new();
    let experiment = bench.write("a.toml", "name");
    symlink("a.toml", bench.at("link")).expect("a link");
    fs::hard_link(&experiment, bench.at("hard")).expect("a link");
    let mut files = CommandFiles::default().and("the experiment", &experiment);
    files.add_store(bench.at("new.db"));
    assert_eq!(
        error(&experiment, &files),
        format!("{} is the experiment of this command: the report would overwrite it", experiment.display())
    );
    for name in ["link", "hard"] {
        let other = format!("is {}, the experiment of this command", experiment.display());
        assert!(error(&bench.at(name), &files).contains(&other), "{name}");
    }
    // A store that does not exist yet, by another path; and files that SQLite will create for it.
    fs::create_dir(bench.at("folder")).expect("made");
    assert!(error(&bench.at("folder/../new.db"), &files).contains("the store of this command"));
    assert!(error(&bench.at("folder/../new.db-wal"), &files).contains("belongs to the store"));
    assert!(store(&experiment, &files).is_err_and(|error| error.is_refusal()));
    Output::file(ROLE, &bench.at("b.toml"), &files).expect("another file");
}

#[test]
fn what_becomes_a_store_meanwhile_is_not_written() {
    let bench = Bench::new();
    let output = Output::file(ROLE, &bench.at("a"), &CommandFiles::default()).expect("a free name");
    let content = fs::read(bench.store("a")).expect("there");
    assert!(output.write(b"x").is_err_and(|error| error.is_refusal()));
    assert!(fs::read(bench.at("a")).expect("there") == content);
}

#[test]
fn devices_are_written_only_where_they_hold_nothing() {
    let bench = Bench::new();
    symlink("/dev/zero", bench.at("zero")).expect("a link");
    let none = CommandFiles::default();
    for path in [Path::new("/dev/null"), &bench.at("zero")] {
        write(path, "x").expect("it takes anything");
    }
    assert!(write(Path::new("/dev/full"), "x").is_err_and(|error| error.is_failure()));
    for path in ["/dev/random", "/dev/fuse", "/dev/loop-control", "/dev/net/tun"].map(Path::new) {
        if path.exists() {
            assert!(error(path, &none).contains("is a character device: the report is not written to one"));
        }
    }
    assert!(store(Path::new("/dev/random"), &none).is_err_and(|error| error.is_refusal()));
}

#[test]
fn folders_are_made_below_folders_only() {
    let bench = Bench::new();
    let file = bench.write("file", "x");
    let none = CommandFiles::default();
    for wrong in [file.clone(), file.join("deeper/still")] {
        assert!(matches!(OutputFolder::new(ROLE, &wrong, &none), Err(OutputError::NotADirectory { .. })));
    }
    let folder = OutputFolder::new(ROLE, &bench.at("deep/er"), &none).expect("it can be made");
    folder.make().expect("made");
    folder.file("a").and_then(|file| file.write(b"a")).expect("written");
    assert_eq!(fs::read_to_string(bench.at("deep/er/a")).expect("text"), "a");
    OutputFolder::new(ROLE, &bench.at("deep/er/"), &none).expect("it is there");
    for slash in ["deep/", "new/"] {
        assert!(matches!(write(&bench.at(slash), "x"), Err(OutputError::Directory { .. })), "{slash}");
    }
}

#[test]
fn a_store_with_a_damaged_header_is_known() {
    let bench = Bench::new();
    let content = fs::read(bench.store("a.db")).expect("there");
    for byte in 0..100 {
        for mask in [0xff, 0x01, 0x80] {
            let mut damaged = content.clone();
            damaged[byte] ^= mask;
            fs::write(bench.at("damaged"), &damaged).expect("written");
            let found = Output::file(ROLE, &bench.at("damaged"), &CommandFiles::default());
            assert!(found.is_err_and(|error| error.is_refusal()), "byte {byte} ^ {mask:#x}");
        }
    }
    // Text is not a store, even with the application id at the right offset.
    let text = bench.write("text", &format!("{:68}lowtide is no store here.{:68}", "", ""));
    Output::file(ROLE, &text, &CommandFiles::default()).expect("a text");
}

#[test]
fn a_folder_whose_path_leads_elsewhere_is_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.at("folder")).expect("made");
    let folder = File::open(bench.at("folder")).expect("opened");
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    write(&through.join("x"), "new").expect("the folder is where its link says");
    assert_eq!(fs::read_to_string(bench.at("folder/x")).expect("text"), "new");
    // The link of the open folder now names another folder.
    fs::rename(bench.at("folder/x"), bench.at("x")).expect("moved");
    fs::remove_dir(bench.at("folder")).expect("removed");
    fs::create_dir(bench.at("folder (deleted)")).expect("made");
    let other = bench.write("folder (deleted)/x", "other");
    let none = CommandFiles::default();
    for named in ["x", "new"].map(|name| through.join(name)) {
        let refused = [
            Output::file(ROLE, &named, &none).map(drop),
            create_new(ROLE, &named, &none).map(drop),
            in_place(ROLE, &named, &none),
            store(&named, &none),
            OutputFolder::new(ROLE, &named.join("deep/er"), &none).map(drop),
        ];
        for error in refused.map(|result| result.expect_err("refused")) {
            assert!(
                error.is_refusal() && error.to_string().contains("is not what its resolved path names"),
                "{error}"
            );
        }
    }
    assert_eq!(fs::read_to_string(other).expect("text"), "other");
    assert_eq!(bench.names(), ["folder (deleted)", "x"]);
}

#[test]
fn a_link_of_a_process_that_names_another_file_is_refused() {
    let bench = Bench::new();
    fs::copy("/bin/sleep", bench.at("program")).expect("copied");
    let mut child = std::process::Command::new(bench.at("program")).arg("60").spawn().expect("it runs");
    fs::remove_file(bench.at("program")).expect("removed");
    let other = bench.write("program (deleted)", "other");
    let found = write(&PathBuf::from(format!("/proc/{}/exe", child.id())), "new");
    child.kill().and_then(|()| child.wait()).expect("it ends");
    assert!(found.is_err_and(|error| error.is_refusal()));
    assert_eq!(fs::read_to_string(other).expect("text"), "other");
}

#[test]
fn an_open_store_whose_path_is_gone_is_known_while_it_has_another_name() {
    let bench = Bench::new();
    let path = bench.store("a.db");
    fs::hard_link(&path, bench.at("keep.db")).expect("a link");
    let open = OpenOptions::new().append(true).open(&path).expect("opened");
    fs::remove_file(&path).expect("removed");
    let named = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    assert!(error(&named, &CommandFiles::default()).contains("is a store"));
    fs::remove_file(bench.at("keep.db")).expect("removed");
    Output::file(ROLE, &named, &CommandFiles::default()).expect("a file without a name");
    // A file that is not a store.
    let plain = bench.write("plain", "x");
    fs::hard_link(&plain, bench.at("keep")).expect("a link");
    let open = OpenOptions::new().append(true).open(&plain).expect("opened");
    fs::remove_file(&plain).expect("removed");
    write(&PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())), "y").expect("written");
    assert_eq!(fs::read_to_string(bench.at("keep")).expect("text"), "xy");
}
