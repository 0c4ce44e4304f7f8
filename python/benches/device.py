"""What driving a device from Python costs, beside what ``lowtide bench simulate`` costs on the same drive.

Run it where nothing else runs: ``python python/benches/device.py [PATH OF lowtide]``. Both fill the drive, overwrite it once
(a settled drive costs more for each write), and are then measured on uniform 4 KiB overwrites, 32 in flight. With the
program, it exits with code 1 where a write from Python costs more than 1.3 times as much.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import lowtide

DRIVE = Path(__file__).parents[2] / "crates/studies/src/bench/drive.toml"
BLOCK = 4096
DEPTH = 32
BATCH = 1_000_000
BATCHES = 8
MOST = 1.3


def main() -> int:
    """Measure both, and say how they compare."""
    drive = lowtide.Device(DRIVE, seed=1)
    random = np.random.default_rng(1)
    blocks = drive.capacity // BLOCK
    drive.fill()
    for _ in range(blocks // BATCH):
        drive.write(random.integers(0, blocks, BATCH, dtype=np.uint64) * BLOCK, BLOCK, depth=DEPTH)
    before, spent = drive.counters(), []
    for _ in range(BATCHES):
        offsets = random.integers(0, blocks, BATCH, dtype=np.uint64) * BLOCK
        began = time.process_time()
        drive.write(offsets, BLOCK, depth=DEPTH)
        spent.append((time.process_time() - began) / BATCH)
    after = drive.counters()
    nand, host = (after[name] - before[name] for name in ("nand_written_bytes", "host_written_bytes"))
    median = float(np.median(spent))
    print(
        f"Python: {median * 1e9:.0f} ns a write (median of {BATCHES} × {BATCH:_}), write amplification {nand / host:.2f}"
    )
    if len(sys.argv) < 2:
        return 0
    program = [sys.argv[1], "bench", "simulate", "--format", "json"]
    told = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    simulated = 1 / told["host_writes_per_cpu_second"]
    amplification = told["write_amplification"]
    print(f"lowtide bench simulate: {simulated * 1e9:.0f} ns a write, write amplification {amplification:.2f}")
    print(f"ratio {median / simulated:.2f}, at most {MOST}")
    return int(median > MOST * simulated)


if __name__ == "__main__":
    sys.exit(main())
