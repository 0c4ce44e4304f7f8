"""What a cluster has: workers, their version of lowtide, the devices that they announce.

Leaves out giving them work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import Client, Worker

import lowtide
from lowtide.distributed._order import Order, failed, other_versions, told

_PREFIX = "device:"
_ANSWER_S = 5.0
"""How long a worker may take to say what it measures."""


def resource(serial: str) -> str:
    """Give the resource by which a worker announces the block device with a serial number.

    What the command line of ``dask worker`` would take for something else (blanks, commas, ``=``) is written as ``_``.

    >>> resource("WD-WCC4N0"), resource("S3 Z1")
    ('device:WD-WCC4N0', 'device:S3_Z1')
    """
    return _PREFIX + "".join("_" if one.isspace() or one in ",=" else one for one in serial)


def announced(client: Client) -> dict[str, list[str]]:
    """Give the devices that workers announce, and by the name of each the workers that do."""
    found: dict[str, list[str]] = {}
    for worker in workers(client):
        for name, number in worker["resources"].items():
            if name.startswith(_PREFIX) and number > 0:
                found.setdefault(name.removeprefix(_PREFIX), []).append(str(worker["name"]))
    return found


def workers(client: Client) -> list[dict[str, Any]]:
    """Give what the scheduler knows of its workers."""
    return list(_by_address(client).values())


def _by_address(client: Client) -> dict[str, dict[str, Any]]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


def check_client(client: Client) -> None:
    """Refuse a client that cannot wait for a campaign.

    Raises
    ------
    BadInput
        With what would be accepted.
    """
    if client.asynchronous:
        raise told("an asynchronous client cannot wait for a campaign", "Client(…, asynchronous=False), in a thread")
    if client.status != "running":
        raise told(f"the client has no scheduler: it is {client.status}", "a new one: Client('tcp://scheduler:8786')")


def check_versions(client: Client) -> None:
    """Refuse workers of another version.

    Raises
    ------
    BadInput
        With the version of each.
    """

    # Carried as it is: where lowtide is of another version, it may lack what this module has.
    def version() -> str:
        try:
            import lowtide
        except ImportError:
            return "none"
        return lowtide.__version__

    names = {address: str(worker["name"]) for address, worker in _by_address(client).items()}
    found = client.run(version, on_error="return")
    others = {names.get(address, address): str(what) for address, what in found.items() if what != lowtide.__version__}
    if others:
        raise other_versions(lowtide.__version__, others)


def check_device(client: Client, serial: str) -> None:
    """Refuse a device that no worker announces, or several do.

    Raises
    ------
    BadInput
        With those that are announced.
    """
    found = announced(client)
    name = resource(serial).removeprefix(_PREFIX)
    here = found.get(name, [])
    times = max((worker["resources"].get(resource(serial), 0) for worker in workers(client)), default=0)
    if len(here) == 1 and times <= 1:
        return
    if len(here) == 1:
        raise told(
            f"the worker {here[0]} announces the device {serial} {times:g} times",
            f"--resources '{resource(serial)}=1', so that only one cell at a time is measured on it",
        )
    if here:
        raise told(
            f"the device {serial} is announced by {len(here)} workers: {', '.join(sorted(here))}",
            "one process for each device, so that only one cell at a time is measured on it",
        )
    others = f"announced are {', '.join(sorted(found))}" if found else "no device is announced"
    raise told(
        f"no worker announces the device {serial}, which is needed; {others}",
        f"start a worker on its machine with `dask worker … --nthreads 1 --resources '{resource(serial)}=1'`",
    )


class Waits:
    """Looks from time to time why nothing is heard, and says what whoever waits should know, once."""

    def __init__(self, client: Client, order: Order, say: Callable[[str], None]) -> None:
        self.client, self.order, self.say = client, order, say
        self.said: str | None = None

    def look(self) -> None:
        """Say why cells wait, where they do.

        Raises
        ------
        LowtideError
            Where nothing can come any more.
        """
        try:
            text = self._why() if self.client.status == "running" else None
        except (OSError, TimeoutError, asyncio.TimeoutError):
            # Of a worker that does not answer, nothing is known; of a scheduler, its client knows soon.
            text = self.said
        if self.client.status != "running":
            raise failed("the connection to the scheduler is lost")
        if text is not None and text != self.said:
            self.say(text)
        self.said = text

    def _why(self) -> str | None:
        device = self.order.device
        if device is None:
            return None if workers(self.client) else "there is no worker: cells wait until there is one"
        name = resource(device)
        at = [address for address, one in _by_address(self.client).items() if one["resources"].get(name, 0) > 0]
        if not at:
            return f"no worker announces the device {device} any more: its cells wait until one does"
        found = self.client.run(_executing, workers=at, on_error="ignore", callback_timeout=_ANSWER_S)
        others = [key for keys in found.values() for key, needs in keys if name in needs and self.order.run not in key]
        return f"another campaign has the device {device}: cells wait until it is free" if others else None


def _executing(dask_worker: Worker) -> list[tuple[str, list[str]]]:
    """Give what is measured on a worker, and what each needs; runs beside it."""
    return [(str(task.key), list(task.resource_restrictions or {})) for task in dask_worker.state.executing]
