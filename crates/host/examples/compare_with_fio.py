"""Runs lowtide's engine and fio in turn on one file and prints processor time per 4 KiB random read, medians last.

    cargo build --release -p lowtide-host --examples
    python3 crates/host/examples/compare_with_fio.py target/release/examples/engine_bench FILE [SECONDS] [ROUNDS]

Both are measured the same way, from outside: user + system time of the whole process over requests completed.
FILE is made by lowtide (4 GiB) if it is missing and left there. Close everything else first.
"""

import json
import resource
import statistics
import subprocess
import sys

BENCH, FILE = sys.argv[1], sys.argv[2]
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "5"
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user_us = (after.ru_utime - before.ru_utime) * 1e6
    return json.loads(text), user_us + (after.ru_stime - before.ru_stime) * 1e6


def lowtide():
    figures, cpu_us = run([BENCH, FILE, SECONDS, "uring"])
    n = figures["requests"]
    return {"iops": figures["iops"], "cpu_us_per_io": cpu_us / n, "latency_us_p50": figures["latency_us_p50"]}


def fio(*extra):
    job = ["--name=r", f"--filename={FILE}", "--size=4G", "--ioengine=io_uring", "--direct=1", "--rw=randread"]
    job += ["--bs=4k", "--iodepth=64", "--norandommap", "--time_based", f"--runtime={SECONDS}", *extra]
    figures, cpu_us = run(["fio", "--output-format=json", *job])
    read = figures["jobs"][0]["read"]
    median_us = read["clat_ns"]["percentile"]["50.000000"] / 1e3
    return {"iops": read["iops"], "cpu_us_per_io": cpu_us / read["total_ios"], "latency_us_p50": median_us}


CONTENDERS = {
    "lowtide": lowtide,
    "fio --registerfiles --fixedbufs": lambda: fio("--registerfiles", "--fixedbufs"),
    "fio": fio,
}
lowtide()  # makes the file
rounds = {name: [] for name in CONTENDERS}
for number in range(ROUNDS):
    for name, contender in CONTENDERS.items():
        rounds[name].append(contender())
        print(number, name, {key: round(value, 3) for key, value in rounds[name][-1].items()}, flush=True)
for name, figures in rounds.items():
    print("median", name, {key: round(statistics.median(f[key] for f in figures), 3) for key in figures[0]})
