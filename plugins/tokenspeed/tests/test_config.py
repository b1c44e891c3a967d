# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import copy
import json
import types
from typing import Any

import pytest

from tokenspeed_otelcol import validate

DEFAULTS = {
    "endpoint": "tcp://127.0.0.1:20280",
    "queue_size": 10000,
    "flush_interval_ms": 100,
    "batch_events": 512,
    "resource": {},
}


def test_an_empty_object_means_all_defaults() -> None:
    assert validate({}) == DEFAULTS


def test_the_result_is_a_json_object_that_validates_to_itself() -> None:
    config = validate({"endpoint": "ipc:///run/otelcol/events", "resource": {"a": "b", "c": True, "d": 1.5, "e": 2}})
    assert json.loads(json.dumps(config)) == config
    assert validate(config) == config


def test_the_argument_is_neither_changed_nor_kept() -> None:
    config = {"queue_size": 5, "resource": {"zone": "a"}}
    before = copy.deepcopy(config)
    validated = validate(types.MappingProxyType(config))
    validated["resource"]["zone"] = "b"
    assert config == before
    defaults = validate({})
    defaults["resource"]["zone"] = "b"
    assert validate({}) == DEFAULTS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endpoint", "tcp://127.0.0.1:1"),
        ("endpoint", "tcp://otel-collector.monitoring.svc:65535"),
        ("endpoint", "tcp://[::1]:20280"),
        ("endpoint", "tcp://[fe80::1%eth0]:20280"),
        ("endpoint", "ipc:///run/otelcol/tokenspeed.sock"),
        ("endpoint", "ipc:///" + "a" * 106),
        ("queue_size", 1),
        ("queue_size", 1_000_000),
        ("flush_interval_ms", 1),
        ("flush_interval_ms", 60_000),
        ("batch_events", 1),
        ("batch_events", 8192),
        ("resource", {"k8s.pod.name": "engine-0", "gpu": 7, "share": 0.5, "spot": False, "empty": ""}),
        ("resource", {"low": -(2**63), "high": 2**63 - 1}),
    ],
)
def test_allowed(key: str, value: object) -> None:
    assert validate({key: value}) == {**DEFAULTS, key: value}


ENDPOINT = "must be tcp://host:port (one host, port 1 to 65535, IPv6 in brackets) or ipc:///absolute/path"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("endpoint", "127.0.0.1:20280", ENDPOINT),
        ("endpoint", "udp://127.0.0.1:20280", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1", ENDPOINT),
        ("endpoint", "tcp://:20280", ENDPOINT),
        ("endpoint", "tcp://*:20280", ENDPOINT),
        ("endpoint", "tcp://::1:20280", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1:0", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1:65536", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1:+80", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1:20280\n", ENDPOINT),
        ("endpoint", "tcp://127.0.0.1:\u0661\u0662", ENDPOINT),
        ("endpoint", " tcp://127.0.0.1:20280", ENDPOINT),
        ("endpoint", "tcp://a:1,tcp://b:2", ENDPOINT),
        ("endpoint", "tcp://eth0;a:1", ENDPOINT),
        ("endpoint", "ipc://relative", ENDPOINT),
        ("endpoint", "ipc://@abstract", ENDPOINT),
        ("endpoint", "ipc:///", ENDPOINT),
        ("endpoint", "ipc:///a\0b", ENDPOINT),
        ("endpoint", "ipc:///\ud800", ENDPOINT),
        ("endpoint", "ipc:///" + "a" * 107, "has a path over 107 bytes, the most a socket may have"),
        ("endpoint", ["tcp://127.0.0.1:20280"], ENDPOINT),
        ("endpoint", None, ENDPOINT),
        ("queue_size", 0, "must be a whole number from 1 to 1000000"),
        ("queue_size", 1_000_001, "must be a whole number from 1 to 1000000"),
        ("queue_size", True, "must be a whole number from 1 to 1000000"),
        ("queue_size", 100.0, "must be a whole number from 1 to 1000000"),
        ("queue_size", "100", "must be a whole number from 1 to 1000000"),
        ("flush_interval_ms", 0, "must be a whole number from 1 to 60000"),
        ("flush_interval_ms", -1, "must be a whole number from 1 to 60000"),
        ("flush_interval_ms", float("nan"), "must be a whole number from 1 to 60000"),
        ("flush_interval_ms", 60_001, "must be a whole number from 1 to 60000"),
        ("batch_events", 0, "must be a whole number from 1 to 8192"),
        ("batch_events", 8193, "must be a whole number from 1 to 8192"),
        ("batch_events", None, "must be a whole number from 1 to 8192"),
        ("resource", None, "must be an object of attributes"),
        ("resource", [], "must be an object of attributes"),
        ("resource", {"": "x"}, "name '' must be a non-empty string"),
        ("resource", {1: "x"}, "name 1 must be a non-empty string"),
        ("resource", {"\ud800": "x"}, "must be a non-empty string"),
        ("resource", {"a": "x" * 65_536}, "65537 bytes of text must be at most 65536"),
    ],
)
def test_refused(key: str, value: object, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        validate({key: value})
    assert str(caught.value).startswith(f"otelcol: {key}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("value", [None, [], {}, "\ud800", float("nan"), float("inf"), 2**63, -(2**63) - 1])
def test_refused_attribute(value: object) -> None:
    with pytest.raises(ValueError, match=r"^otelcol: resource\.zone: .* must be a string, a boolean, a finite"):
        validate({"resource": {"zone": value}})


@pytest.mark.parametrize("config", [None, [], "tcp://127.0.0.1:20280", 1])
def test_what_is_no_object_is_refused(config: Any) -> None:
    with pytest.raises(ValueError, match="must be an object with the keys endpoint, queue_size"):
        validate(config)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ValueError) as caught:
        validate({"endpoit": "x", "queue_size": 0, "batch_events": 0})
    assert str(caught.value) == (
        "otelcol: 'endpoit' is unknown, must be one of endpoint, queue_size, flush_interval_ms, batch_events, "
        "resource; queue_size: 0 must be a whole number from 1 to 1000000; "
        "batch_events: 0 must be a whole number from 1 to 8192"
    )


def test_a_long_value_is_shown_shortened() -> None:
    with pytest.raises(ValueError) as caught:
        validate({"endpoint": "x" * 1_000_000})
    assert len(str(caught.value)) < 400
