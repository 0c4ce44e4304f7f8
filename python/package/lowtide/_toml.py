"""TOML of plain values, as experiment files and overrides have it.

An override is one value on one line, tables in it among them, which is why this is not a library that writes files.
Leaves out dates, which no key takes.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import re
from collections.abc import Iterable, Mapping

from lowtide._errors import BadInput

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def value(thing: object) -> str:
    """Write a value on one line.

    >>> value({"from": "10GiB", "to": "20GiB", "levels": [1, 2.5, True]})
    '{ from = "10GiB", to = "20GiB", levels = [1, 2.5, true] }'

    Raises
    ------
    BadInput
        Where TOML has no such value.
    """
    if isinstance(thing, str):
        # The escapes of JSON are among those of TOML; DEL, which JSON leaves as it is, has to be one.
        return json.dumps(thing, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(thing, os.PathLike):
        return value(os.fspath(thing))
    if isinstance(thing, Mapping):
        pairs = ", ".join(f"{_key(key)} = {value(one)}" for key, one in thing.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    # numpy's numbers and arrays give their Python values by `tolist`.
    plain = getattr(thing, "tolist", None)
    if plain is not None:
        return value(plain())
    if isinstance(thing, bool):
        return "true" if thing else "false"
    if isinstance(thing, numbers.Integral):
        return str(int(thing))
    if isinstance(thing, numbers.Real) and math.isfinite(thing):
        return repr(float(thing))
    if isinstance(thing, Iterable) and not isinstance(thing, (bytes, bytearray)):
        return f"[{', '.join(value(one) for one in thing)}]"
    raise BadInput(f"no value of an experiment: {thing!r}\n  help: texts, numbers, booleans, lists and dicts of them")


def document(tables: Mapping[str, object]) -> str:
    """Write a file: dicts become tables, lists of dicts arrays of tables, each below its header.

    >>> print(document({"name": "mine", "target": {"device": "mtron-32gb"}}), end="")
    name = "mine"
    [target]
    device = "mtron-32gb"
    """
    lines = [f"{_key(key)} = {value(thing)}" for key, thing in tables.items() if not _is_table(thing)]
    for key, thing in tables.items():
        if isinstance(thing, Mapping):
            lines.append(f"[{_key(key)}]")
            lines += [f"{_key(inner)} = {value(one)}" for inner, one in thing.items()]
        elif _is_table(thing):
            assert isinstance(thing, (list, tuple))
            for table in thing:
                lines.append(f"[[{_key(key)}]]")
                lines += [f"{_key(inner)} = {value(one)}" for inner, one in table.items()]
    return "".join(line + "\n" for line in lines)


def _is_table(thing: object) -> bool:
    if isinstance(thing, Mapping):
        return True
    return isinstance(thing, (list, tuple)) and len(thing) > 0 and all(isinstance(one, Mapping) for one in thing)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise BadInput(f"no key of an experiment: {key!r}\n  help: keys are texts")
    return key if _BARE.match(key) else value(key)
