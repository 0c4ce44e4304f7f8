//! The text of an experiment and where each part of it came from.
//!
//! Overrides are spliced into the text, so the effective text is itself an experiment file that can be stored
//! and run again. A [`Document`] remembers which bytes came from the file and which from which `--set`, so that
//! an error points at what the user wrote. Not here: what the keys mean.

use super::error::{Problem, Source};
use super::excerpt::Excerpt;
use lowtide_files::passwords;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Where a run of bytes in the text came from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// From the source, at this offset on.
    Verbatim(Source, usize),
    /// Written for this span of the source: any part of the run means the whole span.
    Stands(Source, Range<usize>),
}

/// Where a key and its value stand in the text.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// A TOML text, spliced together from a file and overrides.
#[derive(Clone)]
pub(super) struct Document {
    text: String,
    /// `(length, origin)` runs that cover the text.
    pieces: Vec<(usize, Origin)>,
    /// Dotted path → place, for every key and array element: `sweep.file_size`, `step.0.fill`.
    places: BTreeMap<String, Place>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Document").field(&passwords::without(&self.text)).finish()
    }
}

impl Document {
    /// A document as read from a file.
    pub(super) fn new(name: &str, text: &str) -> Result<Self, Problem> {
        let source = Arc::new(Excerpt::new(name, text));
        let pieces = vec![(text.len(), Origin::Verbatim(source, 0))];
        Document { text: text.to_owned(), pieces, places: BTreeMap::new() }.indexed()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The parsed tables. Cannot fail: an indexed document has parsed once.
    pub(super) fn tables(&self) -> DeTable<'_> {
        DeTable::parse(&self.text).expect("an indexed document parses").into_inner()
    }

    pub(super) fn place(&self, path: &str) -> Option<&Place> {
        self.places.get(path)
    }

    /// The place of `path`, or of the nearest table around it that is written.
    pub(super) fn nearest_place(&self, path: &str) -> Option<&Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(place);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// The text with `range` replaced by runs of other origin.
    pub(super) fn spliced(&self, range: Range<usize>, runs: Vec<(String, Origin)>) -> Result<Self, Problem> {
        let mut pieces = self.cut(0..range.start);
        pieces.extend(runs.iter().map(|(text, origin)| (text.len(), origin.clone())));
        pieces.extend(self.cut(range.end..self.text.len()));
        let middle: String = runs.into_iter().map(|(text, _)| text).collect();
        let text = [&self.text[..range.start], &middle, &self.text[range.end..]].concat();
        Document { text, pieces, places: BTreeMap::new() }.indexed()
    }

    /// A problem at `span` of the text, told at the place it came from.
    pub(super) fn problem(&self, span: Range<usize>, message: String) -> Problem {
        let (source, span) = self.locate(span);
        Problem::new(source, Some(span), message)
    }

    fn locate(&self, span: Range<usize>) -> (Source, Range<usize>) {
        let mut start = 0;
        for (at, (length, origin)) in self.pieces.iter().enumerate() {
            if span.start < start + length || at + 1 == self.pieces.len() {
                return match origin {
                    Origin::Verbatim(source, offset) => {
                        let (from, to) = (span.start - start, span.end.min(start + length) - start);
                        (source.clone(), offset + from..offset + to.max(from))
                    }
                    Origin::Stands(source, whole) => (source.clone(), whole.clone()),
                };
            }
            start += length;
        }
        unreachable!("a document has at least one piece")
    }

    /// The pieces of `range`.
    fn cut(&self, range: Range<usize>) -> Vec<(usize, Origin)> {
        let mut start = 0;
        let mut cut = Vec::new();
        for (length, origin) in &self.pieces {
            let (from, to) = (range.start.max(start), range.end.min(start + length));
            if from < to {
                let origin = match origin {
                    Origin::Verbatim(source, offset) => {
                        Origin::Verbatim(source.clone(), offset + from - start)
                    }
                    stands => stands.clone(),
                };
                cut.push((to - from, origin));
            }
            start += length;
        }
        cut
    }

    fn indexed(mut self) -> Result<Self, Problem> {
        let mut places = BTreeMap::new();
        match DeTable::parse(&self.text) {
            Ok(table) => index_table(table.get_ref(), "", &mut places),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                return Err(self
                    .problem(span, format!("this is not TOML: {}", error.message()))
                    .marked("here")
                    .accepting("an experiment is a TOML file: `key = value` lines under `[table]` headers"));
            }
        }
        self.places = places;
        Ok(self)
    }
}

fn index_table(table: &DeTable<'_>, prefix: &str, places: &mut BTreeMap<String, Place>) {
    for (key, value) in table.iter() {
        let path =
            if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        places.insert(path.clone(), Place { key: key.span(), value: value.span() });
        index_value(value.get_ref(), &path, places);
    }
}

fn index_value(value: &DeValue<'_>, path: &str, places: &mut BTreeMap<String, Place>) {
    match value {
        DeValue::Table(table) => index_table(table, path, places),
        DeValue::Array(array) => {
            for (at, element) in array.iter().enumerate() {
                let path = format!("{path}.{at}");
                places.insert(path.clone(), Place { key: element.span(), value: element.span() });
                index_value(element.get_ref(), &path, places);
            }
        }
        _ => {}
    }
}
