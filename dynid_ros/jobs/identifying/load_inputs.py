"""What a load identification takes from files: the arm as it was identified, and a tare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import BaseEstimate, freedom_of
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.wrench_frame import Convention
from dynid_ros.identified.identified_file import check_same_robot, is_number, load_identified
from dynid_ros.identified.links import KnownArm, known_arm
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC

ACTS_ON: dict[str, Convention] = {"sensor": "load_on_sensor", "load": "sensor_on_load"}
"""Who feels the wrench that a sensor reads."""


def read_arm(path: Path, robot: RobotModel) -> tuple[KnownArm, dict]:
    """The arm of an `identified.yaml`, and the file's content.

    Raises:
        IdentifiedFileError: of another robot, or not of a link identification.

    """
    document = load_identified(path)
    if "links" not in document:
        raise IdentifiedFileError(
            f"{path}: it has no links, which a load identification needs; give the file of `dynid identify links`"
        )
    return known_arm(document, robot), document


def read_tare(path: Path, robot: RobotModel) -> LoadResult:
    """The load of an `identified.yaml`, by the data alone, to subtract from another.

    Errors of its parameters are taken to be independent of each other, which the file does not tell.

    Raises:
        IdentifiedFileError: of another robot, or without a load whose mass is known.

    """
    document = load_identified(path)
    check_same_robot(document, robot)
    section = document.get("load")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{path}: it has no load to subtract; give the file of `dynid identify load`")
    if section.get("frame") != robot.tip:
        raise IdentifiedFileError(
            f"{path}: its load is at {section.get('frame')}, the one to identify at {robot.tip}; identify both at the "
            "same tip link"
        )
    estimate = section.get("estimate")
    values, errors = (_ten(path, estimate, key) for key in ("parameters", "std"))
    size = STATIC if np.isnan(values[STATIC:]).all() else PARAMETERS_PER_LINK
    if np.isnan(values[:STATIC]).any():
        raise IdentifiedFileError(f"{path}: it does not know the mass of its load, so that it cannot be subtracted")
    source = section.get("source", document.get("source", {}))
    recordings = source.get("recordings", []) if isinstance(source, dict) else []
    covariance = np.diag(np.nan_to_num(errors[:size]) ** 2)
    return LoadResult(
        robot=robot,
        estimate=BaseEstimate(
            LOAD_NAMES[:size],
            LOAD_NAMES[:size],
            values[:size],
            covariance,
            np.full(size, np.nan),
            np.array([freedom_of({}, estimate, name) for name in LOAD_NAMES[:size]]),
        ),
        solution=np.nan_to_num(values[:size]),
        condition_number=np.nan,
        channels=(),
        residual_rms=np.empty(0),
        signal_rms=np.empty(0),
        n_samples=0,
        sources=tuple(map(str, recordings)) or (str(path),),
        settings={},
    )


def _ten(path: Path, estimate: object, key: str) -> NDArray:
    values = estimate.get(key) if isinstance(estimate, dict) else None
    if not isinstance(values, list) or len(values) != PARAMETERS_PER_LINK or not all(map(_is_known, values)):
        raise IdentifiedFileError(f"{path}: load: estimate: {key} is {values!r}, expected ten numbers or nulls")
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _is_known(value: object) -> bool:
    return value is None or is_number(value)
