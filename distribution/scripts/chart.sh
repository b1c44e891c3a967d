#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the Helm chart, the examples beside it and the image: lint, rendering, types,
# rendered examples, and the built Collector as each rendered pod runs it (bin/otelcol-fpm and
# bin/fpmsim, or FPM_BIN and the fpmsim beside it).
# Usage: chart.sh          checks
#        chart.sh update   writes the rendered examples anew
set -euo pipefail
cd "$(dirname "$0")/../.."
FPM_HELM=$(distribution/scripts/tool.sh helm)
export FPM_HELM
if [ "${1:-}" = update ]; then
  exec go test ./test/chart -run '^TestRenderedExamples$' -count=1 -update
fi
go test ./test/chart/... -count=1 -timeout 20m
