#!/bin/sh
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# Before a removal (deb: remove, rpm: 0) the service is stopped; an upgrade leaves it running.
set -e

case "$1" in
  0 | remove)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now otelcol-fpm.service
    fi
    ;;
esac
