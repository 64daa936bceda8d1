"""Parameters of an `identified.yaml` with standard errors, from all sections, to compare files with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def known_parameters(document: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield name, value and standard error of each parameter with a finite value and standard error."""
    base = document.get("base_parameters")
    for entry in base if isinstance(base, list) else ():
        if isinstance(entry, Mapping) and _finite(entry.get("value")) and _finite(entry.get("std")):
            yield f"base {entry.get('expression')}", float(entry["value"]), float(entry["std"])
    for section, content in document.items():
        if isinstance(content, Mapping) and section not in ("robot", "source", "signals"):
            yield from _with_errors(str(section), content)


def _with_errors(path: str, content: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    errors = content.get("std")
    if isinstance(errors, Mapping):
        for name, std in errors.items():
            stds = list(_flat(std))
            pairs = zip(_flat(content.get(name)), stds, strict=False)
            for number, (value, error) in enumerate(pairs):
                if _finite(value) and _finite(error) and error > 0:
                    yield f"{path} {name}" + (f"[{number}]" if len(stds) > 1 else ""), float(value), float(error)
    for name, inner in content.items():
        if name != "std" and isinstance(inner, Mapping):
            yield from _with_errors(f"{path} {name}", inner)


def _flat(value: Any) -> Iterator[Any]:
    """Yield the value itself, or the values in nested lists."""
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _flat(entry)
    else:
        yield value


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))
