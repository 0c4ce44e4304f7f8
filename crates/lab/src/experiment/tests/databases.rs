//! Tests of experiments with databases: existing servers, limits of the scale, modelled engines, and passwords.

use super::{bad, good};
use crate::experiment::{BadInput, Experiment, Override};
use crate::plan::Plan;
use lowtide_core::Seed;

const OTHERS: &str = r#"
name = "others"
target.directory = "."

[oltp]
engine = "mariadb"
servers = "mariadb://me:se%40cret@db.example/tpcc"
warehouses = 100
duration = "1min"
"#;

#[test]
fn settings_of_existing_servers_are_refused() {
    for (line, told) in [
        ("buffer_pool = '1GiB'", "`buffer_pool` with `servers`"),
        ("durability = 'none'", "`durability` with `servers`"),
        ("options = { innodb_io_capacity = '200' }", "`options` with `servers`"),
        ("log-directory = '/log'", "`log-directory` with `servers`"),
        ("[sweep]\nlog_size = ['1GiB', '2GiB']", "`log_size` with `servers`"),
        ("[sweep]\nengine = ['mariadb', 'mariadb-aria']", "the factor `engine` with `servers`"),
    ] {
        let error = bad(&format!("{OTHERS}{line}\n"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    for engine in ["postgresql", "mariadb-myisam"] {
        let error = bad(&OTHERS.replace("\"mariadb\"", &format!("\"{engine}\"")));
        assert!(error.contains(&format!("the engine `{engine}` on these `servers`")), "{error}");
    }
}

#[test]
fn stored_texts_have_no_passwords() {
    let experiment = good(OTHERS, &[]);
    let command = "lowtide run others --set oltp.servers=mariadb://me:se%40cret@db.example/tpcc";
    for text in [experiment.text(), command] {
        let shown = experiment.without_passwords(text);
        assert!(shown.contains("mariadb://me:***@db.example/tpcc") && !shown.contains("cret"), "{shown}");
    }
    let plan = plan(OTHERS).expect("a plan");
    assert!(!plan.identity().contains("cret"), "{}", plan.identity());
}

/// Addresses of every form. No part of their passwords may be printed.
const SECRETS: [&str; 8] = [
    "mariadb://me:sEcReT@db:3306/x",
    "mariadb://:sEcReT@db/x",
    "mariadb://me:sEc%40ReT@db/x",
    "mariadb://me:sEc@ReT@db/x",
    "mariadb://me:sEc:ReT@db/x",
    "mariadb://me:sEc/ReT#@db/x",
    "mysql://me:sEcReT@%2Frun%2Fdb.sock/x",
    "mariadb://me@db/x?password=sEcReT",
];

fn assert_hidden(text: &str) {
    assert!(!text.contains("sEc") && !text.contains("ReT"), "{text}");
}

/// Symptom: an error in the line `servers`, or next to it, printed the line with the password. Cause: excerpts were
/// taken from the file. Fix: excerpts come from a text without passwords, with moved spans.
#[test]
fn excerpts_of_errors_have_no_passwords_and_mark_the_fault() {
    for secret in SECRETS {
        let text = OTHERS.replace("mariadb://me:se%40cret@db.example/tpcc", secret);
        for (from, to, told) in [
            ("warehouses = 100", "warehouses = 0", "0 is out of range"),
            ("warehouses = 100", "warehouses = ", "this is not TOML"),
            ("engine = \"mariadb\"", "engine = \"postgresql\"", "the engine `postgresql` on these `servers`"),
            ("engine = \"mariadb\"", "engine = \"mariadb", "this is not TOML"),
            ("servers", "sevrers", "unknown key `sevrers`: did you mean `servers`?"),
            ("target.directory = \".\"", "", "`target` is missing"),
            ("servers = ", "servers = [", "this is not TOML"),
        ] {
            let error = bad(&text.replace(from, to));
            assert!(error.contains(told), "{told}:\n{error}");
            assert_hidden(&error);
        }
        // Passwords in a value that a message quotes.
        for key in ["duration", "engine", "preset"] {
            let line = format!("{key} = \"{secret}\"\n");
            let without = text.replace("duration = \"1min\"\n", "").replace("engine = \"mariadb\"\n", "");
            assert_hidden(&bad(&format!("{without}{line}")));
        }
    }
    // The mark is below the fault, after a password that is longer than `***`.
    let line = "oltp = { servers = \"mariadb://me:a-long-password@db/x\", engine = \"mariadb\", warehouses = 0, duration = \"1min\" }";
    let error = bad(&format!("name = \"others\"\ntarget.directory = \".\"\n{line}\n"));
    let column = line.find("0,").expect("there") + 1;
    assert!(error.contains(&format!(":3:{column}]")), "the column of the file, {column}:\n{error}");
    let lines: Vec<&str> = error.lines().collect();
    let at = lines.iter().position(|line| line.contains("warehouses = 0")).expect("it is shown");
    let zero = lines[at].chars().position(|c| c == '0').expect("there");
    let mark = lines[at + 1].chars().position(|c| "┬─".contains(c)).expect("it is marked");
    assert_eq!(mark, zero, "{error}");
}

#[test]
fn overrides_and_printed_experiments_have_no_passwords() {
    for secret in SECRETS {
        for set in [format!("oltp.servers={secret}"), format!("servers=[\"{secret}\", \"{secret}\"]")] {
            let set: Override = set.parse().expect("it is an override");
            assert_hidden(&format!("{set:?}"));
            if let Ok(experiment) = Experiment::parse("f", OTHERS, std::slice::from_ref(&set)) {
                assert_hidden(&format!("{experiment:?}"));
                let kept = experiment.without_passwords(experiment.text());
                assert_hidden(&kept);
                good(&kept, &[]);
            }
            let wrong = Experiment::parse("f", OTHERS, &[set, "warehouses=0".parse().expect("one")]);
            assert_hidden(&super::render(&wrong.expect_err("no warehouses")));
        }
        for set in
            [format!("oltp.sevrers={secret}"), format!("engine={secret}"), format!("servers=[\"{secret}")]
        {
            let told = match set.parse::<Override>() {
                Err(error) => super::render(&error),
                Ok(set) => super::render(&Experiment::parse("f", OTHERS, &[set]).expect_err("it is wrong")),
            };
            assert_hidden(&told);
        }
        let wrong = || Experiment::parse("f", OTHERS, &[secret.parse().expect("one")]).expect_err("no key");
        assert_hidden(&super::render(&secret.parse::<Override>().err().unwrap_or_else(wrong)));
    }
    // Escapes, and a comment.
    let text = OTHERS.replace(
        "\"mariadb://me:se%40cret@db.example/tpcc\"",
        "\"mariadb://me\\u003AsEcReT@db/x\" # was mariadb://me:sEcReT@db/x",
    );
    let experiment = good(&text, &[]);
    assert_hidden(&format!("{experiment:?}"));
    let kept = experiment.without_passwords(experiment.text());
    assert_hidden(&kept);
    assert_eq!(
        good(&kept, &[]).resolved.load.work.transactions().expect("a load").servers[0].secret(),
        "mariadb://me:***@db/x"
    );
}

#[test]
fn memory_and_logs_below_the_minimum_of_a_server_are_refused() {
    let text = |log: &str| {
        format!(
            "name = 'scaled'\ntarget.directory = '.'\n[oltp]\nengine = 'postgresql'\nwarehouses = 100\n\
             buffer_pool = '4GiB'\nlog_size = '{log}'\nduration = '1h'\n"
        )
    };
    for (log, scale, told) in [
        ("2GiB", 100, "log_size comes to 20.5 MiB at a scale of 1/100"),
        ("2GiB", 100, "--scale 1/64"),
        ("16MiB", 1, "log_size of 16MiB: postgresql does not start with it"),
    ] {
        let error = Plan::new(good(&text(log), &[]), Seed::new(1), scale).expect_err("too small");
        let error = super::render(&error);
        assert!(error.contains(told), "{error}");
    }
    Plan::new(good(&text("2GiB"), &[]), Seed::new(1), 64).expect("large enough");
}

const MODELLED: &str = r#"
name = "modelled"
target.device = "intel-x25-e-32gb"

[oltp]
engine = "innodb-model"
warehouses = 10
duration = "1min"
"#;

#[test]
fn a_modelled_engine_needs_a_simulated_device_and_refuses_other_settings() {
    assert!(plan(MODELLED).expect("a plan").target.is_simulated());
    for (line, told) in [
        ("think = true", "terminals of a modelled engine have no think time"),
        ("instances = 2", "`instances` of a modelled engine, which has none"),
        ("flush_method = 'fsync'", "`flush_method` of a modelled engine, which has none"),
        ("[sweep]\nengine = ['innodb-model', 'mariadb']", "modelled engines and databases in one experiment"),
    ] {
        let error = bad(&format!("{MODELLED}{line}\n"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    let error = bad(&MODELLED.replace("device = \"intel-x25-e-32gb\"", "directory = \".\""));
    assert!(error.contains("a modelled engine on a real target"), "{error}");
    for (engine, line, told) in [
        ("innodb", "options = { core = '4' }", "did you mean `cores`?"),
        ("innodb", "options = { contention = '7' }", "a share from 0 to below 1"),
        ("innodb", "buffer_pool = '1MiB'", "innodb-model does not start with it"),
        ("innodb", "log_size = '40GiB'", "do not fit"),
        ("myisam", "options = { pool-lock = '1us' }", "myisam-model has no option `pool-lock`"),
        ("myisam", "options = { page-cash = '1GiB' }", "mean `page-cache`?"),
    ] {
        let text = MODELLED.replace("innodb", engine);
        let error = super::render(&plan(&format!("{text}{line}\n")).expect_err("invalid"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    // MyISAM has no log, so `log_size` takes no space.
    plan(&format!("{}log_size = '40GiB'\n", MODELLED.replace("innodb", "myisam"))).expect("a plan");
}

fn plan(text: &str) -> Result<Plan, BadInput> {
    Plan::new(good(text, &[]), Seed::new(1), 1)
}
