//! Tests of `[[event]]`: the resolved events, and the errors of invalid events.

use super::{bad, good};
use crate::experiment::{Event, Happens};
use crate::plan::Plan;
use lowtide_core::{Nanos, Seed};
use lowtide_device::fault::{EndOfLife, Errors, Faults, Slow};
use lowtide_device::power::Tear;

const EVENTS: &str = r#"
name = "events"

[target]
device = "intel-320-160gb"

[workload]
pattern = "random-write"
block = "16KiB"
duration = "1h"

[[event]]
at = "20min"
do = "fail"
read-errors = 0.5
factor = 3
added = "1ms"
for = "5min"

[[event]]
at = "10min"
do = "power-cut"
granule = "512B"
"#;

fn with(event: &str) -> String {
    format!("{EVENTS}\n[[event]]\n{event}\n")
}

/// The error of an invalid experiment, with its lines joined.
fn told(text: &str) -> String {
    bad(text).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn events_come_in_order_of_time_with_their_defaults() {
    let text = with("at = '30min'\ndo = 'pause'\nfor = '1min'\n[[event]]\nat = '40min'\ndo = 'secure-erase'")
        + "[[event]]\nat = '50min'\ndo = 'fail'\nend-of-life = true";
    let events = good(&text, &[]).resolved.load.events;
    let minutes = |n: u64| Nanos::from_secs(60 * n);
    let slow = Slow { factor: 3.0, added: Nanos::from_millis(1), share: 1.0, until: None };
    let read_errors = Some(Errors { share: 0.5, ..Errors::default() });
    let faults = Faults { read_errors, slow: Some(slow), ..Faults::default() };
    let over = Faults { end_of_life: Some(EndOfLife::Now), ..Faults::default() };
    let wanted = [
        (10, Happens::PowerCut { off: Nanos::from_secs(1), tear: Tear::Sector }),
        (20, Happens::Fail { faults, length: Some(minutes(5)) }),
        (30, Happens::Pause { length: minutes(1) }),
        (40, Happens::SecureErase),
        (50, Happens::Fail { faults: over, length: None }),
    ];
    assert_eq!(events, wanted.map(|(at, what)| Event { at: minutes(at), what }));
}

#[test]
fn a_smaller_experiment_has_them_sooner() {
    let plan = Plan::new(good(EVENTS, &[]), Seed::new(1), 60).expect("it fits");
    let events = &plan.cells[0].settings.load.events;
    assert_eq!(events[0].at, Nanos::from_secs(10));
    assert!(
        matches!(events[1].what, Happens::Fail { length: Some(length), .. } if length == Nanos::from_secs(5))
    );
}

#[test]
fn what_could_not_happen_is_refused_at_its_key() {
    for (event, fault) in [
        ("do = 'pause'\nfor = '1s'", "`at` is missing in [[event]]"),
        ("at = '1s'", "`do` is missing in [[event]]"),
        ("at = '1s'\ndo = 'powercut'", "unknown event `powercut`: did you mean `power-cut`?"),
        ("at = '1s'\ndo = 'pause'", "`for` is missing in [[event]]"),
        ("at = '1s'\ndo = 'pause'\nfor = '0s'", "`for`: no time at all"),
        ("at = '1h'\ndo = 'power-cut'", "an event after the end"),
        ("at = '1s'\ndo = 'power-cut'\ngranule = '1KiB'", "1KiB is not the size of an atomic write"),
        ("at = '1s'\ndo = 'power-cut'\nfactor = 2", "`factor` belongs to `fail`, not to `power-cut`"),
        (
            "at = '1s'\ndo = 'secure-erase'\nfor = '1s'",
            "`for` belongs to `power-cut`, `pause`, `fail`, not to",
        ),
        ("at = '1s'\ndo = 'fail'", "`fail` without a fault"),
        ("at = '1s'\ndo = 'fail'\nshare = 0.5", "`share` belongs to `factor` and `added`"),
        ("at = '1s'\ndo = 'fail'\nread-errors = 2", "`read-errors`: 2 is not a share from 0 to 1"),
        ("at = '1s'\ndo = 'fail'\nfactor = 0.5", "`factor`: 0.5 is not from 1 to"),
        ("at = '1s'\ndo = 'fail'\nend-of-lif = true", "did you mean `end-of-life`?"),
    ] {
        let told = told(&with(event));
        assert!(told.contains(fault), "{event}: {told}");
    }
    let other = |from: &str, to: &str| told(&EVENTS.replace(from, to));
    let said = other("device = \"intel-320-160gb\"", "file = \"/tmp/x\"");
    assert!(said.contains("events on a real target"), "{said}");
    let said = other("duration = \"1h\"", "duration = \"1h\"\nrate = 100\narrival = \"fixed\"");
    assert!(said.contains("events in a load that is not a closed loop"), "{said}");
}
