"""How a fleet ends before it is through: what was measured is kept, nobody waits for ever, and what is told is so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lowtide

if os.environ.get("LOWTIDE_REQUIRE_REAL") != "1":
    pytest.importorskip("distributed", reason="Dask is missing: pip install 'lowtide[distributed]'")

from fleets import WITHIN_S, Cluster, limited, until

import lowtide.distributed
from lowtide.distributed import _fleet, _worker

SEED = 5
SCALE = "1/64"
Experiment = dict[str, object]

# Dask's own, at the end of processes.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

WRITER = "import sys, lowtide\nlowtide.run('intel-320-random-write', scale='1/64', store=sys.argv[1])\n"
"""Somebody else who would write to the store."""
HANGS = """
import os, time
from lowtide import _native
if not hasattr(_native, "whole"):  # Dask may load this twice.
    _native.whole = _native.run
def slow(*words, **named):
    try:
        return _native.whole(*words, **named)
    finally:
        until = time.monotonic() + 60
        while not os.path.exists(GO) and time.monotonic() < until:
            time.sleep(0.05)
_native.run = slow
"""
"""A worker that takes long to end, until there is a file."""
UNKNOWN = """
import sys, types
from lowtide import _native
only_here = types.ModuleType("only_here")
class Odd(Exception): pass
Odd.__module__ = "only_here"
only_here.Odd = Odd
sys.modules["only_here"] = only_here
def run(*_, **__): raise Odd("something odd")
_native.run = run
"""
"""A worker that fails in a way of which a client cannot know."""


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a test that waits for what does not come."""
    with limited():
        yield


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Give a cluster without workers."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.close()


class Enough(Exception):
    """Whoever listens has heard enough."""


def statuses(store: Path) -> list[str]:
    found: list[str] = lowtide.open(store).last.cells().status.tolist()
    return found


def long(files: Experiment) -> Experiment:
    """Give an experiment whose cell nobody waits for."""
    load = {"pattern": "random-write", "block": "4KiB", "duration": "1h", "interval": "100ms"}
    return {**files, "workload": load}


def test_nobody_else_gets_the_store_before_the_first_part_comes(
    cluster: Cluster, files: Experiment, tmp_path: Path
) -> None:
    cluster.worker("machine", devices=["bench"])
    store = tmp_path / "fleet.db"
    others: list[subprocess.CompletedProcess[str]] = []

    def write(event: lowtide.Event) -> None:
        if not others:
            assert event.kind != "begun", "the campaign begins with the first part"
            words = [sys.executable, "-c", WRITER, str(store)]
            others.append(subprocess.run(words, capture_output=True, text=True, check=False))

    campaign = lowtide.distributed.run(files, cluster.client, device="bench", store=store, progress=write)
    (other,) = others
    assert other.returncode != 0 and "in use" in other.stderr, other.stderr
    assert (campaign.number, statuses(store)) == (1, ["done"] * 3)


def test_what_is_refused_leaves_no_store(
    cluster: Cluster, files: Experiment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.worker("machine", devices=["bench"], preload=UNKNOWN)
    store = tmp_path / "stores" / "fleet.db"
    store.parent.mkdir()
    # What Dask cannot bring to the client is told all the same; there is nothing that one could go on with.
    with pytest.raises(lowtide.LowtideError, match="Odd: something odd") as told:
        lowtide.distributed.run(files, cluster.client, device="bench", store=store)
    assert "without resume" in str(told.value) and "without resume" in (told.value.help or ""), told.value
    assert "resume=True" not in str(told.value)
    assert not list(store.parent.iterdir())
    assert "Failed to deserialize" not in caplog.text
    with pytest.raises(lowtide.LowtideError, match="Odd: something odd") as told:
        lowtide.distributed.run(files, cluster.client, device="bench", store=None)
    assert "store='FILE'" in str(told.value) and "resume=True" not in str(told.value), told.value


def test_groups_that_were_through_when_it_ended_are_in_the_store(
    cluster: Cluster, quick: Experiment, tmp_path: Path
) -> None:
    cluster.worker("a")
    store = tmp_path / "fleet.db"

    def whole() -> int:
        return sum(key.startswith("lowtide-") for key, at in cluster.client.who_has().items() if at)

    def hear(event: lowtide.Event) -> None:
        if event.kind != "begun":
            until(lambda: whole() == 3, "all groups are measured")
            raise Enough

    with pytest.raises(Enough):
        lowtide.distributed.run(quick, cluster.client, scale=SCALE, seed=SEED, store=store, progress=hear)
    assert statuses(store) == ["done"] * 3, f"seed {SEED}"


def test_cells_of_a_worker_that_takes_too_long_to_end_are_in_the_store(
    cluster: Cluster, files: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    cluster.worker("slow", devices=["bench"], preload=f"GO = {str(go)!r}\n{HANGS}")
    store = tmp_path / "fleet.db"
    monkeypatch.setattr(_fleet, "_PATIENCE_S", 6.0)
    assert len(lowtide.plan(files).groups) == 1

    def hear(event: lowtide.Event) -> None:
        # It was handed over when this is told, or is when it ends; the client has not looked.
        if event.kind == "ended":
            raise Enough

    try:
        with pytest.raises(Enough):
            lowtide.distributed.run(files, cluster.client, device="bench", store=store, progress=hear)
        assert statuses(store) == ["done", "pending", "pending"]
    finally:
        go.touch()
    resumed = lowtide.distributed.run(
        files, cluster.client, device="bench", store=store, resume=True, progress=lambda _: None
    )
    assert resumed.cells().status.tolist() == ["done"] * 3


def test_a_worker_that_hangs_does_not_keep_it_from_ending(
    cluster: Cluster, quick: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.worker("hangs")
    monkeypatch.setattr(_fleet, "_PATIENCE_S", 2.0)
    monkeypatch.setattr(_fleet, "_ANSWER_S", 2.0)
    stopped: list[int] = []

    def hear(event: lowtide.Event) -> None:
        if event.stage == "measure":
            os.kill(cluster.pid("hangs"), signal.SIGSTOP)
            stopped.append(cluster.pid("hangs"))
            raise Enough

    try:
        with pytest.raises(Enough):
            lowtide.distributed.run(quick, cluster.client, seed=SEED, store=tmp_path / "fleet.db", progress=hear)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_a_plan_that_waits_for_its_device_says_so(cluster: Cluster, files: Experiment, tmp_path: Path) -> None:
    cluster.worker("machine", devices=["bench"])
    measuring, told = threading.Event(), threading.Event()
    ended: list[BaseException] = []

    def first(event: lowtide.Event) -> None:
        if event.stage == "measure":
            measuring.set()
        if told.is_set():
            raise Enough

    def measure() -> None:
        try:
            store = tmp_path / "first.db"
            lowtide.distributed.run(long(files), cluster.client, device="bench", store=store, progress=first)
        except Enough as error:
            ended.append(error)

    def second(event: lowtide.Event) -> None:
        assert (event.kind, event.text) == (
            "note",
            "another campaign has the device bench: cells wait until it is free",
        )
        raise Enough

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        assert measuring.wait(WITHIN_S)
        with pytest.raises(Enough):
            lowtide.distributed.run(
                files, cluster.client, device="bench", store=tmp_path / "second.db", progress=second
            )
    finally:
        told.set()
        thread.join()
    assert ended
    assert not (tmp_path / "second.db").exists()


def test_a_plan_whose_worker_and_scheduler_are_lost_is_told(
    cluster: Cluster, files: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.worker("other")
    # As where the worker is lost just after it was looked for.
    monkeypatch.setattr(lowtide.distributed, "check_device", lambda *_: None)
    heard: list[str | None] = []

    def hear(event: lowtide.Event) -> None:
        heard.append(event.text)
        cluster.processes["scheduler"].kill()

    with pytest.raises(lowtide.LowtideError, match="scheduler") as told:
        lowtide.distributed.run(files, cluster.client, device="bench", store=tmp_path / "fleet.db", progress=hear)
    assert heard == ["no worker announces the device bench any more: its cells wait until one does"]
    assert "without resume" in str(told.value), told.value


def test_a_group_that_is_not_wanted_any_more_is_not_begun(cluster: Cluster, quick: Experiment) -> None:
    begun = "from lowtide import _native\ndef run(*_, **__): raise SystemError('it was begun')\n_native.run = run\n"
    cluster.worker("a", preload=begun)
    order = lowtide.distributed._order(quick, set=None, target=None, scale=SCALE, seed=SEED)
    order, _ = lowtide.distributed._survey(order, cluster.client, None, None)
    cluster.client.run(_worker.stop, order.run)
    error = cluster.client.submit(_worker.measure, order, 0, None).exception()
    assert isinstance(error, lowtide.LowtideError) and error.message == "nobody waits for these cells any more"
