//! Tests of the catalogue: studies are read completely, an unknown name gets a suggestion, a path is read
//! from disk.

use super::*;

#[test]
fn every_study_is_read_whole() {
    let rows: Vec<_> = studies().iter().map(|study| (study.id, study.rows.len())).collect();
    assert_eq!(rows[..3], [("e01", 60), ("e02", 10), ("e03", 4)]);
    assert_eq!(rows.len(), 13);
    let row = &study("e02").expect("there is one").rows[0];
    assert_eq!((row.line, row.value, row.unit.as_str(), row.block_kib), (1, 80.0, "MiB/s", Some(16.0)));
}

#[test]
fn an_unknown_name_is_told_with_the_nearest() {
    let error = experiment("intel-320-random-wirte").expect_err("a typing error");
    assert_eq!(
        error.to_string(),
        "unknown experiment `intel-320-random-wirte`: did you mean `intel-320-random-write`?"
    );
    assert!(error.accepted().starts_with("experiments: "), "{}", error.accepted());
    assert!(error.accepted().contains("disk-quick"), "{}", error.accepted());
    let error = study("e99").expect_err("no such study");
    assert!(error.accepted().contains("e02"), "{}", error.accepted());
}

#[test]
fn a_path_is_read_from_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, "name = \"mine\"\n").expect("written");
    let path = path.to_str().expect("readable");
    let found = experiment(path).expect("it is there");
    assert_eq!((found.path.as_str(), &*found.text), (path, "name = \"mine\"\n"));
    let error = experiment("./absent.toml").expect_err("it is not there");
    assert_eq!(error.to_string(), "cannot read the experiment `./absent.toml`");
}
