//! Reads the tables of a document, key by key, and records every problem.
//!
//! A reader returns `None` after it recorded a problem, so that callers do not report the problem again. The module
//! of each table defines the meaning of its keys.

use super::error::Problems;
use super::schema::Keys;
use lowtide_core::suggest::nearest;
use lowtide_core::{Bytes, Nanos, UnitError};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A table of the document.
pub(super) struct Table<'a> {
    map: &'a DeTable<'a>,
    pub(super) problems: &'a Problems<'a>,
    /// Dotted path in the document, empty for the root.
    pub(super) path: String,
    /// The span of its header, or of the entire inline table.
    pub(super) span: Range<usize>,
}

/// A key and its value, or an element of an array.
pub(super) struct Entry<'a> {
    /// Its name in errors.
    pub(super) name: String,
    /// Dotted path in the document.
    pub(super) path: String,
    pub(super) key_span: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) value: &'a DeValue<'a>,
    pub(super) problems: &'a Problems<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn root(map: &'a DeTable<'a>, problems: &'a Problems<'a>) -> Self {
        Table { map, problems, path: String::new(), span: 0..0 }
    }

    /// Records every key that is not in `keys`. Returns whether all keys are in `keys`.
    pub(super) fn only(&self, keys: &Keys) -> bool {
        let mut only = true;
        for (key, _) in self.map.iter() {
            let name = key.get_ref().as_ref();
            if keys.contains(name) {
                continue;
            }
            only = false;
            let hint = did_you_mean(name, keys.names());
            let place = match keys.table {
                "" => "an experiment".to_owned(),
                table if table.contains(' ') => table.to_owned(),
                table => format!("[{table}]"),
            };
            self.problems.add(
                key.span(),
                format!("unknown key `{name}`{hint}"),
                format!("not a key of {place}"),
                format!("valid keys of {place}: {}", keys.list()),
            );
        }
        only
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<'a>> {
        let (key, value) = self.map.iter().find(|(name, _)| name.get_ref() == key)?;
        Some(self.entry(key, value))
    }

    /// Reads the value of `key`, or returns `default` if the key is absent.
    pub(super) fn value_or<T>(
        &self,
        key: &str,
        default: T,
        read: impl FnOnce(&Entry<'a>) -> Option<T>,
    ) -> Option<T> {
        match self.get(key) {
            Some(entry) => read(&entry),
            None => Some(default),
        }
    }

    /// Reads the value of `key`; `Some(None)` if the key is absent.
    #[expect(clippy::option_option, reason = "an absent key and a bad value are different")]
    pub(super) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Entry<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        self.value_or(key, None, |entry| read(entry).map(Some))
    }

    /// Replaces `value` by the value of `key`, if the key is present and its value is accepted.
    pub(super) fn update<T>(&self, key: &str, value: &mut T, read: impl FnOnce(&Entry<'a>) -> Option<T>) {
        if let Some(new) = self.get(key).and_then(|entry| read(&entry)) {
            *value = new;
        }
    }

    /// Reads the text of a key that must be present.
    pub(super) fn require_text(&self, key: &str, example: &str) -> Option<String> {
        self.require(key, example)?.text(example)
    }

    /// Records that `key` has no effect, if it is present.
    pub(super) fn refuse_key(&self, key: &str, message: String, help: &str) {
        if let Some(entry) = self.get(key) {
            self.problems.add(entry.key_span, message, "has no effect", help);
        }
    }

    /// The entry of `key`; records that it is missing.
    pub(super) fn require(&self, key: &str, example: &str) -> Option<Entry<'a>> {
        let entry = self.get(key);
        if entry.is_none() {
            let table = match self.path.rsplit_once('.') {
                _ if self.path.is_empty() => String::new(),
                Some((list, index)) if index.parse::<usize>().is_ok() => format!(" in [[{list}]]"),
                _ => format!(" in [{}]", self.path),
            };
            self.problems.add(
                self.span.clone(),
                format!("`{key}` is missing{table}"),
                "here",
                format!("write for example `{key} = {example}`"),
            );
        }
        entry
    }

    /// All entries in the order of the text.
    pub(super) fn in_order(&self) -> Vec<Entry<'a>> {
        let mut entries: Vec<_> = self.map.iter().map(|(key, value)| self.entry(key, value)).collect();
        entries.sort_by_key(|entry| entry.key_span.start);
        entries
    }

    fn entry(
        &self,
        key: &'a toml::Spanned<toml::de::DeString<'a>>,
        value: &'a toml::Spanned<DeValue<'a>>,
    ) -> Entry<'a> {
        Entry {
            name: key.get_ref().to_string(),
            path: super::schema::dotted(&self.path, key.get_ref()),
            key_span: key.span(),
            span: value.span(),
            value: value.get_ref(),
            problems: self.problems,
        }
    }
}

impl<'a> Entry<'a> {
    /// Records that the value is of another type than `wanted`.
    fn mismatch<T>(&self, wanted: &str, example: &str) -> Option<T> {
        let given = kind(self.value);
        let message = format!("`{}` takes {wanted}, not {given}", self.name);
        self.problems.add(self.span.clone(), message, given, self.write(example));
        None
    }

    /// Records that the value is not accepted.
    pub(super) fn refuse<T>(&self, fault: impl std::fmt::Display, accepted: impl Into<String>) -> Option<T> {
        self.problems.add(self.span.clone(), format!("`{}`: {fault}", self.name), "here", accepted);
        None
    }

    pub(super) fn string(&self, example: &str) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.mismatch("a string", example),
        }
    }

    /// A string that is not empty.
    pub(super) fn text(&self, example: &str) -> Option<String> {
        let text = self.string(example)?;
        if text.trim().is_empty() {
            return self.refuse("an empty string", self.write(example));
        }
        Some(text)
    }

    /// The help for a value that is not accepted, with an example.
    pub(super) fn write(&self, example: &str) -> String {
        format!("write for example `{} = {example}`", self.name)
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => self.mismatch("true or false", "true"),
        }
    }

    pub(super) fn integer(&self) -> Option<i64> {
        match self.value {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .or_else(|| self.refuse("too large for 64 bits", "a smaller whole number")),
            _ => self.mismatch("a whole number", "4"),
        }
    }

    /// A whole number of at least one.
    pub(super) fn count(&self) -> Option<u32> {
        let number = self.integer()?;
        match u32::try_from(number) {
            Ok(count) if count > 0 => Some(count),
            _ => self.refuse(format!("{number} is not a count"), "a whole number from 1 to 4294967295"),
        }
    }

    pub(super) fn number(&self, example: &str) -> Option<f64> {
        let number = match self.value {
            DeValue::Integer(_) => self.integer()? as f64,
            DeValue::Float(number) => number.as_str().parse().unwrap_or(f64::NAN),
            _ => return self.mismatch("a number", example),
        };
        if !number.is_finite() {
            return self.refuse("not a finite number", self.write(example));
        }
        Some(number)
    }

    /// A number that `is_share` accepts.
    pub(super) fn share(
        &self,
        example: &str,
        accepted: &str,
        is_share: impl FnOnce(f64) -> bool,
    ) -> Option<f64> {
        let share = self.number(example)?;
        if is_share(share) {
            return Some(share);
        }
        let help = format!("a share {accepted}, such as `{example}`");
        self.refuse(format!("{share} is not a share"), help)
    }

    /// A count that is at most `most`; `what` is its unit in the error.
    pub(super) fn count_up_to(&self, most: u32, what: &str) -> Option<u32> {
        match self.count()? {
            count if count > most => self.refuse(format!("{count} {what}"), format!("from 1 to {most}")),
            count => Some(count),
        }
    }

    pub(super) fn bytes(&self) -> Option<Bytes> {
        self.unit("a size with its unit, in quotes", "\"16KiB\"")
    }

    pub(super) fn nanos(&self) -> Option<Nanos> {
        self.unit("a span of time with its unit, in quotes", "\"10s\"")
    }

    /// A span of time above zero.
    pub(super) fn some_time(&self) -> Option<Nanos> {
        match self.nanos()? {
            Nanos::ZERO => self.refuse("no time at all", "a span of time above 0, such as `\"10s\"`"),
            time => Some(time),
        }
    }

    fn unit<T: std::str::FromStr<Err = UnitError>>(&self, wanted: &str, example: &str) -> Option<T> {
        let DeValue::String(text) = self.value else { return self.mismatch(wanted, example) };
        match text.parse() {
            Ok(value) => Some(value),
            Err(UnitError { value, what, accepted }) => {
                self.refuse(format!("`{value}` is not a {what}"), accepted)
            }
        }
    }

    pub(super) fn table(&self) -> Option<Table<'a>> {
        match self.value {
            DeValue::Table(map) => {
                let (path, span) = (self.path.clone(), self.span.clone());
                Some(Table { map, problems: self.problems, path, span })
            }
            _ => self.mismatch("a table", "{ … }"),
        }
    }

    /// The elements of an array; `None` for other values.
    pub(super) fn elements(&self) -> Option<Vec<Entry<'a>>> {
        let DeValue::Array(array) = self.value else { return None };
        let element = |(at, value): (usize, &'a toml::Spanned<DeValue<'a>>)| Entry {
            name: self.name.clone(),
            path: format!("{}.{at}", self.path),
            key_span: value.span(),
            span: value.span(),
            value: value.get_ref(),
            problems: self.problems,
        };
        Some(array.iter().enumerate().map(element).collect())
    }

    /// The tables of a `[[header]]`.
    pub(super) fn tables(&self) -> Vec<Table<'a>> {
        match self.elements() {
            Some(elements) => elements.iter().filter_map(|element| element.table()).collect(),
            None => self.mismatch("a list of tables", "[{ … }]").unwrap_or_default(),
        }
    }
}

/// Returns `: did you mean …?` if one of the names is similar to `given`, else an empty text.
pub(super) fn did_you_mean<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(given, names).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default()
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
