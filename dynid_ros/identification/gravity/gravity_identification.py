"""Identification of gravity parameters from static torques (Ma & Hollerbach 1996), joint by joint or all at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.estimation.least_squares import solve_grouped
from dynid_ros.estimation.rank import column_norms, null_space
from dynid_ros.identification.gravity.gravity_problem import GravityProblem, GravitySolution, recursive
from dynid_ros.identification.gravity.gravity_result import (
    MAX_INFLATION,
    GravityResult,
    count_angles,
    describe_observability,
    moment_joints,
    required_angles,
)
from dynid_ros.identification.gravity_direction import (
    CONVERGENCE_ANGLE_RAD,
    MAX_ITERATIONS,
    MAX_STEP_ANGLE_RAD,
    MIN_TILT_RAD,
    TiltCheck,
    direction_found,
    direction_setting,
    downward,
    imu_direction,
    imu_topic_setting,
    require_determined,
    starting_directions,
)
from dynid_ros.identification.static_samples import (
    SampleRules,
    Samples,
    extract_samples,
)
from dynid_ros.identified.gravity_direction import ESTIMATED, GIVEN, IMU, GravityDirection
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import turn_axes, turned
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.settings import check, part, setting

GRAVITY_ESTIMATORS = ("global", "recursive")
SAMPLE_KINDS = ("static", "slow", "both")
FALSE_ALARM_RATE = 0.05
"""Fraction of fault-free recordings in which some moment from all torques contradicts that from the turning joints."""
RECORDED_SETTINGS = ("estimator", "torque_offset", "samples", "own_torque_only", "torque_gain_error")


@dataclass
class GravityIdentification:
    """Fits τ_j = Y_j(q) n + offset_j + coulomb_j · direction_j + viscous_j · velocity_j to static (or slow) samples.

    Attributes:
        robot: kinematics and gravity; its inertias are not used.
        estimator: "global" fits all joints at once, each weighted by its own noise; "recursive" goes from tip to base
            and fits each joint to its own torque while it rotates alone, as in the paper.
        torque_offset: whether to estimate a constant sensor offset per joint; False: the sensors were zeroed.
        samples: "static" for dwells, "slow" for nearly unaccelerated motion, "both" for both.
        own_torque_only: whether the global fit uses only the torque of the joint that rotates, as in the paper.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain. Such an error scales
            all moments of a joint, so residuals do not show it.
        gravity_direction: "given": that of the robot; "estimated": estimated together with the moments, whose intervals
            include its error; "imu": measured by `sensor_msgs/Imu` in the recordings.
        imu_topic: topic of the IMU; empty: the only one.
        rules: criteria for static and for slow samples.
    """

    robot: RobotModel
    estimator: str = setting(
        "global",
        "method: global, all torques of all poses at once; recursive, from tip to base",
        choices=GRAVITY_ESTIMATORS,
    )
    torque_offset: bool = setting(
        True,
        "estimate a constant torque-sensor offset per joint; false: the sensors were zeroed",
        off="do not estimate torque-sensor offsets; assume that the sensors were zeroed",
    )
    samples: str = setting("static", "samples to fit: static, dwells; slow, slow motion; both", choices=SAMPLE_KINDS)
    own_torque_only: bool = False
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    gravity_direction: str = direction_setting()
    imu_topic: str = imu_topic_setting()
    rules: SampleRules = part(SampleRules)

    def __post_init__(self) -> None:
        check(self, IdentificationError)
        if self.gravity_direction != GIVEN and self.estimator == "recursive":
            raise IdentificationError("estimator 'recursive' takes the direction of gravity as given; use 'global'")

    def fit(self, *recordings: Recordings) -> GravityResult:
        """Identify the gravity parameters from one or more recordings or their files.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: there are too few samples. Joints that are not observable raise no error; the result
                names them.
        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        given = read_all(recordings, self.robot.joint_names)
        try:
            direction = imu_direction(self.robot, given, self.imu_topic) if self.gravity_direction == IMU else None
            sources = tuple(recording.source for recording in given)
            return self.fit_samples(self.extract(*given), sources, direction)
        except IdentificationError as error:
            stretches = 0
            if self.samples == "static":
                with suppress(IdentificationError):
                    stretches = len(replace(self, samples="slow").extract(*given))
            if not stretches:
                raise
            raise IdentificationError(
                f"{str(error).rstrip('.')}. But it moves slowly, below {self.rules.slow_velocity:g} per s, in "
                f"{stretches} stretches; to identify from these: --samples slow (node: samples: slow)"
            ) from error

    def extract(self, *recordings: Recording) -> Samples:
        """Return the static or slow samples of the recordings, with joints in the model's order.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: a recording has no torque, or no samples.
        """
        return extract_samples(recordings, self.robot.joint_names, self.samples, self.rules)

    def fit_samples(
        self, samples: Samples, sources: Sequence[str] = (), direction: GravityDirection | None = None
    ) -> GravityResult:
        """Identify the gravity parameters from extracted samples.

        Args:
            samples: samples of the joints in the model's order, as returned by `extract`.
            sources: names of the recordings, for the report.
            direction: direction of gravity from an IMU; None: according to `gravity_direction`.

        Raises:
            IdentificationError: too few samples, or samples that do not determine any joint's gravity parameters or an
                estimated direction of gravity.
        """
        if direction is not None:
            return replace(self, robot=self.robot.with_gravity(direction.gravity))._result(samples, sources, direction)
        if self.gravity_direction == IMU:
            raise IdentificationError("samples have no IMU; identify from recordings, or give the direction")
        if self.gravity_direction == GIVEN:
            return self._result(samples, sources, None)
        along_best = self._with_best_direction(samples)
        return along_best._result(samples, sources, None, self.robot.gravity)

    def _with_best_direction(self, samples: Samples) -> GravityIdentification:
        """Return a copy with the direction of gravity that fits best.

        Each Gauss-Newton step of the two angles solves for all moments (variable projection, Golub and Pereyra 1973).
        """
        starts = [replace(self, robot=robot, gravity_direction=GIVEN) for robot in starting_directions(self.robot)]
        best = min(starts, key=lambda start: start._misfit(samples))
        turn = np.zeros(2)
        for _ in range(MAX_ITERATIONS):
            turn = best._solve(samples, turns=True).values[-2:]
            turn = turn * min(1.0, MAX_STEP_ANGLE_RAD / max(float(np.linalg.norm(turn)), CONVERGENCE_ANGLE_RAD))
            gravity = best.robot.gravity
            best = replace(best, robot=best.robot.with_gravity(turned(gravity, turn @ turn_axes(gravity))))
            if np.linalg.norm(turn) < CONVERGENCE_ANGLE_RAD:
                break
        robot = downward(best.robot, self.robot.gravity, samples.position, samples.torque)
        return replace(best, robot=robot)

    def _misfit(self, samples: Samples) -> float:
        """Return the sum over all rows of the logarithm of their noise, which grows with the misfit."""
        solution = self._solve(samples)
        return float(np.sum(np.log(np.maximum(solution.sigma[solution.problem.group], CONVERGENCE_ANGLE_RAD))))

    def _result(
        self,
        samples: Samples,
        sources: Sequence[str],
        direction: GravityDirection | None,
        configured: NDArray | None = None,
    ) -> GravityResult:
        """Return the result; `configured` gravity (3,), where its direction was estimated, or None.

        A measured `direction` contributes its covariance.
        """
        solution = self._solve(samples, turns=configured is not None)
        problem = solution.problem
        from_residuals = solution.covariance()
        dof = solution.linear.dof()
        shifts = self.torque_gain_error * solution.gain_shifts()
        covariance = from_residuals + shifts.T @ shifts
        if direction is not None:
            by_turns = solution.gain @ GravityProblem(self.robot, samples, self, solution.moments).matrix[:, -2:]
            covariance += by_turns @ direction.covariance @ by_turns.T
        # The variance by gain errors is known exactly, so its share increases the degrees of freedom (Satterthwaite
        # 1946).
        variance = np.diag(from_residuals)
        total = np.diag(covariance)
        dof = dof * np.divide(total, variance, out=np.ones_like(variance), where=variance > 0) ** 2
        half = half_width(np.sqrt(np.diag(covariance)), dof)
        if configured is not None:
            direction = direction_found(ESTIMATED, self.robot, configured, covariance[-2:, -2:], float(dof[-2:].min()))
            require_determined(
                solution.turn_information(),
                direction,
                self.robot,
                solution.moments,
                samples.position,
                noise=solution.joint_noise(),
            )
        observability = describe_observability(
            self.robot, problem.gravity, problem.names, (solution.inflation, half, solution.dependence), samples
        )
        if not any(state.observable for state in observability.values()):
            reasons = "; ".join(f"{joint}: {state.reason}" for joint, state in observability.items())
            raise IdentificationError(f"These samples determine no joint's gravity parameters: {reasons}")
        scale = column_norms(problem.matrix)
        joints = moment_joints(problem.gravity)
        observable = {
            name: (value, width)
            for name, value, width in zip(problem.names, solution.values, half, strict=True)
            if name in joints and observability[joints[name]].observable
        }
        return GravityResult(
            robot=self.robot,
            gravity=problem.gravity,
            names=problem.names,
            values=solution.values,
            covariance=covariance,
            inflation=solution.inflation,
            determined=solution.determined(scale),
            scale=scale,
            condition_number=solution.condition_number,
            dof=dof,
            residual_rms=problem.residual_rms(solution.values),
            noise={name: float(s) for name, s in zip(problem.group_names, solution.linear.sigma, strict=True)},
            observability=observability,
            samples=samples,
            sources=tuple(sources),
            settings={name: getattr(self, name) for name in RECORDED_SETTINGS},
            rules=self.rules,
            direction=direction,
            remarks=(
                *self._disagreements(samples, observable),
                *(self._tilt_remarks(samples, solution, observable) if direction is None else ()),
            ),
        )

    def _solve(self, samples: Samples, *, turns: bool = False) -> GravitySolution:
        """Solve for all unknowns; with `turns`, the last two unknowns are turns of gravity."""
        problem = GravityProblem(self.robot, samples, self, self._solve(samples).moments if turns else None)
        if self.estimator == "recursive":
            return recursive(problem)
        fit, sigma = solve_grouped(problem.matrix, problem.right, problem.group)
        gain = fit.covariance @ (problem.matrix.T / sigma[problem.group] ** 2)
        alone = problem.own_inflation(sigma)
        # Additional torques of other joints cannot make a moment less certain than the joint's own torque alone.
        inflation = np.where(np.isfinite(fit.inflation), np.minimum(fit.inflation, alone), np.inf)
        n = self.robot.n_joints
        return GravitySolution(
            problem,
            fit.solution,
            inflation,
            fit.condition_number,
            gain,
            sigma,
            null_space(problem.matrix),
            np.zeros((n, n), bool),
        )

    def _tilt_remarks(
        self, samples: Samples, solution: GravitySolution, observable: dict[str, tuple[float, float]]
    ) -> tuple[str, ...]:
        """Return a sentence for each tilt of gravity that the data reveal, and each relevant tilt that they would not.

        Args:
            samples: fitted samples.
            solution: solution with gravity as configured.
            observable: value and half 95 % interval of each observable moment, by name.
        """
        settings = replace(self, estimator="global", own_torque_only=self.own_only, gravity_direction=GIVEN)
        turned = settings._solve(samples, turns=True)
        shifts = self.torque_gain_error * turned.gain_shifts()
        covariance = turned.covariance() + shifts.T @ shifts
        check = TiltCheck(
            self.robot,
            turned.turn_information(),
            turned.values[-2:],
            covariance[-2:, -2:],
            float(turned.linear.dof()[-2:].min()),
        )
        open_axes = check.open_axes()
        tilted = check.tilts()
        if not (open_axes or tilted):
            return ()
        names = solution.problem.names
        axis = (open_axes or tilted)[0][0]
        shift = (
            np.abs(solution.gain @ turned.problem.matrix[:, -2:] @ turn_axes(self.robot.gravity) @ axis) * MIN_TILT_RAD
        )
        ratio = {name: shift[names.index(name)] / half for name, (_, half) in observable.items()}
        worst = max(ratio, key=lambda name: ratio[name])
        moved = f"1 degree moves {worst} by {shift[names.index(worst)]:.2g}"
        return check.remarks(solution.moments, samples.position, turned.joint_noise(), moved)

    def _disagreements(self, samples: Samples, observable: dict[str, tuple[float, float]]) -> tuple[str, ...]:
        """Return a sentence for each observable moment that the torques of the turning joints alone contradict."""
        if self.own_only:
            return ()
        try:
            other = replace(self, estimator="recursive", gravity_direction=GIVEN)._solve(samples)
        except IdentificationError:  # no joint turns alone
            return ()
        names = other.problem.names
        owner = other.problem.owner
        errors = np.sqrt(np.diag(other.covariance()))
        dof = other.linear.dof()
        half = half_width(errors, dof)
        # All moments are compared at once (Bonferroni). Their standard errors come from leaving out few angles, so
        # Student's t has at most as many degrees of freedom as there are surplus angles.
        level = 1 - FALSE_ALARM_RATE / max(len(observable), 1)
        angles = np.array([count_angles(samples, joint) for joint in owner])
        tolerance = half_width(errors, np.clip(angles - required_angles(names) + 1, 1, dof), level)
        sentences = []
        for k, name in enumerate(names):
            if name not in observable or other.inflation[k] > MAX_INFLATION:
                continue
            together, together_width = observable[name]
            value = other.values[k]
            width = half[k]
            if abs(together - value) > tolerance[k] + together_width:
                sentences.append(
                    f"{name} is {together:.4f} ± {together_width:.4f} by the torques of all joints, "
                    f"{value:.4f} ± {width:.4f} by those of the turning joints alone (estimator recursive): one of the "
                    "two is wrong; check the gains of the torque sensors and the URDF's axes"
                )
        return tuple(sentences)

    @property
    def own_only(self) -> bool:
        """Whether only the torque of the joint that rotates is fitted."""
        return self.own_torque_only or self.estimator == "recursive"
