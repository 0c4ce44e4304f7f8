"""Tables: DataFrames for people, Arrow for programs.

Leaves out what the columns mean: each says it itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from lowtide import _native


class Column(NamedTuple):
    """A column of a table."""

    name: str
    """Its name."""
    type: str
    """``whole``, ``real``, ``flag`` or ``text``."""
    unit: str
    """The unit: ``B``, ``s``, ``ns``, ``MiB/s``, …; empty where there is none."""
    doc: str
    """What it is."""


class Table:
    """A table that pandas, polars, pyarrow and everything else that takes Arrow streams can read.

    Give it to ``pyarrow.table``, ``polars.DataFrame``, ``duckdb``, or call `to_pandas`.

    >>> import lowtide
    >>> table = lowtide.plan("intel-320-random-write").table()
    >>> table
    <lowtide.Table: 14 rows, 7 columns>
    >>> table.columns[1]
    Column(name='file_size', type='whole', unit='B', doc='factor of the experiment, bytes')
    """

    __slots__ = ("_table",)

    def __init__(self, table: _native.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[Column]:
        """Names, types, units and descriptions."""
        return [Column(*column) for column in self._table.columns]

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return repr(self._table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give an Arrow stream in a capsule (the Arrow PyCapsule interface)."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Give the schema of that stream in a capsule."""
        return self._table.__arrow_c_schema__()

    def to_pandas(self) -> pd.DataFrame:
        """Make a DataFrame.

        Numbers are ``int64`` and ``float64``; whole numbers of which some are absent are pandas' ``Int64``.
        ``attrs["units"]`` has the unit of each column that has one, ``attrs["docs"]`` what each is.
        """
        columns = self.columns
        frame = pd.DataFrame({column.name: self._values(column) for column in columns})
        frame.attrs["units"] = {column.name: column.unit for column in columns if column.unit}
        frame.attrs["docs"] = {column.name: column.doc for column in columns}
        return frame

    def _values(self, column: Column) -> object:
        values, absent = self._table.column(column.name)
        if column.type == "text":
            return pd.Series(values, dtype=object if len(values) == 0 else None)
        if absent is None:
            return values
        if column.type == "flag":
            return pd.arrays.BooleanArray(np.asarray(values, dtype=bool), absent)
        return pd.arrays.IntegerArray(np.asarray(values, dtype=np.int64), absent)
