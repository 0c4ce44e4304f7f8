"""What a second worker is worth: the same campaign on one worker of Dask and on two, processes of one thread on this machine.

``python benches/fleet.py [SCALE]`` on a machine with two cores and nothing else to do. Leaves out networks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

import lowtide.distributed

EXPERIMENT = "intel-320-random-write"
TWICE = {"repeat.times": 2}


def measure(workers: int, scale: str) -> tuple[float, str]:
    """Give the seconds a campaign takes, without starting the cluster, and what it exports."""
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as folder:
        client.wait_for_workers(workers)
        # Workers import what they need.
        lowtide.distributed.run(EXPERIMENT, client, scale="1/256", store=None)
        begin = time.perf_counter()
        campaign = lowtide.distributed.run(EXPERIMENT, client, scale=scale, set=TWICE, store=Path(folder) / "fleet.db")
        return time.perf_counter() - begin, str(campaign.export("json"))


def main() -> None:
    """Print both, and the ratio."""
    scale = sys.argv[1] if len(sys.argv) > 1 else "1"
    (one, first), (two, second) = measure(1, scale), measure(2, scale)
    assert first == second, "a fleet measures what one worker does"
    print(f"{EXPERIMENT} at {scale}, twice: one worker {one:.1f} s, two {two:.1f} s: {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
