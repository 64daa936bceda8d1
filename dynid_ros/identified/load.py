"""Section `load` of `identified.yaml`: mass, centre of mass and inertia of the payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    Section,
    as_number,
    as_numbers,
    check_same_robot,
    dof_of,
    file_of,
    is_number,
    is_numbers,
)
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC

if TYPE_CHECKING:
    from dynid_ros.model.inertia import LoadBody
    from dynid_ros.model.robot import RobotModel


def load_section(
    frame: str,
    body: LoadBody,
    estimate: LoadBody,
    *,
    loaded: bool,
    dof: NDArray,
    mass_interval: NDArray,
    center_intervals: NDArray,
    nuisance: Mapping[str, tuple[float, float]],
    residual_rms: Mapping[str, float],
) -> dict:
    """Return the section `load`: mass (kg), centre (m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about the centre.

    The numbers are zero without a load, and null where the data do not determine them.

    Args:
        frame: link whose frame all numbers refer to.
        body: physically consistent payload.
        estimate: unregularized estimate; NaN where the data do not determine it.
        loaded: whether the interval of the mass is above zero.
        dof: (4,) or (10,) degrees of freedom of the estimate's errors.
        mass_interval: (2,) 95 % interval of the mass, kg.
        center_intervals: (3, 2) 95 % intervals of the centre, m.
        nuisance: value and standard error of parameters that are estimated with the load, such as bias and friction.
        residual_rms: RMS residual by name of the channel.
    """
    inertia = body.inertia[np.triu_indices(3)]
    center = body.center if loaded else np.zeros(3)
    is_inertia_known = loaded and bool(np.isfinite(inertia).all())
    errors = np.where(np.isfinite(estimate.parameters), np.sqrt(np.diag(estimate.covariance)), np.nan)
    section = {
        "frame": frame,
        "loaded": loaded,
        "mass": as_number(body.parameters[0]),
        "center": as_numbers(center),
        "inertia": as_numbers(inertia) if loaded else [0.0] * 6,
        "interval": {
            "mass": as_numbers(mass_interval),
            "center": [as_numbers(row) for row in center_intervals] if loaded else None,
        },
        "std": {
            "mass": as_number(estimate.mass_error),
            "center": as_numbers(estimate.center_errors) if loaded else None,
            "inertia": as_numbers(estimate.inertia_errors) if is_inertia_known else None,
        },
        DOF: {
            "mass": as_number(dof[0]),
            "center": as_numbers(dof[1:STATIC]),
            "inertia": as_number(np.min(dof[STATIC:], initial=np.inf)),
        },
        "estimate": {
            "parameters": as_numbers(estimate.parameters),
            "std": as_numbers(errors),
            DOF: {name: as_number(value) for name, value in zip(LOAD_NAMES, dof, strict=False)},
        },
    }
    if is_inertia_known:
        section["principal"] = {
            "moments": as_numbers(body.moments),
            "std": as_numbers(body.moment_errors),
            "axes": [as_numbers(axis) for axis in body.axes.T],
            "axis_std": as_numbers(body.axis_errors),
            "alike": [[i + 1, j + 1] for i, j in body.alike],
        }
    section["beside"] = {
        name: {"value": as_number(value), "std": as_number(error)} for name, (value, error) in nuisance.items()
    }
    section["residual_rms"] = {channel: as_number(value) for channel, value in residual_rms.items()}
    return section


def carried_load(section: object) -> tuple[float, tuple[float, float, float], str]:
    """Return mass (kg), centre of mass (m), and the name of the link to whose frame the centre refers.

    Raises:
        ControlError: the section lacks a value; callers put the file before the message.
    """
    entries = section if isinstance(section, dict) else {}
    mass, center, frame = (entries.get(key) for key in ("mass", "center", "frame"))
    if not is_number(mass) or not isinstance(frame, str):
        raise ControlError(f"its mass is {mass!r} kg in frame {frame!r}; expected a number and the name of a link")
    if not isinstance(center, list) or not is_numbers(center, 3):
        raise ControlError(f"its center is {center!r}; expected three numbers, m")
    x, y, z = map(float, center)
    return float(mass), (x, y, z), frame


def load_estimate(document: dict, robot: RobotModel) -> tuple[NDArray, NDArray, NDArray, list[str]]:
    """Return the unregularized parameters of the load, their errors, degrees of freedom, and names of recordings.

    The arrays have the shape (4,) without inertias, or (10,).
    """
    check_same_robot(document, robot)
    file = file_of(document)
    section = Section.required(document, "load", "load")
    if section.get("frame") != robot.tip:
        raise IdentifiedFileError(
            f"{file}: its load is at {section.get('frame')}, the one to identify at {robot.tip}; identify both at the "
            "same tip link"
        )
    estimate = section.child("estimate")
    values = estimate.numbers_or_nan("parameters", PARAMETERS_PER_LINK)
    errors = estimate.numbers_or_nan("std", PARAMETERS_PER_LINK)
    if np.isnan(values[:STATIC]).any():
        raise IdentifiedFileError(f"{file}: the mass of its load is undetermined, so the load cannot be subtracted")
    size = STATIC if np.isnan(values[STATIC:]).all() else PARAMETERS_PER_LINK
    dof = np.array([dof_of({}, estimate, name) for name in LOAD_NAMES[:size]])
    source = section.get("source", document.get("source", {}))
    recordings = source.get("recordings", []) if isinstance(source, dict) else []
    return values[:size], errors[:size], dof, list(map(str, recordings)) or [file]
