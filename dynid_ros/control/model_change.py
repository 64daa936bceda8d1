"""Plausibility of a gravity model or a load: comparison with the URDF, the model in force and measured effort."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.control.gravity_feedforward import LoadedGravity
from dynid_ros.control.joint_brake import random_poses
from dynid_ros.errors import ControlError
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK

COMPARED_POSES = 2000
"""Number of random poses within the joints' limits at which torques are compared."""
MIN_SIGN_FRACTION = 0.05
"""Smallest gravity torque of the URDF whose sign a model must share, as a fraction of the joint's effort limit."""
MIN_CHANGE_FRACTION = 0.02
"""Change of torque that is always allowed because dry friction hides it, as a fraction of the effort limit."""

MAX_ACTING_SCALE = 1.1
"""Largest fraction of the gravity torque that an earlier process may have commanded, sensor gain included."""
MIN_ACTING_SCALE = 0.05
"""Fraction of the gravity torque below which the applied torque counts as zero."""


@dataclass(frozen=True)
class MeasuredEffort:
    """Torque that the drives apply while they hold the arm at rest.

    Attributes:
        position: (n,) rad (m).
        effort: (n,) N m (N).
        error: (n,) largest error of the sensors, N m (N).
        certain: whether the drives hold the whole weight of the arm for sure, as under a position controller.
    """

    position: Sequence[float]
    effort: Sequence[float]
    error: Sequence[float]
    certain: bool = False

    @property
    def holds(self) -> bool:
        """Whether the drives hold the arm; on its brakes or in a strap, an arm shows no effort."""
        return any(abs(value) > 2.0 * error for value, error in zip(self.effort, self.error, strict=True))


class ModelChange:
    """Comparison of gravity torques over the workspace.

    Args:
        model: gravity model of the arm; its robot has the URDF's masses and effort limits.
        torque: (n,) torque limits for joints without an effort limit in the URDF, N m (N).
        max_change: largest difference or change of a joint's torque in any pose, as a fraction of its largest gravity
            torque; infinite to allow any.

    Raises:
        ControlError: `max_change` is not positive.
    """

    def __init__(self, model: GravityModel, torque: ArrayLike, max_change: float) -> None:
        if not max_change > 0.0:
            raise ControlError(
                f"max_model_change is {max_change}; expected a part of the largest gravity torques above 0, or .inf"
            )
        robot = model.robot
        self._model = model
        self._names = robot.joint_names
        effort = np.asarray(robot.limits.effort, dtype=float)
        self._effort = np.where(np.isfinite(effort) & (effort > 0.0), effort, np.asarray(torque, dtype=float))
        self._max_change = max_change
        self._matrix = model.regressor(random_poses(robot, COMPARED_POSES))
        mass = robot.parameters[::PARAMETERS_PER_LINK]
        self._described = np.cumsum(mass[::-1])[::-1] > 0.0
        self._urdf = model.project(robot.parameters)

    def check_arm(self, gravity: LoadedGravity, measured: MeasuredEffort | None = None) -> bool:
        """Compare the arm without its load with the URDF, if that has masses, and with measured effort.

        Args:
            gravity: gravity torque of the arm and its load.
            measured: effort that holds the arm; None: unknown.

        Returns:
            Whether measured effort confirms the model.

        Raises:
            ControlError: the model contradicts the effort, differs too much from a URDF that the effort does not
                refute, or has a torque of the opposite sign.
        """
        if math.isinf(self._max_change):
            return False
        expected = np.where(self._described, self._torque(self._urdf), 0.0)
        torque = self._torque(gravity.arm_moments)
        self._check_signs(expected, torque)
        largest = np.abs(expected).max(axis=0)
        allowed = self._allowed(largest)
        difference = np.abs(torque - expected).max(axis=0)
        beyond = np.where(self._described, difference > allowed, np.abs(torque).max(axis=0) > self._effort)
        confirmed = measured is not None and measured.holds and self._agrees(gravity, measured)
        if not beyond.any() or (confirmed and measured is not None and self._refutes_urdf(gravity, measured, beyond)):
            return confirmed
        i = int(np.argmax(np.where(beyond, difference / allowed, 0.0)))
        if not self._described[i]:
            raise ControlError(
                f"the gravity torque of joint '{self._names[i]}' is up to {difference[i]:.3g} N m (N), more than its "
                f"effort limit of {self._effort[i]:.3g}: check the model"
            )
        share = difference[i] / largest[i] if largest[i] > 0.0 else math.inf
        raise ControlError(
            f"the gravity torque of joint '{self._names[i]}' differs from the URDF's by up to {difference[i]:.3g} N m "
            f"(N), {share:.2g} of its largest; at most {self._max_change:g} is taken: if the URDF is wrong and the "
            f"model was validated, set max_model_change to {math.ceil(10.0 * share) / 10.0:g}"
        )

    def check_load(self, gravity: LoadedGravity, position: Sequence[float] = ()) -> None:
        """Check that the joints can hold the load in any pose, and the arm with the load in its present pose.

        Args:
            gravity: gravity torque of the arm and its load.
            position: (n,) pose of an arm that is held by this torque, rad (m); empty if it is not held.

        Raises:
            ControlError: the torque of a joint exceeds its effort limit.
        """
        if math.isinf(self._max_change):
            return
        load = np.abs(self._torque(gravity.moments - gravity.arm_moments)).max(axis=0)
        for name, torque, limit in zip(self._names, load, self._effort, strict=True):
            if torque > limit:
                raise ControlError(
                    f"the gravity torque of joint '{name}' changes with the load by up to {torque:.3g} N m (N), its "
                    f"effort limit is {limit:.3g}: check mass and centre"
                )
        if not position:
            return
        for name, torque, limit in zip(self._names, gravity(position), self._effort, strict=True):
            if abs(torque) > limit:
                raise ControlError(
                    f"with it joint '{name}' needs {abs(torque):.3g} N m (N) in this pose, its effort limit is "
                    f"{limit:.3g}: move the arm closer to its base first"
                )

    def check_change(
        self,
        before: "ModelChange",
        in_force: LoadedGravity,
        gravity: LoadedGravity,
        measured: MeasuredEffort | None = None,
    ) -> None:
        """Compare a new gravity torque with the one that holds the arm.

        A change that brings every joint closer to the measured effort is always accepted.

        Args:
            before: comparison of the model in force.
            in_force: gravity torque in force.
            gravity: new gravity torque.
            measured: effort that holds the arm; None: unknown.

        Raises:
            ControlError: the change is too large.
        """
        old = before._torque(in_force.arm_moments)
        change = np.abs(self._torque(gravity.arm_moments) - old).max(axis=0)
        largest = np.abs(old).max(axis=0)
        allowed = self._allowed(largest)
        i = int(np.argmax(change / allowed))
        if change[i] <= allowed[i] or (measured is not None and self._relieves(in_force, gravity, measured)):
            return
        share = change[i] / largest[i] if largest[i] > 0.0 else math.inf
        raise ControlError(
            f"the gravity torque of joint '{self._names[i]}' changes by up to {change[i]:.3g} N m (N), {share:.2g} of "
            f"its largest; at most {self._max_change:g} is taken while the arm is held by it: disable, reload and "
            "enable, or raise max_model_change"
        )

    def _allowed(self, largest: NDArray) -> NDArray:
        """Return the allowed differences (n,) for the largest gravity torques (n,) of the joints, N m (N)."""
        return np.maximum(self._max_change * largest, MIN_CHANGE_FRACTION * self._effort)

    def _check_signs(self, expected: NDArray, torque: NDArray) -> None:
        agree = np.sum(expected * torque, axis=0) >= 0.0
        signed = np.abs(expected).max(axis=0) > MIN_SIGN_FRACTION * self._effort
        for name in (name for name, wrong in zip(self._names, signed & ~agree, strict=True) if wrong):
            raise ControlError(
                f"the gravity torque of joint '{name}' has the other sign than by the URDF; check the sign of its "
                "effort and identify again"
            )

    def _agrees(self, gravity: LoadedGravity, measured: MeasuredEffort) -> bool:
        """Return whether the model explains the effort; raise an error if it certainly does not."""
        allowed = self._allowed(np.abs(self._torque(gravity.moments)).max(axis=0))
        torque = gravity(measured.position)
        for name, value, effort, error, more in zip(
            self._names, torque, measured.effort, measured.error, allowed, strict=True
        ):
            if abs(effort - value) > error + more:
                if not measured.certain:
                    return False
                raise ControlError(
                    f"the model says {value:.3g} N m (N) for joint '{name}' in this pose, and {effort:.3g} hold it: "
                    "identify again, announce the load, or set max_model_change to .inf"
                )
        return True

    def _refutes_urdf(self, gravity: LoadedGravity, measured: MeasuredEffort, beyond: NDArray) -> bool:
        """Return whether the effort of all joints in the mask `beyond` (n,) is closer to the model than to the URDF."""
        model = np.asarray(gravity(measured.position))
        urdf = self._model.regressor(np.array([measured.position]))[0] @ self._urdf
        effort = np.asarray(measured.effort)
        nearer = np.abs(effort - model) < np.abs(effort - urdf)
        return bool(np.all(nearer | ~beyond))

    def _relieves(self, in_force: LoadedGravity, gravity: LoadedGravity, measured: MeasuredEffort) -> bool:
        """Return whether the new torque is closer to the effort than the old one, within the sensors' error."""
        effort = np.asarray(measured.effort)
        old = np.abs(np.asarray(in_force(measured.position)) - effort)
        new = np.abs(np.asarray(gravity(measured.position)) - effort)
        return bool(measured.holds and np.all(new <= np.maximum(old, measured.error)) and new.sum() < old.sum())

    def _torque(self, moments: NDArray) -> NDArray:
        """Return the torques (N, n) at the compared poses, N m (N)."""
        return self._matrix @ moments


def acting_scale(
    names: Sequence[str], gravity: Sequence[float], effort: Sequence[float], error: Sequence[float]
) -> float:
    """Return the fraction of the gravity torque that acts, fitted to the measured efforts of all joints.

    A single fraction for all joints keeps offsets of the sensors out of the commands.

    Args:
        names: n joint names.
        gravity: (n,) gravity torque of the model in the measured pose, N m (N).
        effort: (n,) measured efforts, N m (N).
        error: (n,) largest error of the sensors, N m (N).
    """
    heavy = [abs(value) > limit for value, limit in zip(gravity, error, strict=True)]
    weight = sum(g * g for g, counts in zip(gravity, heavy, strict=True) if counts)
    scale = 0.0
    if weight > 0.0:
        scale = sum(g * e for g, e, counts in zip(gravity, effort, heavy, strict=True) if counts) / weight
    if not MIN_ACTING_SCALE < scale <= MAX_ACTING_SCALE:
        scale = 0.0
    for name, torque, measured, limit in zip(names, gravity, effort, error, strict=True):
        if abs(measured - scale * torque) > limit:
            raise ControlError(
                f"{measured:.3g} N m (N) act on joint '{name}', which is no part of its gravity torque of "
                f"{torque:.3g}: it is not known what the controller holds"
            )
    return min(scale, 1.0)
