#!/usr/bin/env bash
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a tool and builds it into .tools/ when it is not there yet.
# Usage: tool.sh helm|nfpm|cyclonedx-gomod
set -euo pipefail
cd "$(dirname "$0")/../.."

case ${1:-} in
  helm) package=helm.sh/helm/v3/cmd/helm version=v3.22.0 ;;
  nfpm) package=github.com/goreleaser/nfpm/v2/cmd/nfpm version=v2.45.2 ;;
  cyclonedx-gomod) package=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod version=v1.10.0 ;;
  *) echo "tool.sh: unknown tool ${1:-(none)}, must be helm, nfpm or cyclonedx-gomod" >&2; exit 2 ;;
esac

path=$PWD/.tools/$1-$version
if [ ! -x "$path" ]; then
  echo "installing $1 $version" >&2
  # A folder of its own: two builds at once do not meet. The same bytes on every machine:
  # a bill of materials names the hash of the tool that wrote it.
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  GOBIN=$folder GOFLAGS='' CGO_ENABLED=0 go install -trimpath "$package@$version" >&2
  mkdir -p .tools
  mv "$folder/$1" "$path"
fi
echo "$path"
