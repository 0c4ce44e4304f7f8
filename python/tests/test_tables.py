"""Tables are the same to pandas, pyarrow and polars."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import lowtide
from lowtide._campaign import TableName


@pytest.fixture(scope="module")
def campaign() -> lowtide.Campaign:
    changed = {"file_size": ["20GiB", "120GiB"]}
    return lowtide.run("intel-320-random-write", scale="1/64", set=changed)


@pytest.mark.parametrize("name", ["cells", "intervals", "steady", "transactions", "histograms"])
def test_all_read_the_same(campaign: lowtide.Campaign, name: TableName) -> None:
    table = campaign.table(name)
    frame, arrow, polar = table.to_pandas(), pyarrow.table(table), polars.DataFrame(table)
    names = [column.name for column in table.columns]
    assert list(frame) == arrow.column_names == polar.columns == names
    assert len(frame) == arrow.num_rows == polar.height == len(table)
    for column in names:
        ours = [None if pd.isna(value) else value for value in frame[column]]
        assert arrow[column].to_pylist() == polar[column].to_list() == ours, column


def test_a_stream_can_be_taken_more_than_once_and_outlives_its_table(campaign: lowtide.Campaign) -> None:
    table = campaign.table("cells")
    streams = [table.__arrow_c_stream__() for _ in range(2)]
    del table
    read = [pyarrow.RecordBatchReader._import_from_c_capsule(stream).read_all() for stream in streams]
    assert read[0].equals(read[1])
    # One that nobody takes is freed all the same.
    campaign.table("cells").__arrow_c_stream__()


def test_columns_say_unit_and_meaning(campaign: lowtide.Campaign) -> None:
    for name in ("cells", "intervals", "steady", "transactions", "histograms"):
        columns = campaign.table(name).columns  # type: ignore[arg-type]
        assert all(column.doc for column in columns)
        assert len({column.name for column in columns}) == len(columns)
        for column in columns:
            for end, unit in (("_bytes", "B"), ("_s", "s"), ("_ns", "ns"), ("mib_per_s", "MiB/s")):
                if column.name.endswith(end) and not (end == "_s" and column.name.endswith("per_s")):
                    assert column.unit == unit, column
    schema = pyarrow.table(campaign.table("cells")).schema
    assert schema.field("data_bytes").metadata[b"unit"] == b"B"
    assert campaign.cells().attrs["units"]["data_bytes"] == "B"


def test_absent_values_are_absent_and_whole_numbers_stay_whole() -> None:
    plan = lowtide.plan("intel-320-random-write", scale="1/64", set={"file_size": ["20GiB", "40GiB"]})
    half = lowtide.run_plan(plan, groups=[1]).cells()
    assert half.written_before_bytes.dtype == pd.Int64Dtype()
    assert half.written_before_bytes.isna().tolist() == [True, False]
    assert half.verdict.isna().tolist()[0] and np.isnan(half.level[0])


def test_there_is_no_other_table(campaign: lowtide.Campaign) -> None:
    with pytest.raises(lowtide.BadInput, match="no table `cell`"):
        campaign.table("cell")  # type: ignore[arg-type]
    with pytest.raises(lowtide.BadInput, match="no format `xml`"):
        campaign.export("xml")  # type: ignore[arg-type]
    with pytest.raises(lowtide.BadInput, match="asked no database"):
        campaign.export("transactions")
