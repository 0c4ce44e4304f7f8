//! Values that are one word of a few: `purge = "secure-erase"`.
//!
//! Not here: words that come from elsewhere, such as device names.

use super::error::Problems;
use super::read::Entry;
use lowtide_core::suggest::nearest;

/// A type whose values are written as words.
pub(super) trait Word: Copy + 'static {
    /// What such a word names: `fill`.
    const WHAT: &'static str;
    /// Every accepted word; the first for a value is the one it prints as.
    const WORDS: &'static [(&'static str, Self)];
}

impl Entry<'_> {
    /// One of the words of `T`; records anything else with the nearest word.
    pub(super) fn word<T: Word>(&self, problems: &mut Problems<'_>) -> Option<T> {
        let words = || T::WORDS.iter().map(|(word, _)| *word);
        let given = self.string(&format!("\"{}\"", T::WORDS[0].0), problems)?;
        if let Some((_, value)) = T::WORDS.iter().find(|(word, _)| *word == given) {
            return Some(*value);
        }
        let hint =
            nearest(&given, words()).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        problems.add(
            self.span.clone(),
            format!("unknown {} `{given}`{hint}", T::WHAT),
            format!("not a {}", T::WHAT),
            format!("accepted: {}", words().collect::<Vec<_>>().join(", ")),
        );
        None
    }
}

/// Declares an enum whose values are words, with `name`, `Display` and reading.
macro_rules! words {
    (
        $(#[$meta:meta])* $type:ident, $what:literal;
        $($(#[$doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),+ $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $type {
            /// The word it is written as.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $crate::experiment::words::Word for $type {
            const WHAT: &'static str = $what;
            const WORDS: &'static [(&'static str, Self)] =
                &[$(($word, $type::$variant), $(($alias, $type::$variant),)*)+];
        }
    };
}
pub(super) use words;
