"""A motion for flexible joints, from what is known of them beforehand: an earlier `identified.yaml`, or arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError, TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.fourier_excitation import flexible_excitation
from dynid_ros.identified.identified_file import check_same_robot, is_number, load_identified, mapping
from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

FLEXIBLE = "flexible"
HARMONICS = 8
KEYS = {
    "stiffness": "stiffness",
    "motor_inertia": "motor_inertia",
    "motor_viscous": "motor_viscous",
    "coulomb": "link_coulomb",
    "viscous": "link_viscous",
}
"""Of the file, for each value of the prior."""


def flexible_prior(robot: RobotModel, given: Mapping[str, NDArray | None], path: Path | None = None) -> FlexibleJoints:
    """What is known of the joints.

    Args:
        robot: the arm.
        given: (1,) or (n,) values by name, as in `FlexibleJoints`; None: as in the file, or none.
        path: `identified.yaml` of an identification of flexible joints; None: all is given.

    Raises:
        IdentifiedFileError: of another robot, without flexible joints, or with a stiffness that was not decided.
        TrajectoryError: no stiffness or no motor inertia.

    """
    found = {name: value for name, value in given.items() if value is not None}
    if path is not None:
        found = {**_of_file(robot, path, set(KEYS) - set(found)), **found}
    missing = [name for name in ("stiffness", "motor_inertia") if name not in found]
    if missing:
        raise TrajectoryError(
            f"{' and '.join(missing)} of the joints {'is' if len(missing) == 1 else 'are'} not known; give values, of "
            "30 % if need be, or an identified.yaml of flexible joints"
        )
    return FlexibleJoints(**found)


def flexible_motion(
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    joints: FlexibleJoints,
    held: NDArray | None = None,
    **settings: Any,
) -> FourierExcitation:
    """Design of a motion of the motors; None among settings: not given.

    Args:
        robot: the arm.
        limits: of the motors.
        workspace: where the links may be.
        joints: what is known of them.
        held: (n,) positions of joints that brakes hold, NaN for those that move; None: all move.
        settings: of `flexible_excitation`; without a `base_frequency` one is taken by which the harmonics lie on both
            sides of the resonances in the middle of the joints' ranges.

    """
    given = {name: value for name, value in settings.items() if value is not None}
    harmonics = given.setdefault("harmonics", HARMONICS)
    names = robot.joint_names
    still = {} if held is None else {n: float(v) for n, v in zip(names, held, strict=True) if np.isfinite(v)}
    if "base_frequency" not in given:
        stiffness, motor_inertia, *_ = joints.of(robot)
        middle = (limits.lower + limits.upper) / 2
        pose = np.where(np.isfinite(middle), middle, 0.0)
        pose = np.array([still.get(name, place) for name, place in zip(names, pose, strict=True)])
        driven = resonance(robot, stiffness, motor_inertia, pose, [name for name in names if name not in still]).driven
        given["base_frequency"] = proposed_base_frequency(driven, harmonics)
    return flexible_excitation(robot, limits, joints, workspace, held=still or None, **given)


def _of_file(robot: RobotModel, path: Path, wanted: set[str]) -> dict[str, NDArray]:
    document = load_identified(path)
    section = document.get("flexible_joints")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{path}: it has no flexible_joints; give the file of `dynid identify flexible`")
    check_same_robot(document, robot)
    found = {name: np.zeros(robot.n_joints) for name in wanted}
    for i, joint in enumerate(robot.joint_names):
        entry = section.get(joint)
        entry = entry if isinstance(entry, dict) else {}
        for name in wanted:
            value = entry.get(KEYS[name])
            if not is_number(value):
                raise IdentifiedFileError(f"{path}: {KEYS[name]} of joint '{joint}' is {value!r}, expected a number")
            if name == "stiffness" and mapping(entry, "decided", f"{path}: joint '{joint}'").get(name) is not True:
                raise IdentifiedFileError(
                    f"{path}: the stiffness of joint '{joint}' is not decided: no motion can be designed by it; "
                    "give one"
                )
            # Of friction that is next to nothing an estimate may be below it.
            found[name][i] = max(value, 0.0)
    return found
