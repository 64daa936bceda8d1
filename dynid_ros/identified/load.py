"""Section `load` of `identified.yaml`: mass, centre of mass and inertia of what the arm carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    as_number,
    as_numbers,
    check_same_robot,
    dof_of,
    file_of,
    is_number,
)
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC

if TYPE_CHECKING:
    from dynid_ros.model.rigid_body import LoadBody
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
    """Mass (kg), centre (m) and inertia Ixx Ixy Ixz Iyy Iyz Izz (kg m²) about the centre, in the frame of the tip.

    Without a load they are zero, and what the data do not determine is null.

    Args:
        frame: link that all numbers are relative to.
        body: physically consistent.
        estimate: by the data alone; NaN where they do not determine it.
        loaded: whether the interval of the mass is above zero.
        dof: (4,) or (10,) degrees of freedom of the estimate's errors.
        mass_interval: (2,) kg.
        center_intervals: (3, 2) m.
        nuisance: value and standard error of what was estimated with the load: a sensor's bias, offsets, friction.
        residual_rms: by channel.
    """
    inertia, center = body.inertia[np.triu_indices(3)], body.center if loaded else np.zeros(3)
    known = loaded and bool(np.isfinite(inertia).all())
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
            "inertia": as_numbers(estimate.inertia_errors) if known else None,
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
    if known:
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
    """Mass (kg), centre of mass (m) in the frame, and the frame's link.

    Raises:
        ControlError: the section does not say them; the message is an end of a sentence about the load.
    """
    entries = section if isinstance(section, dict) else {}
    mass, center, frame = (entries.get(key) for key in ("mass", "center", "frame"))
    if not is_number(mass) or not isinstance(frame, str):
        raise ControlError(f"its mass is {mass!r} kg in frame {frame!r}; expected a number and the name of a link")
    if not isinstance(center, list) or len(center) != 3 or not all(map(is_number, center)):
        raise ControlError(f"its center is {center!r}; expected three numbers, m")
    x, y, z = map(float, center)
    return float(mass), (x, y, z), frame


def load_estimate(document: dict, robot: RobotModel) -> tuple[NDArray, NDArray, NDArray, list[str]]:
    """(4,) or (10,) parameters of the load by the data alone, standard errors, degrees of freedom; recordings.

    Raises:
        IdentifiedFileError: of another robot or tip link, or without a load whose mass is known.
    """
    check_same_robot(document, robot)
    file, section = file_of(document), document.get("load")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{file}: it has no load to subtract; give the file of `dynid identify load`")
    if section.get("frame") != robot.tip:
        raise IdentifiedFileError(
            f"{file}: its load is at {section.get('frame')}, the one to identify at {robot.tip}; identify both at the "
            "same tip link"
        )
    estimate = section.get("estimate")
    values, errors = (_ten(file, estimate, key) for key in ("parameters", "std"))
    if np.isnan(values[:STATIC]).any():
        raise IdentifiedFileError(f"{file}: it does not know the mass of its load, so that it cannot be subtracted")
    size = STATIC if np.isnan(values[STATIC:]).all() else PARAMETERS_PER_LINK
    dof = np.array([dof_of({}, estimate, name) for name in LOAD_NAMES[:size]])
    source = section.get("source", document.get("source", {}))
    recordings = source.get("recordings", []) if isinstance(source, dict) else []
    return values[:size], errors[:size], dof, list(map(str, recordings)) or [file]


def _ten(file: str, estimate: object, key: str) -> NDArray:
    values = estimate.get(key) if isinstance(estimate, dict) else None
    good = isinstance(values, list) and all(value is None or is_number(value) for value in values)
    if not isinstance(values, list) or not good or len(values) != PARAMETERS_PER_LINK:
        raise IdentifiedFileError(f"{file}: load: estimate: {key} is {values!r}, expected ten numbers or nulls")
    return np.array([np.nan if value is None else value for value in values], dtype=float)
