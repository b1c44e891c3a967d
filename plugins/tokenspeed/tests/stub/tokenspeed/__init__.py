# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for the part of the engine that metric output plugins meet.

It follows the plugin contract of TokenSpeed: what the contract refuses is refused
here, in the order it names, and nothing else is promised. It measures nothing.
"""
