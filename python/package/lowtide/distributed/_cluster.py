"""What a cluster has: workers, their version of lowtide, the devices that they announce.

Leaves out giving them work.
"""

from __future__ import annotations

from typing import Any

from distributed import Client

import lowtide
from lowtide.distributed._order import other_versions, told

_PREFIX = "device:"


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
    return list(client.scheduler_info(n_workers=-1)["workers"].values())


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

    names = {address: str(worker["name"]) for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()}
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
