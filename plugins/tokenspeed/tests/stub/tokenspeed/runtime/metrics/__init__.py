# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
