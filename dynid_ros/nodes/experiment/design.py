"""The experiments that the parameters of the excitation node describe."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Experiment, FourierExcitation, Plan
from dynid_ros.excitation.given_motion import GivenMotion
from dynid_ros.excitation.joint_by_joint import SINUSOID, STEPS
from dynid_ros.excitation.parallel_search import Progress
from dynid_ros.excitation.sequences import repeat_plan
from dynid_ros.jobs.experiments import (
    FLEXIBLE,
    GUARDS,
    KINDS,
    PRIOR,
    MotionSettings,
    flexible_motion,
    flexible_prior,
    make_experiment,
    owners_of,
    recorded_information,
    usual_base_frequency,
)
from dynid_ros.jobs.inputs import checked
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.safety import Safety
from dynid_ros.nodes.shared.parameters import NodeParameter, parameters_of
from dynid_ros.nodes.shared.robot_description import CARRIED, ROBOT_PARAMETERS
from dynid_ros.recording import Recording
from dynid_ros.settings import Setting, settings_of
from dynid_ros.trajectories.limits import per_joint

# Parameters of the excitation node.


TRAJECTORY_TOPIC = "joint_trajectory_controller/joint_trajectory"

EACH = "; one value for all joints, or one per joint in the model's order"


def _settings(*names: str) -> tuple[NodeParameter, ...]:
    """Return the parameters of settings of motions, which say whose they are."""
    known = {each.name: each for each in settings_of(MotionSettings)}
    return tuple(_parameter(known[name]) for name in names)


def _parameter(setting: Setting) -> NodeParameter:
    (made,) = parameters_of([setting])
    owners = owners_of(setting.name)
    each = EACH if setting.is_numbers and setting.name != "frequencies" else ""
    return replace(made, description=f"{', '.join(owners)}{': ' * bool(owners)}{made.description}{each}")


MOTION_PARAMETERS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter(
            "motion",
            "static_rotation",
            "static_rotation or poses, for gravity; fourier, for links; joint_by_joint, for friction; payload, for a "
            "load; flexible, for flexible joints; file: one that was designed before",
        ),
        NodeParameter("motion_file", "", "file: dynid-trajectory/1, as trajectory_file, or dynid-fourier/1, as ~/plan"),
        NodeParameter("repeats", 1, "how often the whole motion is made, with a safe way back in between"),
        NodeParameter("target", "", "fourier, poses: links, gravity or load; empty: links (fourier), gravity (poses)"),
        *_settings("steps", "dwell", "approach", "sweep", "poses_per_joint", "base_frequency", "harmonics", "periods"),
        *_settings("criterion", "noise", "design_time", "starts", "workers"),
        NodeParameter("recordings", [""], "fourier: recordings of the arm, which the motion is to add to; empty: none"),
        NodeParameter("flexible_file", "", "flexible: identified.yaml with what is known of the joints; empty: none"),
        *_settings(*PRIOR),
        NodeParameter("held", [math.nan], "flexible: where brakes hold a joint, rad, one per joint; nan: it moves"),
        *_settings("seed"),
        NodeParameter("joint_motion", "sinusoid", "joint_by_joint: sinusoid or steps"),
        NodeParameter("joints", [""], "joint_by_joint: those that move, in that order; empty: all, from tip to base"),
        *_settings("frequencies", "cycles", "amplitude"),
        NodeParameter(
            "pose", [math.nan], "joint_by_joint, payload: where the others hold, rad (m), one per joint; nan: choose"
        ),
        *_settings("reach"),
        *(replace(each, name="turns") for each in _settings("repeats")),
        *_settings("count", "offsets", *GUARDS),
        NodeParameter("trajectory_file", "", "YAML file to which ~/design writes the motion; empty: none"),
    )
)
"""Those that ~/design reads anew."""
WORKSPACE = (
    NodeParameter("floor_height", 0.0, "lowest height of moving links above the base link's origin, m"),
    NodeParameter("clearance", 0.05, "smallest distance between links, and to obstacles, m"),
    NodeParameter("box_lower", [-math.inf] * 3, "corner, in the base frame, of a box that the links stay in, m"),
    NodeParameter("box_upper", [math.inf] * 3, "the opposite corner, m"),
    NodeParameter("obstacles_file", "", "YAML list of boxes that the links stay clear of; empty: none"),
    NodeParameter("allowed_pairs", [""], "pairs of links that may touch, each written as link:link; empty: none"),
    NodeParameter(
        "link_shapes",
        "available",
        "available: links are what the URDF's shapes occupy, lines where one cannot be read; required: an error where "
        "one cannot be read; none: all links are lines",
    ),
    NodeParameter("mesh_directories", [""], "folders to look for meshes in; empty: that of the URDF, ROS packages"),
)
LIMITS = (
    NodeParameter(
        "acceleration_limits", [math.nan], f"rad/s^2 (m/s^2); nan: the URDF's (URDF 1.2), else required{EACH}"
    ),
    NodeParameter("velocity_limits", [math.nan], f"rad/s (m/s); nan: the URDF's{EACH}"),
    NodeParameter("position_lower", [math.nan], f"rad (m); nan: the URDF's, and -pi for a continuous joint{EACH}"),
    NodeParameter("position_upper", [math.nan], f"rad (m); nan: the URDF's, and pi for a continuous joint{EACH}"),
    NodeParameter("jerk_limits", [math.nan], f"rad/s^3 (m/s^3); nan: none{EACH}"),
    NodeParameter("torque_limits", [math.nan], f"N m (N); nan: the URDF's{EACH}"),
    NodeParameter(
        "joint_limits_file",
        "",
        "joint_limits.yaml (MoveIt), in place of limits that are nan; empty: none",
    ),
)
THRESHOLDS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter(
            "tracking_error_limit", [0.2], f"distance from the motion at which it is stopped, rad (m){EACH}", above=0.0
        ),
        NodeParameter(
            "effort_limit",
            [math.nan],
            f"effort in joint_states at which the motion is stopped, in the driver's unit; nan: torque_limits; inf: "
            f"none{EACH}",
            above=0.0,
        ),
        NodeParameter("effort_grace", 0.1, "how long an effort may be above effort_limit, s", least=0.0),
        NodeParameter(
            "stale_after", 0.25, "age of the last joint state at which the motion is stopped, s", least=0.02, most=5.0
        ),
    )
)
"""Those at which a motion is stopped, also one that is under way when they are set."""
PARAMETERS = (
    *ROBOT_PARAMETERS,
    CARRIED,
    *MOTION_PARAMETERS,
    *LIMITS,
    *WORKSPACE,
    NodeParameter(
        "command_topic", TRAJECTORY_TOPIC, "trajectory_msgs/JointTrajectory for the controller", required=True
    ),
    NodeParameter("answer_at_once", False, "~/design answers at once, and ~/state says how it ends", adjustable=True),
    NodeParameter(
        "command_interface",
        "auto",
        "action: FollowJointTrajectory goals (needs control_msgs); topic: command_topic; auto: the action, where it is "
        "served",
    ),
    NodeParameter("action_name", "", "of the action; empty: follow_joint_trajectory of command_topic's controller"),
    NodeParameter(
        "accept_jerk",
        False,
        "move though the controller begins each trajectory at the measured pose (interpolate_from_desired_state false)",
    ),
    NodeParameter("controller_joints", [""], "the controller's joint order; empty: the model's"),
    NodeParameter("point_rate", 50.0, "points per second in a trajectory", least=10.0, most=1000.0),
    *THRESHOLDS,
)

POINTS_PER_CYCLE = 10
"""Points per cycle of the fastest harmonic: what a controller needs to follow it."""
FOURIER, JOINT_BY_JOINT, PAYLOAD, FILE = "fourier", "joint_by_joint", "payload", "file"


@dataclass(frozen=True)
class Design:
    """An experiment that is still to be planned.

    `settings` are values of `MOTION_PARAMETERS`, `point_rate` is that of what is sent, Hz.
    """

    robot: RobotModel
    safety: Safety
    settings: SimpleNamespace
    point_rate: float

    def plan(self, progress: Progress) -> tuple[Experiment, Plan]:
        """The motion, checked as it is to be sent, and what finds the way to it; `progress` is called by a search.

        Raises:
            DynidError: there is none that is safe.
        """
        experiment = self.experiment()
        if isinstance(experiment, FourierExcitation):
            paths = _given(self.settings.recordings)
            if paths:
                recordings = [Recording.read(path, joint_names=self.robot.joint_names) for path in paths]
                checked(recordings, self.robot, motion=True)
                experiment = self.experiment(known=recorded_information(experiment.information, recordings))
            assert isinstance(experiment, FourierExcitation)
            plan: Plan = experiment.plan(progress)
        else:
            plan = experiment.plan()
        plan = repeat_plan(plan, experiment, self.settings.repeats)
        self.safety.check(plan.trajectory.sample(self.point_rate))
        return experiment, plan

    def experiment(self, **more: Any) -> Experiment:
        """The experiment, with `more` settings.

        Raises:
            DynidError: a setting makes no sense; named as the parameter is.
        """
        settings, kind = self.settings, self.settings.motion
        kinds = (*KINDS, FLEXIBLE, FILE)
        if kind not in kinds:
            raise DynidError(f"Parameter motion is '{kind}'; expected {', '.join(kinds)}")
        for name in ("repeats", "turns"):
            if getattr(settings, name) < 1:
                raise DynidError(f"Parameter {name} is {getattr(settings, name)}; it must be at least 1")
        if settings.seed < 0:
            raise DynidError(f"Parameter seed is {settings.seed}; it must be at least 0")
        if not 0 < settings.torque_fraction <= 1:
            raise DynidError(
                f"Parameter torque_fraction is {settings.torque_fraction:g}; it must be above 0 and at most 1"
            )
        if kind != FOURIER and _given(settings.recordings):
            raise DynidError(f"Parameter recordings is for motion {FOURIER}, not {kind}; leave it empty")
        arm = self.robot, self.safety.limits, self.safety.workspace
        if kind == FILE:
            return self._file(arm)
        if kind == FLEXIBLE:
            return self._flexible()
        given = {name: getattr(settings, name) for name in KINDS[kind].settings if hasattr(settings, name)}
        return make_experiment(kind, *arm, settings.target or None, **(given | self._translated() | more))

    def _translated(self) -> dict[str, Any]:
        """Settings that are not named or written as the parameters are."""
        settings, kind = self.settings, self.settings.motion
        pose = _known(settings.pose)
        if kind == FOURIER:
            return self._series(usual_base_frequency(self.safety.limits, settings.speed_fraction))
        if kind == JOINT_BY_JOINT:
            if settings.joint_motion not in (SINUSOID, STEPS):
                raise DynidError(f"Parameter joint_motion is '{settings.joint_motion}'; expected {SINUSOID} or {STEPS}")
            if settings.joint_motion == SINUSOID:
                self._check_rate(max(settings.frequencies), "the fastest of frequencies")
            return {"motion": settings.joint_motion, "joints": tuple(_given(settings.joints)) or None, "pose": pose}
        return {"repeats": settings.turns, "pose": pose} if kind == PAYLOAD else {}

    def _series(self, default: float | None) -> dict[str, Any]:
        """Return settings of a sum of sines, with the default base frequency where none is given."""
        settings = self.settings
        base = default if math.isnan(settings.base_frequency) else settings.base_frequency
        if base is not None:
            self._check_rate(settings.harmonics * base, f"the fastest of {settings.harmonics} harmonics")
        return {"base_frequency": base, "starts": settings.starts or None, "noise": _known(settings.noise)}

    def _flexible(self) -> Experiment:
        settings = self.settings
        if settings.target:
            raise DynidError(f"Parameter target is '{settings.target}'; motion {FLEXIBLE} has none, leave it empty")
        known = {name: _known(getattr(settings, name)) for name in PRIOR}
        path = Path(settings.flexible_file) if settings.flexible_file else None
        joints = flexible_prior(self.robot, {k: None if v is None else np.array(v) for k, v in known.items()}, path)
        held = None if _known(settings.held) is None else per_joint(settings.held, self.robot.joint_names, "held")
        names = [name for name in KINDS[FOURIER].settings if hasattr(settings, name)]
        given = {name: getattr(settings, name) for name in names} | self._series(None)
        experiment = flexible_motion(self.robot, self.safety.limits, self.safety.workspace, joints, held, **given)
        self._check_rate(experiment.highest_frequency, f"the fastest of {settings.harmonics} harmonics")
        return experiment

    def _file(self, arm: tuple) -> Experiment:
        settings = self.settings
        if not settings.motion_file:
            raise DynidError("Parameter motion_file is empty; name the file of the motion, or choose another motion")
        return GivenMotion(
            *arm,
            path=settings.motion_file,
            periods=settings.periods,
            travel_speed_fraction=settings.travel_speed_fraction,
            torque_fraction=settings.torque_fraction,
        )

    def _check_rate(self, fastest: float, what: str) -> None:
        highest = self.point_rate / POINTS_PER_CYCLE
        if fastest > highest:
            raise DynidError(
                f"{what} is {fastest:g} Hz; with point_rate {self.point_rate:g} it may be {highest:g} Hz at most"
            )


def controller_joints(settings: SimpleNamespace, joint_names: tuple[str, ...]) -> tuple[str, ...]:
    """The controller's joint order.

    Raises:
        DynidError: other joints than the model's.
    """
    given = tuple(_given(settings.controller_joints))
    if not given:
        return joint_names
    if sorted(given) != sorted(joint_names):
        raise DynidError(
            f"Parameter controller_joints is {', '.join(given)}; expected {', '.join(joint_names)} in any order"
        )
    return given


def _known(values: list[float]) -> list[float] | None:
    """A parameter that is a list of numbers: None where all are NaN."""
    return None if all(map(math.isnan, values)) else values


def _given(values: list[str]) -> list[str]:
    """A parameter that is a list cannot be empty: without its empty strings."""
    return [value for value in values if value]
