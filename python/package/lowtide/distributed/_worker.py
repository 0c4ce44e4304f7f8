"""What a worker does: it measures a group of cells into a store of its own, and tells how it goes.

Leaves out what becomes of that.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from distributed import Reschedule, Status, Variable, Worker, get_client, get_worker

from lowtide import _native
from lowtide._errors import LowtideError
from lowtide._tables import Table
from lowtide.distributed._order import TOPIC, Order, Part, Survey, failed, folder, room, snapshot

_T = TypeVar("_T")
_HAND_OVER_LOOKS = 20
"""How often, ten times a second, it is looked for cells that have ended, before a group ends without them."""
_log = logging.getLogger(__name__)
_stopped: set[str] = set()
"""Calls whose clients do not want any more to be measured."""


class _NotWanted(Exception):
    """Nobody waits for this group any more."""


def stop(run: str, dask_worker: Worker) -> list[str]:
    """End what is measured for a call in good order, and give the keys of what ends or has ended; runs beside it."""
    _stopped.add(run)
    tasks = dask_worker.state.tasks.values()
    return [str(task.key) for task in tasks if run in str(task.key) and task.state in ("executing", "memory", "error")]


def survey(order: Order) -> Survey:
    """Say what the plan comes to here."""
    worker = get_worker()
    return _telling(worker, lambda: Survey.of(order.plan(_name(worker))))


def measure(order: Order, group: int, part: bytes | None) -> Part:
    """Measure a group; `part` is a store from which it goes on."""
    worker = get_worker()

    def whole() -> Part:
        plan = order.plan(_name(worker))
        with room(worker.local_directory, "--local-directory of the worker"), folder(worker.local_directory) as here:
            return _Group(order, group, here / "part.db", worker).measure(plan, part)

    return _telling(worker, whole)


def _telling(worker: Worker, what: Callable[[], _T]) -> _T:
    """Do something, and tell what goes wrong in a way that the client can read, whatever it knows of this machine."""
    try:
        return what()
    except Reschedule:
        # Dask's own.
        raise
    except LowtideError as error:
        told = error
    except Exception as error:  # noqa: BLE001 - told there
        _log.exception("cells could not be measured")
        told = failed(f"a worker could not measure its cells: {type(error).__name__}: {error}")
    # What it came of travels with an exception, and where the client does not know of it, nothing comes there at all.
    told.__cause__ = told.__context__ = None
    # The words are those of one process, whose paths would be of this machine.
    if hasattr(told, "add_note"):
        told.add_note(f"on the worker {_name(worker)}")
    raise told


class _Group:
    """A group that is measured."""

    def __init__(self, order: Order, group: int, store: Path, worker: Worker) -> None:
        self.order, self.group, self.store, self.worker = order, group, store, worker
        self.key = worker.get_current_task()
        self.notes: list[str] = []
        self.ended: list[dict[str, object]] = []
        self.handed = -1
        """Cells that are done in the part that was handed over last."""
        self.reached = -1
        """Cells that are done by what was heard, and will be in the store soon."""
        self.looks = 0
        """How often it was looked since nobody wants it any more."""
        self.kept = Variable(kept_as(order, group), client=get_client()) if order.kept else None

    def measure(self, plan: _native.Plan, part: bytes | None) -> Part:
        if self.kept is not None:
            # A worker that was lost may have left something.
            part = self.kept.get(timeout="60s") or None
        if part is not None:
            self.store.write_bytes(part)
            self.handed = self._count()
        if self.order.run in _stopped:
            # Before it takes the device: a first look is a little later.
            raise failed("nobody waits for these cells any more")
        try:
            _native.run(
                plan,
                os.fspath(self.store),
                groups=[self.group],
                resume=part is not None,
                jobs=1,
                destroy=self.order.destroy,
                force_signature=self.order.force_signature,
                progress=self._hear,
                look=self._look,
            )
        except _NotWanted:
            if self.order.run not in _stopped:
                # It is not the client who ends it, and if somebody waits, it is not for a part of the group.
                raise Reschedule() from None
        return Part(snapshot(self.store), _name(self.worker), self.notes, self.ended)

    def _hear(self, event: dict[str, object]) -> None:
        match event["kind"]:
            case "begun":
                # Its number in a store that nobody sees.
                self.reached = max(self.handed, 0)
                return
            case "note":
                self.notes.append(str(event["text"]))
            case "ended":
                self.ended.append(event)
                self.reached += event["failure"] is None
        if self.order.told:
            self._tell(event)

    def _look(self) -> None:
        state = self.worker.state.tasks.get(self.key)
        if state is None or state.state in ("cancelled", "released", "forgotten"):
            raise _NotWanted
        if self.worker.status not in (Status.running, Status.paused):
            # The scheduler gives the group to another one, which may want the same device, while this one still ends.
            raise _NotWanted
        if self.kept is not None and self.handed < self.reached and self.handed < (count := self._count()):
            self.kept.set(snapshot(self.store))
            self.handed = count
            self._tell({"kind": "kept"})
        if self.order.run in _stopped:
            # What has ended is handed over first, for the end in good order may take longer than anybody waits.
            self.looks += 1
            if self.kept is None or self.handed >= self.reached or self.looks > _HAND_OVER_LOOKS:
                raise _NotWanted

    def _count(self) -> int:
        """Give how many cells are done, as far as the store has it."""
        return int(Table(_native.campaigns(os.fspath(self.store))).to_pandas().done.sum())

    def _tell(self, event: dict[str, object]) -> None:
        # Dask puts the address under `worker`.
        told = {"run": self.order.run, "group": self.group, "name": _name(self.worker), "event": event}
        self.worker.log_event(TOPIC, told)


def kept_as(order: Order, group: int) -> str:
    """Name what is kept of a group while it is measured."""
    return f"lowtide-{order.run}-{group}"


def _name(worker: Worker) -> str:
    return str(worker.name)
