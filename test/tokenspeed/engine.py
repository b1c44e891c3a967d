# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""An engine with nothing in it but its observations: a launcher and its producer processes.

The plugin is found by its entry point, selected by name and configured by a file,
as the engine's operator does it. `--help` tells the rest.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path

import producer
from tokenspeed.runtime.metrics.outputs import Launcher
from workload import WORKLOADS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="settings of the output otelcol, in JSON")
    parser.add_argument("--folder", type=Path, required=True, help="where the producers write what they did")
    parser.add_argument("--workload", choices=WORKLOADS, default="serving")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=8, help="of each process")
    parser.add_argument(
        "--events", type=int, default=1000, help="of each thread; while there is a file `hold` in the folder, more"
    )
    parser.add_argument("--burst", type=int, default=50, help="events between two rests of a thread")
    parser.add_argument("--rest", type=float, default=0.02, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference", action="store_true", help="observe with prometheus_client too")
    args = parser.parse_args()

    launcher = Launcher(
        reporter_names=["otelcol"],
        config_text=json.dumps({"otelcol": json.loads(args.config)}),
    )
    options = producer.Options(
        workload=args.workload,
        threads=args.threads,
        events=args.events,
        burst=args.burst,
        rest=args.rest,
        seed=args.seed,
        folder=args.folder,
        reference=args.reference,
    )
    spawn = multiprocessing.get_context("spawn")
    processes = [
        spawn.Process(target=producer.run, args=[number, launcher.producer_configs, options])
        for number in range(args.processes)
    ]
    for process in processes:
        process.start()
    print("started", flush=True)
    for process in processes:
        process.join()
    launcher.close(1.0)
    failed = [process.exitcode for process in processes if process.exitcode]
    if failed:
        print(f"producers ended with {failed}", flush=True)
        return 1
    print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
