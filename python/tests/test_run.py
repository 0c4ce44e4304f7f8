"""Experiments run: the same numbers as the command line, however they are asked for."""

from __future__ import annotations

import gc
import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lowtide

SCALE = "1/64"
Experiment = dict[str, object]


def exported(program: Path, folder: Path, *arguments: str) -> tuple[str, str]:
    """Run the program on an experiment, and export what it measured as CSV and JSON."""
    store = str(folder / "cli.db")
    report = str(folder / "cli.html")
    run = [program, "run", *arguments, "--scale", SCALE, "--store", store, "--report", report]
    subprocess.run(run, check=True, capture_output=True)
    texts = [
        subprocess.run(
            [program, "store", "export", "--store", store, "--format", format],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for format in ("csv", "json")
    ]
    return texts[0], texts[1]


def test_numbers_are_those_of_the_command_line(program: Path, tmp_path: Path) -> None:
    csv, json_text = exported(
        program,
        tmp_path,
        "intel-320-random-write",
        "--set",
        "threads=4",
        "--set",
        'file_size=["20GiB", "120GiB"]',
        "--seed",
        "7",
    )
    changed = {"threads": 4, "file_size": ["20GiB", "120GiB"]}
    campaign = lowtide.run("intel-320-random-write", scale=SCALE, seed=7, set=changed)
    assert campaign.export("csv") == csv
    assert campaign.export("json") == json_text
    # Numbers of tables are those of the export.
    path = tmp_path / "intervals.csv"
    assert campaign.export("csv", path=path) is None
    frame, wanted = campaign.intervals(), pd.read_csv(path)
    for name in ("reads", "writes", "write_bytes", "host_written_bytes", "nand_written_bytes", "erases"):
        assert (frame[name].to_numpy() == wanted[name].to_numpy()).all(), name
    assert np.allclose(frame.start_s * 1e9, wanted.start_ns)
    # Where nothing completed, the export has zero.
    assert np.allclose(frame.write_latency_ns_p99.fillna(0), wanted.write_latency_ns_p99)


def test_a_dict_a_text_and_a_file_are_the_same_experiment(program: Path, tmp_path: Path, quick: Experiment) -> None:
    from lowtide import _toml

    path = tmp_path / "quick.toml"
    path.write_text(_toml.document(quick))
    csv, _ = exported(program, tmp_path, str(path))
    for experiment in (quick, path, str(path), path.read_text()):
        assert lowtide.run(experiment, scale=SCALE).export() == csv


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(quick: Experiment) -> None:
    one, same = (lowtide.run(quick, scale=SCALE, seed=3, jobs=jobs).export("json") for jobs in (1, 3))
    assert one == same
    assert lowtide.run(quick, scale=SCALE, seed=4).export("json") != one


def test_tables_fit_together(quick: Experiment) -> None:
    campaign = lowtide.run(quick, scale=SCALE)
    cells, intervals, steady = campaign.cells(), campaign.intervals(), campaign.steady()
    assert cells.file_size.tolist() == [20 << 30, 80 << 30, 120 << 30]
    assert cells.file_size.dtype == np.int64
    assert cells.attrs["units"]["file_size"] == "B"
    assert (cells.status == "done").all()
    assert (cells.data_bytes == cells.file_size // 64).all()
    assert np.allclose(cells.fill, cells.data_bytes / cells.capacity_bytes)
    assert len(intervals) == intervals.groupby("cell").size().sum() == 3 * 120
    done = intervals.write_bytes / (intervals.end_s - intervals.start_s) / 2**20
    assert np.allclose(intervals.mib_per_s, done)
    # The level is the mean of the window that the verdict names.
    for row in steady[steady.verdict == "steady"].itertuples():
        window = intervals[
            (intervals.cell == row.cell) & (intervals.start_s >= row.from_s) & (intervals.end_s <= row.to_s)
        ]
        assert window.mib_per_s.mean() == pytest.approx(row.level, rel=1e-6)
        assert row.low <= row.level <= row.high
        host = window.host_written_bytes.iloc[-1] - window.host_written_bytes.iloc[0]
        nand = window.nand_written_bytes.iloc[-1] - window.nand_written_bytes.iloc[0]
        assert nand / host == pytest.approx(row.write_amplification, rel=0.02)
    assert (steady.reason.isna() == (steady.verdict == "steady")).all()
    counted = campaign.histograms()
    assert counted.groupby("cell")["count"].sum().tolist() == intervals.groupby("cell").writes.sum().tolist()
    assert (counted.low_ns <= counted.high_ns).all() and (counted["count"] > 0).all()
    assert len(campaign.transactions()) == 0


def test_the_answer_is_what_the_command_line_shows(program: Path, tmp_path: Path, quick: Experiment) -> None:
    store = tmp_path / "a.db"
    campaign = lowtide.run(quick, scale=SCALE, store=store)
    shown = subprocess.run(
        [program, "store", "show", "1", "--store", store, "--format", "json"],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(shown.stdout)["tables"]["cells"]["rows"] if "tables" in shown.stdout else None
    steady = campaign.steady()
    assert rows is not None, shown.stdout[:500]
    levels = [row.get("settled_mib_per_s") for row in rows]
    assert [level is not None for level in levels] == (steady.verdict == "steady").tolist()
    assert campaign.verdict()[0].rstrip(".") in campaign.text(width=100_000)
    page = campaign.report(tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and campaign.title in page
    assert all(text.lstrip().startswith("<svg") for text in campaign.figures().values())


def test_groups_that_are_merged_are_the_whole(tmp_path: Path, quick: Experiment) -> None:
    plan = lowtide.plan(quick, scale=SCALE)
    assert plan.groups == [[0], [1], [2]]
    assert plan.group_targets == ["device:intel-320-160gb"] * 3
    assert plan.cells.group.tolist() == [0, 1, 2]
    parts = [tmp_path / "a.db", tmp_path / "b.db"]
    first = lowtide.run_plan(plan, groups=[0, 2], store=parts[0])
    assert first.cells().status.tolist() == ["done", "pending", "done"]
    lowtide.run_plan(plan, groups=[1], store=parts[1])
    merged = lowtide.merge(parts, tmp_path / "all.db")
    assert merged.new.tolist() == [True, False] and merged.came.tolist() == [2, 1]
    assert lowtide.open(tmp_path / "all.db").last.export("json") == lowtide.run_plan(plan).export("json")
    with pytest.raises(lowtide.BadInput, match="no group 3"):
        lowtide.run_plan(plan, groups=[3])


def test_a_store_keeps_campaigns(tmp_path: Path, quick: Experiment) -> None:
    path = tmp_path / "a.db"
    one = lowtide.run(quick, scale=SCALE, store=path, set={"file_size": ["20GiB"]})
    lowtide.run(quick, scale=SCALE, store=path, seed=2, set={"file_size": ["20GiB"], "name": "other"})
    store = lowtide.open(path)
    assert store.campaigns().name.tolist() == ["quick", "other"]
    assert (store[1].name, store["quick"].number, store.last.seed, len(store)) == ("quick", 1, 2, 2)
    assert store[1].export("json") == one.export("json")
    assert [campaign.number for campaign in store] == [1, 2]
    with pytest.raises(lowtide.BadInput, match="did you mean `quick`"):
        store["quik"]


def test_a_temporary_store_lives_as_long_as_its_campaign(quick: Experiment) -> None:
    campaign = lowtide.run(quick, scale=SCALE, set={"file_size": ["20GiB"]})
    path = campaign.store
    assert path.is_file()
    del campaign
    gc.collect()
    assert not path.parent.exists()


def test_progress_tells_every_cell_and_ends_a_campaign_that_it_does_not_like(tmp_path: Path, quick: Experiment) -> None:
    heard: list[lowtide.Event] = []
    lowtide.run(quick, scale=SCALE, progress=heard.append, jobs=1)
    assert heard[0].kind == "begun" and heard[0].campaign == 1
    ended = [event for event in heard if event.kind == "ended"]
    assert [event.cell for event in ended] == [0, 1, 2]
    assert (ended[-1].done, ended[-1].cells) == (3, 3)
    assert all("file_size" in str(event) for event in ended)

    def dislike(event: lowtide.Event) -> None:
        if event.kind == "ended":
            raise RuntimeError("enough")

    store = tmp_path / "a.db"
    with pytest.raises(RuntimeError, match="enough"):
        lowtide.run(quick, scale="1/16", progress=dislike, jobs=1, store=store)
    # The same goes on.
    resumed = lowtide.run(quick, scale="1/16", store=store, resume=True)
    assert resumed.number == 1 and (resumed.cells().status == "done").all()
    assert resumed.export() == lowtide.run(quick, scale="1/16").export()


def test_other_threads_go_on_meanwhile(quick: Experiment) -> None:
    import threading

    done = threading.Event()
    turns = 0

    def count() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    lowtide.run(quick, scale="1/16")
    done.set()
    thread.join()
    # A thousand a second, were the machine idle; one that waits for the GIL would have none.
    assert turns >= 5


def test_what_a_target_cannot_do_is_a_warning(tmp_path: Path, quick: Experiment) -> None:
    told = lowtide.plan(quick, target=f"dir:{tmp_path}", set={"file_size": ["1MiB"]}).ignored
    assert any("secure-erase" in line for line in told)


def test_scales_and_experiments_that_are_none_are_told() -> None:
    for scale in ("1/0", "0", 2, -1, "x", "2/3", 0.0):
        with pytest.raises(lowtide.BadInput, match="scale"):
            lowtide.plan("intel-320-random-write", scale=scale)
    with pytest.raises(TypeError):
        lowtide.plan(4)  # type: ignore[arg-type]
    with pytest.raises(lowtide.BadInput, match="no value of an experiment"):
        lowtide.plan({"name": "x", "target": object()})
