"""Experiments by name, from settings as a user gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import Experiment, FourierExcitation, StaticRotation
from dynid_ros.excitation.joint_by_joint import STEPS, JointByJoint
from dynid_ros.excitation.payload_motion import PayloadMotion
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


class Kind(NamedTuple):
    """A kind of experiment.

    Attributes:
        make: its class.
        target: what it shows unless told otherwise.
        targets: what it can show.
        settings: that it takes, by name.

    """

    make: Callable[..., Experiment]
    target: str
    targets: tuple[str, ...]
    settings: tuple[str, ...]


GUARDS = ("position_margin", "speed_fraction", "travel_speed_fraction", "torque_fraction")
SERIES = ("base_frequency", "harmonics", "periods", "criterion", "noise", "known")
SEARCH = ("design_time", "workers", "seed", "starts")
SINGLE = ("motion", "joints", "pose")
COUNTS = {"workers": 64} | dict.fromkeys(
    ("steps", "poses_per_joint", "cycles", "repeats", "count", "harmonics", "periods"), 1000
)
"""Largest numbers of what takes memory or time each; no experiment needs as many."""
KINDS = {
    "fourier": Kind(FourierExcitation, "links", ("links", "gravity", "load"), (*SERIES, *SEARCH, *GUARDS)),
    "static_rotation": Kind(
        StaticRotation, "gravity", ("gravity",), ("steps", "dwell", "approach", "sweep", "poses_per_joint", *GUARDS)
    ),
    "joint_by_joint": Kind(
        JointByJoint, "links", ("links",), ("steps", "dwell", "frequencies", "cycles", "amplitude", *SINGLE, *GUARDS)
    ),
    "payload": Kind(PayloadMotion, "load", ("load",), ("dwell", "reach", "repeats", "pose", *GUARDS)),
    "poses": Kind(PoseSet, "gravity", ("gravity", "load"), ("count", "dwell", "approach", "seed", "offsets", *GUARDS)),
}


def make_experiment(
    kind: str,
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    target: str | None = None,
    **settings: Any,
) -> Experiment:
    """An experiment with the settings that are given, and its own defaults for the others.

    Args:
        kind: key of `KINDS`.
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be.
        target: what it is to show; None: what that kind usually shows.
        settings: by name; None: not given. Joints move one by one in steps where `steps` or `dwell` are given and no
            `motion`; `known` goes to a Fourier motion.

    Raises:
        TrajectoryError: a setting or target that this kind does not have, or that makes no sense.

    """
    if kind not in KINDS:
        raise TrajectoryError(f"motion is '{kind}'; expected {', '.join(KINDS)}")
    chosen = KINDS[kind]
    if target not in (None, *chosen.targets):
        raise TrajectoryError(f"target is '{target}'; motion {kind} shows {' or '.join(chosen.targets)}")
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in chosen.settings:
            others = ", ".join(other for other, owner in KINDS.items() if name in owner.settings)
            raise TrajectoryError(f"motion {kind} has no setting {name}, which is one of {others or 'no motion'}")
        if name in COUNTS and value > COUNTS[name]:
            raise TrajectoryError(f"{name} is {value}; expected at most {COUNTS[name]}")
    if len(chosen.targets) > 1:
        given["target"] = target or chosen.target
    if chosen.make is JointByJoint and {"steps", "dwell"} & set(given):
        given.setdefault("motion", STEPS)
    return chosen.make(robot, limits, workspace, **given)
