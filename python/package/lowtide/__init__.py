"""What a drive sustains once it is no longer fresh: experiments on real and simulated storage.

>>> import lowtide
>>> campaign = lowtide.run("intel-320-random-write", scale="1/64", set={"file_size": ["20GiB", "120GiB"]})
>>> campaign.steady()[["file_size", "verdict"]].shape
(2, 2)

`run` measures an experiment and gives a `Campaign`; `plan` says what `run` would do; `open` reads a store again;
`Device` is a simulated drive that takes arrays of requests. Sizes are bytes, rates MiB/s, times seconds where a name
ends in ``_s`` and nanoseconds where it ends in ``_ns``; each table says the unit of every column
(``frame.attrs["units"]``).

Leaves out what the command line alone does: serving and attaching drives, comparing, advice.
"""

from lowtide._campaign import Campaign
from lowtide._catalogue import devices, experiments, published
from lowtide._device import Device, Op
from lowtide._errors import BadInput, InternalError, Interrupted, LowtideError, LowtideWarning, Refused
from lowtide._native import __version__
from lowtide._plan import Plan, plan
from lowtide._run import Event, run, run_plan
from lowtide._store import Store, merge, open, report
from lowtide._tables import Column, Table

__all__ = [
    "BadInput",
    "Campaign",
    "Column",
    "Device",
    "Event",
    "InternalError",
    "Interrupted",
    "LowtideError",
    "LowtideWarning",
    "Op",
    "Plan",
    "Refused",
    "Store",
    "Table",
    "__version__",
    "devices",
    "experiments",
    "merge",
    "open",
    "plan",
    "published",
    "report",
    "run",
    "run_plan",
]
