"""Runs lowtide's engine and fio in turn on one file, random 4 KiB reads and writes at several depths, and prints how far they agree.

    cargo build --release -p lowtide-host --examples
    python3 crates/host/examples/compare_with_fio.py target/release/examples/engine_bench FILE [SECONDS] [ROUNDS]

Both are measured the same way: requests and latency by their own account, processor time (user and system, of the whole
process) from outside. fio's options are those that make it cheapest. FILE is made by lowtide (4 GiB) if it is missing and
left there. Which of the two comes first changes from round to round. Each figure is the median of the rounds; `ratio` is
lowtide's divided by fio's, the median of the ratios of the rounds. Close everything else first.
"""

import json
import resource
import statistics
import subprocess
import sys

BENCH, FILE = sys.argv[1], sys.argv[2]
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "5"
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
FIGURES = ["iops", "latency_us_p50", "latency_us_p99", "cpu_us_per_io"]


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user_us = (after.ru_utime - before.ru_utime) * 1e6
    return json.loads(text), user_us + (after.ru_stime - before.ru_stime) * 1e6


def lowtide(depth, direction):
    reads = "1" if direction == "read" else "0"
    figures, cpu_us = run([BENCH, FILE, SECONDS, "uring", str(depth), "4KiB", "4GiB", reads])
    return {**figures, "cpu_us_per_io": cpu_us / figures["requests"]}


def fio(depth, direction):
    job = ["--name=r", f"--filename={FILE}", "--size=4G", "--ioengine=io_uring", "--direct=1", f"--rw=rand{direction}"]
    job += ["--bs=4k", f"--iodepth={depth}", "--norandommap", "--time_based", f"--runtime={SECONDS}"]
    job += ["--registerfiles", "--fixedbufs", "--percentile_list=50:99", "--lat_percentiles=1"]
    figures, cpu_us = run(["fio", "--output-format=json", *job])
    of = figures["jobs"][0][direction]
    latency = of["lat_ns"]["percentile"]
    return {
        "iops": of["iops"],
        "latency_us_p50": latency["50.000000"] / 1e3,
        "latency_us_p99": latency["99.000000"] / 1e3,
        "cpu_us_per_io": cpu_us / of["total_ios"],
    }


lowtide(1, "read")  # makes the file
for direction in ["read", "write"]:
    for depth in [1, 16, 64]:
        rounds = {lowtide: [], fio: []}
        for number in range(ROUNDS):
            for contender in [lowtide, fio] if number % 2 == 0 else [fio, lowtide]:
                rounds[contender].append(contender(depth, direction))
        for figure in FIGURES:
            own, theirs = ([one[figure] for one in rounds[contender]] for contender in [lowtide, fio])
            ratio = statistics.median(a / b for a, b in zip(own, theirs))
            own, theirs = statistics.median(own), statistics.median(theirs)
            print(f"{direction:5} depth {depth:2}  {figure:15} lowtide {own:10.3f}  fio {theirs:10.3f}  ratio {ratio:.3f}", flush=True)
