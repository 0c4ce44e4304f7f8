"""The exceptions: one class for each kind of failure that the command line has an exit code for.

Leaves out the words: they come from the native part, and are those of the command line.
"""

from __future__ import annotations


class LowtideError(Exception):
    """Something failed. ``str(error)`` is what the command line prints, with the place in an experiment.

    Attributes
    ----------
    problems : list of tuple of (str, str or None)
        What went wrong, and what would help or be accepted; at least one.
    """

    problems: list[tuple[str, str | None]]

    def __init__(self, text: str, problems: list[tuple[str, str | None]] | None = None) -> None:
        super().__init__(text)
        self.problems = problems or [(text, None)]

    def __reduce__(self) -> tuple[type[LowtideError], tuple[str, list[tuple[str, str | None]]], dict[str, object]]:
        # Notes, too.
        return type(self), (str(self), self.problems), self.__dict__

    @property
    def message(self) -> str:
        """What went wrong first, in one line."""
        return self.problems[0][0]

    @property
    def help(self) -> str | None:
        """What would help, or be accepted."""
        return self.problems[0][1]


class BadInput(LowtideError, ValueError):
    """The input cannot be used."""


class BadPart(BadInput):
    """A part of a campaign cannot be taken, for what is in it: another measurement of the same cells may be better."""


class Refused(LowtideError):
    """Something is not done because it might destroy data."""


class Interrupted(LowtideError):
    """Something ended because the process was told to end."""


class InternalError(LowtideError):
    """A bug of lowtide. What it says helps whoever repairs it."""


class LowtideWarning(UserWarning):
    """Something that a user should know: cells that failed, what a target cannot do."""


_KINDS: dict[str, type[LowtideError]] = {
    "failed": LowtideError,
    "bad-input": BadInput,
    "bad-part": BadPart,
    "refused": Refused,
    "interrupted": Interrupted,
    "bug": InternalError,
}


def made(kind: str, text: str, problems: list[tuple[str, str | None]]) -> LowtideError:
    """Make the exception of a kind; the native part calls this."""
    return _KINDS[kind](text, problems)
