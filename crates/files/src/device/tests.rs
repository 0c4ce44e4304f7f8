//! Tests of reading device files: references, modes, compositions, and the catalogue's devices.

use super::*;

const PAIR: &str =
    "name = 'pair'\ntitle = 'Two'\n[array]\nlevel = 'stripe'\nlatency = '1us'\nrequest = '1us'\n";

#[test]
fn an_array_reads_its_members() {
    for members in
        ["members = ['intel-320-160gb', 'intel-320-160gb']", "member = 'intel-320-160gb'\ncount = 2"]
    {
        let device = parse(&format!("{PAIR}{members}\n")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(device.texts.len(), 2, "its own and its members', once");
        assert!(device.fitted_to.contains(&"e02:3".to_owned()), "what its members were fitted to");
        assert!(device.spec.capacity().get() > 319_000_000_000, "{}", device.spec.capacity());
    }
}

#[test]
fn a_price_is_not_that_of_a_device_it_is_like() {
    let like = "like = 'virident-tachion-400'\nname = 'double'\ntitle = 'Twice as large'\n";
    let price = |text: &str| parse(text).unwrap_or_else(|error| panic!("{error}")).price_usd;
    assert_eq!(price(like), None);
    assert_eq!(price(&format!("{like}price-usd = 20000\n")), Some(20_000.0));
}

#[test]
fn an_array_without_members_or_with_strange_keys_is_told() {
    for (line, told) in [
        ("", "needs either `members"),
        ("members = ['intel-320-160gb']\ncount = 2", "needs either `members"),
        ("member = 'intel-320-160gb'\ncount = 0", "needs either `members"),
        ("members = ['intel-320-160g']", "intel-320-160gb"),
        ("member = 'intel-320-160gb'\ncount = 2\nchunks = '64KiB'", "chunks"),
    ] {
        let error = parse(&format!("{PAIR}{line}\n")).expect_err(line).to_string();
        assert!(error.contains(told), "{line}: {error}");
    }
}

#[test]
fn a_cache_reads_both_devices() {
    let file =
        "name = 'cached'\ntitle = 'Two'\n[cache]\nbacking = 'sata-7k2-1tb'\nflash = 'intel-320-160gb'\n";
    let device = parse(&format!("{file}mode = 'write-back'\n")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((device.texts.len(), device.spec.capacity().get() / 1_000_000_000), (3, 1000));
    for (line, told) in [
        ("mode = 'write-around'", "write-through"),
        ("mode = 'write-back'\nlines = '4KiB'", "lines"),
        ("", "mode"),
    ] {
        let error = parse(&format!("{file}{line}\n")).expect_err(line).to_string();
        assert!(error.contains(told), "{line}: {error}");
    }
}

#[test]
fn a_log_reads_the_device_it_lies_on() {
    let file = "name = 'logged'\ntitle = 'A log'\n[log]\nover = 'mtron-32gb'\n";
    let device = parse(file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((device.texts.len(), device.fitted_to.len()), (2, 2));
    assert!((27..29).contains(&(device.spec.capacity().get() / 1_000_000_000)));
    device.spec.validate().unwrap_or_else(|error| panic!("{error}"));
    for (line, told) in [
        ("segment = '1000kB'", "segment: 1MB is none of 1MiB, 2MiB, 3MiB and so on up to 64MiB"),
        ("segment = '128MiB'", "segment: 128MiB is none of"),
        ("reserve = 0.01", "reserve: 0.01 is not a share from 0.02 to 0.9"),
        ("reserve = 9", "reserve: 9 is not a share from 0.02 to 0.9"),
        ("latency = '0s'", "latency: must be above 0"),
    ] {
        let device = parse(&format!("{file}{line}\n")).unwrap_or_else(|error| panic!("{error}"));
        let error = device.spec.validate().expect_err(line).to_string();
        assert!(error.starts_with(told), "{line}: {error}");
    }
    let error = device.spec.scaled(2000).validate().expect_err("32 segments do not fit").to_string();
    assert!(error.starts_with("over"), "{error}");
}

#[test]
fn a_log_over_nothing_over_itself_or_with_strange_keys_is_told() {
    let file = |keys: &str| format!("name = 'logged'\ntitle = 'A log'\n[log]\n{keys}\n");
    for (keys, told) in [
        ("", "missing field `over`"),
        ("over = 'mtron-32g'", "unknown device `mtron-32g`: did you mean `mtron-32gb`?"),
        ("over = 'mtron-32gb'\nsegments = '1MiB'", "segments"),
    ] {
        let error = parse(&file(keys)).expect_err(keys).to_string();
        assert!(error.contains(told), "{keys}: {error}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("logged.toml");
    let text = file(&format!("over = '{}'", path.display()));
    std::fs::write(&path, &text).expect("written");
    let error = parse(&text).expect_err("it lies on itself").to_string();
    assert!(error.ends_with("devices refer to each other in a circle"), "{error}");
}

#[test]
fn every_device_that_comes_with_the_program_is_valid_at_every_scale() {
    let mut names = std::collections::BTreeSet::new();
    for Listed { entry, mode, device } in catalogue() {
        assert!(names.insert(&device.name), "{} is the name of two devices", device.name);
        assert!(mode.is_some() || device.name == entry.name, "{}", entry.path);
        // At a 64th of their size, some drives are too small for the space that each die needs.
        for scale in [1, 8, 16] {
            device
                .spec
                .scaled(scale)
                .validate()
                .unwrap_or_else(|error| panic!("{} 1/{scale}: {error}", device.name));
        }
    }
}

/// Modes that used to be files of their own keep their names, because stores and results contain them.
#[test]
fn names_that_stores_contain_are_names_of_modes() {
    let half = "fusionio-duo-640-mlc-half";
    for (name, file, mode) in [
        ("fusionio-duo-640-mlc-half-improved-write", half, "improved-write"),
        ("fusionio-duo-640-mlc-half-maximum-write", half, "maximum-write"),
        ("fusionio-duo-640-mlc-half-windows", half, "windows"),
        ("fusionio-duo-640-mlc-raid0-improved-write", "fusionio-duo-640-mlc-raid0", "improved-write"),
        ("fusionio-duo-640-mlc-raid0-maximum-write", "fusionio-duo-640-mlc-raid0", "maximum-write"),
        ("fusionio-duo-640-mlc-raid0-windows", "fusionio-duo-640-mlc-raid0", "windows"),
        ("fusionio-duo-640-mlc-separate-improved-write", "fusionio-duo-640-mlc-separate", "improved-write"),
        ("fusionio-duo-640-mlc-separate-maximum-write", "fusionio-duo-640-mlc-separate", "maximum-write"),
        ("fusionio-duo-640-mlc-separate-windows", "fusionio-duo-640-mlc-separate", "windows"),
        (
            "data-fusionio-duo-640-mlc-half-improved-write-log-scsi",
            "data-fusionio-duo-640-mlc-half-log-scsi",
            "improved-write",
        ),
        (
            "data-fusionio-duo-640-mlc-half-maximum-write-log-scsi",
            "data-fusionio-duo-640-mlc-half-log-scsi",
            "maximum-write",
        ),
        (
            "data-fusionio-duo-640-mlc-half-windows-log-scsi",
            "data-fusionio-duo-640-mlc-half-log-scsi",
            "windows",
        ),
        (
            "data-scsi-log-fusionio-duo-640-mlc-half-improved-write",
            "data-scsi-log-fusionio-duo-640-mlc-half",
            "improved-write",
        ),
        (
            "data-scsi-log-fusionio-duo-640-mlc-half-maximum-write",
            "data-scsi-log-fusionio-duo-640-mlc-half",
            "maximum-write",
        ),
        (
            "data-scsi-log-fusionio-duo-640-mlc-half-windows",
            "data-scsi-log-fusionio-duo-640-mlc-half",
            "windows",
        ),
        ("data-scsi-log-sata", "data-sata-log-scsi", "swapped"),
        ("fusionio-iodrive-160-slc-120gb", "fusionio-iodrive-160-slc", "120gb"),
        ("fusionio-duo-320-slc-240gb", "fusionio-duo-320-slc", "240gb"),
        ("raptor-10k-150gb-uncached", "raptor-10k-150gb", "uncached"),
        ("sas-15k-73gb-shallow", "sas-15k-73gb", "shallow"),
        ("flash-cache-write-through", "flash-cache-write-back", "write-through"),
    ] {
        let short = format!("{file}:{mode}");
        let device = find(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(device.name, name);
        assert_eq!(find(&short).unwrap_or_else(|error| panic!("{error}")), device);
        assert_eq!(canonical(&short), name);
    }
}

#[test]
fn a_mode_changes_keys_of_its_file() {
    let capacity = |name: &str| find(name).unwrap_or_else(|error| panic!("{error}")).spec.capacity().get();
    assert_eq!(capacity("fusionio-duo-640-mlc-half:improved-write"), 210_000_000_000, "published/e12, row 2");
    assert_eq!(capacity("fusionio-duo-640-mlc-half:maximum-write"), 151_000_000_000, "published/e12, row 4");
    let card = find("fusionio-iodrive-160-slc:120gb").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((card.price_usd, card.year), (Some(6308.99), Some(2008)), "the same card");
}

#[test]
fn a_name_of_two_devices_has_data_at_the_beginning_and_the_log_at_the_end() {
    let composed = find("fusionio-duo-640-mlc-half:windows+scsi-raid10-8x300gb");
    let composed = composed.unwrap_or_else(|error| panic!("{error}"));
    let stated =
        find("data-fusionio-duo-640-mlc-half-windows-log-scsi").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((&composed.spec, &composed.fitted_to), (&stated.spec, &stated.fitted_to));
    assert_eq!(composed.name, "fusionio-duo-640-mlc-half-windows+scsi-raid10-8x300gb");
    assert_eq!(canonical("fusionio-duo-640-mlc-half:windows+scsi-raid10-8x300gb"), composed.name);
    assert_eq!(Class::of(&composed), Class::DataAndLog);
    let shown = show("intel-320-160gb+mtron-32gb").unwrap_or_else(|error| panic!("{error}"));
    let read = parse(&shown).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    assert_eq!(read.spec, find("intel-320-160gb+mtron-32gb").unwrap_or_else(|error| panic!("{error}")).spec);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    for (name, told, accepted) in [
        (
            "fusionio-duo-640-mlc-half:improved-wirte",
            "the device `fusionio-duo-640-mlc-half` has no mode `improved-wirte`: did you mean `improved-write`?",
            "improved-write, maximum-write, windows",
        ),
        (
            "intel-320-160gb:windows",
            "the device `intel-320-160gb` has no modes, and so no mode `windows`",
            "`intel-320-160gb`",
        ),
        (
            "fusionio-duo-640-mlc-half-windows:windows",
            "the device `fusionio-duo-640-mlc-half-windows` has no modes",
            "`fusionio-duo-640-mlc-half-windows`",
        ),
        (
            "fusionio-duo-640-mlc-half-window",
            "unknown device `fusionio-duo-640-mlc-half-window`: did you mean `fusionio-duo-640-mlc-half-windows`?",
            "fusionio-duo-640-mlc-half-windows",
        ),
        ("mtron-32gb+mtron-32", "unknown device `mtron-32`: did you mean `mtron-32gb`?", "mtron-32gb"),
        ("mtron-32gb+mtron-32gb+mtron-32gb", "joins more than two devices", "DATA+LOG"),
        ("./absent.toml:fast", "cannot read the device `./absent.toml`", "path"),
    ] {
        let error = find(name).expect_err(name);
        assert!(error.to_string().contains(told), "{name}: {error}");
        assert!(error.accepted().contains(accepted), "{name}: {}", error.accepted());
    }
    let like = "name = 'x'\ntitle = 'X'\nlike = 'sas-15k-73gb:shalow'\n";
    let error = parse(like).expect_err("no such mode").to_string();
    assert!(error.contains("it refers to `sas-15k-73gb:shalow`") && error.contains("`shallow`?"), "{error}");
}

#[test]
fn modes_that_cannot_be_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mine.toml");
    let name = format!("{}:fast", path.display());
    for (mode, told) in [
        ("mode.fast.like = 'mtron-32gb'", "[mode.fast] changes keys of its file"),
        ("mode.fast.flash.capacty = '1GB'", "capacty"),
        ("mode.fast = 3", "invalid type"),
        ("mode.fast.disk.rpm = 3", "missing field"),
    ] {
        let text = format!("{mode}\nname = 'mine'\ntitle = 'M'\nlike = 'intel-320-160gb'\n");
        std::fs::write(&path, &text).expect("written");
        let error = find(&name).expect_err(mode).to_string();
        assert!(
            error.contains(told) || mode.ends_with('3') && error.contains("not a table"),
            "{mode}: {error}"
        );
    }
}

/// A campaign's device is read from its stored texts, even if the catalogue or the file on disk has changed since.
#[test]
fn stored_texts_suffice() {
    for Listed { device, .. } in catalogue() {
        let own = parse(&device.texts[0]).unwrap_or_else(|error| panic!("{}: {error}", device.name));
        let facts = |device: &Device| (device.name.clone(), device.title.clone(), device.spec.clone());
        assert_eq!(facts(&own), facts(device), "its first text is the device");
        // Renamed, so that the catalogue cannot supply them.
        let renamed: Vec<String> = device.texts.iter().map(|text| elsewhere(text)).collect();
        let found = stored(&renamed, &format!("x{}", device.name));
        let found = found.unwrap_or_else(|| panic!("{}: {renamed:#?}", device.name));
        assert_eq!((&found.spec, &found.fitted_to), (&device.spec, &device.fitted_to), "{}", device.name);
    }
}

/// A device file with a letter prepended to every device name.
fn elsewhere(text: &str) -> String {
    fn rename(key: &str, value: &mut toml::Value) {
        match value {
            toml::Value::String(name) if key != "mode" => name.insert(0, 'x'),
            toml::Value::Array(names) => names.iter_mut().for_each(|name| rename(key, name)),
            toml::Value::Table(table) => walk(table),
            _ => {}
        }
    }
    fn walk(table: &mut toml::Table) {
        for (key, value) in table.iter_mut() {
            let names = ["name", "like", "over", "member", "members", "backing"].contains(&key.as_str());
            match value {
                toml::Value::Table(table) => walk(table),
                value if names || key == "flash" => rename(key, value),
                _ => {}
            }
        }
    }
    let mut table: toml::Table = text.parse().expect("a device file");
    walk(&mut table);
    toml::to_string(&table).expect("it can be written")
}

#[test]
fn a_mode_of_an_own_file_is_read_from_what_was_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mine.toml");
    let text =
        "name = 'mtron-32gb'\ntitle = 'Mine'\nlike = 'mtron-32gb'\n[mode.small]\nflash.capacity = '16GB'\n";
    std::fs::write(&path, text).expect("written");
    let name = format!("{}:small", path.display());
    let device = find(&name).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((device.name.as_str(), device.title.as_str()), ("mtron-32gb-small", "Mine, small"));
    assert_eq!(device.spec.capacity().get(), 16_000_000_000);
    assert!(names_files(&name) && names_files("mtron-32gb+a.toml:fast") && !names_files("mtron-32gb:fast"));
    drop(directory);
    let again = stored(&device.texts, "mtron-32gb-small").expect("it was kept");
    assert_eq!(again.spec, device.spec);
    let whole = stored(&device.texts[1..], "mtron-32gb").expect("it was kept");
    assert_eq!(whole.spec, find("mtron-32gb").unwrap_or_else(|error| panic!("{error}")).spec);
}

/// Writes a device file and returns its path.
fn own_file(folder: &std::path::Path, name: &str, text: &str) -> String {
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// Symptom: a report on another machine had no device. Cause: the stored text of a composition contained the paths of
/// its parts. Fix: the stored text contains the parts themselves.
#[test]
fn what_is_kept_of_own_files_needs_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = |name: &str, text: &str| own_file(folder.path(), name, text);
    // Both files use the name of a device in the catalogue.
    let titled = |like: &str| format!("name = 'mtron-32gb'\ntitle = 'Mine'\nlike = '{like}'\n");
    let small = "[mode.small]\nflash.capacity = '16GB'\n";
    let (a, b) =
        (own("a", &format!("{}{small}", titled("mtron-32gb"))), own("b", &titled("intel-320-160gb")));
    let like = own("c", &format!("name = 'c'\ntitle = 'C'\nlike = '{b}'\n"));
    let pair = own("d", &format!("{PAIR}members = ['{a}', 'mtron-32gb']\n"));
    let pairs = own("e", &format!("{}member = '{pair}'\ncount = 2\n", PAIR.replace("pair", "pairs")));
    let cache = own(
        "f",
        &format!(
            "name = 'f'\ntitle = 'F'\n[cache]\nflash = '{a}:small'\nbacking = 'sata-7k2-1tb'\nmode = 'write-back'\n"
        ),
    );
    let log = own("g", &format!("name = 'g'\ntitle = 'G'\n[log]\nover = '{pair}'\n"));
    let names = [
        format!("{a}+{b}"),
        format!("{b}+{a}:small"),
        format!("mtron-32gb+{b}"),
        format!("{pairs}+{like}"),
        like,
        pair,
        pairs,
        cache,
        log,
    ];
    let found = names.map(|name| (find(&name).unwrap_or_else(|error| panic!("{name}: {error}")), name));
    let kept = folder.path().display().to_string();
    drop(folder);
    for (device, name) in found {
        assert!(device.texts.iter().all(|text| !text.contains(&kept)), "{name}: {:#?}", device.texts);
        let again = read::of_text(Shelf { stored: &device.texts }, &device.texts[0]);
        let again = again.unwrap_or_else(|error| panic!("{name}: {error}\n{:#?}", device.texts));
        assert_eq!(
            (&again.spec, &again.name, &again.title),
            (&device.spec, &device.name, &device.title),
            "{name}"
        );
        assert_eq!(again.fitted_to, device.fitted_to, "{name}");
    }
}

/// Symptom: reporting a stranger's store opened files on this machine. Fix: such devices are read only from stored
/// texts and the catalogue.
#[test]
fn kept_texts_open_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = own_file(folder.path(), "a", "name = 'a'\ntitle = 'A'\nlike = 'mtron-32gb'\n");
    let text = format!("{PAIR}members = ['{a}']\n");
    parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let error = read::of_text(Shelf { stored: std::slice::from_ref(&text) }, &text)
        .expect_err("it names a file")
        .to_string();
    assert!(error.contains("cannot read the device"), "{error}");
}

/// Symptom: `my+disk.toml` was read as a composition. Fix: an existing file of that name takes precedence.
#[test]
fn a_file_with_a_plus_in_its_name_is_that_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "name = 'mine'\ntitle = 'Mine'\nlike = 'mtron-32gb'\n[mode.small]\nflash.capacity = '16GB'\n";
    std::fs::write(folder.path().join("x.toml+disk.toml"), text).expect("written");
    let own = folder.path().join("x.toml+disk.toml").display().to_string();
    let named = |name: &str| find(name).unwrap_or_else(|error| panic!("{name}: {error}")).name;
    assert_eq!(named(&own), "mine");
    assert_eq!(named(&format!("{own}:small")), "mine-small");
    assert_eq!(named(&format!("{own}+intel-320-160gb")), "mine+intel-320-160gb");
    let both = format!("{own}:small+intel-320-160gb");
    assert_eq!(named(&both), "mine-small+intel-320-160gb");
    assert_eq!(named(&format!("intel-320-160gb+{own}")), "intel-320-160gb+mine");
}
