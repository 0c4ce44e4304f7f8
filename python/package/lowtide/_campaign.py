"""A campaign: what an experiment measured, as DataFrames, as a report, as exports.

Leaves out how it came about; see `run`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from fractions import Fraction
from pathlib import Path
from typing import Literal

import pandas as pd

from lowtide import _native
from lowtide._tables import Table

TableName = Literal["cells", "intervals", "steady", "transactions", "histograms"]


class TemporaryStore:
    """A store that goes when nobody has its campaign any more, or the program ends."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="lowtide-"))
        self.path = folder / "lowtide.db"
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


class Campaign:
    """What an experiment measured. `run` gives one, and so does a `Store`.

    Every table is a method that makes a DataFrame; ``table(name)`` gives the same for Arrow. Factors of the experiment are
    columns, as it has them: sizes in bytes, times in seconds, counts and shares as numbers. What was measured is as it was
    measured: under a scale, sizes and times are smaller.
    """

    __slots__ = ("_campaign", "_temporary")

    def __init__(self, campaign: _native.Campaign, temporary: TemporaryStore | None = None) -> None:
        self._campaign = campaign
        # A temporary store lives as long as this.
        self._temporary = temporary

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self._campaign.name

    @property
    def title(self) -> str:
        """The experiment's title."""
        return self._campaign.title

    @property
    def target(self) -> str:
        """What was under test, as it would be typed."""
        return self._campaign.target

    @property
    def seed(self) -> int:
        """The seed of every random choice."""
        return self._campaign.seed

    @property
    def scale(self) -> Fraction:
        """What sizes and durations were multiplied by."""
        return Fraction(1, self._campaign.scale)

    @property
    def experiment(self) -> str:
        """The experiment as TOML, with every override in it: `run` takes it."""
        return self._campaign.experiment

    @property
    def devices(self) -> list[str]:
        """The device files of a simulated target, with those they refer to: `Device` takes the first."""
        return self._campaign.devices

    @property
    def number(self) -> int:
        """Its number in the store."""
        return self._campaign.number

    @property
    def store(self) -> Path:
        """The path of the store; a temporary one goes when nobody has this campaign any more."""
        return Path(self._campaign.store)

    @property
    def version(self) -> str:
        """The version of lowtide that ran it."""
        return self._campaign.version

    @property
    def started_at(self) -> pd.Timestamp:
        """When it began."""
        return pd.Timestamp(self._campaign.started_at)

    @property
    def command(self) -> str:
        """The command line that reproduces it."""
        return self._campaign.command

    @property
    def environment(self) -> list[tuple[str, str]]:
        """Facts about the machine and the target, in order; a name may come more than once."""
        return self._campaign.environment

    def table(self, name: TableName) -> Table:
        """Give a table for Arrow: what the method of that name gives as a DataFrame.

        Raises
        ------
        BadInput
            Where there is no table of that name.
        """
        return Table(self._campaign.table(name))

    def cells(self) -> pd.DataFrame:
        """One row for each cell: factors, status, data, verdict.

        ``status`` is ``done``, ``failed`` (``failure`` says why), ``pending``, or ``spared``: not measured by choice, with
        the level that is ``predicted``, in MiB/s. ``verdict`` is ``steady``, with ``level`` and its 95 % confidence interval
        from ``low`` to ``high`` in ``unit``, or ``no steady state``, with the ``reason``.
        """
        return self.table("cells").to_pandas()

    def intervals(self) -> pd.DataFrame:
        """One row for each interval of each cell: counts, rates, percentiles of latency, counters of the device.

        Counters count from when the device was made. Percentiles must not be averaged: add up `histograms` instead.
        """
        return self.table("intervals").to_pandas()

    def steady(self) -> pd.DataFrame:
        """One row for each cell: the answer.

        ``level`` with its confidence interval where there is a steady state; latency and write amplification over the
        steady window, or over the last quarter where there is none; ``fresh``, ``end`` and ``lowest`` levels. As in
        reports.
        """
        return self.table("steady").to_pandas()

    def transactions(self) -> pd.DataFrame:
        """One row for each interval and kind of transaction of databases; none where no database was asked."""
        return self.table("transactions").to_pandas()

    def histograms(self) -> pd.DataFrame:
        """One row for each bucket that counted anything: ``count`` operations took from ``low_ns`` to ``high_ns``.

        Examples
        --------
        The latency that 99 % of a cell's writes did not exceed, over the whole measurement:

        >>> one = {"file_size": ["20GiB"]}
        >>> counts = lowtide.run("intel-320-random-write", scale="1/64", set=one).histograms()
        >>> writes = counts[counts.op == "write"].groupby("high_ns")["count"].sum()
        >>> int((writes.cumsum() < 0.99 * writes.sum()).sum()) < len(writes)
        True
        """
        return self.table("histograms").to_pandas()

    def verdict(self) -> list[str]:
        """Give the answer in sentences, the most important first."""
        return self._campaign.verdict()

    def text(self, *, width: int = 110) -> str:
        """Give the answer as text, `width` columns wide, as ``lowtide store show`` prints it."""
        return self._campaign.text(width)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report, one HTML page that needs nothing else, and give its path.

        A file that is there is replaced as a whole; a store or a device never is.

        Raises
        ------
        Refused
            Where something would be lost.
        """
        self._campaign.write_report(os.fspath(path))
        return Path(path)

    def figures(self) -> dict[str, str]:
        """Give the report's figures: SVG by file name."""
        return dict(self._campaign.figures())

    def export(
        self, format: Literal["csv", "json", "transactions"] = "csv", *, path: str | os.PathLike[str] | None = None
    ) -> str | None:
        """Give every raw number as text, or write it to `path`: the bytes that ``lowtide store export`` writes.

        The same experiment, device and seed give the same bytes.
        """
        if path is None:
            return self._campaign.export(format)
        self._campaign.write_export(os.fspath(path), format)
        return None

    def __repr__(self) -> str:
        cells, done, failed, spared = self._campaign.progress
        scale = f", scale {self.scale}" if self.scale < 1 else ""
        others = [f", {count} {what}" for count, what in ((spared, "predicted"), (failed, "failed")) if count]
        return (
            f"<lowtide.Campaign {self.name!r} on {self.target}{scale}: {done} of {cells} cells done{''.join(others)}>"
        )
