"""Fast YAML writer for plain values: JSON with the special numbers of YAML."""

import json
import math
from typing import Any


def yaml_text(content: Any) -> bytes:
    """Return the content as UTF-8 encoded YAML."""
    if isinstance(content, dict):
        pairs = (yaml_text(key) + b": " + yaml_text(value) for key, value in content.items())
        return b"{" + b", ".join(pairs) + b"}"
    if isinstance(content, list):
        return b"[" + b", ".join(map(yaml_text, content)) + b"]"
    if isinstance(content, float):
        return _number(content)
    if isinstance(content, int) and not isinstance(content, bool):
        return str(content).encode()
    return json.dumps(content).encode()


def _number(value: float) -> bytes:
    if math.isfinite(value):
        mantissa, e, exponent = repr(value).partition("e")
        point = "" if "." in mantissa or not e else ".0"
        sign = "+" if e and exponent[0] != "-" and exponent[0] != "+" else ""
        return f"{mantissa}{point}{e}{sign}{exponent}".encode()
    return b".nan" if math.isnan(value) else b".inf" if value > 0 else b"-.inf"
