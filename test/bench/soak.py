# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs otelcol-fpm with both pipelines for a long time, and holds it to account.

The load restarts, leaves messages out, and makes the trace files roll. Every ten seconds
it notes memory, goroutines and CPU a pass; at the end it compares what was sent with what
the Collector counted and with the rows in the files, and fails when one is missing.
With --csv and --svg it writes what it noted, and a graph of it.
"""

import argparse
import csv
import gzip
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from side_by_side import COLLECTOR, FPM, HERE, PIPELINES, ROOT, counter, cpu_seconds, telemetry

EXTENSIONS = """
extensions:
  pprof: {{endpoint: "127.0.0.1:{port}"}}
"""

ACCEPTED = 'otelcol_receiver_fpm_messages{outcome="accepted"'


def status_mib(pid: int, what: str) -> float:
    """RssAnon is memory that is the process's own, without the pages of its executable; VmHWM the most it ever had with them."""
    match = re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(match.group(1)) / 1024 if match else 0.0


def goroutines(port: int) -> int:
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/debug/pprof/goroutine?debug=1", timeout=10).read().decode()
    return int(page.split("total ", 1)[1].split("\n", 1)[0])


def count_rows(folder: Path) -> tuple[int, int]:
    rows, files = 0, sorted(folder.glob("*.jsonl.gz"))
    for file in files:
        with gzip.open(file, "rb") as lines:
            rows += sum(1 for _ in lines)
    return rows, len(files)


class Load:
    """The publisher, which is started anew whenever it was told to end."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.command = [
            sys.executable, str(HERE / "load_publisher.py"), "--wait", "--port", str(args.port), "--ranks", str(args.ranks),
            "--rate", str(args.rate), "--gap-every", str(args.gap_every), "--count", str(args.count),
        ]
        self.sent = self.left_out = self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout and self.process.stdout.readline() == "bound\n"

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        out, _ = self.process.communicate(timeout=60)
        sent, left_out = map(int, out.split())
        self.sent += sent
        self.left_out += left_out


def graph(samples: list[dict], path: str) -> None:
    """Draws each column over time, one below the other, each from 0 up."""
    columns = {"memory MiB": "#1f77b4", "goroutines": "#2ca02c", "CPU µs a pass": "#d62728", "passes/s": "#7f7f7f"}
    width, height, left = 720, 110, 120
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{len(columns) * (height + 30) + 30}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    last = samples[-1]["seconds"]
    for i, (name, colour) in enumerate(columns.items()):
        top, most = i * (height + 30) + 15, max(s[name] for s in samples) * 1.1 or 1
        points = " ".join(f"{left + s['seconds'] / last * width:.1f},{top + height - s[name] / most * height:.1f}" for s in samples)
        out.append(f'<text x="8" y="{top + 14}">{name}</text><text x="{left - 6}" y="{top + 12}" text-anchor="end">{most:.0f}</text>')
        out.append(f'<text x="{left - 6}" y="{top + height}" text-anchor="end">0</text>')
        out.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>')
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for minute in range(0, int(last // 60) + 1, max(1, int(last // 600))):
        out.append(f'<text x="{left + minute * 60 / last * width:.1f}" y="{len(columns) * (height + 30) + 12}" text-anchor="middle">{minute} min</text>')
    Path(path).write_text("\n".join([*out, "</svg>"]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=21380)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rate", type=int, default=250, help="messages a second and rank; 0: as fast as it goes")
    parser.add_argument("--count", type=int, default=0, help="messages in all; 0: as many as there is time for")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--restart-every", type=float, default=60, help="seconds between restarts of the publisher; 0: none")
    parser.add_argument("--gap-every", type=int, default=10_000, help="leave out each Nth message of a rank; 0: none")
    parser.add_argument("--roll-bytes", type=int, default=64 << 20)
    parser.add_argument("--sample-every", type=float, default=10)
    parser.add_argument("--binary", default=str(ROOT / "bin" / "otelcol-fpm"))
    parser.add_argument("--csv")
    parser.add_argument("--svg")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        port = args.port - 100
        text = (EXTENSIONS.format(port=port + 2)
                + COLLECTOR.format(port=args.port, ranks=args.ranks, page=port, telemetry=port + 1, folder=folder, fpm=FPM, gauge_dedup="")
                .replace("max_segments: 1000", f"max_segments: 100000, roll_bytes: {args.roll_bytes}")
                .replace("service:\n", "service:\n  extensions: [pprof]\n")
                + PIPELINES["both"])
        (folder / "collector.yaml").write_text(text)
        log = open(folder / "log", "w")
        collector = subprocess.Popen([args.binary, "--config", str(folder / "collector.yaml")], stdout=log, stderr=log)
        load = Load(args)
        samples: list[dict] = []
        try:
            time.sleep(5)
            began = restarted = time.monotonic()
            cpu, passes, at = cpu_seconds(collector.pid), counter(telemetry(port + 1), ACCEPTED), began
            while time.monotonic() - began < args.minutes * 60 and (not args.count or load.process.poll() is None):
                time.sleep(args.sample_every)
                now = time.monotonic()
                cpu_now, passes_now = cpu_seconds(collector.pid), counter(telemetry(port + 1), ACCEPTED)
                if passes_now > passes:
                    samples.append({
                        "seconds": round(now - began), "memory MiB": round(status_mib(collector.pid, "RssAnon"), 1),
                        "goroutines": goroutines(port + 2), "CPU µs a pass": round((cpu_now - cpu) / (passes_now - passes) * 1e6, 2),
                        "passes/s": round((passes_now - passes) / (now - at)),
                    })
                    print(samples[-1], flush=True)
                cpu, passes, at = cpu_now, passes_now, now
                if args.restart_every and now - restarted >= args.restart_every:
                    restarted = now
                    load.end()
                    load.start()
            load.end()
            time.sleep(5)
            page, most = telemetry(port + 1), status_mib(collector.pid, "VmHWM")
        finally:
            collector.terminate()
            code = collector.wait(timeout=60)
        rows, files = count_rows(folder)
        accepted, lost = counter(page, ACCEPTED), counter(page, "otelcol_receiver_fpm_lost")
        dropped = {signal: sum_of(page, "otelcol_receiver_fpm_dropped", f'signal="{signal}"') for signal in ("logs", "metrics")}
        unwritten = counter(page, "otelcol_exporter_fpm_trace_dropped")
        print(f"{load.starts} publishers sent {load.sent} messages and left out {load.left_out}; accepted {accepted:.0f}, lost {lost:.0f}, "
              f"dropped {dropped}, not written {unwritten:.0f}; {rows} rows in {files} files; at most {most:.0f} MiB resident; exit code {code}")

    if args.csv:
        with open(args.csv, "w", newline="") as out:
            writer = csv.DictWriter(out, samples[0].keys())
            writer.writeheader()
            writer.writerows(samples)
    if args.svg:
        graph(samples, args.svg)
    # What the publisher itself dropped (it does not block) is a gap like any other.
    faults = [
        (accepted + lost != load.sent + load.left_out, "messages are neither accepted nor counted as lost"),
        (rows != accepted - dropped["logs"] - unwritten, "rows are missing that nothing counted as dropped"),
        (code != 0, "the Collector did not end well"),
    ]
    sys.exit("\n".join(text for failed, text in faults if failed) or None)


def sum_of(page: str, name: str, label: str) -> float:
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name) and label in line)


if __name__ == "__main__":
    main()
