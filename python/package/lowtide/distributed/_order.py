"""What client and workers say to each other: an order, what a plan comes to, parts of a campaign.

Leaves out who says it when.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import lowtide
from lowtide import _native
from lowtide._errors import BadInput, LowtideError, LowtideWarning
from lowtide._plan import Plan

TOPIC = "lowtide"
"""Under which workers tell what happens."""
GOES_ON = "what was measured is in the store: the same call with resume=True goes on"
"""What may be done where a campaign was cut off."""
NOT_YET = "nothing was measured yet: the same call, without resume, begins"
"""What may be done where nothing is in the store that one could go on with."""
NOT_KEPT = "nothing is kept without a store: with store='FILE' what was measured is"
"""What may be done where there was no store."""


@dataclass(frozen=True)
class Order:
    """What is to be measured, as every worker understands it."""

    run: str
    """Tells this call from all others."""
    version: str
    """Of the lowtide that asks."""
    name: str
    text: str | None = field(repr=False)
    """The experiment; with passwords of servers, which workers need and logs do not."""
    set: tuple[str, ...] = field(repr=False)
    target: str | None
    scale: int
    seed: int
    device: str | None = None
    """The serial of the block device, or what stands for the machine, that it is measured on; none for models."""
    destroy: str | None = None
    force_signature: bool = False
    told: bool = False
    """Whether somebody wants to know how cells go on."""
    identity: str | None = None
    """That of the plan, once it is known."""
    kept: bool = False
    """Whether what is measured is handed over cell by cell, not only when the group is done."""

    def plan(self, where: str) -> _native.Plan:
        """Plan it at a place, which errors name.

        Raises
        ------
        BadInput
            Where lowtide is of another version there, or makes something else of the experiment.
        """
        if lowtide.__version__ != self.version:
            raise other_versions(self.version, {where: lowtide.__version__})
        plan = _native.plan(
            self.name, self.text, set=list(self.set), target=self.target, scale=self.scale, seed=self.seed
        )
        if self.identity is not None and plan.identity != self.identity:
            raise told(
                f"{where} makes another plan of `{plan.name}` than the client",
                "device files and traces that the experiment names by their path must be the same on every machine",
            )
        if self.device is not None and plan.serial not in (None, self.device):
            raise told(
                f"{plan.target} is the device {plan.serial} on {where}, and {self.device} is asked for",
                "name the device in a way that stays, such as `block:/dev/disk/by-id/…`",
            )
        return plan


@dataclass(frozen=True)
class Survey:
    """What a plan comes to where it is run."""

    identity: str
    simulated: bool
    groups: list[list[int]]
    costs: list[tuple[float, float]]
    """What is known of how long each group takes, longer ones larger: seconds that are measured, bytes of data."""
    part: bytes
    """A store with the campaign, not begun."""

    @staticmethod
    def of(plan: _native.Plan) -> Survey:
        """Look at a plan."""
        cells = Plan(plan).cells
        longest = cells.longest_s.fillna(float("inf"))
        groups = plan.groups
        costs = [(float(longest[group].sum()), float(cells.data_bytes[group].sum())) for group in groups]
        with room(tempfile.gettempdir(), "TMPDIR"), folder() as here:
            part = here / "part.db"
            _native.begin(plan, os.fspath(part))
            return Survey(plan.identity, plan.simulated, groups, costs, snapshot(part))


@dataclass(frozen=True)
class Part:
    """What came of a group."""

    store: bytes
    worker: str
    notes: list[str]
    ended: list[dict[str, object]]
    """What was told of each cell when it ended."""


@contextmanager
def folder(within: str | None = None) -> Iterator[Path]:
    """Give a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="lowtide-", dir=within) as path:
        yield Path(path)


def snapshot(store: Path) -> bytes:
    """Give what a store of one campaign holds by now, the cells that have ended; it may be written to meanwhile."""
    copy = store.with_suffix(".copy")
    # By the library that writes it: another one in the same process would drop its locks.
    _native.snapshot(os.fspath(store), os.fspath(copy))
    try:
        return copy.read_bytes()
    finally:
        copy.unlink()


def failed(message: str, help: str = GOES_ON) -> LowtideError:
    """Make an error with what failed and what may be done."""
    return LowtideError(f"{message}\n  help: {help}", [(message, help)])


def reword(error: BaseException, was: str, new: str) -> None:
    """Say something else of what may be done, where an error says it."""
    if isinstance(error, LowtideError):
        error.args = (str(error).replace(was, new),)
        error.problems = [(text, help and help.replace(was, new)) for text, help in error.problems]


def add(error: BaseException, message: str, help: str) -> None:
    """Say something on an error, besides."""
    if isinstance(error, LowtideError):
        error.args = (f"{error}\n{message}\n  help: {help}",)
        error.problems = [*error.problems, (message, help)]
    elif hasattr(error, "add_note"):
        error.add_note(f"{message}: {help}")
    else:
        warnings.warn(f"{message}: {help}", LowtideWarning, stacklevel=2)


@contextmanager
def room(where: str, other: str) -> Iterator[None]:
    """Tell that parts find no room: at a place, instead of which another may be named so."""
    try:
        yield
    except OSError as error:
        # Those of a connection have no number.
        if error.errno is None:
            raise
        message = f"{where}, where parts of the campaign pass through, cannot be used: {error.strerror}"
        raise failed(message, f"make room there, or name another folder: {other}; {GOES_ON}") from error


def told(message: str, help: str) -> BadInput:
    """Make an error with what is wrong and what would be accepted."""
    return BadInput(f"{message}\n  help: {help}", [(message, help)])


def other_versions(wanted: str, found: dict[str, str]) -> BadInput:
    """Make the error of workers that cannot take part."""
    listed = ", ".join(f"{worker} {what}" for worker, what in sorted(found.items()))
    return told(
        f"this is lowtide {wanted}, and other workers have another: {listed}",
        f"install lowtide {wanted} where the workers are, and start them anew",
    )
