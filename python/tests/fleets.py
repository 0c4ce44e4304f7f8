"""A cluster of Dask for tests: a scheduler and workers that are processes of their own, which may be killed.

Leaves out what they measure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

WITHIN_S = 60.0
"""How long something may take that a machine does at once; what takes longer does not come any more."""
LIMIT_S = 300.0
"""How long a test may take before it is held for one that waits for what does not come."""


class Cluster:
    """A scheduler on a free port, a client of it, and workers as they are asked for."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.settings = settings or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.client: Client | None = None
        file = folder / "scheduler.json"
        try:
            self._start(
                "scheduler",
                ["dask_scheduler", "--host", "tcp://0.0.0.0", "--port", "0", "--no-dashboard", "--no-show"]
                # Where the tests are killed, nobody else ends it; workers end with it.
                + ["--idle-timeout", f"{2 * LIMIT_S:.0f}s", "--scheduler-file", str(file)],
            )
            until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler listens")
            self.port = int(json.loads(file.read_text())["address"].rsplit(":", 1)[1])
            self.address = f"tcp://127.0.0.1:{self.port}"
            self.client = self.new_client()
        except BaseException:
            self.close()
            raise

    def new_client(self) -> Client:
        """Connect once more."""
        return Client(self.address, set_as_default=False, timeout=WITHIN_S)

    def worker(
        self,
        name: str,
        *,
        devices: Sequence[str] = (),
        times: int = 1,
        threads: int = 1,
        preload: str | None = None,
        scheduler: str | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """Start a worker, and wait until it is there; `within` is a command that runs it somewhere else."""
        words = ["dask_worker", scheduler or self.address, "--name", name, "--nthreads", str(threads), "--no-nanny"]
        words += ["--no-dashboard", "--local-directory", str(self.folder / name), "--death-timeout", str(WITHIN_S)]
        if devices:
            words += ["--resources", " ".join(f"device:{device}={times}" for device in devices)]
        if preload is not None:
            file = self.folder / f"{name}.py"
            file.write_text(preload)
            words += ["--preload", str(file)]
        count = len(self.names()) + 1
        self._start(name, words, within)
        self.client.wait_for_workers(count, timeout=WITHIN_S)
        assert name in self.names(), (self.folder / f"{name}.log").read_text()

    def names(self) -> dict[str, str]:
        """Give the names of the workers with their addresses."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {str(worker["name"]): address for address, worker in found.items()}

    def pid(self, name: str) -> int:
        """Give the process of a worker."""
        return self.processes[name].pid

    def end(self, *names: str) -> None:
        """End workers in good order, and wait until the scheduler knows."""
        for name in names:
            self.processes[name].terminate()
        for name in names:
            self.processes.pop(name).wait(WITHIN_S)
        until(lambda: not set(names) & set(self.names()), "workers that ended are gone")

    def close(self) -> None:
        """End everything."""
        try:
            if self.client is not None:
                self.client.close()
        finally:
            for process in reversed(list(self.processes.values())):
                process.kill()
                process.wait(WITHIN_S)

    def _start(self, name: str, words: Sequence[str], within: Sequence[str] = ()) -> None:
        module, *rest = words
        command = [*within, sys.executable, "-m", f"distributed.cli.{module}", *rest]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **self.settings}
            )


@contextmanager
def limited() -> Iterator[None]:
    """End what waits for what does not come."""

    def over(*_: object) -> None:
        raise TimeoutError(f"the test takes more than {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def until(holds: object, what: str) -> None:
    """Wait for something that nobody tells of."""
    assert callable(holds)
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() - begin < WITHIN_S, f"it does not happen that {what}"
        time.sleep(0.02)
