#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Packs the Helm chart. helm decides what belongs into the archive; it is packed again because
# helm gives every file the time of the moment.
# Usage: SOURCE_DATE_EPOCH=… package-chart.sh OUTPUT
set -euo pipefail
umask 022
output=$(realpath "$1")
cd "$(dirname "$0")/../.."
: "${SOURCE_DATE_EPOCH:?seconds since 1970, the time of every file}"
helm=$(distribution/scripts/tool.sh helm)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$helm" package distribution/helm/otelcol-fpm --destination "$stage" >/dev/null
archive=$(basename "$stage"/*.tgz)
mkdir "$stage/files"
tar -C "$stage/files" --touch -xzf "$stage/$archive"
tar -C "$stage/files" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  -cf - otelcol-fpm | gzip -n >"$output/$archive"
