"""The client's side of a campaign: groups go out, parts come in, and whoever listens hears how it goes.

```text
  groups, the longest first ─► tasks ─► workers ─┬─► events ─► progress
  store ◄─ join ◄─ part of a group, whole ◄──────┴─► or, where wall time was spent, cell by cell
```

Leaves out what is asked and whether it can be done.
"""

from __future__ import annotations

import asyncio
import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Client, Future, KilledWorker, Variable

from lowtide._errors import BadPart, LowtideError, LowtideWarning
from lowtide._run import Progress, Teller
from lowtide.distributed import _worker
from lowtide.distributed._cluster import Waits, resource
from lowtide.distributed._into import Into
from lowtide.distributed._order import GOES_ON, TOPIC, Order, Part, Survey, failed

LOOK_S = 5.0
"""How often it is looked whether there is anybody to measure."""
_PATIENCE_S = 60.0
"""How long an orderly end may take on the workers, undoing what was changed of a device included."""
_ANSWER_S = 10.0
"""How long a worker may take to answer that it ends what it measures."""
_TRIES = 3
"""How often a group is measured whose part cannot be taken."""
_LOST = (OSError, TimeoutError, asyncio.TimeoutError, asyncio.CancelledError, KilledWorker, LowtideError)
"""What is raised where something cannot be had any more from the cluster, or be taken into the store."""

_listening: dict[tuple[str, str], SimpleQueue[Any]] = {}
"""Who hears the workers, by client and call."""


class Fleet:
    """A campaign that is measured by the workers of a client."""

    def __init__(self, client: Client, order: Order, survey: Survey, into: Into) -> None:
        self.client, self.order, self.survey, self.into = client, order, survey, into
        self.heard: SimpleQueue[Any] = SimpleQueue()
        self.running: dict[Future[Any], int] = {}
        """Groups of which the store has not all that there is."""
        self.notes: list[str] = []
        self.ended: set[int] = set()
        """Cells of which nobody has to be told any more that they ended."""
        self.kept: dict[int, Variable] = {}
        """What is kept of groups while they are measured."""
        self.refused: dict[int, int] = {}
        """How often a part of a group could not be taken, for what was in it."""
        self.submitted = 0
        """Tasks that were made."""
        self.waits = Waits(client, order, self._say)
        self.teller: Teller | None = None

    def run(self, progress: Progress) -> int:
        """Measure, and give the number of the campaign in the store."""
        self.teller = Teller(progress, sum(map(len, self.survey.groups))) if progress else None
        key = (self.client.id, self.order.run)
        _listening[key] = self.heard
        self.client.subscribe_topic(TOPIC, functools.partial(_heard, self.client.id))
        try:
            self.into.open()
            if self.into.resume or self.survey.simulated:
                self.into.begin(self.survey.part)
                self._begun()
            # Otherwise the campaign begins once a worker holds the target: one that is refused leaves no store.
            self._submit(self._to_do())
            while self.running:
                self._step()
        except BaseException as error:
            self._end()
            self.into.tell(error)
            raise
        finally:
            del _listening[key]
            self._forget()
            self.into.close()
        assert self.into.campaign is not None, "a campaign has a group"
        return self.into.campaign

    def _to_do(self) -> list[int]:
        """Give the groups that are not done, the longest first."""
        groups = self.survey.groups
        left = [number for number, group in enumerate(groups) if not self.into.done.issuperset(group)]
        return sorted(left, key=lambda group: self.survey.costs[group], reverse=True)

    def _submit(self, groups: Sequence[int]) -> None:
        order = self.order
        if not groups:
            return
        parts = [self._measured(group) for group in groups]
        if order.kept:
            for group, part in zip(groups, parts, strict=True):
                self.kept[group] = Variable(_worker.kept_as(order, group), client=self.client)
                self.kept[group].set(part or b"")
            parts = [None] * len(groups)
        needed = {resource(order.device): 1} if order.device is not None else None
        # Keys in the order in which they shall run.
        keys = [f"lowtide-{order.run}-{self.submitted + rank:06}" for rank in range(len(groups))]
        self.submitted += len(groups)
        futures = self.client.map(
            _worker.measure, [order] * len(groups), groups, parts, key=keys, pure=False, retries=0, resources=needed
        )
        self.running.update(zip(futures, groups, strict=True))
        for future in futures:
            future.add_done_callback(self.heard.put)

    def _measured(self, group: int) -> bytes | None:
        """Give what there is of a group, where there is something."""
        cells = self.survey.groups[group]
        return None if self.into.campaign is None or self.into.done.isdisjoint(cells) else self.into.extract(cells)

    def _step(self) -> None:
        try:
            what = self.heard.get(timeout=LOOK_S)
        except Empty:
            self.waits.look()
            return
        if isinstance(what, Future):
            if what in self.running:
                self._take(what)
        elif what["event"]["kind"] == "kept":
            self._join(what["group"], self.kept[what["group"]].get(timeout="60s"), what["name"])
        else:
            self._tell(what["event"], what["name"])

    def _take(self, future: Future[Any]) -> None:
        """Take the part that a group left, or raise why there is none; one that cannot be is measured again."""
        part: Part = outcome(future)
        group = self.running[future]
        # First of all: whoever listens may end the campaign.
        try:
            begins = self.into.take(group, part.store)
        except BadPart as error:
            self._again(group, part.worker, error)
            del self.running[future]
            future.release()
            self._submit([group])
            return
        del self.running[future]
        future.release()
        if begins:
            self._begun()
        for event in part.ended:
            self._tell(event, part.worker)
        self.notes += [note for note in part.notes if note not in self.notes]

    def _again(self, group: int, worker: str, error: BadPart) -> None:
        """Say that a group is measured again, or raise that it was too often."""
        times = self.refused[group] = self.refused.get(group, 0) + 1
        cells = _numbers(self.survey.groups[group])
        if times >= _TRIES:
            raise failed(
                f"{cells} came back {times} times in a way that cannot be taken, last of all from the worker {worker}: "
                f"{_reason(error)}",
                f"its log, memory and disk may say why; end that worker, or repair it, and then: {GOES_ON}",
            ) from error
        self._say(
            f"the worker {worker} gave {cells} in a way that cannot be taken, and nothing of it was: {_reason(error)}; "
            f"measured again, {times + 1} of {_TRIES} times at most"
        )

    def _join(self, group: int, part: bytes, worker: str) -> None:
        """Take what is kept of a group that is still measured."""
        try:
            begins = self.into.take(group, part)
        except BadPart as error:
            # Whether its cells are measured again is known when it ends; until then nobody goes on from it.
            self.kept[group].set(self._measured(group) or b"")
            self._say(f"what the worker {worker} kept cannot be taken, and nothing of it was: {_reason(error)}")
            return
        if begins:
            self._begun()

    def _begun(self) -> None:
        before = self.into.done if self.into.resume else set()
        self.ended.update(before)
        if self.teller is not None:
            self.teller.done += len(before)
            self.teller({"kind": "begun", "campaign": self.into.campaign})

    def _say(self, text: str) -> None:
        # At once, and every time; afterwards nobody needs it.
        if self.teller is not None:
            self.teller({"kind": "note", "text": text})
        else:
            warnings.warn(text, LowtideWarning, stacklevel=6)

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

    def _end(self) -> None:
        """End what is measured in good order, and take what there is of it; why it ends is what the user hears."""
        if not self.running or self.client.status != "running":
            return
        futures = list(self.running)
        until = time.monotonic() + _PATIENCE_S
        try:
            for future in self._ended(until):
                if future.status == "finished":
                    self._save(future, self._whole)
            for future, group in list(self.running.items()):
                if group in self.kept and group not in self.into.left:
                    self._save(future, self._kept_last)
        except _LOST:
            pass
        finally:
            self.client.cancel(futures)

    def _whole(self, future: Future[Any]) -> bytes:
        part: Part = future.result(timeout=_ANSWER_S)
        return part.store

    def _kept_last(self, future: Future[Any]) -> bytes:
        part: bytes = self.kept[self.running[future]].get(timeout=_ANSWER_S)
        return part

    def _save(self, future: Future[Any], get: Callable[[Future[Any]], bytes]) -> None:
        """Take what there is of a group, if it can be had."""
        try:
            part = get(future)
            if part:
                self.into.take(self.running[future], part)
        except _LOST:
            return
        del self.running[future]

    def _ended(self, until: float) -> Iterator[Future[Any]]:
        """Give the groups that had ended before, and then those that end in good order, until an instant."""
        begun = self._stop()
        while begun:
            late = time.monotonic() >= until
            ended = {future for future in begun if future.done()}
            yield from ended
            begun -= ended
            if late:
                return
            time.sleep(0.05)

    def _stop(self) -> set[Future[Any]]:
        """Have workers end what they measure, and take the rest back; the groups that were begun."""
        mine = {future.key: future for future in self.running}
        at = {worker: keys for worker, keys in self.client.processing().items() if not mine.keys().isdisjoint(keys)}
        # Afterwards: what ends in between is known by one of both.
        known = {key for key, where in self.client.who_has(list(self.running)).items() if where}

        def ask(worker: str) -> set[str]:
            try:
                found = self.client.run(
                    _worker.stop, self.order.run, workers=[worker], on_error="ignore", callback_timeout=_ANSWER_S
                )
            except _LOST:
                found = {}
            # One that does not answer may have begun any of its own.
            return set(found.get(worker, at[worker]))

        if at:
            # Each by itself: one that hangs keeps no answer of the others back.
            with ThreadPoolExecutor(min(len(at), 32)) as pool:
                known = known.union(*pool.map(ask, at))
        begun = {future for key, future in mine.items() if key in known or future.done()}
        self.client.cancel([future for future in self.running if future not in begun])
        return begun

    def _forget(self) -> None:
        """Remove what was kept of groups while they were measured, where all of it is elsewhere now."""
        if self.client.status == "running":
            only = set(self.running.values()) - set(self.into.left)
            for group, variable in self.kept.items():
                if group not in only:
                    variable.delete()


def _numbers(cells: Sequence[int]) -> str:
    """Name cells by their numbers."""
    return f"cell {cells[0]}" if len(cells) == 1 else f"cells {', '.join(map(str, cells))}"


def _reason(error: BadPart) -> str:
    """Say what is wrong with a part, without the path that it passed through."""
    return error.message.split(" cannot be merged: ", 1)[-1]


def outcome(future: Future[Any]) -> Any:
    """Give what came of a task that has ended, or raise why there is nothing."""
    if future.status == "error":
        raise why(future.exception())
    if future.status == "cancelled":
        raise failed("the scheduler gave up the cells: it was lost or restarted, or somebody cancelled them")
    return future.result()


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


def _heard(client: str, event: tuple[float, dict[str, Any]]) -> None:
    """Hand on what a worker says to whoever asked for it; on the thread of the client."""
    _, message = event
    queue = _listening.get((client, message["run"]))
    if queue is not None:
        queue.put(message)
