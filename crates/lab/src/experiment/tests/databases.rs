//! Experiments with databases: what is refused beside servers of others, what a scale does not go below, and passwords.

use super::{bad, good};
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
fn settings_of_servers_that_others_have_set_up_are_refused() {
    for (line, told) in [
        ("buffer_pool = '1GiB'", "`buffer_pool` beside `servers`"),
        ("durability = 'none'", "`durability` beside `servers`"),
        ("options = { innodb_io_capacity = '200' }", "`options` beside `servers`"),
        ("log-directory = '/log'", "`log-directory` beside `servers`"),
        ("[sweep]\nlog_size = ['1GiB', '2GiB']", "`log_size` beside `servers`"),
        ("[sweep]\nengine = ['mariadb', 'mariadb-aria']", "the factor `engine` beside `servers`"),
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
fn what_is_kept_of_an_experiment_has_no_passwords() {
    let experiment = good(OTHERS, &[]);
    let command = "lowtide run others --set oltp.servers=mariadb://me:se%40cret@db.example/tpcc";
    for text in [experiment.text(), command] {
        let shown = experiment.without_passwords(text);
        assert!(shown.contains("mariadb://me:***@db.example/tpcc") && !shown.contains("cret"), "{shown}");
    }
    let plan = Plan::new(experiment, Seed::new(1), 1).expect("a plan");
    assert!(!plan.identity().contains("cret"), "{}", plan.identity());
}

#[test]
fn memory_and_logs_that_a_server_does_not_start_with_are_refused() {
    let text = |log: &str| {
        format!(
            "name = 'scaled'\ntarget.directory = '.'\n[oltp]\nengine = 'postgresql'\nwarehouses = 100\n\
             buffer_pool = '4GiB'\nlog_size = '{log}'\nduration = '1h'\n"
        )
    };
    for (log, scale, told) in [
        ("2GiB", 100, "log_size comes to 20.5 MiB at a scale of 1/100"),
        ("16MiB", 1, "log_size of 16MiB: postgresql does not start with it"),
    ] {
        let error = Plan::new(good(&text(log), &[]), Seed::new(1), scale).expect_err("too small");
        let error = super::render(&error);
        assert!(error.contains(told), "{error}");
    }
    let error = super::render(&Plan::new(good(&text("2GiB"), &[]), Seed::new(1), 100).expect_err("small"));
    assert!(error.contains("--scale 1/64"), "{error}");
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
fn a_model_of_an_engine_lies_on_a_simulated_device_alone_and_says_what_it_does_not_do() {
    let plan = Plan::new(good(MODELLED, &[]), Seed::new(1), 1).expect("a plan");
    assert!(plan.target.is_simulated());
    for (line, told) in [
        ("think = true", "terminals of a modelled engine do not think"),
        ("instances = 2", "`instances` of a modelled engine, which has none"),
        ("flush_method = 'fsync'", "`flush_method` of a modelled engine, which has none"),
        ("[sweep]\nengine = ['innodb-model', 'mariadb']", "modelled engines beside databases"),
    ] {
        let error = bad(&format!("{MODELLED}{line}\n"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    let error = bad(&MODELLED.replace("device = \"intel-x25-e-32gb\"", "directory = \".\""));
    assert!(error.contains("a modelled engine on a real target"), "{error}");
    for (line, told) in [
        ("options = { core = '4' }", "did you mean `cores`?"),
        ("options = { contention = '7' }", "a share from 0 to below 1"),
        ("buffer_pool = '1MiB'", "innodb-model does not start with it"),
        ("log_size = '40GiB'", "do not fit"),
    ] {
        let plan = Plan::new(good(&format!("{MODELLED}{line}\n"), &[]), Seed::new(1), 1);
        let error = super::render(&plan.expect_err("it cannot be"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    let myisam = MODELLED.replace("innodb", "myisam");
    for (line, told) in [
        ("options = { pool-lock = '1us' }", "myisam-model has no option `pool-lock`"),
        ("options = { page-cash = '1GiB' }", "mean `page-cache`?"),
    ] {
        let plan = Plan::new(good(&format!("{myisam}{line}\n"), &[]), Seed::new(1), 1);
        let error = super::render(&plan.expect_err("it cannot be"));
        assert!(error.contains(told), "{line}:\n{error}");
    }
    // It has no log: nothing lies before the data.
    Plan::new(good(&format!("{myisam}log_size = '40GiB'\n"), &[]), Seed::new(1), 1).expect("a plan");
}
