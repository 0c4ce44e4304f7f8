//! [`BadInput`]: the problems of an experiment, with their positions and the accepted input.
//!
//! One [`BadInput`] has all problems that were found, each with its position in a line of the experiment file or in
//! the text of a `--set`. miette prints the problems.

use super::document::Document;
use super::excerpt::Excerpt;
use miette::{Diagnostic, LabeledSpan, SourceCode};
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A named text that spans point into.
pub(super) type Source = Arc<Excerpt>;

/// One problem of an experiment.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Problem {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    text: Source,
    /// The marked span of the text as shown.
    #[label(collection)]
    marks: [LabeledSpan; 1],
}

impl Problem {
    /// A problem at a span of `text` as written.
    pub(super) fn new(text: Source, span: Range<usize>, message: String) -> Self {
        let span = text.shown(span);
        let marks = [LabeledSpan::new(None, span.start, span.len())];
        Problem { message: text.without(&message), help: None, text, marks }
    }

    /// Sets the label of the marked span.
    pub(super) fn marked(mut self, label: impl Into<String>) -> Self {
        self.marks[0].set_label(Some(self.text.without(&label.into())));
        self
    }

    /// Sets the help: the accepted input.
    pub(super) fn accepting(mut self, help: impl Into<String>) -> Self {
        self.help = Some(self.text.without(&help.into()));
        self
    }

    /// The problem in one line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// All problems of an experiment, at least one.
///
/// The first problem is the miette [`Diagnostic`]; the other problems are its related diagnostics.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{first}")]
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

/// Collects the problems of a document, so that one run reports all of them.
#[derive(Debug)]
pub(super) struct Problems<'d> {
    pub(super) document: &'d Document,
    found: RefCell<Vec<(usize, Problem)>>,
}

impl<'d> Problems<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Problems { document, found: RefCell::default() }
    }

    /// Records a problem at `span` of the document's text.
    pub(super) fn add(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = span.start;
        let problem = self.document.problem(span, message.into()).marked(label).accepting(help);
        self.found.borrow_mut().push((at, problem));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Returns an error with all problems, in the order of the text, unless there are none.
    pub(super) fn finish(&self) -> Result<(), BadInput> {
        let mut found = self.found.take();
        found.sort_by_key(|(at, _)| *at);
        let mut problems = found.into_iter().map(|(_, problem)| problem);
        match problems.next() {
            None => Ok(()),
            Some(first) => Err(BadInput { first: Box::new(first), others: problems.collect() }),
        }
    }
}
