"""What a user asks for, in the terms of the native part: experiments, scales, overrides, paths.

Leaves out checking experiments and devices, which is done there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fractions import Fraction

from lowtide import _toml
from lowtide._errors import BadInput

Source = str | os.PathLike[str] | Mapping[str, object]
"""A name of the catalogue, the path of a file, the text of one, or a dict with its keys."""

Overrides = Mapping[str, object] | Iterable[str]
"""Keys with their values, or texts ``key=value``."""


def source(what: Source, kind: str) -> tuple[str, str | None]:
    """Give the name or path, and the text where there is one."""
    if isinstance(what, Mapping):
        name = what.get("name")
        return (f"./{name}.toml" if isinstance(name, str) and name else f"./{kind}.toml"), _toml.document(what)
    if isinstance(what, str):
        # No name and no path has several lines.
        return (f"./{kind}.toml", what) if "\n" in what else (what, None)
    if isinstance(what, os.PathLike):
        path = os.fspath(what)
        # What has no folder and no ending would be taken for a name.
        return (path if "/" in path or path.endswith(".toml") else f"./{path}"), None
    raise TypeError(f"{kind}: a name, a path, a text or a dict, not {type(what).__name__}")


def overrides(given: Overrides | None) -> list[str]:
    """Give overrides as the command line takes them."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [f"{key}={_toml.value(thing)}" for key, thing in given.items()]
    if isinstance(given, str):
        return [given]
    return list(given)


def scale(given: str | float | Fraction) -> int:
    """Give what sizes and durations are divided by.

    >>> scale("1/8"), scale(1), scale(1 / 3), scale(Fraction(1, 8))
    (8, 1, 3, 8)

    Raises
    ------
    BadInput
        Where it is no share, or not one of a whole number.
    """
    try:
        share = Fraction(given)
        if isinstance(given, float):
            share = share.limit_denominator(1_000_000)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError) as error:
        raise _no_scale(given) from error
    if share <= 0 or share > 1 or (1 / share).denominator != 1 or 1 / share >= 1 << 63:
        raise _no_scale(given)
    return int(1 / share)


def _no_scale(given: object) -> BadInput:
    text = f"{given!r} is no scale"
    help = "write a share such as '1/8': sizes and durations are divided by a whole number"
    return BadInput(f"{text}\n  help: {help}", [(text, help)])
