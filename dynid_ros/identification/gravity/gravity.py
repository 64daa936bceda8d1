"""Gravity parameters from static torques (Ma & Hollerbach 1996), one joint at a time or all at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.approaches import Approaches
from dynid_ros.identification.gravity.few_poses import widened
from dynid_ros.identification.gravity.result import MAXIMUM_INFLATION, GravityResult, describe_observability
from dynid_ros.identification.least_squares import RANK_TOLERANCE, LeastSquaresFit, solve_grouped
from dynid_ros.identification.rotations import rotations
from dynid_ros.identification.samples import SampleRules, Samples, slow_samples, static_samples, with_known_torque
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording import Recording

ESTIMATORS = ("global", "recursive")
KINDS = ("static", "slow", "both")


@dataclass
class GravityIdentification:
    """Fits τ_j = Y_j(q) n + offset_j + coulomb_j · direction_j + viscous_j · velocity_j to static (or slow) samples.

    Attributes:
        robot: kinematics and gravity; its inertias are not used.
        estimator: "global" fits all joints at once, each weighted by its own noise; "recursive" goes from tip to base,
            each joint from its own torque while it rotates alone, as in the paper.
        torque_offset: estimate a constant sensor offset per joint; False takes the sensors as zeroed.
        samples: "static" takes dwells, "slow" nearly unaccelerated motion, "both" takes both.
        own_torque_only: the global fit sees, as the paper does, only the torque of the joint that rotates.
        rules: what counts as static and as slow.

    """

    robot: RobotModel
    estimator: Literal["global", "recursive"] = "global"
    torque_offset: bool = True
    samples: Literal["static", "slow", "both"] = "static"
    own_torque_only: bool = False
    rules: SampleRules = field(default_factory=SampleRules)

    def __post_init__(self) -> None:
        for name, valid in (("estimator", ESTIMATORS), ("samples", KINDS)):
            if getattr(self, name) not in valid:
                raise IdentificationError(f"{name} is '{getattr(self, name)}'; expected one of {', '.join(valid)}")

    def fit(self, *recordings: Recording) -> GravityResult:
        """Identify from one or more recordings.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: too few samples; joints that cannot be decided are named in the result instead.

        """
        if not recordings:
            raise IdentificationError("fit needs at least one recording")
        return self.fit_samples(self.extract(*recordings), tuple(recording.source for recording in recordings))

    def extract(self, *recordings: Recording) -> Samples:
        """Static and slow samples of the recordings, joints in the model's order.

        Raises:
            RecordingError: a joint of the model is not in a recording.
            IdentificationError: a recording has no torque, or nothing that counts as a sample.

        """
        parts = []
        for recording in recordings:
            selected = with_known_torque(recording.select(self.robot.joint_names))
            wanted = []
            if self.samples in ("static", "both"):
                wanted.append(static_samples(selected, self.rules))
            if self.samples in ("slow", "both"):
                wanted.append(slow_samples(selected, self.rules))
            parts.append(Samples.join(wanted))
        return Samples.join(parts)

    def fit_samples(self, samples: Samples, sources: Sequence[str] = ()) -> GravityResult:
        """Identify from samples that are already extracted.

        Args:
            samples: joints in the model's order, as `extract` gives them.
            sources: names of what they are from, for the report.

        Raises:
            IdentificationError: too few samples, or none that decides any joint's gravity parameters.

        """
        problem, fit, sigma = self._solve(samples)
        observability = describe_observability(self.robot, problem.gravity, problem.names, fit.inflation, samples)
        if not any(state.observable for state in observability.values()):
            reasons = "; ".join(f"{joint}: {state.reason}" for joint, state in observability.items())
            raise IdentificationError(f"These samples decide no joint's gravity parameters: {reasons}")
        determined, scale = problem.determined_space()
        return GravityResult(
            robot=self.robot,
            gravity=problem.gravity,
            names=problem.names,
            values=fit.solution,
            covariance=widened(fit.covariance, problem.names, samples, self._decided),
            inflation=fit.inflation,
            determined=determined,
            scale=scale,
            condition_number=fit.condition_number,
            freedom=max(len(problem.right) - fit.rank, 1),
            residual_rms=problem.residual_rms(fit.solution),
            noise={name: float(s) for name, s in zip(problem.group_names, sigma, strict=True)},
            observability=observability,
            samples=samples,
            sources=tuple(sources),
            settings={
                "estimator": self.estimator,
                "torque_offset": self.torque_offset,
                "samples": self.samples,
                "own_torque_only": self.own_torque_only,
            },
            extract=self.extract,
        )

    def _solve(self, samples: Samples) -> tuple["_Problem", LeastSquaresFit, NDArray]:
        """Problem, its solution, and the noise of each group of rows."""
        problem = _Problem(self.robot, samples, self)
        if self.estimator == "recursive":
            return problem, *_recursive(problem)
        return problem, *solve_grouped(problem.matrix, problem.right, problem.group)

    def _decided(self, samples: Samples) -> dict[str, float]:
        """Values by name that samples decide."""
        try:
            problem, fit, _ = self._solve(samples)
        except IdentificationError:
            return {}
        good = fit.inflation <= MAXIMUM_INFLATION
        return {name: float(fit.solution[k]) for k, name in enumerate(problem.names) if good[k]}


class _Problem:
    """Rows and columns of the linear problem: a row per sample and joint, a column per unknown."""

    def __init__(self, robot: RobotModel, samples: Samples, settings: GravityIdentification) -> None:
        if len(samples) == 0:
            raise IdentificationError(
                "No static samples: no joint rests long enough, or none moves slowly enough. Record dwells of at least "
                f"{settings.rules.minimum_dwell:g} s, or choose samples='slow'"
            )
        n = robot.n_joints
        self.gravity = GravityModel(robot)
        self.samples = samples
        self.joint = np.tile(np.arange(n), len(samples))
        self.sample = np.repeat(np.arange(len(samples)), n)
        used = np.ones(len(self.gravity.names), bool)
        for i, free in enumerate(self.gravity.unobservable_axes()):
            used[self.gravity.columns(i)] = not free
        blocks = [self.gravity.regressor(samples.position)[:, :, used].reshape(len(self.joint), -1)]
        self.names = [name for name, keep in zip(self.gravity.names, used, strict=True) if keep]
        owner = [i for i in range(n) for c in range(len(used))[self.gravity.columns(i)] if used[c]]
        each = np.tile(np.eye(n), (len(samples), 1))
        extras = {"coulomb": samples.direction.reshape(-1, 1)}
        if settings.torque_offset:
            extras["offset"] = np.ones((len(self.joint), 1))
        if not samples.static.all():
            extras["viscous"] = samples.velocity.reshape(-1, 1)
        for label, factor in extras.items():
            blocks.append(each * factor)
            self.names += [f"{label} {name}" for name in robot.joint_names]
            owner += range(n)
        self.matrix, self.owner = np.hstack(blocks), np.array(owner)
        self.right = samples.torque.reshape(-1)
        # A joint that rests while others move holds by stiction of unknown size; a dwell says as much, once.
        known = samples.static[self.sample] | (samples.direction[self.sample, self.joint] != 0)
        self._keep(known & self._own_rows() if self._own_only(settings) else known)
        pairs = Approaches.among(samples, self.sample, self.joint, robot.joint_names)
        self.matrix, self.right = pairs.combine(self.matrix), pairs.combine(self.right)
        self.group, self.group_names = pairs.group, pairs.names

    @staticmethod
    def _own_only(settings: GravityIdentification) -> bool:
        return settings.own_torque_only or settings.estimator == "recursive"

    def _own_rows(self) -> NDArray:
        moving = np.full(len(self.samples), -1)
        for rotation in rotations(self.samples):
            moving[rotation.rows] = rotation.joint
        if not np.any(moving >= 0):
            raise IdentificationError(
                "No single-joint rotation in the samples (at least four dwells between which one joint alone moves); "
                "use estimator='global' with all torques, or run the excitation"
            )
        return moving[self.sample] == self.joint

    def _keep(self, rows: NDArray) -> None:
        self.matrix, self.right = self.matrix[rows], self.right[rows]
        self.joint, self.sample = self.joint[rows], self.sample[rows]
        used = np.any(self.matrix != 0, axis=0)
        self.matrix = self.matrix[:, used]
        self.names = [name for name, keep in zip(self.names, used, strict=True) if keep]
        self.owner = self.owner[used]

    def determined_space(self) -> tuple[NDArray, NDArray]:
        """(r, k) orthonormal rows that span what the data determine, in columns divided by the (k,) scale."""
        scale = np.linalg.norm(self.matrix, axis=0)
        _, s, vt = np.linalg.svd(self.matrix / scale, full_matrices=False)
        return vt[s > RANK_TOLERANCE * s[0]], scale

    def residual_rms(self, values: NDArray) -> NDArray:
        """(n,) per joint; NaN for a joint without rows."""
        residual = self.right - self.matrix @ values
        n = self.gravity.robot.n_joints
        count = np.bincount(self.joint, minlength=n).astype(float)
        count[count == 0] = np.nan
        return np.sqrt(np.bincount(self.joint, residual**2, n) / count)


def _recursive(problem: _Problem) -> tuple[LeastSquaresFit, NDArray]:
    """Tip to base: fit joint i's own unknowns, the distal moments being known (eqs 13, 17).

    With x_d distal and x_i own unknowns, x_i = G (b − D x_d), so its error is G (noise) − G D (error of x_d).
    """
    k = problem.matrix.shape[1]
    solution, covariance, inflation = np.zeros(k), np.zeros((k, k)), np.full(k, np.inf)
    sigma = np.full(len(problem.group_names), np.nan)
    rank, condition = 0, 1.0
    for i in reversed(range(problem.gravity.robot.n_joints)):
        rows, own = problem.joint == i, np.flatnonzero(problem.owner == i)
        if not rows.any() or not len(own):
            continue
        distal = np.flatnonzero(problem.owner > i)
        matrix, coupling = problem.matrix[np.ix_(rows, own)], problem.matrix[np.ix_(rows, distal)]
        groups, local = np.unique(problem.group[rows], return_inverse=True)
        fit, sigma[groups] = solve_grouped(matrix, problem.right[rows] - coupling @ solution[distal], local)
        gain = fit.covariance @ (matrix.T / sigma[problem.group[rows]] ** 2)
        passed = -gain @ coupling
        solution[own], inflation[own] = fit.solution, fit.inflation
        covariance[np.ix_(own, own)] = fit.covariance + passed @ covariance[np.ix_(distal, distal)] @ passed.T
        covariance[np.ix_(own, distal)] = passed @ covariance[np.ix_(distal, distal)]
        covariance[np.ix_(distal, own)] = covariance[np.ix_(own, distal)].T
        rank, condition = rank + fit.rank, max(condition, fit.condition_number)
    residual = problem.right - problem.matrix @ solution
    return LeastSquaresFit(
        solution, covariance, residual, np.full(len(residual), np.nan), rank, condition, inflation
    ), sigma
