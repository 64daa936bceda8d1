"""All that an `identified.yaml` has with a standard error, whatever its sections: to compare files with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def known_parameters(document: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Name, value and standard error of all that an `identified.yaml` has with one, whatever its sections."""
    for each in document.get("base_parameters") or ():
        if _finite(each.get("value")) and _finite(each.get("std")):
            yield f"base {each['expression']}", float(each["value"]), float(each["std"])
    for section, content in document.items():
        if isinstance(content, Mapping) and section not in ("robot", "source", "signals"):
            yield from _with_errors(section, content)


def _with_errors(path: str, content: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    errors = content.get("std")
    if isinstance(errors, Mapping):
        for name, std in errors.items():
            pairs = zip(np.ravel(content.get(name, np.nan)), np.ravel(std), strict=False)
            several = np.size(std) > 1
            for number, (value, error) in enumerate(pairs):
                if _finite(value) and _finite(error) and error > 0:
                    yield f"{path} {name}" + (f"[{number}]" if several else ""), float(value), float(error)
    for name, inner in content.items():
        if name != "std" and isinstance(inner, Mapping):
            yield from _with_errors(f"{path} {name}", inner)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))
