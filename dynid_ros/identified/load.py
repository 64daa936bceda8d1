"""Section `load` of `identified.yaml`, and the load in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.identified.identified_file import FREEDOM, as_number, as_numbers
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
        "mass": as_number(result.parameters[0]),
        "center": as_numbers(result.center) if loaded else [0.0, 0.0, 0.0],
        "inertia": as_numbers(inertia) if loaded else [0.0] * 6,
        "interval": {
            "mass": as_numbers(result.confidence_intervals()[0]),
            "center": [as_numbers(row) for row in result.center_intervals()] if loaded else None,
        },
        "std": {
            "mass": as_number(errors.mass_error),
            "center": as_numbers(errors.center_errors) if loaded else None,
            "inertia": as_numbers(errors.inertia_errors) if loaded and np.isfinite(inertia).all() else None,
        },
        FREEDOM: {
            "mass": as_number(freedom[0]),
            "center": as_numbers(freedom[1:STATIC]),
            "inertia": as_number(result.inertia_freedom),
        },
        "estimate": {
            "parameters": as_numbers(result.body.parameters),
            "std": as_numbers(result.standard_errors),
            FREEDOM: {name: as_number(value) for name, value in zip(LOAD_NAMES, freedom, strict=False)},
        },
    }
    if loaded and np.isfinite(inertia).all():
        section["principal"] = {
            "moments": as_numbers(body.moments),
            "std": as_numbers(body.moment_errors),
            "axes": [as_numbers(axis) for axis in body.axes.T],
            "axis_std": as_numbers(body.axis_errors),
            "alike": [[i + 1, j + 1] for i, j in body.alike],
        }
    section["beside"] = {
        name: {"value": as_number(value), "std": as_number(error)} for name, (value, error) in result.nuisance.items()
    }
    section["residual_rms"] = dict(zip(result.channels, as_numbers(result.residual_rms), strict=True))
    return section
