//! The text of an experiment, and the source of each part of it.
//!
//! Overrides are spliced into the text, so the effective text is itself an experiment file that can be stored and run
//! again. A [`Document`] records whether bytes came from the file or from a `--set`, so that an error points at the
//! user's input. A document does not know the meaning of its keys.

use super::error::{Problem, Source};
use super::excerpt::Excerpt;
use super::schema::dotted;
use lowtide_files::passwords;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// The origin of a run of bytes in the text.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// Copied from the source, from this offset on.
    Verbatim(Source, usize),
    /// Generated for this span of the source. Errors in the run point at the entire span.
    Generated(Source, Range<usize>),
}

/// The spans of a key and of its value in the text.
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

    /// The parsed tables. Parsing succeeds, because it succeeded when the document was indexed.
    pub(super) fn tables(&self) -> DeTable<'_> {
        DeTable::parse(&self.text).expect("an indexed document parses").into_inner()
    }

    pub(super) fn place(&self, path: &str) -> Option<&Place> {
        self.places.get(path)
    }

    /// The place of `path`, or of the nearest table around it that is in the text.
    pub(super) fn nearest_place(&self, path: &str) -> Option<&Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(place);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    /// Replaces `range` of the text by `runs`.
    pub(super) fn spliced(&self, range: Range<usize>, runs: Vec<(String, Origin)>) -> Result<Self, Problem> {
        let mut pieces = self.cut(0..range.start);
        pieces.extend(runs.iter().map(|(text, origin)| (text.len(), origin.clone())));
        pieces.extend(self.cut(range.end..self.text.len()));
        let middle: String = runs.into_iter().map(|(text, _)| text).collect();
        let text = [&self.text[..range.start], &middle, &self.text[range.end..]].concat();
        Document { text, pieces, places: BTreeMap::new() }.indexed()
    }

    /// A problem at `span` of the text, reported at the origin of the span.
    pub(super) fn problem(&self, span: Range<usize>, message: String) -> Problem {
        let (source, span) = self.locate(span);
        Problem::new(source, span, message)
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
                    Origin::Generated(source, span) => (source.clone(), span.clone()),
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
                let mut origin = origin.clone();
                if let Origin::Verbatim(_, offset) = &mut origin {
                    *offset += from - start;
                }
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
        let path = dotted(prefix, key.get_ref());
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
