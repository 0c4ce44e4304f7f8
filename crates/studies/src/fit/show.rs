//! Formats a fitted drive as tables for people and as JSON for programs.
//!
//! The device file is in `write`.

use super::{COST_UNIT, Fitted, Interval, MIB, write};
use lowtide_files::table;
use serde_json::json;

/// A table of parameters, a table of levels, and a list of the undetermined parameters.
pub fn table(fitted: &Fitted, columns: usize) -> String {
    let unit = COST_UNIT.get() as f64;
    let of = |it: &Interval, show: &dyn Fn(f64) -> String| [show(it.best), show(it.low), show(it.high)];
    let row = |name: &str, shown: [String; 3]| [vec![name.to_owned()], shown.to_vec()].concat();
    let rate = |it: f64| format!("{:.1} MiB/s", it / MIB);
    let micros = |it: f64| format!("{:.2} us a unit", it * unit * 1e6);
    let mut rows = vec![
        row("raw capacity", of(&fitted.raw, &write::size)),
        row("peak rate", of(&fitted.peak, &rate)),
        row("cost of moving", of(&fitted.moved, &micros)),
    ];
    rows.extend(fitted.reach.map(|reach| row("reach of the map", of(&reach, &write::size))));
    rows.push(row("cleaned next", [write::policy(fitted.parameters.policy), String::new(), String::new()]));
    let mut text = table::plain(&["", "fitted", "from", "to"], &rows, columns);
    text += "\n\n";
    let level = |it: &super::Level| {
        let measured = it.measured.map(|it| format!("{:.1}", it / MIB)).unwrap_or_default();
        let error = it.measured.map(|of| format!("{:+.1} %", (it.fitted.best / of - 1.0) * 100.0));
        vec![
            it.data.to_string(),
            measured,
            format!("{:.1}", it.fitted.best / MIB),
            format!("{:.1} to {:.1}", it.fitted.low / MIB, it.fitted.high / MIB),
            error.unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = fitted.levels.iter().map(level).collect();
    text += &table::plain(&["data", "measured, MiB/s", "fitted", "95 %", "error"], &rows, columns);
    if !fitted.undetermined.is_empty() {
        text += "\n\nNot determined by the data:";
        fitted.undetermined.iter().for_each(|it| text += &format!("\n- {it}"));
    }
    text
}

/// A JSON object, with units in the key names.
pub fn json(fitted: &Fitted) -> String {
    let of = |it: &Interval, factor: f64| json!({ "best": it.best * factor, "low": it.low * factor, "high": it.high * factor });
    let level = |it: &super::Level| {
        json!({
            "data_bytes": it.data.get(),
            "measured_mib_per_s": it.measured.map(|it| it / MIB),
            "fitted_mib_per_s": of(&it.fitted, 1.0 / MIB),
        })
    };
    let object = json!({
        "raw_bytes": of(&fitted.raw, 1.0),
        "peak_mib_per_s": of(&fitted.peak, 1.0 / MIB),
        "gc_ns_per_byte": of(&fitted.moved, 1e9),
        "map_reach_bytes": fitted.reach.map(|it| of(&it, 1.0)),
        "policy": write::policy(fitted.parameters.policy),
        "other_policies": fitted.other_policies.iter().map(|it| write::policy(*it)).collect::<Vec<_>>(),
        "levels": fitted.levels.iter().map(level).collect::<Vec<_>>(),
        "undetermined": fitted.undetermined,
        "deviation": fitted.deviation,
        "simulations": fitted.simulations,
        "notes": fitted.notes,
    });
    format!("{object}\n")
}
