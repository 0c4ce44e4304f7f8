//! Errors on their way to Python: the classes of `lowtide._errors`, with the text that the command line prints.
//!
//! Leaves out the kinds of failures (`lowtide_studies::failure`).

use lowtide_studies::failure::{Failure, Kind};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call into lowtide failed.
pub enum Raised {
    /// A failure with its message and kind.
    Failure(Failure),
    /// A part of a campaign that cannot be taken, for what is in it.
    BadPart(Failure),
    /// A bug of ours, in its words.
    Panic(String),
    /// Something of Python: a signal, or a callable that raised.
    Python(PyErr),
}

impl<E: Into<Failure>> From<E> for Raised {
    fn from(error: E) -> Self {
        Raised::Failure(error.into())
    }
}

impl Raised {
    /// Of the payload of a panic.
    pub fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Raised::Panic(text.unwrap_or_else(|| "it does not say what happened".to_owned()))
    }

    /// The exception.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Raised::Python(error) => error,
            Raised::Panic(text) => made(py, "bug", &text, Vec::new()),
            Raised::BadPart(failure) => told(py, "bad-part", &failure),
            Raised::Failure(failure) => {
                let kind = match failure.kind() {
                    Kind::Failed => "failed",
                    Kind::BadInput => "bad-input",
                    Kind::Refused => "refused",
                    Kind::Interrupted => "interrupted",
                };
                told(py, kind, &failure)
            }
        }
    }
}

/// Does something without the GIL; a panic in it is an exception.
pub fn detached<T: Send>(py: Python<'_>, what: impl FnOnce() -> Result<T, Raised> + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(what)));
    result.unwrap_or_else(|payload| Err(Raised::panic(&*payload))).map_err(|error| error.into_exception(py))
}

/// Input that cannot be used, in the words of what is wrong and what would be accepted.
pub fn bad_input(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Raised {
    Raised::Failure(Failure::usage(message, help))
}

/// The exception of a kind with what a failure says.
fn told(py: Python<'_>, kind: &str, failure: &Failure) -> PyErr {
    let help = |report: &miette::Report| report.help().map(|help| help.to_string());
    let one = |report: &miette::Report| (report.to_string(), help(report));
    let problems = failure.reports().iter().map(one).collect();
    made(py, kind, &failure.text(), problems)
}

/// The exception of a kind, made where the classes are.
fn made(py: Python<'_>, kind: &str, text: &str, problems: Vec<(String, Option<String>)>) -> PyErr {
    let made =
        py.import("lowtide._errors").and_then(|errors| errors.getattr("made")?.call1((kind, text, problems)));
    made.map_or_else(|error| error, PyErr::from_value)
}
