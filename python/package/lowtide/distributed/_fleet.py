"""The client's side of a campaign: groups go out, parts come in, and whoever listens hears how it goes.

```text
  groups, the longest first ─► tasks ─► workers ─┬─► events ─► progress
  store ◄─ join ◄─ part of a group, whole ◄──────┴─► or, where wall time was spent, cell by cell
```

Leaves out what is asked and whether it can be done.
"""

from __future__ import annotations

import functools
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, Future, KilledWorker, Variable

from lowtide import _native
from lowtide._errors import LowtideError, LowtideWarning
from lowtide._run import Progress, Teller
from lowtide.distributed import _worker
from lowtide.distributed._cluster import announced, resource, workers
from lowtide.distributed._order import GOES_ON, TOPIC, Order, Part, Survey, failed, folder, room

_LOOK_S = 5.0
"""How often it is looked whether there is anybody to measure."""
_PATIENCE_S = 60.0
"""How long an orderly end may take on the workers, undoing what was changed of a device included."""

_listening: dict[tuple[str, str], SimpleQueue[Any]] = {}
"""Who hears the workers, by client and call."""


class Fleet:
    """A campaign that is measured by the workers of a client."""

    def __init__(self, client: Client, order: Order, survey: Survey, store: Path, resume: bool) -> None:
        self.client, self.order, self.survey, self.store, self.resume = client, order, survey, store, resume
        self.parts: _native.Parts | None = None
        self.done: set[int] = set()
        self.heard: SimpleQueue[Any] = SimpleQueue()
        self.running: dict[Future[Any], int] = {}
        self.notes: list[str] = []
        self.ended: set[int] = set()
        """Cells of which nobody has to be told any more that they ended."""
        self.missing = False
        """Whether it was said that nobody is there who could measure."""
        self.kept: list[Variable] = []
        """What is kept of groups while they are measured."""
        self.teller: Teller | None = None

    def run(self, progress: Progress) -> int:
        """Measure, and give the number of the campaign in the store."""
        self.teller = Teller(progress, sum(map(len, self.survey.groups))) if progress else None
        key = (self.client.id, self.order.run)
        _listening[key] = self.heard
        self.client.subscribe_topic(TOPIC, functools.partial(_heard, self.client.id))
        try:
            if self.resume or self.survey.simulated:
                self._begin(self.survey.part)
            else:
                # The campaign begins once a worker holds the target: one that is refused leaves no store.
                _native.check_store(os.fspath(self.store))
            self._submit(self._to_do())
            while self.running:
                self._step()
        except BaseException as error:
            self._end()
            if isinstance(error, KeyboardInterrupt) and self.parts is not None and hasattr(error, "add_note"):
                error.add_note(f"campaign {self.parts.campaign} was ended in good order: {GOES_ON}")
            raise
        finally:
            del _listening[key]
            self._forget()
            if self.parts is not None:
                self.parts.close()
        assert self.parts is not None, "a campaign has a group"
        return self.parts.campaign

    def _to_do(self) -> list[int]:
        """Give the groups that are not done, the longest first."""
        groups = self.survey.groups
        left = [number for number, group in enumerate(groups) if not self.done.issuperset(group)]
        return sorted(left, key=lambda group: self.survey.costs[group], reverse=True)

    def _submit(self, groups: Sequence[int]) -> None:
        order = self.order
        if not groups:
            return
        parts = [self._measured(group) for group in groups]
        if order.kept:
            for group, part in zip(groups, parts, strict=True):
                self.kept.append(Variable(_worker.kept_as(order, group), client=self.client))
                self.kept[-1].set(part or b"")
            parts = [None] * len(groups)
        needed = {resource(order.device): 1} if order.device is not None else None
        # Keys in the order in which they shall run.
        keys = [f"lowtide-{order.run}-{rank:06}" for rank in range(len(groups))]
        futures = self.client.map(
            _worker.measure, [order] * len(groups), groups, parts, key=keys, pure=False, retries=0, resources=needed
        )
        self.running = dict(zip(futures, groups, strict=True))
        for future in futures:
            future.add_done_callback(self.heard.put)

    def _measured(self, group: int) -> bytes | None:
        """Give what there is of a group, where there is something."""
        cells = self.survey.groups[group]
        if self.parts is None or self.done.isdisjoint(cells):
            return None
        with _passing() as part:
            self.parts.extract(cells, part)
            return part.read_bytes()

    def _step(self) -> None:
        try:
            what = self.heard.get(timeout=_LOOK_S)
        except Empty:
            self._look()
            return
        if isinstance(what, Future):
            group = self.running.pop(what, None)
            if group is not None:
                self._take(what)
        elif what["event"]["kind"] == "kept":
            self._join(Variable(_worker.kept_as(self.order, what["group"]), client=self.client).get(timeout="60s"))
        else:
            self._tell(what["event"], what["name"])

    def _take(self, future: Future[Any]) -> None:
        """Take the part that a group left, or raise why there is none."""
        if future.status == "error":
            raise why(future.exception())
        if future.status == "cancelled":
            raise failed("the scheduler gave up the cells: it was lost or restarted, or somebody cancelled them")
        part: Part = future.result()
        future.release()
        for event in part.ended:
            self._tell(event, part.worker)
        self.notes += [note for note in part.notes if note not in self.notes]
        self._join(part.store)

    def _begin(self, part: bytes) -> None:
        with _passing(part) as path:
            self.parts = _native.Parts(os.fspath(self.store), path, self.resume)
        self.done.update(self.parts.done)
        self.ended.update(self.done)
        if self.teller is not None:
            self.teller.done = len(self.done)
            self.teller({"kind": "begun", "campaign": self.parts.campaign})

    def _join(self, part: bytes) -> None:
        if self.parts is None:
            self._begin(part)
        assert self.parts is not None
        with _passing(part) as path:
            self.done.update(self.parts.join(path))

    def _tell(self, event: dict[str, object], worker: str | None = None) -> None:
        """Hand on an event, where it is not known already: what is measured again is told again, but ends once."""
        if event["kind"] == "ended":
            cell = event["cell"]
            assert isinstance(cell, int)
            if cell in self.ended:
                return
            self.ended.add(cell)
        if event["kind"] == "note":
            text = str(event["text"])
            if text in self.notes:
                return
            self.notes.append(text)
        if self.teller is not None:
            self.teller({**event, "worker": worker})

    def _look(self) -> None:
        """Say so where nobody is there who could measure; the cells wait."""
        if self.client.status != "running":
            raise failed("the connection to the scheduler is lost")
        device = self.order.device
        if device is None:
            there, text = bool(workers(self.client)), "there is no worker: cells wait until there is one"
        else:
            there = resource(device) in map(resource, announced(self.client))
            text = f"no worker announces the device {device} any more: its cells wait until one does"
        if not there and not self.missing:
            # At once, and every time; afterwards nobody needs it.
            if self.teller is not None:
                self.teller({"kind": "note", "text": text})
            else:
                warnings.warn(text, LowtideWarning, stacklevel=5)
        self.missing = not there

    def _end(self) -> None:
        """End what is measured in good order, and take what there is of it."""
        if not self.running or self.client.status != "running":
            return
        try:
            found = self.client.run(_worker.stop, self.order.run, on_error="ignore")
            measured = {key for keys in found.values() for key in keys}
            self.client.cancel([future for future in self.running if future.key not in measured])
            begun = {future for future in self.running if future.key in measured}
            until = time.monotonic() + _PATIENCE_S
            while begun and (left := until - time.monotonic()) > 0:
                what = self.heard.get(timeout=left)
                if isinstance(what, Future) and what in begun:
                    begun.remove(what)
                    if what.status == "finished":
                        self._join(what.result(timeout=left).store)
        except (OSError, TimeoutError, Empty, LowtideError):
            # Why it ends is what the user hears; what cannot be had any more is measured again.
            pass
        finally:
            self.client.cancel(list(self.running))

    def _forget(self) -> None:
        """Remove what was kept of groups that were measured."""
        if self.client.status == "running":
            for variable in self.kept:
                variable.delete()


def why(error: BaseException) -> LowtideError:
    """Make of what ended a task what a user can do something about."""
    if isinstance(error, LowtideError):
        return error
    if isinstance(error, KilledWorker):
        times, last = error.allowed_failures + 1, error.last_worker.name
        lost = f"{times} workers that were lost" if times > 1 else "a worker that was lost"
        made = failed(
            f"the same cells were with {lost}, last of all {last}, and are not tried again",
            f"the log of the worker may say why; {GOES_ON}",
        )
    else:
        made = failed(f"a worker could not measure its cells: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made


@contextmanager
def _passing(part: bytes | None = None) -> Iterator[Path]:
    """Give a path for a part, with what is in it; it is gone afterwards."""
    with room(tempfile.gettempdir(), "TMPDIR"), folder() as here:
        path = here / "part.db"
        if part is not None:
            path.write_bytes(part)
        yield path


def _heard(client: str, event: tuple[float, dict[str, Any]]) -> None:
    """Hand on what a worker says to whoever asked for it; on the thread of the client."""
    _, message = event
    queue = _listening.get((client, message["run"]))
    if queue is not None:
        queue.put(message)
