//! Conversion of errors to Python exceptions: the classes of `lowtide._errors`, with the messages of the command
//! line.
//!
//! Kinds of failures are in `lowtide_studies::failure`.

use lowtide_studies::failure::{Failure, Kind};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a call into lowtide failed.
pub enum Raised {
    /// A failure with its message and kind.
    Failure(Failure),
    /// A part of a campaign whose contents are unacceptable.
    BadPart(Failure),
    /// A bug in lowtide, with the panic message.
    Panic(String),
    /// A Python exception, from a signal or a callable.
    Python(PyErr),
}

impl<E: Into<Failure>> From<E> for Raised {
    fn from(error: E) -> Self {
        Raised::Failure(error.into())
    }
}

impl Raised {
    /// Creates the error for the payload of a panic.
    pub fn panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Raised::Panic(text.unwrap_or_else(|| "it does not say what happened".to_owned()))
    }

    /// Converts the error to an exception.
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

/// Runs `what` without the GIL. A panic becomes an exception.
pub fn detached<T: Send>(py: Python<'_>, what: impl FnOnce() -> Result<T, Raised> + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(what)));
    result.unwrap_or_else(|payload| Err(Raised::panic(&*payload))).map_err(|error| error.into_exception(py))
}

/// An error for unusable input. `message` is the problem; `help` is the accepted input.
pub fn bad_input(message: impl std::fmt::Display, help: impl std::fmt::Display) -> Raised {
    Raised::Failure(Failure::usage(message, help))
}

/// Creates the exception of a kind from a failure.
fn told(py: Python<'_>, kind: &str, failure: &Failure) -> PyErr {
    let help = |report: &miette::Report| report.help().map(|help| help.to_string());
    let one = |report: &miette::Report| (report.to_string(), help(report));
    let problems = failure.reports().iter().map(one).collect();
    made(py, kind, &failure.text(), problems)
}

/// Creates the exception of a kind in `lowtide._errors`, which defines the classes.
fn made(py: Python<'_>, kind: &str, text: &str, problems: Vec<(String, Option<String>)>) -> PyErr {
    let made =
        py.import("lowtide._errors").and_then(|errors| errors.getattr("made")?.call1((kind, text, problems)));
    made.map_or_else(|error| error, PyErr::from_value)
}
