"""Errors are exceptions, in the words of the command line."""

from __future__ import annotations

import os
import pickle
import subprocess
from pathlib import Path

import pytest

import lowtide

WRONG = """name = "wrong"
target.device = "intel-320-160gb"
[workload]
pattern = "random-wirte"
block = "16 KiBs"
duration = "1h"
"""


def printed(program: Path, *arguments: object) -> str:
    """Give what the program says where it ends with an error; nothing of how wide a terminal is."""
    environment = {**os.environ, "NO_COLOR": "1"}
    run = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, env=environment)
    assert run.returncode == 2, run.stderr
    return run.stderr


def words(text: str) -> list[str]:
    return text.split()


def test_every_fault_is_told_at_its_line(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(WRONG)
    with pytest.raises(lowtide.BadInput) as told:
        lowtide.run(path)
    text = str(told.value)
    assert f"{path}:4" in text and f"{path}:5" in text
    assert 'pattern = "random-wirte"' in text and "random-write" in text
    assert len(told.value.problems) == 2
    assert words(text) == words(printed(program, "plan", path))


def test_names_that_are_not_there_offer_the_nearest(program: Path) -> None:
    for arguments, experiment, keywords in (
        (["plan", "intel-320-random-wrte"], "intel-320-random-wrte", {}),
        (["plan", "intel-320-random-write", "--set", "thread=4"], "intel-320-random-write", {"set": {"thread": 4}}),
        (["plan", "no/such/file.toml"], "no/such/file.toml", {}),
    ):
        with pytest.raises(lowtide.BadInput) as told:
            lowtide.plan(experiment, **keywords)  # type: ignore[arg-type]
        assert words(str(told.value)) == words(printed(program, *arguments))
        assert told.value.help


def test_stores_that_are_none_are_told(program: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(lowtide.BadInput, match="there is no store") as told:
        lowtide.open(missing)
    assert words(str(told.value)) == words(printed(program, "store", "show", "--store", missing))
    other = tmp_path / "other.db"
    other.write_text("something else, and long enough to be no database" * 100)
    with pytest.raises(lowtide.LowtideError):
        lowtide.open(other)
    with pytest.raises(lowtide.BadInput, match="nothing to resume"):
        lowtide.run("intel-320-random-write", resume=True)


def test_a_store_is_replaced_by_nothing(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    campaign = lowtide.run("intel-320-random-write", scale="1/256", set={"file_size": ["20GiB"]}, store=store)
    before = store.read_bytes()
    for write in (campaign.report, lambda path: campaign.export(path=path)):
        for path in (store, tmp_path / "a.db-wal"):
            with pytest.raises(lowtide.Refused, match="store"):
                write(path)
        with pytest.raises(lowtide.BadInput, match="there is no directory"):
            write(tmp_path / "none" / "x")
    assert store.read_bytes() == before
    assert not (tmp_path / "a.db-wal").exists()
    mine = tmp_path / "mine.toml"
    mine.write_text(campaign.experiment)
    with pytest.raises(lowtide.Refused, match="the experiment of this command"):
        lowtide.run(mine, scale="1/256", store=mine)
    assert mine.read_text() == campaign.experiment


def test_they_are_what_python_expects() -> None:
    with pytest.raises(ValueError) as told:
        lowtide.plan("intel-320")
    error = told.value
    assert isinstance(error, lowtide.LowtideError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems) == (str(error), error.problems)


def test_devices_that_cannot_be_are_told() -> None:
    with pytest.raises(lowtide.BadInput, match="did you mean `mtron-32gb`"):
        lowtide.Device("mtron-32g")
    with pytest.raises(lowtide.BadInput, match="nand"):
        lowtide.Device({"name": "x", "title": "x", "flash": {"capacity": "1GiB"}})
    with pytest.raises(lowtide.BadInput, match="is invalid with these options"):
        lowtide.Device({"like": "intel-320-160gb", "name": "x", "title": "x", "flash": {"capacity": "999GB"}})


def test_a_drive_that_has_to_be_attached_needs_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(lowtide.BadInput, match="the program `lowtide`"):
        changed = {"filesystem": "xfs"}
        lowtide.run("oltp-quick", target="device:intel-320-160gb", set=changed, store=tmp_path / "a.db")
