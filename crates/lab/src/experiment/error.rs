//! Bad input: what is wrong with an experiment, where it is written, and what would be accepted.
//!
//! One [`BadInput`] carries everything wrong that was found in one go, each with the source line it stands on:
//! a line of the experiment file, or the text of a `--set`. Not here: how it is drawn; that is miette's work.

use super::document::Document;
use super::excerpt::Excerpt;
use miette::{Diagnostic, LabeledSpan, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A named text that spans point into.
pub(super) type Source = Arc<Excerpt>;

/// One thing wrong with an experiment.
#[derive(Debug, Clone)]
pub struct Problem {
    message: String,
    label: String,
    help: Option<String>,
    source: Source,
    /// Where in `source`, as it is shown; `None` where the fault is that something is absent from the whole text.
    span: Option<Range<usize>>,
}

impl Problem {
    /// A problem at a span of `source` as it was written.
    pub(super) fn new(source: Source, span: Option<Range<usize>>, message: String) -> Self {
        let span = span.map(|span| source.shown(span));
        Problem { message: source.without(&message), label: String::new(), help: None, source, span }
    }

    /// The text written under the marked span.
    pub(super) fn marked(mut self, label: impl Into<String>) -> Self {
        self.label = self.source.without(&label.into());
        self
    }

    /// What is accepted.
    pub(super) fn accepting(mut self, help: impl Into<String>) -> Self {
        self.help = Some(self.source.without(&help.into()));
        self
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = Some(self.label.clone()).filter(|label| !label.is_empty());
        let span = self.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new(label, span.start, span.len()))))
    }
}

/// Everything found wrong with an experiment; there is at least one [`Problem`].
///
/// As a miette [`Diagnostic`] it is its first problem, and the others are related to it.
#[derive(Debug, Clone)]
pub struct BadInput {
    first: Box<Problem>,
    others: Vec<Problem>,
}

impl BadInput {
    /// All problems, in the order of the text.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        std::iter::once(&*self.first).chain(&self.others)
    }
}

impl From<Problem> for BadInput {
    fn from(first: Problem) -> Self {
        BadInput { first: Box::new(first), others: Vec::new() }
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)
    }
}

impl std::error::Error for BadInput {}

impl Diagnostic for BadInput {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.first.help()
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.first.source_code()
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.first.labels()
    }
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.others.is_empty() {
            return None;
        }
        Some(Box::new(self.others.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// Gathers problems while a document is read, so that one run shows them all.
#[derive(Debug)]
pub(super) struct Problems<'d> {
    document: &'d Document,
    found: Vec<(usize, Problem)>,
}

impl<'d> Problems<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Problems { document, found: Vec::new() }
    }

    /// Records what is wrong at `span` of the document's text.
    pub(super) fn add(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = span.start;
        let problem = self.document.problem(span, message.into()).marked(label).accepting(help);
        self.found.push((at, problem));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `Ok` if nothing was wrong, else everything that was, in the order of the text.
    pub(super) fn finish(mut self) -> Result<(), BadInput> {
        self.found.sort_by_key(|(at, _)| *at);
        let mut problems = self.found.into_iter().map(|(_, problem)| problem);
        match problems.next() {
            None => Ok(()),
            Some(first) => Err(BadInput { first: Box::new(first), others: problems.collect() }),
        }
    }
}
