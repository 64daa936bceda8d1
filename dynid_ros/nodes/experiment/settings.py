"""The experiments that the parameters of the excitation node describe."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Experiment, FourierExcitation, Plan
from dynid_ros.excitation.experiment import repeated
from dynid_ros.excitation.given_motion import GivenMotion
from dynid_ros.excitation.joint_by_joint import SINUSOID, STEPS
from dynid_ros.excitation.parallel_search import Progress
from dynid_ros.jobs.experiments import (
    FLEXIBLE,
    KEYS,
    KINDS,
    flexible_motion,
    flexible_prior,
    make_experiment,
    recorded_information,
)
from dynid_ros.jobs.inputs import checked
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.safety import Safety
from dynid_ros.recording import Recording
from dynid_ros.trajectories.limits import per_joint

BASE_FREQUENCY = 0.05
"""Of the first harmonic where none is given, Hz."""
POINTS_PER_CYCLE = 10
"""Of the fastest harmonic: what a controller needs to follow it."""
FOURIER, JOINT_BY_JOINT, PAYLOAD, FILE = "fourier", "joint_by_joint", "payload", "file"


@dataclass(frozen=True)
class Design:
    """An experiment that is still to be planned.

    Attributes:
        robot: the arm.
        safety: what the motion must keep to.
        settings: values of `MOTION_PARAMETERS`.
        point_rate: of what is sent, Hz.

    """

    robot: RobotModel
    safety: Safety
    settings: SimpleNamespace
    point_rate: float

    def plan(self, progress: Progress) -> tuple[Experiment, Plan]:
        """The motion, checked as it is to be sent, and what finds the way to it; `progress` is told of a search.

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
        plan = repeated(plan, experiment, self.settings.repeats)
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
            return self._series(BASE_FREQUENCY)
        if kind == JOINT_BY_JOINT:
            if settings.joint_motion not in (SINUSOID, STEPS):
                raise DynidError(f"Parameter joint_motion is '{settings.joint_motion}'; expected {SINUSOID} or {STEPS}")
            if settings.joint_motion == SINUSOID:
                self._check_rate(max(settings.frequencies), "the fastest of frequencies")
            return {"motion": settings.joint_motion, "joints": tuple(_given(settings.joints)) or None, "pose": pose}
        return {"repeats": settings.turns, "pose": pose} if kind == PAYLOAD else {}

    def _series(self, usual: float | None) -> dict[str, Any]:
        """Of a sum of sines, with the usual base frequency where none is given."""
        settings = self.settings
        base = usual if math.isnan(settings.base_frequency) else settings.base_frequency
        if base is not None:
            self._check_rate(settings.harmonics * base, f"the fastest of {settings.harmonics} harmonics")
        return {"base_frequency": base, "starts": settings.starts or None, "noise": _known(settings.noise)}

    def _flexible(self) -> Experiment:
        settings = self.settings
        if settings.target:
            raise DynidError(f"Parameter target is '{settings.target}'; motion {FLEXIBLE} has none, leave it empty")
        known = {name: _known(getattr(settings, name)) for name in KEYS}
        path = Path(settings.flexible_file) if settings.flexible_file else None
        joints = flexible_prior(self.robot, {k: None if v is None else np.array(v) for k, v in known.items()}, path)
        held = None if _known(settings.held) is None else per_joint(settings.held, self.robot.joint_names, "held")
        names = [name for name in KINDS[FOURIER].settings if hasattr(settings, name)]
        given = {name: getattr(settings, name) for name in names} | self._series(None)
        experiment = flexible_motion(self.robot, self.safety.limits, self.safety.workspace, joints, held, **given)
        self._check_rate(experiment.fastest, f"the fastest of {settings.harmonics} harmonics")
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


def check_rates(settings: SimpleNamespace) -> None:
    """Raise unless the rates of the node make sense; names the parameter."""
    for name, lowest, highest in (("point_rate", 10.0, 1000.0), ("stale_after", 0.02, 5.0)):
        if not lowest <= getattr(settings, name) <= highest:
            raise DynidError(f"Parameter {name} is {getattr(settings, name):g}; expected {lowest:g} to {highest:g}")


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
