#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the module, one after the other.
# Usage: fuzz.sh TIME_EACH
set -euo pipefail
time=$1
cd "$(dirname "$0")/.."
git grep -l '^func Fuzz' -- '*_test.go' | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
    echo "fuzzing $target in $(dirname "$file") for $time"
    go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
