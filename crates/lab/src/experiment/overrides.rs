//! `--set key=value`: changes of an experiment from the command line.
//!
//! A key is dotted (`workload.threads`) or a unique end of a dotted key (`threads`, `layout.reserve`). If the short
//! key is also a factor, the override sets the factor, including its levels in steps. A value is TOML, or else a
//! string, so `duration=60s` needs no quotes. Setting one of several exclusive keys (`duration` or `until`) replaces
//! the other.
//!
//! Steps, comparisons and claims define the experiment's question, and can be changed only in its file.

use super::document::{Document, Origin};
use super::error::{BadInput, Problem, Source};
use super::excerpt::Excerpt;
use super::schema;
use lowtide_core::suggest::nearest;
use lowtide_files::passwords;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use toml::de::DeValue;

/// One `key=value` from the command line. [`FromStr`] parses the output of [`fmt::Display`].
#[derive(Clone, PartialEq, Eq)]
pub struct Override {
    key: String,
    value: String,
}

impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Override").field(&passwords::without(&self.to_string())).finish()
    }
}

impl FromStr for Override {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Self, BadInput> {
        let problem = |message: &str| {
            let source = Arc::new(Excerpt::new(format!("--set {text}"), text));
            Problem::new(source, 0..text.len(), message.to_owned())
                .accepting("write `key=value`, such as `threads=4`")
        };
        let (key, value) = text.split_once('=').ok_or_else(|| problem("an override without `=`"))?;
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() {
            return Err(problem("an override without a key").into());
        }
        if value.is_empty() {
            return Err(problem(&format!("an override of `{key}` without a value")).into());
        }
        Ok(Override { key: key.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Override {
    /// The key as given.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The value as given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Applies the override to the document.
    pub(super) fn apply(&self, mut document: Document) -> Result<Document, Problem> {
        let edit = Edit::new(self)?;
        let paths = self.paths(&document, &edit)?;
        if paths.iter().any(|path| path == "workload.trace") {
            let replaced = schema::REPLACED_BY_TRACE.names().map(|key| schema::dotted("workload", key));
            document = without(document, replaced)?;
        }
        paths.iter().try_fold(document, |document, path| edit.set(document, path))
    }

    /// The full keys in the document that this override sets.
    fn paths(&self, document: &Document, edit: &Edit) -> Result<Vec<String>, Problem> {
        let load = schema::LOADS.into_iter().find(|load| document.place(load).is_some());
        let meanings = schema::meanings(&self.key, load.unwrap_or(schema::LOADS[0]));
        if meanings.is_empty() {
            return Err(self.unknown(edit));
        }
        let factor = meanings.iter().find_map(|path| path.strip_prefix("sweep."));
        if let Some(factor) = factor {
            let own = (0..).map_while(|step| document.place(&format!("step.{step}")).map(|_| step));
            let swept: Vec<String> = std::iter::once(format!("sweep.{factor}"))
                .chain(own.map(|step| format!("step.{step}.sweep.{factor}")))
                .filter(|path| document.place(path).is_some())
                .collect();
            if !swept.is_empty() {
                return Ok(swept);
            }
        }
        Ok(meanings.into_iter().take(1).collect())
    }

    fn unknown(&self, edit: &Edit) -> Problem {
        let full: Vec<String> = schema::settable().collect();
        let problem = |message: String, help: String| {
            Problem::new(edit.source.clone(), edit.key.clone(), message).marked("no such key").accepting(help)
        };
        let key = &self.key;
        if schema::LISTS.contains(&key.split('.').next().unwrap_or(key)) {
            let help = "steps, comparisons and claims are changed in the experiment file";
            return problem(format!("`{key}` cannot be set from the command line"), help.to_owned());
        }
        let shown = |path: &str| if key.contains('.') { path.to_owned() } else { end(path).to_owned() };
        let names: Vec<String> = full.iter().map(|path| shown(path)).collect();
        let Some(near) = nearest(key, names.iter().map(String::as_str)) else {
            return problem(format!("unknown key `{key}`"), format!("accepted: {}", full.join(", ")));
        };
        // The help lists the keys in the table of the nearest name.
        let path = names.iter().position(|name| name == near).map_or("", |at| full[at].as_str());
        let table = table(path);
        let accepted: Vec<&str> =
            full.iter().map(String::as_str).filter(|path| self::table(path) == table).collect();
        problem(
            format!("unknown key `{key}`: did you mean `{near}`?"),
            format!("accepted: {}", accepted.join(", ")),
        )
    }
}

/// The last part of a dotted path.
fn end(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// All but the last part of a dotted path.
fn table(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(table, _)| table)
}

/// The text that an override inserts, and its source for errors.
struct Edit {
    source: Source,
    key: Range<usize>,
    /// The value as TOML, and the origin of its bytes.
    value: (String, Origin),
}

impl Edit {
    fn new(from: &Override) -> Result<Self, Problem> {
        let text = from.to_string();
        let source: Source = Arc::new(Excerpt::new(format!("--set {text}"), &text));
        let (key, span) = (0..from.key.len(), from.key.len() + 1..text.len());
        let value = match DeValue::parse(&from.value) {
            Ok(_) => (from.value.clone(), Origin::Verbatim(source.clone(), span.start)),
            Err(error) if from.value.starts_with(['"', '\'', '[', '{']) => {
                let message = format!("this is not TOML: {}", error.message());
                let help = "write a TOML value, such as `4`, `\"10GiB\"` or `[\"10GiB\", \"20GiB\"]`";
                return Err(Problem::new(source, span, message).marked("here").accepting(help));
            }
            Err(_) => {
                let quoted = toml::Value::String(from.value.clone()).to_string();
                (quoted, Origin::Generated(source.clone(), span))
            }
        };
        Ok(Edit { source, key, value })
    }

    fn glue(&self, text: impl Into<String>) -> (String, Origin) {
        (text.into(), Origin::Generated(self.source.clone(), self.key.clone()))
    }

    fn set(&self, document: Document, path: &str) -> Result<Document, Problem> {
        if let Some(place) = document.place(path) {
            let span = place.value.clone();
            self.refuse_table(&document, path, &span)?;
            return document.spliced(span, vec![self.value.clone()]);
        }
        let key = end(path);
        let rivals = schema::EXCLUSIVE.into_iter().find(|group| group.contains(&path)).unwrap_or(&[]);
        if let Some((rival, place)) = rivals.iter().find_map(|rival| Some((rival, document.place(rival)?))) {
            let (range, value) = (place.key.start..place.value.end, place.value.clone());
            self.refuse_table(&document, rival, &value)?;
            let document =
                document.spliced(range, vec![self.glue(format!("{key} = ")), self.value.clone()])?;
            let Some(table) = rival.strip_suffix(".until") else { return Ok(document) };
            return without(document, ["max", "precision"].map(|key| format!("{table}.{key}")));
        }
        self.insert(&document, path, key)
    }

    /// Inserts an absent key: into its table, or with a new table at the end.
    fn insert(&self, document: &Document, path: &str, key: &str) -> Result<Document, Problem> {
        let text = document.text();
        let line =
            |before: String, after: &str| vec![self.glue(before), self.value.clone(), self.glue(after)];
        let Some((table, _)) = path.rsplit_once('.') else {
            return document.spliced(0..0, line(format!("{key} = "), "\n"));
        };
        if let Some(place) = document.place(table) {
            let (start, end) = (place.value.start, place.value.end);
            if text[start..].starts_with('{') {
                let empty = text[start + 1..end - 1].trim().is_empty();
                let after = if empty { " " } else { "," };
                return document.spliced(start + 1..start + 1, line(format!(" {key} = "), after));
            }
            if text[start..].starts_with('[') {
                let next = text[end..].find('\n').map(|at| end + at + 1);
                let newline = if next.is_none() { "\n" } else { "" };
                let at = next.unwrap_or(text.len());
                return document.spliced(at..at, line(format!("{newline}{key} = "), "\n"));
            }
        }
        let end = text.len();
        document
            .spliced(end..end, line(format!("\n[{table}]\n{key} = "), "\n"))
            .or_else(|_| document.spliced(0..0, line(format!("{path} = "), "\n")))
    }

    /// A table under its own header has no value to replace.
    fn refuse_table(&self, document: &Document, path: &str, value: &Range<usize>) -> Result<(), Problem> {
        let may_be_table = schema::TABLES.contains(&path)
            || schema::SWEEP.names().any(|factor| path.ends_with(&format!("sweep.{factor}")));
        let has_elements = document.place(&format!("{path}.0")).is_some();
        let text = &document.text()[value.clone()];
        // Tables are `[table]` or one of several `[[table]]`. An inline list has elements too, but can be replaced.
        if may_be_table && text.starts_with('[') && (!has_elements || text.starts_with("[[")) {
            let message =
                format!("`{path}` is a table under its own header here, and cannot be set as a whole");
            let help = format!("set its keys, such as `{path}.…=…`, or write it in one line in the file");
            return Err(Problem::new(self.source.clone(), self.key.clone(), message).accepting(help));
        }
        Ok(())
    }
}

/// Removes keys that no longer have an effect: `max` and `precision` without `until`, and a pattern with a trace.
fn without(document: Document, paths: impl IntoIterator<Item = String>) -> Result<Document, Problem> {
    paths.into_iter().try_fold(document, |document, path| {
        let Some(place) = document.place(&path) else { return Ok(document) };
        let (start, end) = (place.key.start, place.value.end);
        let text = document.text();
        let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
        let alone = text[from..start].trim().is_empty()
            && text[end..to].trim_start().starts_with(['#', '\n', '\r'])
            || text[end..to].trim().is_empty() && text[from..start].trim().is_empty();
        if alone { document.spliced(from..to, Vec::new()) } else { Ok(document) }
    })
}
