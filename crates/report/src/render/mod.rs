//! Renderers of a report as text, one file per format. HTML is in [`super::html`].

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod terminal;
