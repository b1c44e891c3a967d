#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Packs a built binary: an archive, a deb, an rpm, and a bill of materials in CycloneDX form.
# Every file in them has the time SOURCE_DATE_EPOCH, and root owns it.
# Usage: SOURCE_DATE_EPOCH=… package.sh BINARY VERSION ARCHITECTURE OUTPUT
set -euo pipefail
umask 022
binary=$(realpath "$1") version=$2 architecture=$3 output=$(realpath "$4")
cd "$(dirname "$0")/../.."
: "${SOURCE_DATE_EPOCH:?seconds since 1970, the time of every file}"
export SOURCE_DATE_EPOCH
nfpm=$(distribution/scripts/tool.sh nfpm)
cyclonedx=$(distribution/scripts/tool.sh cyclonedx-gomod)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
name=otelcol-fpm_${version}_linux_$architecture
mkdir -p "$stage/$name/config"
install -m 0755 "$binary" "$stage/$name/otelcol-fpm"
install -m 0644 LICENSE README.md "$stage/$name/"
install -m 0644 config/*.yaml "$stage/$name/config/"
mkdir "$stage/packages"
install -m 0644 distribution/packages/* distribution/config.yaml "$stage/packages/"
find "$stage" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

tar -C "$stage" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -cf - "$name" | gzip -n >"$output/$name.tar.gz"

export NFPM_VERSION=$version NFPM_ARCHITECTURE=$architecture NFPM_FILES=$name
for packager in deb rpm; do
  (cd "$stage" && "$nfpm" package --config packages/nfpm.yaml --packager "$packager" --target "$output" >/dev/null)
done

"$cyclonedx" bin -json -std -noserial -notimestamp -version "v$version" -output "$output/$name.cdx.json" "$stage/$name/otelcol-fpm" 2>/dev/null
