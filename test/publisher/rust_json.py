# Copyright The otelcol-fpm Authors
# SPDX-License-Identifier: Apache-2.0
"""JSON text as serde_json writes it, which is what Dynamo's trace rows contain.

Floats have the shortest digits that read back to the same number; in fixed
notation, always with a fraction, when the decimal exponent is -5 to 15, else in
scientific notation with a sign and without padding (1e-6, 1e+16, 6.07e+61).
Strings escape only the quotation mark, the backslash and U+0000 to U+001F.
"""

import math

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def dumps(value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(dumps(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_string(k) + ":" + dumps(v) for k, v in value.items()) + "}"
    raise TypeError(f"no JSON for {type(value)}")


def _float(f: float) -> str:
    if not math.isfinite(f):
        return "null"
    sign = "-" if math.copysign(1.0, f) < 0 else ""
    if f == 0:
        return sign + "0.0"
    # repr has the shortest digits; take them apart: f = 0.d1d2d3... * 10**point
    mantissa, _, exponent = repr(abs(f)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    exponent = point - 1
    if not -5 <= exponent <= 15:
        rest = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{exponent:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    digits = digits.ljust(point, "0")
    return f"{sign}{digits[:point]}.{digits[point:] or '0'}"


def _string(s: str) -> str:
    out = ['"']
    for c in s:
        if c in _SHORT:
            out.append(_SHORT[c])
        elif c < " ":
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    out.append('"')
    return "".join(out)
