"""Plans: what `run` would do, cell by cell, and which cells stay together.

Leaves out running them.
"""

from __future__ import annotations

from fractions import Fraction

import pandas as pd

from lowtide import _ask, _native
from lowtide._tables import Table


class Plan:
    """What an experiment comes to: its cells, in groups. Made by `plan`."""

    __slots__ = ("_plan",)

    def __init__(self, plan: _native.Plan) -> None:
        self._plan = plan

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self._plan.name

    @property
    def title(self) -> str:
        """The experiment's title."""
        return self._plan.title

    @property
    def target(self) -> str:
        """What is under test, as it would be typed: ``device:intel-320-160gb``."""
        return self._plan.target

    @property
    def experiment(self) -> str:
        """The experiment as TOML, with every override in it."""
        return self._plan.experiment

    @property
    def seed(self) -> int:
        """The seed of every random choice."""
        return self._plan.seed

    @property
    def scale(self) -> Fraction:
        """What sizes and durations are multiplied by."""
        return Fraction(1, self._plan.scale)

    @property
    def simulated(self) -> bool:
        """Whether it runs on models in virtual time, with the same numbers wherever it runs."""
        return self._plan.simulated

    @property
    def ignored(self) -> list[str]:
        """What the experiment asks for and its target cannot do."""
        return self._plan.ignored

    @property
    def identity(self) -> str:
        """A text that is the same for two plans exactly when they measure the same."""
        return self._plan.identity

    @property
    def groups(self) -> list[list[int]]:
        """The cells that share a history, group by group; groups are independent of each other."""
        return self._plan.groups

    @property
    def group_targets(self) -> list[str]:
        """What each group runs on, as it would be typed."""
        return self._plan.group_targets

    @property
    def cells(self) -> pd.DataFrame:
        """One row for each cell: its factors, its group, its data, how long it is measured at most."""
        return self.table().to_pandas()

    def table(self) -> Table:
        """Give `cells` as a table for Arrow."""
        return Table(self._plan.cells())

    def __len__(self) -> int:
        return sum(len(group) for group in self._plan.groups)

    def __repr__(self) -> str:
        scale = f", scale {self.scale}" if self.scale < 1 else ""
        return f"<lowtide.Plan {self.name!r} on {self.target}{scale}: {len(self)} cells in {len(self.groups)} groups>"


def plan(
    experiment: _ask.Source,
    *,
    scale: str | float | Fraction = 1,
    seed: int = 1,
    set: _ask.Overrides | None = None,
    target: str | None = None,
) -> Plan:
    """Say what `run` would do, without doing it.

    Parameters
    ----------
    experiment : str, path or dict
        A name of the catalogue (`experiments` lists them), the path of a file (with a ``/`` or ending in ``.toml``), the
        text of one (several lines), or a dict with its keys.
    scale : str, float or Fraction
        Sizes and durations are multiplied by this share, such as ``"1/16"``.
    seed : int
        The seed of every random choice.
    set : dict or list of str
        Keys of the experiment that are changed: ``{"threads": 4, "file_size": ["10GiB", "20GiB"]}``.
    target : str
        Something else to run on: ``"device:NAME"``, ``"file:PATH"``, ``"dir:PATH"`` or ``"block:PATH"``.

    Raises
    ------
    BadInput
        Where there is no such experiment, or something is wrong with it: everything at once, each at its line.

    Examples
    --------
    >>> lowtide.plan("intel-320-random-write", scale="1/16", set={"file_size": ["10GiB", "20GiB"]})
    <lowtide.Plan 'intel-320-random-write' on device:intel-320-160gb, scale 1/16: 2 cells in 2 groups>
    """
    name, text = _ask.source(experiment, "experiment")
    overrides = _ask.overrides(set)
    return Plan(_native.plan(name, text, set=overrides, target=target, scale=_ask.scale(scale), seed=seed))
