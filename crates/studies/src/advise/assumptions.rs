//! Lists the assumptions and omissions of an answer, for a user who is about to buy.

use super::candidate::TERMINALS_PER_WAREHOUSE;
use super::choose::{Advice, POOLS};
use super::question::{Asked, BlockLoad, Question, TpccLoad, WORKING_SET_ACCESS, warehouses};
use super::text::{io_capacity, log_size, what};
use lowtide_engines::model::Machine;
use lowtide_report::number::significant;
use lowtide_report::{Column, Table, Value};

/// The table of assumptions.
pub(super) fn assumptions(advice: &Advice) -> Table {
    let question = &advice.question;
    let mut list = vec![(
        "modelled",
        "every figure is of a simulated device in virtual time; no real one was asked (docs/models says how near they come)"
            .to_owned(),
    )];
    match &question.asked {
        Asked::Block(load) => list.extend(block(question, load)),
        Asked::Tpcc(load) => list.extend(tpcc(question, load)),
    }
    list.push((
        "met",
        "where the lower end of the 95 % confidence interval of the settled level is the rate or more"
            .to_owned(),
    ));
    list.push((
        "history",
        match question.asked {
            Asked::Block(_) => {
                "erased, the data written once in order, then the load until all NAND was written and the level no longer changes"
            }
            Asked::Tpcc(_) => {
                "erased, the data written once in order and then at random until all NAND was written, then transactions for a quarter \
                 of an hour (made smaller as the rest is)"
            }
        }
        .to_owned(),
    ));
    list.push((
        "reserve",
        "what the data do not fill is never written: the same as a reserve of that size, and no partition is needed"
            .to_owned(),
    ));
    list.push(("size", sizes(advice)));
    list.push((
        "busy",
        format!(
            "the rate lasts {} % of all time (--busy), for wear and for what a million {} cost",
            significant(question.busy * 100.0),
            question.unit().counted()
        ),
    ));
    list.push((
        "life",
        "until the rated erase cycles are used, from the fewest to the most; wear is even; write amplification is that of the \
         measured level; at least the fewest years are wanted"
            .to_owned(),
    ));
    list.push(("prices", prices(advice)));
    if let Asked::Tpcc(_) = question.asked {
        let usd = significant(question.memory_usd_per_gb);
        list.push(("memory price", format!("{usd} dollars a GB (--memory-price), over the years asked for")));
    }
    list.push((
        "years",
        format!(
            "a device is paid for over {} years (--years), or its life where that is less",
            significant(question.years)
        ),
    ));
    list.push((
        "left out",
        "how long a request or a transaction takes; servers, controllers, power, interest; more than one device; failures, retention, temperature; filesystems, TRIM; \
         compression"
            .to_owned(),
    ));
    Table {
        key: "assumptions".to_owned(),
        title: "What this assumes".to_owned(),
        note: String::new(),
        columns: vec![Column::text("what", "what").naming(), Column::text("assumed", "assumed").wide()],
        rows: list.into_iter().map(|(what, assumed)| vec![Value::text(what), Value::text(assumed)]).collect(),
    }
}

fn block(question: &Question, load: &BlockLoad) -> Vec<(&'static str, String)> {
    let set = load.working_set.filter(|set| *set < question.data);
    let accesses = match set {
        None => "uniform over all of the data (--working-set for less)".to_owned(),
        Some(set) => format!(
            "{} % go to {set}, uniformly, and the others to the rest",
            significant(WORKING_SET_ACCESS * 100.0)
        ),
    };
    vec![
        ("load", format!("{} (--block, --reads)", what(question))),
        ("accesses", accesses),
        (
            "in flight",
            format!(
                "{} requests at a time (--depth), the next as soon as one ends: the level is the most that the device does",
                load.depth
            ),
        ),
    ]
}

fn tpcc(question: &Question, load: &TpccLoad) -> Vec<(&'static str, String)> {
    let pools: Vec<String> = POOLS.iter().map(|part| format!("1/{part}")).collect();
    vec![
        (
            "load",
            format!(
                "{}, as many as the data hold; {} terminals that do not think (--terminals); the working set is TPC-C's own",
                what(question),
                load.terminals
            ),
        ),
        (
            "database",
            format!(
                "a model of InnoDB (docs/models/oltp.md): each commit durable, doublewrite, changed neighbours written along on flash, \
                 too, a redo log of {} on the same device, io_capacity {}",
                log_size(question.data),
                io_capacity(load)
            ),
        ),
        (
            "server",
            format!(
                "{} processors (--cores) that do not hinder each other, {} of one for a transaction (--cpu) and {} for each request \
                 to the device",
                load.cores,
                load.cpu,
                Machine::default().io_cpu
            ),
        ),
        (
            "warehouses",
            format!(
                "made smaller, the database has one warehouse for {TERMINALS_PER_WAREHOUSE} terminals at least, where --scale is not \
                 given: transactions wait for each other's rows more often than in the whole"
            ),
        ),
        (
            "memory",
            format!(
                "the smallest buffer pool that is enough of {} of the data ({}); what the server needs beside is not counted",
                pools.join(", "),
                question.data
            ),
        ),
        (
            "growth",
            format!(
                "the data are {} warehouses and what is added while it is measured; the years after that are not",
                warehouses(question.data)
            ),
        ),
    ]
}

/// The scales at which devices were simulated.
fn sizes(advice: &Advice) -> String {
    let mut scales: Vec<u64> =
        advice.rows.iter().filter(|row| row.measured().is_some()).map(|row| row.candidate.scale).collect();
    scales.sort_unstable();
    scales.dedup();
    if scales.is_empty() {
        return "nothing had to be simulated".to_owned();
    }
    let words: Vec<String> = scales
        .iter()
        .map(|scale| if *scale == 1 { "full size".to_owned() } else { format!("1/{scale}") })
        .collect();
    let what = match advice.question.asked {
        Asked::Block(_) => "devices and data",
        Asked::Tpcc(_) => "devices, data, memory and log",
    };
    format!(
        "{what} were simulated at {} (--scale), with the same timings; what is different at another size is not in the intervals",
        words.join(", ")
    )
}

fn prices(advice: &Advice) -> String {
    let own: Vec<String> = advice
        .rows
        .iter()
        .filter(|row| row.candidate.own_price)
        .filter_map(|row| {
            Some(format!("{} ${}", row.candidate.device.name, significant(row.candidate.price_usd?)))
        })
        .collect();
    let own = if own.is_empty() { String::new() } else { format!("as given: {}; else ", own.join(", ")) };
    let unpriced = advice.rows.iter().filter(|row| row.candidate.price_usd.is_none()).count();
    format!(
        "{own}those published when a device was new, in dollars of that year (`lowtide devices show NAME` has the source); {} of {} \
         candidates have none (--price) and are chosen only where no other is left",
        unpriced,
        advice.rows.len()
    )
}
