# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures otelcol-fpm and the Python consumer one after the other under the same loads, in several rounds.

Prints one table for each load: CPU microseconds a pass (the median of the rounds, and
their range), passes a second, the most resident memory, what was lost in all, the
ratio to the Python consumer that does the same work, and to the first load. Compare
within one run only: other work on the machine moves all numbers, and what lasts a
minute moves those of one consumer.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")

COLLECTOR = """
receivers:
  fpm: {{endpoint: "127.0.0.1:{port}", dp_size: {ranks}, {fpm}}}
processors:
  gauge_dedup: {{{gauge_dedup}}}
exporters:
  prometheus: {{endpoint: "127.0.0.1:{page}"}}
  fpm_trace: {{path: "{folder}/trace", mode: full, max_segments: 1000}}
service:
  telemetry: {{metrics: {{readers: [{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {telemetry}}}}}}}}}]}}}}
  pipelines:
"""
FPM = "gauge_interval: 1s"  # as in config/prometheus-scrape.yaml
PIPELINES = {
    "traces": "    logs: {receivers: [fpm], exporters: [fpm_trace]}\n",
    "metrics": "    metrics: {receivers: [fpm], processors: [gauge_dedup], exporters: [prometheus]}\n",
}
PIPELINES["both"] = PIPELINES["traces"] + PIPELINES["metrics"]


class Load(NamedTuple):
    ranks: int
    rate: int  # messages a second and rank

    def __str__(self) -> str:
        return f"{self.ranks} x {self.rate}"


def parse_load(text: str) -> Load:
    ranks, rate = text.split("x")
    return Load(int(ranks), int(rate))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_mib(pid: int) -> float:
    """The most that ever was resident, the mapped pages of the executable included."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match.group(1)) / 1024 if match else 0.0


def telemetry(port: int) -> str:
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()


def counter(page: str, name: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))


def measure(command: list[str], load: Load, args: argparse.Namespace, telemetry_port: int | None) -> dict:
    """Runs a consumer under load, and measures its CPU between two moments of steady work."""
    python = sys.executable
    publisher = subprocess.Popen(
        [python, HERE / "load_publisher.py", "--port", str(args.port), "--ranks", str(load.ranks), "--rate", str(load.rate)],
        stdout=subprocess.PIPE, text=True,
    )
    assert publisher.stdout and publisher.stdout.readline() == "bound\n"
    consumer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    try:
        time.sleep(args.warm_up)
        cpu, began = cpu_seconds(consumer.pid), time.monotonic()
        before = counter(telemetry(telemetry_port), "otelcol_receiver_fpm_messages{outcome=\"accepted\"") if telemetry_port else 0
        time.sleep(args.seconds)
        cpu, elapsed = cpu_seconds(consumer.pid) - cpu, time.monotonic() - began
        memory = resident_mib(consumer.pid)
        lost = dropped = 0.0
        if telemetry_port:
            page = telemetry(telemetry_port)
            passes = counter(page, "otelcol_receiver_fpm_messages{outcome=\"accepted\"") - before
            lost = counter(page, "otelcol_receiver_fpm_lost")
            dropped = counter(page, "otelcol_receiver_fpm_dropped") + counter(page, "otelcol_exporter_fpm_trace_dropped")
    finally:
        consumer.terminate()
        taken, _ = consumer.communicate(timeout=30)
        publisher.terminate()
        publisher.communicate(timeout=30)
    if not telemetry_port:
        # It counts all it took; of that the measured time has its share.
        passes = int(taken) * elapsed / (args.warm_up + elapsed)
    return {
        "us": cpu / passes * 1e6, "rate": passes / elapsed, "mib": memory,
        "lost": lost + dropped,
    }


def consumers(load: Load, args: argparse.Namespace, folder: str) -> dict[str, tuple[list[str], int | None]]:
    """Tells how to start each consumer, and at which port it shows its telemetry."""
    found: dict[str, tuple[list[str], int | None]] = {}
    if not args.only:
        python = [sys.executable, str(HERE / "python_consumer.py"), "--port", str(args.port), "--ranks", str(load.ranks)]
        found["Python: decode only"] = python, None
        found["Python: traces"] = [*python, "--trace", f"{folder}/python.jsonl.gz"], None
    page = args.port - 100
    for name in args.only or PIPELINES:
        config = Path(folder, f"{name}-{load.ranks}.yaml")
        config.write_text(
            COLLECTOR.format(
                port=args.port, ranks=load.ranks, page=page, telemetry=page + 1, folder=folder, fpm=args.fpm, gauge_dedup=args.gauge_dedup
            )
            + PIPELINES[name]
        )
        found[f"otelcol-fpm: {name}"] = [args.binary, "--config", str(config)], page + 1
    return found


def table(rounds: dict[str, list[dict]], first: dict[str, float]) -> dict[str, float]:
    """Prints what each consumer's rounds gave, and returns the medians; first are those of the first load."""
    print("| consumer               | CPU µs a pass | least to most | cores | passes/s | most resident MiB | lost or dropped | Python with traces costs | of the first load |")
    print(f"|{'-' * 24}|---:|---:|---:|---:|---:|---:|---:|---:|")
    medians = {name: statistics.median(r["us"] for r in results) for name, results in rounds.items()}
    traces = medians.get("Python: traces")
    for name, results in rounds.items():
        us, rate = medians[name], statistics.median(r["rate"] for r in results)
        span = f"{min(r['us'] for r in results):.1f} to {max(r['us'] for r in results):.1f}"
        mib, lost = max(r["mib"] for r in results), sum(r["lost"] for r in results)
        python = f"{traces / us:.1f} ×" if traces else ""
        growth = f"{us / first[name]:.2f} ×" if first else ""
        print(f"| {name:22} | {us:.1f} | {span} | {us * rate / 1e6:.2f} | {rate:.0f} | {mib:.0f} | {lost:.0f} | {python} | {growth} |")
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=21380)
    parser.add_argument("--loads", nargs="+", type=parse_load, default=[Load(8, 1250)], metavar="RANKSxRATE", help="messages a second and rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=14, help="each consumer, with each load, in each round")
    parser.add_argument("--warm-up", type=float, default=4)
    parser.add_argument("--fpm", default=FPM, metavar="KEY: VALUE", help="settings of the receiver (%(default)s)")
    parser.add_argument("--gauge-dedup", default="", metavar="KEY: VALUE", help='settings of the processor, like "resolution: 1s"')
    parser.add_argument("--only", nargs="*", choices=list(PIPELINES), help="without the Python consumer, these pipelines")
    parser.add_argument("--binary", default=str(ROOT / "bin" / "otelcol-fpm"))
    args = parser.parse_args()

    rounds: dict[Load, dict[str, list[dict]]] = {load: {} for load in args.loads}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for load, results in rounds.items():
                for name, (command, telemetry_port) in consumers(load, args, folder).items():
                    results.setdefault(name, []).append(measure(command, load, args, telemetry_port))

    print(f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()};", end=" ")
    print(f"{args.rounds} rounds of {args.seconds:g} s each; load average {os.getloadavg()[2]:.1f}")
    first: dict[str, float] = {}
    for load, results in rounds.items():
        print(f"\n{load} passes/s\n")
        medians = table(results, first)
        first = first or medians


if __name__ == "__main__":
    main()
