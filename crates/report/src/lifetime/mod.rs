//! The lifetime of a drive at a write rate: from a model, from a campaign, or from a real drive's counters.
//!
//! ```text
//!   DeviceSpec ─► simulate ─┐
//!   Campaign ───► measured ─┼─► Wear ─► Endurance ─► TBW, DWPD, years ─► Answer ─► table, JSON, CSV, Markdown
//!   SMART ──────► smart ────┘                        (endurance)
//! ```
//!
//! The equations and their sources are in `docs/models/lifetime.md`. Only wear by erasing is modelled.

mod case;
mod endurance;
mod life;
mod rate;
mod show;
mod simulate;
mod words;

pub use case::{Case, NoLifetime};
pub use endurance::{Endurance, Span, Wear, dwpd, years};
pub use life::{Life, LifeError, Period};
pub use rate::{RateError, WriteRate, YEAR_DAYS};
pub use show::{Question, of_cases, of_life};
pub use simulate::{Conditions, Pattern, SimulateError, Simulated, simulate};
pub use words::{decimal, span as span_words, years as years_words};
