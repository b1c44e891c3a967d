#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the quickstart: the Collector with config/quickstart.yaml, and a simulated
# engine of two ranks beside it. Ctrl-C ends both; the Collector then writes its last
# trace rows.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p run/traces

bin/otelcol-fpm --config config/quickstart.yaml \
  --feature-gates=+extension.healthcheck.useComponentStatus >run/otelcol-fpm.log 2>&1 &
collector=$!
bin/fpmsim --endpoint tcp://127.0.0.1:20380 --ranks 2 --profile chat >run/fpmsim.log 2>&1 &
engine=$!

stop() {
  trap '' INT TERM
  kill -TERM "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  kill -TERM "$collector" 2>/dev/null || true
  wait "$collector" 2>/dev/null || true
}
trap 'stop; echo; echo "Stopped. Trace files:"; ls -l run/traces; exit 0' INT TERM

for _ in $(seq 100); do
  kill -0 "$collector" 2>/dev/null || break
  if (exec 3<>/dev/tcp/127.0.0.1/13133) 2>/dev/null; then break; fi
  sleep 0.2
done
if ! kill -0 "$collector" 2>/dev/null || ! kill -0 "$engine" 2>/dev/null; then
  echo "The quickstart did not start:"
  tail -n 5 run/otelcol-fpm.log run/fpmsim.log
  stop
  exit 1
fi

cat <<TEXT

otelcol-fpm runs, fed by a simulated engine of two data-parallel ranks.

  metrics   http://127.0.0.1:9464/metrics           (curl -s … | grep ^fpm_)
  traces    run/traces/dynamo-fpm.*.jsonl.gz        (gzip -cd … | head -1)
  health    http://127.0.0.1:13133/status?verbose
  logs      run/otelcol-fpm.log, run/fpmsim.log

Ctrl-C ends both.
TEXT

# One of the two ending by itself ends the quickstart.
wait -n "$collector" "$engine" || true
echo "One of the two ended by itself:"
tail -n 5 run/otelcol-fpm.log run/fpmsim.log
stop
exit 1
