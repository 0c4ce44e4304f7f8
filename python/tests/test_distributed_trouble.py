"""Trouble around a fleet: full disks, workers and schedulers that end, and what is refused before anything is measured."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lowtide

if os.environ.get("LOWTIDE_REQUIRE_REAL") != "1":
    pytest.importorskip("distributed", reason="Dask is missing: pip install 'lowtide[distributed]'")

from fleets import WITHIN_S, Cluster, limited, until

import lowtide.distributed

SEED = 5
SCALE = "1/8"
Experiment = dict[str, object]

# Dask's own, at the end of processes.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a test that waits for what does not come."""
    with limited():
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster with a worker of one thread."""
    cluster = Cluster(tmp_path_factory.mktemp("fleet"))
    try:
        cluster.worker("a")
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Give what makes clusters of a test's own, without workers."""
    made: list[Cluster] = []

    def make(**settings: str) -> Cluster:
        folder = tmp_path / f"cluster-{len(made)}"
        folder.mkdir()
        made.append(Cluster(folder, settings))
        return made[-1]

    try:
        yield make
    finally:
        for cluster in made:
            cluster.close()


class Disk:
    """A small disk in memory."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self.filler = at / "filler"

    def fill(self) -> None:
        """Leave no room."""
        with self.filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error

    def empty(self) -> None:
        """Make room again."""
        self.filler.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Give a disk of 16 MiB; that needs root."""
    at = tmp_path / "disk"
    at.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(at)], check=False)
    if mounted.returncode != 0:
        if os.environ.get("LOWTIDE_REQUIRE_REAL") == "1":
            pytest.fail("a tmpfs cannot be mounted here")
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield Disk(at)
    finally:
        subprocess.run(["umount", str(at)], check=True)


def same(one: lowtide.Campaign, other: lowtide.Campaign) -> None:
    for format in ("csv", "json"):
        assert one.export(format) == other.export(format), f"seed {SEED}, {format}"


def test_a_full_disk_under_the_store_keeps_what_is_there_and_goes_on(
    cluster: Cluster, study: Experiment, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk.at / "fleet.db"
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))

    def fill(event: lowtide.Event) -> None:
        if event.kind == "ended" and not disk.filler.exists():
            disk.fill()

    with pytest.raises(lowtide.LowtideError) as told:
        lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, progress=fill)
    assert f"the store {store} cannot be used" in told.value.message
    assert "make room and run again" in (told.value.help or "")
    disk.empty()
    before = lowtide.open(store).last.cells().status.tolist()
    assert set(before) <= {"done", "pending"} and "pending" in before
    # What did not go in is beside it, or where there was room.
    left = [path for path in (*disk.at.iterdir(), *spare.iterdir()) if path.name.startswith("fleet.db.")]
    helps = [f"is in {path}\n  help: `lowtide store merge {path} -o {store}`" for path in left]
    assert left and all(help in str(told.value) for help in helps)
    lowtide.merge(left, store)
    assert lowtide.open(store).last.cells().status.tolist().count("done") > before.count("done")
    resumed = lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, resume=True)
    same(resumed, lowtide.run(study, scale=SCALE, seed=SEED))


SPOILS = """
import sqlite3

from lowtide.distributed import _worker

# Dask may run this twice in one process.
if not hasattr(_worker, "whole"):
    _worker.whole = _worker.snapshot
whole, left = _worker.whole, [TIMES]


def spoiled(store):
    part = whole(store)
    if left[0] == 0:
        return part
    left[0] -= 1
    path = store.with_suffix(".spoiled")
    path.write_bytes(part)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE interval SET writes = -1")
    connection.commit()
    connection.close()
    part = path.read_bytes()
    path.unlink()
    return part


_worker.snapshot = spoiled
"""
"""What makes a worker hand over parts of which every number of writes is negative, so often."""


def test_cells_of_a_part_that_cannot_be_are_measured_again(
    clusters: Callable[..., Cluster], study: Experiment, tmp_path: Path
) -> None:
    cluster = clusters()
    cluster.worker("odd", preload=SPOILS.replace("TIMES", "2"))
    store = tmp_path / "fleet.db"
    with pytest.warns(lowtide.LowtideWarning, match="the worker odd gave cell.* has a negative number.*measured again"):
        fleet = lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store)
    same(fleet, lowtide.run(study, scale=SCALE, seed=SEED))


def test_a_worker_whose_parts_never_can_be_ends_the_campaign(
    clusters: Callable[..., Cluster], study: Experiment, tmp_path: Path
) -> None:
    cluster = clusters()
    cluster.worker("odd", preload=SPOILS.replace("TIMES", "-1"))
    store = tmp_path / "fleet.db"
    with warnings.catch_warnings(), pytest.raises(lowtide.LowtideError) as told:
        warnings.simplefilter("ignore", lowtide.LowtideWarning)
        lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store)
    assert "came back 3 times in a way that cannot be taken" in told.value.message
    assert "from the worker odd" in told.value.message and "negative" in told.value.message
    assert "end that worker" in (told.value.help or "")
    # Nothing of it is there, and with a good worker it goes on.
    assert set(lowtide.open(store).last.cells().status) == {"pending"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("fleet.db.")] == []
    cluster.worker("good")
    cluster.end("odd")
    resumed = lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, resume=True)
    same(resumed, lowtide.run(study, scale=SCALE, seed=SEED))


def test_a_full_disk_where_parts_pass_is_told(
    cluster: Cluster, study: Experiment, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "fleet.db"
    monkeypatch.setattr(tempfile, "tempdir", str(disk.at))

    def fill(event: lowtide.Event) -> None:
        if event.kind == "ended" and not disk.filler.exists():
            disk.fill()

    with pytest.raises(lowtide.LowtideError) as told:
        lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, progress=fill)
    text = str(told.value)
    assert f"{disk.at}, where parts of the campaign pass through" in text, text
    assert "TMPDIR" in text and "resume=True" in text, text
    disk.empty()
    resumed = lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, resume=True)
    same(resumed, lowtide.run(study, scale=SCALE, seed=SEED))


def test_a_full_disk_of_a_worker_is_told_with_its_name(
    cluster: Cluster, files: Experiment, disk: Disk, tmp_path: Path
) -> None:
    local = cluster.folder / "small"
    local.symlink_to(disk.at)
    cluster.worker("small", devices=["bench"])
    try:
        disk.fill()
        with pytest.raises(lowtide.LowtideError) as told:
            lowtide.distributed.run(files, cluster.client, device="bench", store=tmp_path / "fleet.db")
    finally:
        cluster.end("small")
    assert "make room" in str(told.value), told.value
    if hasattr(told.value, "add_note"):
        assert told.value.__notes__ == ["on the worker small"]


def test_a_worker_that_ends_leaves_its_device_to_the_next(cluster: Cluster, files: Experiment, tmp_path: Path) -> None:
    # A cell that nobody waits for: the first worker would still measure it when the second one begins.
    load = {"pattern": "random-write", "block": "4KiB", "duration": "1h", "interval": "100ms"}
    experiment = {**files, "workload": load}
    cluster.worker("first", devices=["bench"])
    measuring = threading.Event()
    ended: list[BaseException] = []

    def hear(event: lowtide.Event) -> None:
        if event.stage == "measure" and event.worker == "first":
            measuring.set()
        if event.stage == "measure" and event.worker == "second":
            raise RuntimeError("enough")

    def change() -> None:
        try:
            assert measuring.wait(WITHIN_S)
            cluster.processes["first"].terminate()
            until(lambda: "first" not in cluster.names(), "the first worker is gone")
            cluster.worker("second", devices=["bench"])
        except BaseException as error:  # noqa: BLE001 - told below
            ended.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="enough"):
            lowtide.distributed.run(
                experiment, cluster.client, device="bench", store=tmp_path / "fleet.db", progress=hear
            )
    finally:
        thread.join()
        cluster.end("first", "second")
    assert not ended


def test_a_part_that_was_cut_off_by_nobody_is_measured_again(
    cluster: Cluster, quick: Experiment, tmp_path: Path
) -> None:
    # As where the scheduler takes a task back, and gives it again before it has ended.
    cut = """
from lowtide.distributed import _worker
if not hasattr(_worker, "cut"):  # Dask may load this twice.
    _worker.cut, _worker.whole = [], _worker._Group._look
def once(group):
    if not _worker.cut:
        _worker.cut.append(group)
        raise _worker._NotWanted
    _worker.whole(group)
_worker._Group._look = once
"""
    cluster.end("a")
    cluster.worker("cut", preload=cut)
    try:
        fleet = lowtide.distributed.run(quick, cluster.client, scale=SCALE, seed=SEED, store=tmp_path / "fleet.db")
    finally:
        cluster.end("cut")
        cluster.worker("a")
    same(fleet, lowtide.run(quick, scale=SCALE, seed=SEED))


def test_where_there_is_no_worker_it_is_said_at_once(clusters: Callable[..., Cluster], quick: Experiment) -> None:
    cluster = clusters()
    failed: list[BaseException] = []

    def come(caught: list[warnings.WarningMessage]) -> None:
        try:
            until(lambda: any("there is no worker" in str(one.message) for one in caught), "it is said")
        except AssertionError as error:
            failed.append(error)
        cluster.worker("late")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lowtide.LowtideWarning)
        thread = threading.Thread(target=come, args=[caught])
        thread.start()
        fleet = lowtide.distributed.run(quick, cluster.client, scale=SCALE, store=None)
        thread.join()
    assert not failed
    assert fleet.cells().status.tolist() == ["done"] * 3
    (warned,) = [one for one in caught if issubclass(one.category, lowtide.LowtideWarning)]
    assert warned.filename == __file__


def test_a_scheduler_that_is_lost_is_told_and_another_one_goes_on(
    clusters: Callable[..., Cluster], study: Experiment, tmp_path: Path
) -> None:
    lost, other = clusters(), clusters()
    lost.worker("x")
    store = tmp_path / "fleet.db"

    def kill(event: lowtide.Event) -> None:
        if store.exists() and "done" in set(lowtide.open(store).last.cells().status):
            lost.processes["scheduler"].kill()

    with pytest.raises(lowtide.LowtideError, match="lost") as told:
        lowtide.distributed.run(study, lost.client, scale=SCALE, seed=SEED, store=store, progress=kill)
    assert "resume=True" in str(told.value)
    other.worker("y")
    resumed = lowtide.distributed.run(study, other.client, scale=SCALE, seed=SEED, store=store, resume=True)
    same(resumed, lowtide.run(study, scale=SCALE, seed=SEED))


def test_cells_that_take_their_workers_with_them_are_not_tried_for_ever(
    clusters: Callable[..., Cluster], quick: Experiment, tmp_path: Path
) -> None:
    cluster = clusters(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    cluster.worker("x", preload="import os\nfrom lowtide import _native\n_native.run = lambda *_, **__: os._exit(1)\n")
    with pytest.raises(lowtide.LowtideError) as told:
        lowtide.distributed.run(quick, cluster.client, scale=SCALE, store=tmp_path / "fleet.db")
    text = str(told.value)
    assert "the same cells were with a worker that was lost, last of all x" in text and "resume=True" in text, text


def test_a_client_without_a_scheduler_is_told(cluster: Cluster, quick: Experiment) -> None:
    client = cluster.new_client()
    client.close()
    with pytest.raises(lowtide.BadInput, match="has no scheduler: it is closed"):
        lowtide.distributed.run(quick, client, store=None)


def test_a_device_that_would_be_measured_twice_at_once_is_refused(cluster: Cluster, files: Experiment) -> None:
    cluster.worker("twice", devices=["bench"], times=2, threads=2)
    try:
        with pytest.raises(lowtide.BadInput, match="the worker twice announces the device bench 2 times"):
            lowtide.distributed.run(files, cluster.client, device="bench", store=None)
    finally:
        cluster.end("twice")


def test_a_store_that_cannot_be_is_told_before_anything_is_measured(
    cluster: Cluster, files: Experiment, tmp_path: Path
) -> None:
    cluster.worker("machine", devices=["bench"])
    heard: list[lowtide.Event] = []
    other = tmp_path / "other.db"
    other.write_text("It is no store.")
    try:
        for store in (tmp_path / "none" / "fleet.db", other):
            with pytest.raises(lowtide.BadInput) as there:
                lowtide.distributed.run(files, cluster.client, device="bench", store=store, progress=heard.append)
            with pytest.raises(lowtide.BadInput) as here:
                lowtide.run(files, store=store)
            assert str(there.value) == str(here.value)
        assert not heard
    finally:
        cluster.end("machine")


def test_what_takes_wall_time_is_handed_over_cell_by_cell(cluster: Cluster, quick: Experiment) -> None:
    # Drives that are attached are models, and any worker may have them; their databases take hours all the same.
    asked = {"target": "device:intel-320-160gb", "scale": 1, "seed": SEED}
    attached = lowtide.distributed._order("oltp-quick", set={"filesystem": "xfs"}, **asked)
    order, survey = lowtide.distributed._survey(attached, cluster.client, None, None)
    assert (order.kept, survey.simulated, len(survey.groups)) == (True, False, 1)
    modelled = lowtide.distributed._order(quick, set=None, **{**asked, "target": None})
    order, survey = lowtide.distributed._survey(modelled, cluster.client, None, None)
    assert (order.kept, survey.simulated) == (False, True)
