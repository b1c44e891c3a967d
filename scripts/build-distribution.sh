#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the sources that ocb wrote, as ocb would, but says how far it is: the
# first build compiles about 2,000 packages.
# Usage: build-distribution.sh OUTPUT
set -euo pipefail
output=$1
cd "$(dirname "$0")/../distribution/otelcol-fpm"
packages=$(go list -deps . | wc -l)
echo "compiling bin/otelcol-fpm: $packages packages, about 8 minutes on two cores when none is cached"
CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags='-s -w' -o "$output" . 2>&1 |
  awk -v total="$packages" '
    /^[a-z].*[\/]?[^ ]*$/ && !/ / { n++; if (n % 100 == 0) { printf "  %d of at most %d packages compiled\n", n, total; fflush() } next }
    { print; fflush() }'
# What the linker has just written lies in the page cache in large pieces, which the
# kernel maps whole: a process of a copy has up to 40 MiB less resident, as one of an
# unpacked release has.
cp "$output" "$output.copy"
mv "$output.copy" "$output"
echo "built bin/otelcol-fpm"
