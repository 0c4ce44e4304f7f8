//! The choice of an engine ([`EngineChoice`]) and its resolution on this machine ([`Engine`]).

use crate::error::HostError;
use lowtide_core::suggest;
use std::fmt;
use std::io;
use std::str::FromStr;

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// io_uring: one ring per thread.
    Uring,
    /// pread and pwrite: one thread per request in flight.
    Sync,
    /// No I/O: measures the overhead of the engines.
    Null,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Engine::Uring => "uring",
            Engine::Sync => "sync",
            Engine::Null => "null",
        })
    }
}

/// The user's choice of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EngineChoice {
    /// [`Engine::Uring`] if the kernel supports it, else [`Engine::Sync`].
    #[default]
    Auto,
    /// [`Engine::Uring`], or an error.
    Uring,
    /// [`Engine::Sync`].
    Sync,
    /// [`Engine::Null`]. It has no name, so that nobody chooses it by mistake.
    Null,
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = EngineChoice::NAMES.iter().find(|(_, choice, _)| choice == self);
        f.pad(named.map_or("null", |(name, ..)| name))
    }
}

impl FromStr for EngineChoice {
    type Err = HostError;
    fn from_str(text: &str) -> Result<Self, HostError> {
        let all = EngineChoice::NAMES;
        if let Some((_, choice, _)) = all.iter().find(|(name, _, _)| *name == text) {
            return Ok(*choice);
        }
        let names = all.map(|(name, _, _)| name);
        let near = suggest::nearest(text, names);
        let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let (last, others) = names.split_last().expect("there are engines");
        Err(HostError::Invalid {
            what: "the engine",
            value: format!("`{text}`"),
            accepted: format!("use {} or {last}{hint}", others.join(", ")),
        })
    }
}

impl EngineChoice {
    /// All choices with a name, and their help.
    pub const NAMES: [(&str, EngineChoice, &str); 3] = [
        ("auto", EngineChoice::Auto, "io_uring if the kernel supports it, else sync"),
        ("uring", EngineChoice::Uring, "io_uring"),
        ("sync", EngineChoice::Sync, "pread and pwrite"),
    ];

    /// Resolves the choice. `probe` tries to set up a ring. The text is the reason why the engine is not the first
    /// choice.
    ///
    /// # Errors
    /// [`HostError::NoUring`] if io_uring was chosen by name and the kernel refuses it.
    pub(super) fn resolve(
        self,
        probe: impl FnOnce() -> io::Result<()>,
    ) -> Result<(Engine, Option<String>), HostError> {
        match self {
            EngineChoice::Sync => Ok((Engine::Sync, None)),
            EngineChoice::Null => Ok((Engine::Null, None)),
            EngineChoice::Uring => match probe() {
                Ok(()) => Ok((Engine::Uring, None)),
                Err(source) => Err(HostError::NoUring { source }),
            },
            EngineChoice::Auto => match probe() {
                Ok(()) => Ok((Engine::Uring, None)),
                Err(error) => Ok((Engine::Sync, Some(format!("io_uring is not available here: {error}")))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_falls_back_with_a_note_and_a_named_engine_fails() {
        for refusal in [libc::ENOSYS, libc::EPERM] {
            let refused = || Err(io::Error::from_raw_os_error(refusal));
            let (engine, note) = EngineChoice::Auto.resolve(refused).expect("falls back");
            assert_eq!(engine, Engine::Sync);
            assert!(note.expect("a note").contains("not available"));
            assert!(matches!(EngineChoice::Uring.resolve(refused), Err(HostError::NoUring { .. })));
            assert!(matches!(EngineChoice::Sync.resolve(refused), Ok((Engine::Sync, None))));
        }
        assert!(matches!(EngineChoice::Auto.resolve(|| Ok(())), Ok((Engine::Uring, None))));
    }

    #[test]
    fn a_mistyped_engine_gets_a_hint() {
        assert_eq!("uring".parse::<EngineChoice>().expect("valid"), EngineChoice::Uring);
        let error = "urign".parse::<EngineChoice>().unwrap_err().to_string();
        assert!(error.ends_with("use auto, uring or sync; did you mean `uring`?"), "{error}");
    }
}
