#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes what a release consists of: for each architecture the binary, an archive, a deb, an
# rpm and a bill of materials; the archive of the Helm chart; checksums. The same commit and
# the same Go release give the same bytes, wherever and whenever.
# Usage: dist.sh [OUTPUT]           default: dist
# Environment: ARCHITECTURES        default: "amd64 arm64"; about 8 minutes each on two cores
#              SOURCE_DATE_EPOCH    time of every file; default: that of the commit
set -euo pipefail
umask 022
cd "$(dirname "$0")/../.."
output=$(realpath -m "${1:-dist}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
version=$(awk '/^dist:/ { dist = 1 } dist && $1 == "version:" { print $2; exit }' builder-config.yaml)

rm -rf "$output"
mkdir -p "$output"
for architecture in ${ARCHITECTURES:-amd64 arm64}; do
  binary=$output/otelcol-fpm_${version}_linux_$architecture
  echo "compiling for linux/$architecture"
  # Nothing of the caller's environment that would change the bytes.
  (cd distribution/otelcol-fpm && env -u GOEXPERIMENT GOFLAGS='' GOAMD64=v1 GOARM64=v8.0 \
    CGO_ENABLED=0 GOOS=linux GOARCH="$architecture" \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$binary" .)
  distribution/scripts/package.sh "$binary" "$version" "$architecture" "$output"
done
distribution/scripts/package-chart.sh "$output"
(cd "$output" && LC_ALL=C sha256sum -- * >SHA256SUMS.tmp && mv SHA256SUMS.tmp SHA256SUMS)
echo "wrote $output:"
ls -l "$output"
