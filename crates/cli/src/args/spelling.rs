//! Verbs without their group, and suggestions for mistyped verbs.
//!
//! Older versions had no groups: `lowtide serve` still means `lowtide drive serve`, so that scripts keep working.
//! Help and completion list only the verbs with their group.

use super::Arguments;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, Parser};
use lowtide_core::suggest::nearest;
use std::ffi::OsString;

/// Groups whose verbs older versions had at the top level.
const GROUPS: [&str; 2] = ["drive", "store"];

/// Words that may follow the top-level verb `powercut`. Before any other word, `powercut` means `drive powercut`.
const OF_POWERCUT: [&str; 4] = ["oltp", "help", "-h", "--help"];

/// Parses the command line.
///
/// # Errors
/// The error from clap; for an unknown verb, it names the nearest verb of all groups.
pub fn parse() -> Result<Arguments, clap::Error> {
    parse_words(&words())
}

/// The words of the command line. A verb without its group gets the group in front.
pub fn words() -> Vec<OsString> {
    grouped(std::env::args_os().collect())
}

fn parse_words(words: &[OsString]) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(words).map_err(|error| with_nearest(error, words))
}

fn grouped(mut words: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    let at = if word(1) == Some("help") { 2 } else { 1 };
    let is_top_level =
        word(at) == Some("powercut") && word(at + 1).is_none_or(|next| OF_POWERCUT.contains(&next));
    let program = Arguments::command();
    let has = |group: &&str, verb| program.find_subcommand(group)?.find_subcommand(verb).map(|_| ());
    let group = word(at).and_then(|verb| GROUPS.into_iter().find(|group| has(group, verb).is_some()));
    if let Some(group) = group
        && !is_top_level
    {
        words.insert(at, OsString::from(group));
    }
    words
}

/// Adds the nearest verb of all groups to an error about an unknown verb.
fn with_nearest(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let plain = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let group: Vec<String> = plain.take_while(|word| word != given).collect();
    if let Some(verb) = nearest_verb(given, &group) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![verb]));
    }
    error
}

/// The command line of the nearest verb. If several are equally near, one of the same group is preferred.
fn nearest_verb(given: &str, group: &[String]) -> Option<String> {
    let mut all = Vec::new();
    verbs(&Arguments::command(), &[], &mut all);
    all.sort_by_key(|path| path[..path.len() - 1] != *group);
    let last = |path: &Vec<String>| path.last().cloned().unwrap_or_default();
    let names: Vec<String> = all.iter().map(last).collect();
    let name = nearest(given, names.iter().map(String::as_str))?;
    let at = names.iter().position(|other| other == name)?;
    Some(format!("lowtide {}", all[at].join(" ")))
}

/// Adds every verb below `command` to `all`, each with its groups.
fn verbs(command: &Command, above: &[String], all: &mut Vec<Vec<String>>) {
    for verb in command.get_subcommands() {
        let path = [above, &[verb.get_name().to_owned()]].concat();
        all.push(path.clone());
        verbs(verb, &path, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_verb_without_its_group_gets_it() {
        for (old, new) in [
            ("lowtide serve x", "lowtide drive serve x"),
            ("lowtide help merge", "lowtide help store merge"),
            ("lowtide powercut /tmp/drive.sock", "lowtide drive powercut /tmp/drive.sock"),
            ("lowtide powercut --stay-off db", "lowtide drive powercut --stay-off db"),
        ] {
            assert_eq!(grouped(typed(old)), typed(new));
        }
        for same in [
            "lowtide",
            "lowtide run show",
            "lowtide powercut oltp",
            "lowtide powercut",
            "lowtide drive stat x",
        ] {
            assert_eq!(grouped(typed(same)), typed(same));
        }
    }

    #[test]
    fn the_nearest_verb_of_all_groups_is_suggested() {
        for (wrong, right) in [
            ("lowtide pwoer-on x", "'lowtide drive power-on'"),
            ("lowtide mrege", "'lowtide store merge'"),
            ("lowtide fial x", "'lowtide drive fail'"),
            ("lowtide rnu x", "'lowtide run'"),
            ("lowtide drive mrege", "'lowtide store merge'"),
            ("lowtide drive sevre", "'lowtide drive serve'"),
            ("lowtide logdisk sevre", "'lowtide logdisk serve'"),
            ("lowtide fomrat", "'lowtide logdisk format'"),
        ] {
            let error = parse_words(&typed(wrong)).expect_err(wrong).to_string();
            assert!(error.contains(right), "{wrong}: {error}");
        }
        let error = parse_words(&typed("lowtide zebra")).expect_err("there is no such verb").to_string();
        assert!(!error.contains("exists"), "{error}");
    }
}
