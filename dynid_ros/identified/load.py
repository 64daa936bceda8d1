"""Section `load` of `identified.yaml`, and the load in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.estimation.estimate import KEY
from dynid_ros.model.inertia import LOAD_NAMES, STATIC

if TYPE_CHECKING:
    from dynid_ros.identification.load_result import LoadResult


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


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
