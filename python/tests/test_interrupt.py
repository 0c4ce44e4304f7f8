"""Ctrl-C ends a campaign in good order, and the store goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import lowtide

EXPERIMENT = "intel-320-random-write"
SCALE = "1/16"

PROGRAM = f"""
import os, signal, sys, threading
import lowtide

measured = threading.Event()

def interrupt():
    # The main thread is in the native part by then, and only that looks for signals.
    measured.wait()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
hear = lambda event: measured.set() if event.kind == "ended" else None
try:
    lowtide.run({EXPERIMENT!r}, scale={SCALE!r}, store=sys.argv[1], progress=hear, jobs=1)
except KeyboardInterrupt as error:
    print(*getattr(error, "__notes__", []))
    sys.exit(77)
"""


def test_ctrl_c_ends_in_good_order_and_the_store_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, store], check=False, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 77, run.stderr
    if sys.version_info >= (3, 11):
        assert "resume=True" in run.stdout
    stopped = lowtide.open(store).last.cells()
    assert {"done", "pending"} == set(stopped.status)
    resumed = lowtide.run(EXPERIMENT, scale=SCALE, store=store, resume=True)
    assert resumed.number == 1
    assert resumed.export("json") == lowtide.run(EXPERIMENT, scale=SCALE).export("json")


def test_signals_are_pythons_again_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    lowtide.run(EXPERIMENT, scale="1/64", set={"file_size": ["20GiB"]})
    assert signal.getsignal(signal.SIGINT) is before
