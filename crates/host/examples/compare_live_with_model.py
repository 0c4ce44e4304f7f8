"""Runs fio on a simulated drive that is served live, and the same load on the model in virtual time, and prints how they compare.

    cargo build --release
    python3 crates/host/examples/compare_live_with_model.py target/release/lowtide [DEVICE] [SECONDS]

The drive is erased and filled before each load; fio has one connection for each thread. `ratio` is fio's figure divided by
the model's. Needs Python 3.11. Close everything else first: server and fio want a processor each.
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LOWTIDE = os.path.abspath(sys.argv[1])
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "intel-320-160gb"
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "10"
THREADS = [1, 4, 16]
LOADS = {"random-read": ["--rw=randread"], "random-write": ["--rw=randwrite"], "random-mixed": ["--rw=randrw", "--rwmixread=70"]}

EXPERIMENT = f"""
name = "live"
title = "The load that fio makes"
[target]
device = "{DEVICE}"
[before-each-cell]
purge = "secure-erase"
fill = "sequential"
[workload]
mix = 0.7
block = "4KiB"
file_size = "1GiB"
duration = "{SECONDS}s"
interval = "{SECONDS}s"
[sweep]
pattern = {json.dumps(list(LOADS))}
threads = {THREADS}
"""


def lowtide(*arguments):
    return subprocess.run([LOWTIDE, *arguments], capture_output=True, text=True, check=True).stdout


def model(folder):
    experiment, store = f"{folder}/experiment.toml", f"{folder}/store.db"
    pathlib.Path(experiment).write_text(EXPERIMENT)
    lowtide("run", experiment, "--store", store, "--report", f"{folder}/report.html")
    found = {}
    for row in csv.DictReader(io.StringIO(lowtide("store", "export", "--store", store, "--format", "csv"))):
        span_s = (int(row["end_ns"]) - int(row["start_ns"])) / 1e9
        figures = {"iops": (int(row["reads"]) + int(row["writes"])) / span_s}
        for direction in ["read", "write"]:
            if int(row[f"{direction}s"]) > 0:
                figures[f"{direction}_p95_us"] = float(row[f"{direction}_latency_ns_p95"]) / 1e3
        found[row["pattern"], int(row["threads"])] = figures
    return found


def fio(socket, *job):
    command = ["fio", "--output-format=json", "--name=x", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", *job]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(text[text.index("{") :])["jobs"][0]


def live(socket, pattern, threads):
    lowtide("drive", "secure-erase", socket)
    fio(socket, "--rw=write", "--bs=1M", "--size=1G")
    load = [*LOADS[pattern], "--bs=4k", "--size=1G", f"--numjobs={threads}", "--group_reporting", "--norandommap"]
    of = fio(socket, *load, "--time_based", f"--runtime={SECONDS}", "--lat_percentiles=1", "--percentile_list=95")
    figures = {"iops": of["read"]["iops"] + of["write"]["iops"]}
    for direction in ["read", "write"]:
        if of[direction]["total_ios"] > 0:
            figures[f"{direction}_p95_us"] = of[direction]["lat_ns"]["percentile"]["95.000000"] / 1e3
    return figures


with tempfile.TemporaryDirectory() as folder:
    expected = model(folder)
    socket = f"{folder}/drive.sock"
    server = subprocess.Popen([LOWTIDE, "drive", "serve", DEVICE, "--unix", socket], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(socket + ".control"):
            time.sleep(0.1)
        for (pattern, threads), wanted in expected.items():
            for figure, found in live(socket, pattern, threads).items():
                ratio = found / wanted[figure]
                print(
                    f"{pattern:13} threads {threads:2} {figure:13} fio {found:10.1f}  model {wanted[figure]:10.1f}  ratio {ratio:.3f}",
                    flush=True,
                )
    finally:
        server.terminate()
        server.wait()
