"""Stores: files that hold campaigns.

Leaves out writing to them, which `run` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from lowtide import _native
from lowtide._campaign import Campaign
from lowtide._tables import Table


class Store:
    """A store that exists; it is read anew whenever it is asked. Made by `open`."""

    __slots__ = ("path",)

    path: Path
    """Where it is."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # Tells at once that it is something else.
        _native.campaigns(os.fspath(self.path))

    def campaigns(self) -> pd.DataFrame:
        """One row for each campaign, oldest first: number, name, target, when it began, cells."""
        return Table(_native.campaigns(os.fspath(self.path))).to_pandas()

    def __getitem__(self, wanted: int | str) -> Campaign:
        """Give the campaign of that number, or the last one of that name.

        Raises
        ------
        BadInput
            Where there is none, with the nearest name.
        """
        return Campaign(_native.load(os.fspath(self.path), str(wanted)))

    def __iter__(self) -> Iterator[Campaign]:
        return (self[int(number)] for number in self.campaigns().campaign)

    def __len__(self) -> int:
        return len(self.campaigns())

    @property
    def last(self) -> Campaign:
        """The campaign that was begun last."""
        return Campaign(_native.load(os.fspath(self.path)))

    def __repr__(self) -> str:
        return f"<lowtide.Store {str(self.path)!r}: {len(self)} campaigns>"


def open(path: str | os.PathLike[str] = "lowtide.db") -> Store:
    """Open a store.

    Raises
    ------
    BadInput
        Where there is none, or the file is something else.

    Examples
    --------
    >>> lowtide.open("nowhere.db")
    Traceback (most recent call last):
    ...
    lowtide._errors.BadInput: × there is no store nowhere.db
    help: run an experiment first, or name another store with `--store FILE`
    """
    return Store(path)


def merge(stores: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]) -> pd.DataFrame:
    """Put stores together: parts of a campaign become one, others are taken as they are.

    Parameters
    ----------
    stores : iterable of paths
        Stores to take campaigns from: all of them are taken or, where one cannot be read, none.
    output : path
        The store to write, made where there is none. What it has, it keeps.

    Returns
    -------
    DataFrame
        What became of each campaign: ``from``, ``was`` (its number there), ``name``, ``campaign`` (its number in `output`),
        ``came`` (cells that came with it), ``new`` (whether the campaign is new there).
    """
    return Table(_native.merge([os.fspath(path) for path in stores], os.fspath(output))).to_pandas()


def report(what: Campaign | Store | str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the report of a campaign, or of the last one of a store, and give its path."""
    if isinstance(what, Campaign):
        return what.report(path)
    return (what if isinstance(what, Store) else Store(what)).last.report(path)
