"""The catalogue: what comes with lowtide."""

from __future__ import annotations

import pandas as pd

from lowtide import _native
from lowtide._tables import Table


def devices() -> pd.DataFrame:
    """List the simulated devices: name, title, kind, capacity, price.

    >>> frame = lowtide.devices().set_index("name")
    >>> int(frame.capacity_bytes["intel-320-160gb"])
    160000000000
    """
    return Table(_native.devices()).to_pandas()


def experiments() -> pd.DataFrame:
    """List the experiments: name, title, target, question, where it was published.

    >>> "intel-320-random-write" in set(lowtide.experiments().name)
    True
    """
    return Table(_native.experiments()).to_pandas()


def published(study: str) -> pd.DataFrame:
    """List the numbers of a published study, each with its source.

    Parameters
    ----------
    study : str
        Its number, such as ``"e06"``; published/README.md of the project lists them.

    Raises
    ------
    BadInput
        Where there is no such study.

    Examples
    --------
    >>> lowtide.published("e06").query("unit == 'MiB/s' and utilisation == 1").value.tolist()
    [99.0, 417.0]
    """
    return Table(_native.published(study)).to_pandas()
