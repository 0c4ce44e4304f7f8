"""A device that is driven from Python, against itself and against what theory says of it."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import lowtide
from lowtide import Device, Op

BLOCK = 4096


def drive(**keywords: int) -> Device:
    return Device("intel-320-160gb", scale="1/64", **keywords)


def offsets(device: Device, count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, device.capacity // BLOCK, count) * BLOCK


def small(policy: str, blocks: int, rho: float) -> dict[str, object]:
    """A drive of one die, of which theory knows how much it writes; seven blocks are open or kept erased."""
    capacity = int((blocks - 7) * 256 * rho) * BLOCK
    return {
        "name": "small",
        "title": "One die",
        "flash": {
            "capacity": f"{capacity}B",
            "nand": {
                "raw": f"{blocks}MiB",
                "channels": 1,
                "dies": 1,
                "page": "4KiB",
                "pages-per-block": 256,
                "read": "50us",
                "program": "200us",
                "erase": "2ms",
                "channel-rate": "1GB",
            },
            "map": {"unit": "4KiB", "page": "4KiB"},
            "controller": {
                "latency": "1us",
                "request": "1us",
                "read-unit": "0us",
                "write-unit": "0us",
                "gc-unit": "0us",
                "gc-page": "0us",
                "link-rate": "1GB",
            },
            "write-buffer": {"size": "1MiB", "protected": True},
            "gc": {"policy": policy, "concurrency": 1, "set-point": 0.0},
        },
    }


def amplification(device: Device, before: dict[str, int]) -> float:
    after = device.counters()
    nand, host = (after[name] - before[name] for name in ("nand_written_bytes", "host_written_bytes"))
    return nand / host


def fifo(rho: float) -> float:
    """Write amplification of FIFO cleaning: a / (a + W(-a exp(-a))), with Lambert's W by Newton's method."""
    a = 1 / rho
    x, w = -a * math.exp(-a), -0.5
    for _ in range(100):
        w -= (w * math.exp(w) - x) / (math.exp(w) * (w + 1))
    return a / (a + w)


@pytest.mark.parametrize("rho", [0.7, 0.9])
def test_write_amplification_is_that_of_the_closed_form(rho: float) -> None:
    device = Device(small("fifo", 512, rho), seed=2026)
    device.fill()
    units = device.capacity // BLOCK
    random = np.random.default_rng(2026)
    # The erased blocks are used up, and the order of the first fill is forgotten.
    device.write(random.integers(0, units, 2 * units) * BLOCK, BLOCK, depth=8)
    before = device.counters()
    device.write(random.integers(0, units, 2 * units) * BLOCK, BLOCK, depth=8)
    assert amplification(device, before) == pytest.approx(fifo(rho), rel=0.02)


def test_the_same_seed_takes_the_same_times() -> None:
    def times(seed: int) -> list[int]:
        device = drive(seed=seed)
        device.fill()
        # Enough that blocks are cleaned: which of them, the seed has a say in.
        return device.write(offsets(device, 120_000), depth=8).tolist()

    first = times(1)
    assert first == times(1)
    assert first != times(2)


def test_a_batch_is_the_same_as_its_requests_one_by_one() -> None:
    one, all_ = drive(), drive()
    where = offsets(one, 2000)
    assert [int(one.write(offset)[0]) for offset in where.tolist()] == all_.write(where).tolist()
    assert one.now == all_.now
    assert one.counters() == all_.counters()


def test_depth_is_how_many_are_in_flight() -> None:
    for depth in (1, 2, 7, 32):
        device = drive()
        device.fill(0.5)
        start = device.now
        done, begun = device.submit(Op.READ, offsets(device, 3000), BLOCK, depth=depth, return_begun=True)
        assert (begun[:depth] == start).all()
        # The next one begins when one of those before it is done.
        assert (begun[depth:] == np.sort(done)[: len(done) - depth]).all()
        assert (done > begun).all() and device.now == done.max()
        events = np.concatenate([np.stack([begun, np.ones_like(begun)]), np.stack([done, np.zeros_like(done)])], axis=1)
        order = np.lexsort((events[1], events[0]))
        in_flight = np.cumsum(np.where(events[1][order] == 1, 1, -1))
        assert in_flight.max() == depth


def test_more_in_flight_is_more_throughput_and_more_latency() -> None:
    def of(depth: int) -> tuple[float, float]:
        device = drive()
        device.fill()
        began = device.now
        done, begun = device.submit("read", offsets(device, 5000), BLOCK, depth=depth, return_begun=True)
        return 5000 / (device.now - began), float((done - begun).mean())

    (slow, short), (fast, long) = of(1), of(16)
    assert fast > 2 * slow and long > short
    # Little's law.
    assert fast * long == pytest.approx(16, rel=0.02)


def test_an_open_load_is_submitted_at_its_times() -> None:
    device = drive()
    device.fill()
    at = device.now + np.cumsum(np.full(1000, 1_000_000, dtype=np.uint64))
    done, begun = device.submit("read", offsets(device, 1000), BLOCK, at=at, return_begun=True)
    assert (begun == at).all()
    # At a tenth of what the drive can do, few wait for others.
    assert np.median(done - at) == np.median(np.diff(drive_alone()))
    with pytest.raises(lowtide.BadInput, match="instants"):
        device.read([0, 0], at=[device.now + 5, device.now + 4])
    with pytest.raises(lowtide.BadInput, match="instants"):
        device.read([0], at=[0])


def drive_alone() -> np.ndarray:
    """Give the times of reads one by one."""
    device = drive()
    device.fill()
    begun = device.now
    return np.concatenate([[begun], device.read(offsets(device, 1000))])


def test_operations_are_counted_as_what_they_are() -> None:
    device = drive()
    ops = np.array(["write", "read", "trim", "flush", "write-fua"])
    done = device.submit(ops, [0, 0, 0, 0, 2 * BLOCK], BLOCK)
    assert len(done) == 5 and (np.diff(done.astype(np.int64)) >= 0).all()
    counters = device.counters()
    assert counters["host_written_bytes"] == 2 * BLOCK
    assert counters["host_read_bytes"] == counters["trimmed_bytes"] == BLOCK
    assert device.submit([Op.WRITE, Op.READ], 2 * [0], [BLOCK, 2 * BLOCK]).shape == (2,)
    assert device.counters()["host_read_bytes"] == 3 * BLOCK
    device.trim([0], length=device.capacity)
    assert device.flush() == device.now
    assert device.write([]).shape == (0,)


def test_time_passes_with_idle_and_nothing_else() -> None:
    device = drive()
    end = device.fill(0.25)
    assert device.now == end and device.counters()["host_written_bytes"] == device.capacity // 4 // 512 * 512
    device.idle(1.5)
    assert device.now == end + 1_500_000_000
    device.secure_erase()
    assert device.now == end + 1_500_000_000
    assert device.erase_counts().dtype == np.uint32 and device.erase_counts().sum() > 0
    assert repr(device).startswith("<lowtide.Device 'intel-320-160gb', scale 1/64:")


def test_what_does_not_fit_is_told_before_anything_is_submitted() -> None:
    device = drive()
    for where, length, told in (
        ([0, device.capacity], BLOCK, "request 1: .*past the end"),
        ([0, 0, 100], BLOCK, "request 2: .*not aligned"),
        ([0], 0, "request 0"),
        ([-BLOCK], BLOCK, "below 0"),
        ([[0]], BLOCK, "dimensions"),
        ([0, 0], [BLOCK, BLOCK, BLOCK], "one for each"),
    ):
        with pytest.raises(lowtide.BadInput, match=told):
            device.write(where, length)  # type: ignore[arg-type]
    for op in ("wirte", 9, np.array([300])):
        with pytest.raises(lowtide.BadInput, match="operation"):
            device.submit(op, [0], BLOCK)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="whole numbers"):
        device.write([0.5])  # type: ignore[list-item]
    with pytest.raises(lowtide.BadInput, match="depth"):
        device.write([0], depth=0)
    assert device.now == 0 and device.counters()["host_written_bytes"] == 0


def test_a_device_may_be_used_from_several_threads() -> None:
    device = drive()
    threads = [threading.Thread(target=device.write, args=(offsets(device, 5000, seed),)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert device.counters()["host_written_bytes"] == 4 * 5000 * BLOCK


def test_devices_of_other_kinds_are_driven_the_same() -> None:
    disk = Device("sata-7k2-1tb")
    where = offsets(disk, 300)
    # A queue lets the disk choose what comes next.
    assert int(disk.read(where, depth=32).max()) < 0.8 * int(Device("sata-7k2-1tb").read(where).max())
    assert disk.raw_capacity is None
    volume = Device("cloud-gp3-3000")
    assert volume.write([0], 16384).shape == (1,)


INTERRUPTED = f"""
import os, signal, sys, threading
import numpy as np
import lowtide

device = lowtide.Device("intel-320-160gb", scale="1/64")
device.fill()
where = np.random.default_rng(1).integers(0, device.capacity // {BLOCK}, 20_000_000) * {BLOCK}
where = where.astype(np.uint64)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    device.write(where, depth=32)
except KeyboardInterrupt:
    written = device.counters()["host_written_bytes"] - device.capacity
    assert 0 < written < len(where) * {BLOCK}, written
    # What was submitted has been waited for, and the device goes on.
    assert (device.write([0]) > 0).all()
    sys.exit(77)
"""


def test_ctrl_c_ends_a_batch() -> None:
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 77, run.stderr
