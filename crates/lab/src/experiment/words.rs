//! Keys whose value is one of a few words: `purge = "secure-erase"`.
//!
//! Words from other lists, such as device names, are read by the modules of their tables.

use super::read::{Entry, did_you_mean};

/// A type whose values are written as words.
pub(super) trait Word: Copy + 'static {
    /// The name of the type in errors: `fill`.
    const WHAT: &'static str;
    /// Every accepted word. A value prints as its first word.
    const WORDS: &'static [(&'static str, Self)];
}

impl Entry<'_> {
    /// Reads one of the words of `T`. For any other value, records a problem with the nearest word.
    pub(super) fn word<T: Word>(&self) -> Option<T> {
        let words = || T::WORDS.iter().map(|(word, _)| *word);
        let given = self.string(&format!("\"{}\"", T::WORDS[0].0))?;
        if let Some((_, value)) = T::WORDS.iter().find(|(word, _)| *word == given) {
            return Some(*value);
        }
        let hint = did_you_mean(&given, words());
        self.problems.add(
            self.span.clone(),
            format!("unknown {} `{given}`{hint}", T::WHAT),
            format!("not a {}", T::WHAT),
            format!("accepted: {}", words().collect::<Vec<_>>().join(", ")),
        );
        None
    }
}

/// Declares an enum whose values are words, with `name`, `Display` and [`Word`].
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
            /// The word for the value.
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
