"""Identification of mass, centre and inertia of a payload (Atkeson, An and Hollerbach 1986, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identification.links.link_identification import LinkIdentification
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identification.load.load_fit import (
    LoadEquations,
    LoadProblem,
    StaticLoadEquations,
    TorqueLoadColumns,
    fit_load,
)
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.static_samples import SampleRules
from dynid_ros.identified.links import KnownArm, LinkModel, as_known
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import payload_parameters
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import LOAD_NAMES
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import RecordingLike, Recordings, read_all
from dynid_ros.recording.uniform_motion import LinkSignals

# A tool that was weighed along with the load.


def without_tare(estimate: BaseEstimate, solution: NDArray, tare: LoadResult) -> tuple[BaseEstimate, NDArray]:
    """Return the estimate and its complete solution (k,) minus the tare's parameters, with the sum of their variances.

    A parameter that is unknown for the tare becomes unknown for the load.
    """
    n = sum(name in LOAD_NAMES for name in estimate.names)
    own = slice(0, n)
    both = slice(0, min(n, tare.n_load))
    values = estimate.values.copy()
    rest = solution.copy()
    covariance = estimate.covariance.copy()
    values[own] -= tare.body.parameters[own]
    rest[own] -= np.nan_to_num(tare.body.parameters[own])
    covariance[own, own] += tare.body.covariance[own, own]
    dof = estimate.dof.copy()
    dof[both] = np.minimum(dof[both], tare.estimate.dof[both])
    return replace(estimate, values=values, covariance=covariance, dof=dof), rest


def compensated_arm(robot: RobotModel, signals: LinkSignals) -> KnownArm:
    """Return an arm without links and friction: the driver has subtracted the arm's own torques already."""
    frictionless = FrictionModel(JointFriction(coulomb=False, viscous=False))
    nothing = LinkModel(robot, np.zeros_like(robot.parameters), frictionless, np.zeros(0), signals)
    return KnownArm(nothing, source="the driver's own model of the arm")


LOAD_MOTIONS = ("dynamic", "static")
CONFIDENCE_OF_SIGN = 0.999
COMPENSATED_ARM = "compensated"
"""An arm whose driver takes its own model of it off the torques that it reports."""
NEGATIVE_MASS_HINTS = {
    "torque": "Was the load on the arm when its model was identified, or is the torque's sign reversed?",
    COMPENSATED_ARM: "Does the driver compensate for a payload? Then give it as declared to the driver (payload)",
    "wrench": "Does the load exert the wrench on the sensor, or the sensor on the load? Give the other convention",
}
"""Questions that explain a negative mass, by source of the torques or wrenches."""


@dataclass
class LoadIdentification:
    """Identification of the ten parameters of a body that is fixed to the tip of an arm.

    Joint torques weigh the body by the difference to the arm's own model. Offset, Coulomb and viscous friction of each
    joint may differ from the model, because friction changes with the load. A force/torque sensor at the wrist weighs
    what hangs on it and needs no model of the arm; its bias is estimated as well.

    Attributes:
        robot: kinematics and gravity; its tip is the link that the load is fixed to, or the sensor's link.
        arm: identified model of the arm alone; None: identified from the unloaded recordings given to `fit`;
            "compensated": the driver has subtracted the torques of its own model of the arm.
        sensor: wrist sensor that weighs the load; None: the joint torques do.
        motion: "dynamic": ten parameters from motion; "static": mass and mass moment from dwells.
        tare: tool that was on the arm when the load was recorded, but belongs neither to the load nor to the arm's
            model; it is subtracted, and its uncertainty is added.
        declared: (10,) payload about the tip that the driver of a "compensated" arm subtracts as well. The fit finds
            its error, and the result is the sum. None: no payload.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain.
        rules: thresholds of rest, for "static".
    """

    robot: RobotModel
    arm: LinkModel | LinkResult | KnownArm | Literal["compensated"] | None = None
    sensor: WrenchSource | None = None
    motion: Literal["dynamic", "static"] = "dynamic"
    tare: LoadResult | None = None
    declared: NDArray | None = None
    torque_gain_error: float = 0.01
    rules: SampleRules = field(default_factory=SampleRules)

    def __post_init__(self) -> None:
        if self.motion not in LOAD_MOTIONS:
            raise IdentificationError(f"motion is '{self.motion}'; expected one of {', '.join(LOAD_MOTIONS)}")
        if not (np.isfinite(self.torque_gain_error) and self.torque_gain_error >= 0):
            raise IdentificationError(f"torque_gain_error is {self.torque_gain_error}; expected a number of 0 or more")
        if isinstance(self.arm, str) and self.arm != COMPENSATED_ARM:
            raise IdentificationError(f"arm is '{self.arm}'; expected a model of the arm, '{COMPENSATED_ARM}' or None")
        if self.declared is not None and self.arm != COMPENSATED_ARM:
            raise IdentificationError(
                "declared is what a driver compensates for: give it with the arm 'compensated'; a tool that is part of "
                "neither the load nor the arm's model is a tare"
            )
        if self.tare is not None and self.tare.frame != self.robot.tip:
            raise IdentificationError(
                f"the tare is at {self.tare.frame}, the load at {self.robot.tip}; give both at the same tip link"
            )

    @property
    def source(self) -> str:
        """Source of the measurements, "torque" or "wrench"."""
        return "torque" if self.sensor is None else "wrench"

    def of_compensated(self, declared: Sequence[float] = ()) -> LoadIdentification:
        """Return a copy for torques that the driver has compensated, with the payload that is declared to it.

        Raises:
            ModelError: the declared numbers are not a payload; see `with_payload`.
        """
        body = payload_parameters(declared) if len(declared) else None
        return replace(self, arm="compensated", declared=body)

    def fit(self, *recordings: Recordings, unloaded: Sequence[RecordingLike] = ()) -> LoadResult:
        """Identify from recordings of the arm with its load, or files of these.

        Args:
            recordings: with the same load in all.
            unloaded: of the arm alone, to identify it from where `arm` is None.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: no arm, one of another robot, or recordings that hold too little.
        """
        loaded, alone = (read_all(each, self.robot.joint_names) for each in (recordings, unloaded))
        problem = self.problem(*loaded, unloaded=alone)
        return self.solve(problem, tuple(recording.source for recording in loaded))

    def problem(self, *recordings: Recording, unloaded: Sequence[Recording] = ()) -> LoadProblem:
        """Return the equations that `fit` solves; arguments and errors as of `fit`."""
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        static = self.motion == "static"
        sensor = self.sensor
        if sensor is not None:
            if static:
                return sensor.resting(self.robot, recordings, self.rules)
            return sensor.moving(self.robot, recordings)
        selected = [recording.select(self.robot.joint_names) for recording in recordings]
        arm = self._known_arm(selected, unloaded)
        return LoadProblem(
            StaticLoadEquations(arm, selected, self.rules) if static else LoadEquations(arm, selected),
            TorqueLoadColumns(arm, static=static),
            self.robot.joint_names,
            arm,
            self.torque_gain_error,
            () if arm.covariance is not None else (f"errors of {arm.source} itself are not known, nor counted",),
        )

    def solve(self, problem: LoadProblem, sources: tuple[str, ...]) -> LoadResult:
        """Solve equations from `problem`; errors as of `fit`."""
        found = fit_load(problem, ", ".join(sources))
        estimate = found.estimate
        solution = found.solution
        if self.tare is not None:
            estimate, solution = without_tare(estimate, solution, self.tare)
        remarks = list(problem.remarks)
        if self.declared is not None:
            n = min(sum(name in LOAD_NAMES for name in estimate.names), len(self.declared))
            remarks.append(
                f"of this {self.declared[0]:g} kg are declared to the driver, which are off by {solution[0]:+.3g} kg"
            )
            more = np.concatenate([self.declared[:n], np.zeros(len(estimate.values) - n)])
            estimate = replace(estimate, values=estimate.values + more)
            solution = solution.copy()
            solution[:n] += self.declared[:n]
        result = LoadResult(
            robot=self.robot,
            estimate=estimate,
            solution=solution,
            condition_number=found.condition_number,
            channels=tuple(problem.channels),
            residual_rms=found.residual_rms,
            signal_rms=found.signal_rms,
            n_samples=found.n_samples,
            sources=sources,
            settings={
                "source": self.source,
                "motion": str(self.motion),
                "torque_gain_error": float(self.torque_gain_error),
                "wrench_convention": None if self.sensor is None else self.sensor.convention,
                "sensor_turn": None
                if problem.sensor_turn is None
                else Rotation.from_matrix(problem.sensor_turn).as_rotvec().tolist(),
                "tare": None if self.tare is None else list(self.tare.sources),
                "compensated": self.arm == COMPENSATED_ARM,
                "declared": None if self.declared is None else list(map(float, self.declared)),
            },
            remarks=tuple(remarks),
            faults=problem.faults,
        )
        high = result.confidence_intervals(CONFIDENCE_OF_SIGN)[0, 1]
        if high < 0:
            raise IdentificationError(
                f"{', '.join(sources)}: the load has a mass of {result.body.mass:.3g} kg, below zero beyond doubt. "
                f"{NEGATIVE_MASS_HINTS[COMPENSATED_ARM if self.arm == COMPENSATED_ARM else self.source]}"
            )
        return result

    def _known_arm(self, recordings: Sequence[Recording], unloaded: Sequence[Recording]) -> KnownArm:
        arm = self.arm
        if isinstance(arm, str):
            return compensated_arm(self.robot, LinkSignals.choose(recordings))
        if arm is None and unloaded:
            arm = LinkIdentification(self.robot, torque_gain_error=self.torque_gain_error).fit(*unloaded)
        if arm is None:
            raise IdentificationError(
                "the torques of the arm itself are not known: give `arm`, as a link identification found it, or "
                "recordings of the arm without the load (`unloaded`)"
            )
        known = as_known(arm)
        own = known.model.robot
        if own.kinematics_sha256 != self.robot.kinematics_sha256 or own.joint_names != self.robot.joint_names:
            raise IdentificationError(
                f"{known.source} is of robot '{own.name}' with joints {', '.join(own.joint_names)}, which is not "
                f"'{self.robot.name}' with {', '.join(self.robot.joint_names)}; identify this arm's links first"
            )
        return known
