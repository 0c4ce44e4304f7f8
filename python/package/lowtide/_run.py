"""Running experiments.

Leaves out what a campaign is asked afterwards; see `Campaign`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lowtide import _ask, _native
from lowtide._campaign import Campaign, TemporaryStore
from lowtide._errors import BadInput, LowtideWarning
from lowtide._plan import Plan, plan


@dataclass(frozen=True)
class Event:
    """Something that happened while a campaign ran."""

    kind: str
    """``begun``, ``cell`` (one is prepared or measured), ``ended`` (a cell), ``spared`` or ``note``."""
    cells: int
    """Cells of the plan that are run here."""
    done: int
    """Cells that have ended."""
    campaign: int | None = None
    """The campaign's number in its store (``begun``)."""
    cell: int | None = None
    """The cell's number."""
    label: str | None = None
    """The cell's step, factors and repetition, for people."""
    stage: str | None = None
    """``prepare``, ``measure``, or ``replay`` (done before, and again for the history of the next)."""
    share: float | None = None
    """How much of the stage is done, 0 to 1."""
    row: dict[str, float] | None = None
    """The interval that was measured last, by names of columns of `Campaign.intervals`."""
    failure: str | None = None
    """Why the cell failed (``ended``)."""
    level: float | None = None
    """The cell's settled level, in `unit` (``ended``)."""
    half_width: float | None = None
    """Half of its 95 % confidence interval, in `unit`."""
    unit: str | None = None
    """The unit of levels."""
    text: str | None = None
    """A note, or why there is no steady state."""
    worker: str | None = None
    """The name of the worker, where several measure (`lowtide.distributed`)."""

    def __str__(self) -> str:
        """Say it in a line."""
        head = f"[{self.done}/{self.cells}]" + (f" {self.worker}:" if self.worker is not None else "")
        match self.kind:
            case "begun":
                return f"{head} campaign {self.campaign}"
            case "cell":
                rate = f", {self.row['mib_per_s']:.1f} MiB/s" if self.row else ""
                return f"{head} {self.label}: {self.stage} {self.share or 0:.0%}{rate}"
            case "ended" if self.failure is not None:
                return f"{head} {self.label}: failed: {self.failure}"
            case "ended" if self.level is not None:
                return f"{head} {self.label}: {self.level:.1f} ± {self.half_width:.1f} {self.unit}"
            case "ended":
                return f"{head} {self.label}: no steady state: {self.text}"
            case _:
                return f"{head} {self.text}"


Progress = bool | Callable[[Event], object] | None
"""Who hears how a campaign goes."""


def run(
    experiment: _ask.Source,
    *,
    scale: str | float | Fraction = 1,
    seed: int = 1,
    set: _ask.Overrides | None = None,
    target: str | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress = None,
    jobs: int | None = None,
    destroy: str | None = None,
    force_signature: bool = False,
) -> Campaign:
    """Run an experiment, and give what it measured.

    Other threads go on meanwhile. Ctrl-C ends the campaign in good order (real devices are left as they were found), and
    then raises ``KeyboardInterrupt``; with a `store`, the same call with ``resume=True`` goes on.

    Parameters
    ----------
    experiment, scale, seed, set, target
        As of `plan`.
    store : path, optional
        The store that keeps every number, made where there is none; it takes any number of campaigns. Without one, a
        temporary store is made that lives as long as the campaign that is returned.
    resume : bool
        Go on with the last campaign of the same experiment, seed and scale in `store`.
    progress : bool or callable, optional
        ``True``: lines on standard error. A callable gets an `Event` at a time, on the calling thread: at most ten for each
        cell and second. What it raises ends the campaign.
    jobs : int, optional
        Groups of cells that run at the same time on simulated devices; one for each core if not given.
    destroy : str, optional
        Overwrite the block device with this serial number; ``lowtide plan`` on the command line says which it is.
    force_signature : bool
        With `destroy`: although it has partitions, or carries a filesystem or a label of another kind.

    Returns
    -------
    Campaign
        Cells that failed are among its cells, with the reason; a `LowtideWarning` says that there are some.

    Raises
    ------
    BadInput
        Where something is wrong with what is asked.
    Refused
        Where something speaks against writing to the target.
    LowtideError
        Where the store or the target fails.
    KeyboardInterrupt
        After Ctrl-C.

    Examples
    --------
    >>> sizes = ["20GiB", "120GiB"]
    >>> campaign = lowtide.run("intel-320-random-write", scale="1/64", set={"file_size": sizes})
    >>> campaign
    <lowtide.Campaign 'intel-320-random-write' on device:intel-320-160gb, scale 1/64: 2 of 2 cells done>
    >>> campaign.cells()[["file_size", "status"]]
          file_size status
    0   21474836480   done
    1  128849018880   done
    """
    planned = plan(experiment, scale=scale, seed=seed, set=set, target=target)
    return run_plan(
        planned,
        store=store,
        resume=resume,
        progress=progress,
        jobs=jobs,
        destroy=destroy,
        force_signature=force_signature,
    )


def run_plan(
    plan: Plan,
    *,
    groups: Sequence[int] | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress = None,
    jobs: int | None = None,
    destroy: str | None = None,
    force_signature: bool = False,
) -> Campaign:
    """Run a plan, or some of its groups, and give what was measured.

    Parameters
    ----------
    plan : Plan
        What `lowtide.plan` gave.
    groups : sequence of int, optional
        Positions in `Plan.groups`: only these are run. `merge` makes one campaign of stores that have other groups of the
        same plan.
    store, resume, progress, jobs, destroy, force_signature
        As of `run`.

    Examples
    --------
    >>> plan = lowtide.plan("intel-320-random-write", scale="1/64", set={"file_size": ["20GiB", "120GiB"]})
    >>> lowtide.run_plan(plan, groups=[1]).cells().status.tolist()
    ['pending', 'done']
    """
    if jobs is not None and jobs < 1:
        raise BadInput(f"{jobs} jobs are none\n  help: a number from 1 on")
    temporary = None
    if store is None:
        if resume:
            raise BadInput("nothing to resume without a store\n  help: name the store of the campaign: store='FILE'")
        temporary = TemporaryStore()
        store = temporary.path
    native = plan._plan
    chosen = None if groups is None else sorted({int(group) for group in groups})
    counted = plan.groups if chosen is None else [plan.groups[group] for group in chosen if group < len(plan.groups)]
    teller = Teller(progress, sum(len(group) for group in counted))
    outcome = _native.run(
        native,
        os.fspath(store),
        groups=chosen,
        resume=resume,
        jobs=jobs,
        destroy=destroy,
        force_signature=force_signature,
        progress=teller if progress else None,
    )
    if not progress:
        for note in outcome.notes:
            warnings.warn(note, LowtideWarning, stacklevel=3)
    if outcome.failed:
        told = f"{outcome.failed} cells failed: `cells()` says why"
        warnings.warn(told, LowtideWarning, stacklevel=3)
    return Campaign(_native.load(os.fspath(store), str(outcome.campaign)), temporary)


class Teller:
    """Makes events of what the native part says, and hands them on."""

    done: int
    """Cells that have ended."""

    def __init__(self, progress: Progress, cells: int) -> None:
        self._tell = progress if callable(progress) else _line
        self._cells = cells
        self.done = 0

    def __call__(self, event: dict[str, object]) -> None:
        if event["kind"] == "ended":
            self.done += 1
        self._tell(Event(cells=self._cells, done=self.done, **event))  # type: ignore[arg-type]


def _line(event: Event) -> None:
    """Print an event to standard error; what goes on is drawn over on a terminal, and left out elsewhere."""
    terminal = sys.stderr.isatty()
    if event.kind != "cell":
        print(f"\r\x1b[K{event}" if terminal else str(event), file=sys.stderr, flush=True)
    elif terminal:
        print(f"\r\x1b[K{event}"[:120], end="", file=sys.stderr, flush=True)
