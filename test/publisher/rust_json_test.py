# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of what serde_json writes. Run: python -m unittest rust_json_test"""

import json
import random
import struct
import unittest

import rust_json


class RustJSON(unittest.TestCase):
    def test_floats(self):
        for value, text in [
            (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (0.025, "0.025"),
            (0.1, "0.1"), (123456.789, "123456.789"), (0.00001, "0.00001"), (0.000012, "0.000012"),
            (1e-6, "1e-6"), (1.5e-6, "1.5e-6"), (1e15, "1000000000000000.0"),
            (1234567890123456.7, "1234567890123456.8"), (1e16, "1e+16"), (1.5e16, "1.5e+16"),
            (6.07e61, "6.07e+61"), (5e-324, "5e-324"), (1.7976931348623157e308, "1.7976931348623157e+308"),
            (-2.5, "-2.5"), (0.02500000037252903, "0.02500000037252903"),
            (float("nan"), "null"), (float("inf"), "null"),
        ]:
            with self.subTest(value=value):
                self.assertEqual(rust_json.dumps(value), text)

    def test_floats_read_back(self):
        source = random.Random(1)
        for _ in range(20000):
            value = struct.unpack("<d", source.randbytes(8))[0]
            if value == value and abs(value) != float("inf"):
                self.assertEqual(json.loads(rust_json.dumps(value)), value)

    def test_values(self):
        for value, text in [
            (None, "null"), (True, "true"), (False, "false"), (0, "0"), (-1, "-1"), (2**63, "9223372036854775808"),
            ([], "[]"), ([1, 2.0, "x"], '[1,2.0,"x"]'), ({}, "{}"), ({"b": 1, "a": {"c": []}}, '{"b":1,"a":{"c":[]}}'),
            ('"\\/<>&', '"\\"\\\\/<>&"'), ("\b\t\n\f\r\x00\x1f\x7f", '"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f"'),
            ("é \u2028 \U0001f680", '"é \u2028 \U0001f680"'),
        ]:
            with self.subTest(value=value):
                self.assertEqual(rust_json.dumps(value), text)


if __name__ == "__main__":
    unittest.main()
