"""Runs lowtide's NBD server and nbdkit's memory plugin in turn under fio's nbd engine, over unix sockets, and prints how they compare.

    cargo build --release
    python3 crates/host/examples/compare_with_nbdkit.py target/release/lowtide [SECONDS] [ROUNDS]

Both hold 512 MiB in memory that was written once, and answer at once; fio reads or writes 4 KiB at random, one or 32 at a
time. Processor time is that of the server's process, user and system. Which of the two comes first changes from round to
round. Each figure is the median of the rounds; `ratio` is lowtide's divided by nbdkit's, the median of the ratios of the
rounds. Close everything else first.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LOWTIDE = sys.argv[1]
SECONDS = sys.argv[2] if len(sys.argv) > 2 else "3"
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 7
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(server):
    fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def fio(socket, *job):
    command = ["fio", "--output-format=json", "--name=x", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", *job]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(text[text.index("{") :])["jobs"][0]


def measure(contender, direction, depth):
    server, socket = contender
    before = cpu_s(server)
    load = [f"--rw=rand{direction}", "--bs=4k", "--size=512M", f"--iodepth={depth}", "--norandommap"]
    of = fio(socket, *load, "--time_based", f"--runtime={SECONDS}")[direction]
    return {"iops": of["iops"], "server_cpu_us_per_io": (cpu_s(server) - before) * 1e6 / of["total_ios"]}


with tempfile.TemporaryDirectory() as folder:
    ours, theirs = f"{folder}/lowtide.sock", f"{folder}/nbdkit.sock"
    # A volume has the cheapest model; it is as large as nbdkit's.
    volume = f"{folder}/volume.toml"
    pathlib.Path(volume).write_text(
        "name = 'memory'\ntitle = 'Memory'\n[volume]\ncapacity = '1GiB'\niops = 1000000000\nio-size = '1MiB'\nlatency = '1us'\n"
    )
    servers = [
        subprocess.Popen([LOWTIDE, "drive", "serve", volume, "--no-delay", "--unix", ours], stderr=subprocess.DEVNULL),
        subprocess.Popen(["nbdkit", "-f", "-U", theirs, "memory", "1G"]),
    ]
    try:
        contenders = list(zip(servers, [ours, theirs]))
        while not all(os.path.exists(socket) for _, socket in contenders):
            time.sleep(0.1)
        for _, socket in contenders:
            fio(socket, "--rw=write", "--bs=1M", "--size=512M")
        for direction in ["read", "write"]:
            for depth in [1, 32]:
                rounds = [[], []]
                for number in range(ROUNDS):
                    for which in [0, 1] if number % 2 == 0 else [1, 0]:
                        rounds[which].append(measure(contenders[which], direction, depth))
                for figure in ["iops", "server_cpu_us_per_io"]:
                    a, b = [[one[figure] for one in all_of] for all_of in rounds]
                    ratio = statistics.median(x / y for x, y in zip(a, b))
                    print(
                        f"{direction:5} depth {depth:2} {figure:20} lowtide {statistics.median(a):10.2f}  "
                        f"nbdkit {statistics.median(b):10.2f}  ratio {ratio:.3f}",
                        flush=True,
                    )
    finally:
        for server in servers:
            server.terminate()
            server.wait()
