#!/bin/sh
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# The user and /var/lib/otelcol-fpm stay: the traces are not the package's to remove.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
