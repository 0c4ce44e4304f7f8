"""Fleets: an experiment on the workers of a Dask cluster.

```python
from dask.distributed import Client
import lowtide.distributed

campaign = lowtide.distributed.run("intel-320-random-write", Client("tcp://scheduler:8786"), store="lowtide.db")
```

Cells that share a history are a task, which a worker measures into a store of its own; the client puts the parts together as
they come. Needs the extra ``lowtide[distributed]``. Leaves out starting clusters: that is Dask's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import uuid
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from queue import Empty, SimpleQueue

try:
    from distributed import Client, Future
except ImportError as error:
    raise ImportError("lowtide.distributed needs Dask: pip install 'lowtide[distributed]'") from error

import lowtide
from lowtide import _ask, _native
from lowtide._campaign import Campaign, TemporaryStore
from lowtide._errors import LowtideError, LowtideWarning
from lowtide._run import Progress, Teller
from lowtide.distributed import _worker
from lowtide.distributed._cluster import Waits, announced, check_client, check_device, check_versions, resource
from lowtide.distributed._fleet import LOOK_S, Fleet, outcome
from lowtide.distributed._into import Into
from lowtide.distributed._order import GOES_ON, NOT_YET, Order, Survey, reword, told

__all__ = ["announced", "resource", "run"]


def run(
    experiment: _ask.Source,
    client: Client,
    *,
    scale: str | float | Fraction = 1,
    seed: int = 1,
    set: _ask.Overrides | None = None,
    target: str | None = None,
    store: str | os.PathLike[str] | None = "lowtide.db",
    resume: bool = False,
    progress: Progress = None,
    device: str | None = None,
    destroy: str | None = None,
    force_signature: bool = False,
) -> Campaign:
    """Run an experiment on the workers of a cluster, and give what it measured.

    On simulated devices the campaign exports the same bytes as `lowtide.run` gives. What a lost worker was measuring is
    measured again by another. Ctrl-C ends what is measured in good order, and then raises ``KeyboardInterrupt``; after that, and
    where the client itself was lost, the same call with ``resume=True`` measures what is missing, once something is in the
    store: on files and block devices from the first cell on.

    Parameters
    ----------
    experiment, scale, seed, set
        As of `lowtide.run`. Device files and traces that an experiment names by their path must lie there on every worker.
    client : dask.distributed.Client
        A client of the cluster, not an asynchronous one. Workers should have one thread, and need the same version of lowtide.
    target : str
        As of `lowtide.run`; paths are those of the worker's machine.
    store : path, optional
        The store that keeps every number, on this machine; held from the check to the end. What it cannot take is left in a
        file beside it, which the error names. ``None``: a temporary one, which cannot be resumed.
    resume : bool
        Go on with the last campaign of the same experiment, seed and scale in `store`.
    progress : bool or callable, optional
        As of `lowtide.run`. `Event.worker` is the worker's name.
    device : str, optional
        The serial number of the block device that is measured on. Only a worker that announces it (see `resource`) gets
        cells of it, one at a time. With a ``file:`` or ``dir:`` target: what its worker announces.
    destroy : str, optional
        Overwrite the block device with this serial number, which is then the `device`, too.
    force_signature : bool
        As of `lowtide.run`.

    Raises
    ------
    BadInput
        Where something is wrong with what is asked; where the client is closed, workers have another version of lowtide, or
        not exactly one of them announces the device, once.
    Refused
        Where something speaks against writing to the target.
    LowtideError
        Where a store, a target or the cluster fails; ``help`` says whether there is something to resume.
    KeyboardInterrupt
        After Ctrl-C.
    """
    check_client(client)
    temporary = None
    if store is None:
        if resume:
            raise told("nothing to resume without a store", "name the store of the campaign: store='FILE'")
        temporary = TemporaryStore()
        store = temporary.path
    order = _order(experiment, target, set, scale, seed)
    order = replace(order, destroy=destroy, force_signature=force_signature, told=bool(progress))
    check_versions(client)
    try:
        order, survey = _survey(order, client, device, progress)
    except LowtideError as error:
        if not resume:
            reword(error, GOES_ON, NOT_YET)
        raise
    fleet = Fleet(client, order, survey, Into(Path(store), resume, temporary is not None, order.run))
    number = fleet.run(progress)
    if not progress:
        for note in fleet.notes:
            warnings.warn(note, LowtideWarning, stacklevel=2)
    campaign = Campaign(_native.load(os.fspath(store), str(number)), temporary)
    _, _, failed, _ = campaign._campaign.progress
    if failed:
        warnings.warn(f"{failed} cells failed: `cells()` says why", LowtideWarning, stacklevel=2)
    return campaign


def _order(
    experiment: _ask.Source,
    target: str | None,
    set: _ask.Overrides | None,
    scale: str | float | Fraction,
    seed: int,
) -> Order:
    """Make the order of what is asked; files are read here, where they are."""
    name, text = _ask.source(experiment, "experiment")
    if text is None and ("/" in name or name.endswith(".toml")):
        # What cannot be read is told where it is planned.
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = Path(name).read_text(encoding="utf-8")
    overrides = _ask.overrides(set)
    if target is not None:
        # A path alone is a file or a directory: as it is here.
        target = _native.target_of(name, text, set=overrides, target=target)
    return Order(
        run=uuid.uuid4().hex,
        version=lowtide.__version__,
        name=name,
        text=text,
        set=tuple(overrides),
        target=target,
        scale=_ask.scale(scale),
        seed=seed,
    )


def _survey(order: Order, client: Client, device: str | None, progress: Progress) -> tuple[Order, Survey]:
    """Plan here what runs on models, and files and block devices where they are."""
    named = _native.target_of(order.name, order.text, set=list(order.set), target=order.target)
    models = named.startswith("device:")
    if device is None and not models:
        device = order.destroy
    if device is not None:
        check_device(client, device)
    if models:
        survey = Survey.of(order.plan("this machine"))
        if survey.simulated and device is not None:
            help = "leave `device` out: any worker will do"
            raise told(f"{named} is simulated, and does not need the device {device}", help)
        # Drives that are attached are models, and their cells take wall time.
        return replace(order, identity=survey.identity, device=device, kept=not survey.simulated), survey
    if device is None:
        raise told(
            f"{named} is of some machine, and nothing says of which",
            "device='SERIAL' (or destroy='SERIAL'), which a worker there announces",
        )
    order = replace(order, device=device)
    future = client.submit(
        _worker.survey, order, key=f"lowtide-{order.run}-plan", pure=False, resources={resource(device): 1}
    )
    try:
        survey = _waited_for(future, Waits(client, order, functools.partial(_say, progress)))
    finally:
        if client.status == "running":
            future.cancel()
    return replace(order, identity=survey.identity, kept=True), survey


def _waited_for(future: Future[Survey], waits: Waits) -> Survey:
    """Wait for what a plan comes to, and say so where it cannot be made yet."""
    ended: SimpleQueue[object] = SimpleQueue()
    future.add_done_callback(ended.put)
    while True:
        try:
            ended.get(timeout=LOOK_S)
        except Empty:
            waits.look()
        else:
            survey: Survey = outcome(future)
            return survey


def _say(progress: Progress, text: str) -> None:
    if progress:
        Teller(progress, 0)({"kind": "note", "text": text})
    else:
        warnings.warn(text, LowtideWarning, stacklevel=6)
