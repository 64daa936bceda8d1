"""Section `load` of `identified.yaml`, and the load in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.estimation.estimate import KEY, half_width
from dynid_ros.model.inertia import LOAD_NAMES, STATIC
from dynid_ros.model.rigid_body import AXIS_PAIRS

if TYPE_CHECKING:
    from dynid_ros.identification.load.result import LoadResult


def load_section(result: LoadResult) -> dict:
    """Mass (kg), centre (m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about the centre, in the frame of the tip.

    Without a load they are zero, and what the data do not show is null. `estimate` is what the data say by themselves.
    """
    body, errors = result.possible, result.body
    loaded = result.is_loaded
    inertia, freedom = body.inertia[np.triu_indices(3)], result.estimate.freedom[: result.n_load]
    section = {
        "frame": result.frame,
        "loaded": loaded,
        "mass": _number(result.parameters[0]),
        "center": _numbers(result.center) if loaded else [0.0, 0.0, 0.0],
        "inertia": _numbers(inertia) if loaded else [0.0] * 6,
        "interval": {
            "mass": _numbers(result.confidence_intervals()[0]),
            "center": [_numbers(row) for row in result.center_intervals()] if loaded else None,
        },
        "std": {
            "mass": _number(errors.mass_error),
            "center": _numbers(errors.center_errors) if loaded else None,
            "inertia": _numbers(errors.inertia_errors) if loaded and np.isfinite(inertia).all() else None,
        },
        KEY: {
            "mass": _number(freedom[0]),
            "center": _numbers(freedom[1:STATIC]),
            "inertia": _number(result.inertia_freedom),
        },
        "estimate": {
            "parameters": _numbers(result.body.parameters),
            "std": _numbers(result.standard_errors),
            KEY: {name: _number(value) for name, value in zip(LOAD_NAMES, freedom, strict=False)},
        },
    }
    if loaded and np.isfinite(inertia).all():
        section["principal"] = {
            "moments": _numbers(body.moments),
            "std": _numbers(body.moment_errors),
            "axes": [_numbers(axis) for axis in body.axes.T],
            "axis_std": _numbers(body.axis_errors),
            "alike": [[i + 1, j + 1] for i, j in body.alike],
        }
    section["beside"] = {
        name: {"value": _number(value), "std": _number(error)} for name, (value, error) in result.nuisance.items()
    }
    section["residual_rms"] = dict(zip(result.channels, _numbers(result.residual_rms), strict=True))
    return section


def load_summary(result: LoadResult) -> str:
    """Mass, centre, principal moments with their 95 % intervals, residuals, and remarks."""
    low, high = result.confidence_intervals()[0]
    lines = [f"Load at {result.frame}: {result.n_samples} samples, condition {result.condition_number:.3g}"]
    if np.isnan(result.body.mass):
        lines.append("  mass      not shown by these data")
    else:
        lines.append(f"  mass      {result.mass:9.4f} kg       95 %: {low:.4f} to {high:.4f}")
    if result.is_loaded:
        lines += _center_and_moments(result)
    elif np.isfinite(high):
        lines.append(f"  no load is shown: the interval of the mass holds zero; up to {high:.3g} kg may be there")
    rms = "  ".join(
        f"{channel} {value:.3g}/{size:.3g}"
        for channel, value, size in zip(result.channels, result.residual_rms, result.signal_rms, strict=True)
    )
    return "\n".join([*lines, f"  residual/load RMS: {rms}", *(f"  {remark}" for remark in result.remarks)])


def _center_and_moments(result: LoadResult) -> list[str]:
    lines = []
    for name, value, (low, high) in zip("xyz", result.center, result.center_intervals(), strict=True):
        lines.append(f"  centre {name}  {1e3 * value:9.2f} mm       95 %: {1e3 * low:.2f} to {1e3 * high:.2f}")
    body = result.possible
    if np.isnan(body.moments).any():
        return [*lines, "  inertia   not shown: the arm was at rest"]
    halves = half_width(body.moment_errors, result.inertia_freedom)
    for i, (moment, half) in enumerate(zip(body.moments, halves, strict=True), 1):
        axis = ", ".join(f"{c:.2f}" for c in body.axes[:, i - 1])
        lines.append(f"  moment {i}  {moment:9.5f} kg m^2   ± {half:.5f} (95 %), about ({axis})")
    return lines + list(alike(result))


def alike(result: LoadResult) -> Iterable[str]:
    """A sentence on principal moments too close for their axes to mean anything."""
    body = result.possible
    pairs = [f"{i + 1} and {j + 1}" for i, j in body.alike]
    if pairs:
        turns = [body.axis_errors[AXIS_PAIRS.index(pair)] for pair in body.alike]
        sizes = [f"± {np.degrees(turn):.0f}°" if turn < np.pi / 2 else "any direction" for turn in turns]
        yield (
            f"  moments {', '.join(pairs)} are too close to each other for their axes to mean anything "
            f"({', '.join(sizes)})"
        )


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
