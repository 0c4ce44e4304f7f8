//! Metadata contexts: listing, selection, and the events that make a selection void.

use crate::client::*;
use lowtide_host::nbd::wire::{option, reply};
use lowtide_host::nbd::{Agreed, Settings};
use std::os::unix::net::UnixStream;

const ALLOCATION: &str = "base:allocation";

fn context(id: u32) -> Reply {
    (reply::META_CONTEXT, [&id.to_be_bytes()[..], ALLOCATION.as_bytes()].concat())
}

fn begin() -> (Client<UnixStream>, Server) {
    let (mut client, server) = session(Settings::default());
    structured(&mut client);
    (client, server)
}

/// Selects contexts in several steps, sends GO, and returns whether `base:allocation` is active.
fn agreed_after(steps: &[(u32, Vec<u8>)], go: &str) -> bool {
    let (mut client, server) = begin();
    for (option, data) in steps {
        client.ask(*option, data);
    }
    client.ask(option::GO, &choice(go, &[]));
    let Agreed { base_allocation, structured, .. } = server.agreed();
    assert!(structured);
    base_allocation
}

#[test]
fn contexts_are_listed_and_selected() {
    let ack = || (reply::ACK, vec![]);
    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    let rows: [(u32, &[&str], Vec<Reply>); 9] = [
        (list, &[], vec![context(0), ack()]),
        (list, &["base:"], vec![context(0), ack()]),
        (list, &[ALLOCATION, ALLOCATION], vec![context(0), ack()]),
        (list, &["x-other:thing", "base:other"], vec![ack()]),
        (set, &[], vec![ack()]),
        (set, &["base:"], vec![ack()]),
        (set, &[ALLOCATION], vec![context(1), ack()]),
        (set, &["qemu:dirty-bitmap:x", ALLOCATION, ALLOCATION], vec![context(1), ack()]),
        (set, &["x-other:thing"], vec![ack()]),
    ];
    let (mut client, _server) = begin();
    for (option, asked, wanted) in rows {
        for export in ["first", "", "second"] {
            assert_eq!(
                client.ask(option, &queries(export, asked)),
                wanted,
                "{option} {asked:?} of {export:?}"
            );
        }
    }
}

#[test]
fn wrong_queries_are_told() {
    let with_count = |count: u32| [string(b"first"), count.to_be_bytes().to_vec()].concat();
    let many = vec!["base:allocation"; 4000];
    let rows: [(&str, Vec<u8>, u32); 9] = [
        ("no export of that name", queries("none", &[ALLOCATION]), reply::ERR_UNKNOWN),
        ("no namespace", queries("first", &["allocation"]), reply::ERR_INVALID),
        ("an empty query", queries("first", &[""]), reply::ERR_INVALID),
        ("no data", vec![], reply::ERR_INVALID),
        ("fewer queries than announced", with_count(1), reply::ERR_INVALID),
        ("far fewer queries than announced", with_count(u32::MAX), reply::ERR_INVALID),
        ("bytes left over", [queries("first", &[]), vec![0]].concat(), reply::ERR_INVALID),
        ("a long query", queries("first", &[&"x:".repeat(3000)]), reply::ERR_TOO_BIG),
        ("too many queries", queries("first", &many), reply::ERR_TOO_BIG),
    ];
    let (mut client, _server) = begin();
    for (what, data, wanted) in rows {
        for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
            assert_eq!(client.kinds(option, &data), [wanted], "{what}");
        }
    }
}

#[test]
fn contexts_need_structured_replies() {
    let (mut client, server) = session(Settings::default());
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        assert_eq!(client.kinds(option, &queries("first", &[ALLOCATION])), [reply::ERR_INVALID]);
    }
    client.ask(option::GO, &choice("first", &[]));
    assert_eq!(
        server.agreed(),
        Agreed { export: 0, structured: false, base_allocation: false, block_sizes: false }
    );
}

#[test]
fn a_selection_holds_for_its_export_until_the_next_one() {
    let set = |export: &str, asked: &[&str]| (option::SET_META_CONTEXT, queries(export, asked));
    let list = |export: &str| (option::LIST_META_CONTEXT, queries(export, &[]));
    let select = |export: &str| set(export, &[ALLOCATION]);
    let wrong = (option::SET_META_CONTEXT, vec![1, 2, 3]);
    let long = (option::SET_META_CONTEXT, vec![0; (64 << 10) + 1]);
    let info = (option::INFO, choice("second", &[]));
    let rows = [
        ("selected", vec![select("first")], "first", true),
        ("nothing selected", vec![], "first", false),
        ("only listed", vec![list("first")], "first", false),
        ("selected for another export", vec![select("second")], "first", false),
        ("the default export by its name", vec![select("")], "first", true),
        ("the default export without its name", vec![select("first")], "", true),
        ("selected again for another", vec![select("second"), select("first")], "first", true),
        ("replaced by another", vec![select("first"), select("second")], "first", false),
        ("replaced by nothing", vec![select("first"), set("first", &[])], "first", false),
        ("replaced by an unknown context", vec![select("first"), set("first", &["x:y"])], "first", false),
        ("replaced by an unknown export", vec![select("first"), select("none")], "first", false),
        ("replaced by a failure", vec![select("first"), wrong], "first", false),
        ("replaced by what is too long", vec![select("first"), long], "first", false),
        ("kept while others are asked about", vec![select("first"), list("second"), info], "first", true),
    ];
    for (what, steps, go, wanted) in rows {
        assert_eq!(agreed_after(&steps, go), wanted, "{what}");
    }
}
