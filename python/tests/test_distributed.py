"""Fleets on Dask: workers that are processes, hosts that are namespaces, and what is lost of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lowtide

if os.environ.get("LOWTIDE_REQUIRE_REAL") != "1":
    pytest.importorskip("distributed", reason="Dask is missing: pip install 'lowtide[distributed]'")

from fleets import WITHIN_S, Cluster, limited, until

import lowtide.distributed

SEED = 5
SCALE = "1/8"
CELLS = 11
Experiment = dict[str, object]

# Dask's own, at the end of processes.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster with two workers of one thread each."""
    cluster = Cluster(tmp_path_factory.mktemp("fleet"))
    try:
        cluster.worker("a")
        cluster.worker("b")
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """End a test that waits for what does not come."""
    with limited():
        yield


def measured_by(heard: list[lowtide.Event]) -> dict[int, set[str]]:
    """Give the workers that measured each cell."""
    found: dict[int, set[str]] = {}
    for event in heard:
        # A short one may be over before it is told of.
        if event.stage == "measure" or event.kind == "ended":
            assert event.cell is not None and event.worker is not None
            found.setdefault(event.cell, set()).add(event.worker)
    return found


def done(store: Path) -> set[int]:
    """Give the cells that are done in a store that may be written to."""
    if not store.exists():
        return set()
    campaigns = lowtide.open(store)
    if not len(campaigns):
        return set()
    cells = campaigns.last.cells()
    return set(cells[cells.status == "done"].cell)


def same(one: lowtide.Campaign, other: lowtide.Campaign) -> None:
    for format in ("csv", "json"):
        assert one.export(format) == other.export(format), f"seed {SEED}, {format}"


def test_a_fleet_measures_what_one_process_does(cluster: Cluster, study: Experiment, tmp_path: Path) -> None:
    store = tmp_path / "fleet.db"
    heard: list[lowtide.Event] = []
    asked = {"scale": SCALE, "seed": SEED}
    fleet = lowtide.distributed.run(study, cluster.client, store=store, progress=heard.append, **asked)
    local: list[lowtide.Event] = []
    same(fleet, lowtide.run(study, progress=local.append, **asked))
    assert (fleet.number, fleet.store) == (1, store)
    # The same is told, with who it is of.
    assert [event.kind for event in heard[:1]] == ["begun"]
    ended = [event for event in heard if event.kind == "ended"]
    assert len(ended) == CELLS and (ended[-1].done, ended[-1].cells) == (CELLS, CELLS)
    told = {event.cell: (event.label, event.level, event.text) for event in local if event.kind == "ended"}
    assert {event.cell: (event.label, event.level, event.text) for event in ended} == told
    assert {event.worker for event in heard if event.kind != "begun"} == {"a", "b"}
    assert any(event.row is not None and event.row["mib_per_s"] > 0 for event in heard)
    # Cells of a group have one worker.
    groups = lowtide.plan(study, **asked).groups
    by = measured_by(heard)
    assert max(map(len, groups)) > 1
    assert all(len(set.union(*(by[cell] for cell in group))) == 1 for group in groups)
    # A second one is a campaign of its own, as it is without a fleet.
    again = lowtide.distributed.run(study, cluster.client, store=store, **asked)
    assert again.number == 2
    same(again, fleet)


def test_a_worker_that_is_killed_costs_what_it_was_measuring(
    cluster: Cluster, study: Experiment, tmp_path: Path
) -> None:
    cluster.worker("victim")
    store = tmp_path / "fleet.db"
    heard: list[lowtide.Event] = []
    lost: list[set[int]] = []
    groups = lowtide.plan(study, scale=SCALE, seed=SEED).groups

    def kill(event: lowtide.Event) -> None:
        heard.append(event)
        if lost or event.worker != "victim" or event.stage != "measure":
            return
        mine = {cell for cell, workers in measured_by(heard).items() if "victim" in workers}
        ended = {it.cell for it in heard if it.kind == "ended"}
        whole = {cell for group in groups if ended.issuperset(group) for cell in group}
        # In mid-campaign and in mid-cell, with the groups that it was through with in the store.
        if done(store) >= mine & whole and done(store):
            os.kill(cluster.pid("victim"), signal.SIGKILL)
            lost.append(mine - done(store))

    fleet = lowtide.distributed.run(study, cluster.client, scale=SCALE, seed=SEED, store=store, progress=kill)
    cluster.processes.pop("victim").wait(WITHIN_S)
    same(fleet, lowtide.run(study, scale=SCALE, seed=SEED))
    (running,) = lost
    assert running
    twice = {cell for cell, workers in measured_by(heard).items() if len(workers) > 1}
    assert twice <= running
    assert [event.cell for event in heard if event.kind == "ended"].count(min(running)) == 1


CLIENT = """
import sys
from distributed import Client
import lowtide.distributed

def hear(event):
    print(event.kind, flush=True)

address, experiment, scale, seed, store = sys.argv[1:]
with Client(address, set_as_default=False) as client:
    try:
        lowtide.distributed.run(experiment, client, scale=scale, seed=int(seed), store=store, progress=hear)
    except KeyboardInterrupt as error:
        print(*getattr(error, "__notes__", []))
        sys.exit(77)
"""


def lose(cluster: Cluster, experiment: Experiment, store: Path, number: int, when: Callable[[], object]) -> str:
    """Start a client, send it a signal while a cell is measured, look how it ended, and give what it said then."""
    from lowtide import _toml

    words = [cluster.address, _toml.document(experiment), SCALE, str(SEED), str(store)]
    with subprocess.Popen([sys.executable, "-c", CLIENT, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line == "cell\n" and when():
                    process.send_signal(number)
                    break
            said = process.stdout.read()
            assert process.wait(WITHIN_S) == (77 if number == signal.SIGINT else -number), said
        finally:
            # One that hangs would be waited for.
            process.kill()
    return said


def idle(cluster: Cluster) -> bool:
    """Whether no worker measures anything, whatever the scheduler thinks."""

    def executing(dask_worker: Any) -> int:
        return len(dask_worker.state.executing)

    return not any(cluster.client.run(executing).values())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_measured_for_a_client_that_is_gone(
    number: int, cluster: Cluster, quick: Experiment, tmp_path: Path
) -> None:
    # A cell that would take longer than anybody waits here.
    longest = {"pattern": "random-write", "block": "16KiB", "duration": "5000h", "interval": "10s"}
    experiment = {**quick, "workload": longest, "sweep": {"file_size": ["120GiB"]}}
    lose(cluster, experiment, tmp_path / "fleet.db", number, lambda: True)
    # One that was interrupted has waited for the end in good order; a scheduler misses one that was killed.
    assert number == signal.SIGKILL or idle(cluster)
    until(lambda: idle(cluster), "workers stop measuring for nobody")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_is_lost_or_interrupted_goes_on(
    number: int, cluster: Cluster, study: Experiment, tmp_path: Path
) -> None:
    store = tmp_path / "fleet.db"
    said = lose(cluster, study, store, number, lambda: done(store))
    if number == signal.SIGINT and sys.version_info >= (3, 11):
        assert "resume=True" in said
    before = done(store)
    assert before and len(before) < CELLS
    heard: list[lowtide.Event] = []
    resumed = lowtide.distributed.run(
        study, cluster.client, scale=SCALE, seed=SEED, store=store, resume=True, progress=heard.append
    )
    assert resumed.number == 1
    same(resumed, lowtide.run(study, scale=SCALE, seed=SEED))
    assert not set(measured_by(heard)) & before
    assert sorted(event.cell or 0 for event in heard if event.kind == "ended") == sorted(set(range(CELLS)) - before)
    assert [event.done for event in heard][-1] == CELLS


def test_a_cell_that_fails_is_a_failed_cell(cluster: Cluster, tmp_path: Path) -> None:
    # The largest database that fits at first, and grows.
    experiment = {
        "name": "grows",
        "title": "A database that grows past the end of its device",
        "target": {"device": "mtron-32gb"},
        "before-each-cell": {"purge": "secure-erase", "fill": "none"},
        "oltp": {
            "engine": "innodb-model",
            "terminals": 4,
            "log_size": "64MiB",
            "buffer_pool": "64MiB",
            "duration": "20min",
            "interval": "20s",
        },
        "sweep": {"warehouses": [10, 366]},
    }
    heard: list[lowtide.Event] = []
    with pytest.warns(lowtide.LowtideWarning, match="1 cells failed"):
        fleet = lowtide.distributed.run(
            experiment, cluster.client, seed=SEED, store=tmp_path / "fleet.db", progress=heard.append
        )
    with pytest.warns(lowtide.LowtideWarning, match="1 cells failed"):
        local = lowtide.run(experiment, seed=SEED)
    same(fleet, local)
    assert fleet.cells().status.tolist() == ["done", "failed"]
    (failure,) = {event.failure for event in heard if event.failure is not None}
    assert failure == local.cells().failure[1]


def test_what_progress_raises_ends_it_in_good_order(cluster: Cluster, study: Experiment, tmp_path: Path) -> None:
    def dislike(event: lowtide.Event) -> None:
        if event.kind == "ended":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        lowtide.distributed.run(study, cluster.client, scale=SCALE, store=tmp_path / "fleet.db", progress=dislike)
    assert idle(cluster)


def test_one_cell_at_a_time_is_measured_on_a_device(cluster: Cluster, files: Experiment, tmp_path: Path) -> None:
    cluster.worker("machine", devices=["bench"], threads=2)
    heard: dict[int, list[lowtide.Event]] = {1: [], 2: []}

    def run(number: int) -> lowtide.Campaign:
        store, progress = tmp_path / f"{number}.db", heard[number].append
        return lowtide.distributed.run(files, cluster.client, device="bench", store=store, progress=progress)

    # Two at once would want the same files, and one of them would be refused.
    with ThreadPoolExecutor() as pool:
        results = dict(zip(heard, pool.map(run, heard), strict=True))
    cluster.end("machine")
    for number, campaign in results.items():
        assert campaign.cells().status.tolist() == ["done"] * 3, campaign.cells().failure.tolist()
        assert {event.worker for event in heard[number] if event.kind not in ("begun", "note")} == {"machine"}


def test_a_machine_that_is_lost_goes_on_with_what_is_missing(
    cluster: Cluster, files: Experiment, tmp_path: Path
) -> None:
    cluster.worker("machine", devices=["bench"])
    store = tmp_path / "fleet.db"
    heard: list[lowtide.Event] = []
    killed = threading.Event()

    def kill(event: lowtide.Event) -> None:
        heard.append(event)
        ended = {it.cell for it in heard if it.kind == "ended"}
        if not killed.is_set() and event.stage == "measure" and ended and ended <= done(store):
            os.kill(cluster.pid("machine"), signal.SIGKILL)
            killed.set()

    def come_back() -> None:
        assert killed.wait(WITHIN_S)
        cluster.processes.pop("machine").wait(WITHIN_S)
        cluster.worker("machine again", devices=["bench"])

    thread = threading.Thread(target=come_back)
    thread.start()
    campaign = lowtide.distributed.run(files, cluster.client, device="bench", store=store, progress=kill)
    thread.join()
    cluster.end("machine again")
    assert campaign.cells().status.tolist() == ["done"] * 3
    by = measured_by(heard)
    assert "machine" in by[0] and "machine again" in by[2]
    assert sum(len(workers) > 1 for workers in by.values()) <= 1, by


def test_workers_of_another_version_are_refused(cluster: Cluster, quick: Experiment, tmp_path: Path) -> None:
    cluster.worker("old", preload="import lowtide\nlowtide.__version__ = '0.0.9'\n")
    try:
        with pytest.raises(lowtide.BadInput) as told:
            lowtide.distributed.run(quick, cluster.client, store=tmp_path / "fleet.db")
    finally:
        cluster.end("old")
    text = str(told.value)
    assert f"this is lowtide {lowtide.__version__}" in text and "old 0.0.9" in text
    assert not (tmp_path / "fleet.db").exists()


def test_a_device_that_nobody_announces_is_told_with_those_that_are(
    cluster: Cluster, files: Experiment, tmp_path: Path
) -> None:
    store = tmp_path / "fleet.db"
    with pytest.raises(lowtide.BadInput, match="no device is announced"):
        lowtide.distributed.run(files, cluster.client, store=store, device="S3Z1")
    cluster.worker("machine", devices=["WD-1", "bench"])
    try:
        assert lowtide.distributed.announced(cluster.client) == {"WD-1": ["machine"], "bench": ["machine"]}
        with pytest.raises(
            lowtide.BadInput, match="announces the device S3Z1, which is needed; announced are WD-1, bench"
        ):
            lowtide.distributed.run(files, cluster.client, store=store, device="S3Z1")
        with pytest.raises(lowtide.BadInput, match="of some machine"):
            lowtide.distributed.run(files, cluster.client, store=store)
    finally:
        cluster.end("machine")
    assert not store.exists()


def test_errors_of_workers_are_those_of_one_process(
    cluster: Cluster, files: Experiment, quick: Experiment, tmp_path: Path
) -> None:
    store = tmp_path / "fleet.db"
    cluster.worker("machine", devices=["bench"])
    try:
        for experiment, changed in (
            (files, {"target": f"dir:{tmp_path}/none"}),
            (files, {"target": "block:/dev/null"}),
            (files, {"set": {"file_size": "1MiBs"}}),
            (quick, {"target": "device:intel-32"}),
            ("no/such.toml", {}),
        ):
            device = "bench" if experiment is files else None
            with pytest.raises(lowtide.LowtideError) as there:
                lowtide.distributed.run(experiment, cluster.client, store=store, device=device, **changed)  # type: ignore[arg-type]
            with pytest.raises(lowtide.LowtideError) as here:
                lowtide.run(experiment, **changed)  # type: ignore[arg-type]
            assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))
    finally:
        cluster.end("machine")
    with pytest.raises(lowtide.BadInput, match="nothing to resume"):
        lowtide.distributed.run(quick, cluster.client, store=None, resume=True)
    with pytest.raises(lowtide.BadInput, match="there is no store"):
        lowtide.distributed.run(quick, cluster.client, scale=SCALE, store=store, resume=True)


class Hosts:
    """Network namespaces, each joined to this one by a link of its own, and loop devices for them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.devices: list[str] = []

    def host(self, name: str) -> tuple[str, list[str]]:
        """Make a host: this machine's address as it sees it, and the command that runs something there."""
        number = len(self.names)
        unique = f"lt{os.getpid()}{name}"
        # Addresses for tests (RFC 5737).
        here, there = f"198.51.100.{4 * number + 1}", f"198.51.100.{4 * number + 2}"
        self.names.append(unique)
        link = unique[:13]
        for words in (
            f"netns add {unique}",
            f"link add {link}h type veth peer name {link}g netns {unique}",
            f"address add {here}/30 dev {link}h",
            f"link set {link}h up",
            f"-n {unique} address add {there}/30 dev {link}g",
            f"-n {unique} link set {link}g up",
            f"-n {unique} link set lo up",
        ):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
        return here, ["ip", "netns", "exec", unique]

    def loop(self, file: Path) -> str:
        """Make a loop device; its file is what stands for its serial number."""
        with file.open("wb") as made:
            made.truncate(64 << 20)
        words = ["losetup", "--find", "--show", str(file)]
        path = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        self.devices.append(path)
        return path

    def close(self) -> None:
        """Take everything away again."""
        for path in self.devices:
            subprocess.run(["losetup", "--detach", path], check=False)
        for name in self.names:
            # Links go with their namespace.
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Give what makes hosts; that needs root."""
    if os.geteuid() != 0:
        if os.environ.get("LOWTIDE_REQUIRE_REAL") == "1":
            pytest.fail("not root: hosts of their own and loop devices need it")
        pytest.skip("not root: network namespaces and loop devices need it")
    hosts = Hosts()
    probe = ["unshare", "--net", "ip", "link", "add", "probe", "type", "veth"]
    if subprocess.run(probe, check=False, capture_output=True).returncode != 0:
        if os.environ.get("LOWTIDE_REQUIRE_REAL") == "1":
            pytest.fail("no network namespaces: hosts of their own need them, and the program ip")
        pytest.skip("no network namespaces, or no program ip: hosts of their own need both")
    try:
        yield hosts
    finally:
        hosts.close()


def test_cells_of_a_device_go_to_the_host_that_has_it(
    cluster: Cluster, hosts: Hosts, files: Experiment, tmp_path: Path
) -> None:
    devices = {}
    for name in ("alpha", "beta"):
        here, within = hosts.host(name)
        serial = str(tmp_path / f"{name}.img")
        devices[name] = (hosts.loop(Path(serial)), serial)
        cluster.worker(name, devices=[serial], scheduler=f"tcp://{here}:{cluster.port}", within=within)
    heard: dict[str, list[lowtide.Event]] = {name: [] for name in devices}

    def run(name: str) -> lowtide.Campaign:
        path, serial = devices[name]
        store, progress = tmp_path / f"{name}.db", heard[name].append
        target = f"block:{path}"
        return lowtide.distributed.run(
            files, cluster.client, target=target, destroy=serial, store=store, progress=progress
        )

    try:
        with ThreadPoolExecutor() as pool:
            results = dict(zip(devices, pool.map(run, devices), strict=True))
        for name, campaign in results.items():
            assert campaign.cells().status.tolist() == ["done"] * 3, campaign.cells().failure.tolist()
            assert {event.worker for event in heard[name] if event.kind != "begun"} == {name}
            assert devices[name][1] in dict(campaign.environment)["under-test"]
        # Nothing is overwritten without its serial, there as here; and nothing but what was asked for.
        path, serial = devices["alpha"]
        with pytest.raises(lowtide.Refused) as there:
            lowtide.distributed.run(
                files, cluster.client, target=f"block:{path}", device=serial, store=tmp_path / "none.db"
            )
        with pytest.raises(lowtide.Refused) as here:
            lowtide.run(files, target=f"block:{path}")
        assert str(there.value) == str(here.value)
        assert not (tmp_path / "none.db").exists()
        with pytest.raises(lowtide.BadInput, match=f"is the device {serial} on beta"):
            other = devices["beta"][1]
            lowtide.distributed.run(files, cluster.client, target=f"block:{path}", destroy=other)
    finally:
        cluster.end("alpha", "beta")
