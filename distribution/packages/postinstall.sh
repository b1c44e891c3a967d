#!/bin/sh
# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
#
# After an installation (deb: configure, rpm: 1) the service is enabled and started; after an
# upgrade (deb: configure OLD, rpm: 2) it is restarted if it ran.
set -e

if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers /usr/lib/sysusers.d/otelcol-fpm.conf
elif ! getent passwd otelcol-fpm >/dev/null; then
  useradd --system --user-group --home-dir /var/lib/otelcol-fpm --no-create-home --shell /usr/sbin/nologin otelcol-fpm
fi

case "$1:$2" in
  1: | configure:) installed=new ;;
  *) installed=upgraded ;;
esac

# In a container or a chroot no systemd runs.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ "$installed" = new ]; then
    systemctl enable --now otelcol-fpm.service
  else
    systemctl try-restart otelcol-fpm.service
  fi
fi
