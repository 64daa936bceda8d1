"""Motion of links behind springs for the recorded motion of their motors (Lightcap and Banks 2007, eq. 10).

For a known motion of the motors, the links follow a differential equation. Its derivatives are replaced by differences
over seven samples, which gives one banded system of equations for all samples. Newton's method solves it from the
measured motion in a few steps, and the derivatives by all parameters cost one more solution with the same factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgbtrf, dgbtrs

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import JointParameters
from dynid_ros.identification.flexible.friction_directions import STICTION, LinearMotion, March, march
from dynid_ros.identification.flexible.runs import FEW_JOINTS
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.regressor import DifferentiableRegressor
from dynid_ros.progress import advance
from dynid_ros.signals.low_pass import STENCIL
from dynid_ros.signals.spectra import derivative_weights

# Derivatives in time as banded matrices over seven samples, of sixth order like `central_differences`.


class Differences:
    """Weights of first and second derivative of N uniform samples.

    Attributes:
        first: First sample (N,) of the derivatives at each sample.
        weights: Weights (3, N, 7) of value, derivative, 1/s, and second derivative, 1/s², on seven samples from
            `first`.
    """

    def __init__(self, n_samples: int, step: float) -> None:
        half = STENCIL // 2
        self.first = np.clip(np.arange(n_samples) - half, 0, n_samples - STENCIL)
        place = np.arange(n_samples) - self.first
        table = np.array(
            [[derivative_weights(STENCIL, STENCIL - 1, order, step, pos) for pos in range(STENCIL)] for order in (1, 2)]
        )
        self.weights = np.concatenate([np.eye(STENCIL)[None], table])[:, place]

    def derivative(self, values: NDArray, order: int) -> NDArray:
        """Return the derivative (N, ...) of an order of values (N, ...)."""
        samples = values[self.first[:, None] + np.arange(STENCIL)]
        return np.einsum("ks,ks...->k...", self.weights[order], samples)


MAX_ITERATIONS = 15
FRICTION_ITERATIONS = 4
"""Iterations of Newton's method, and number of them after which the directions of friction are kept."""
CONVERGENCE_STEP = 1e-3
FIXED_DIRECTION_STEP = 1e-3
"""Steps of Newton's method, in parts of the largest deflection, after which the search ends (its square remains), and
after which the directions of friction are kept."""
MAX_DEFLECTION = 100.0
"""Distance between motor and link, rad or m, beyond the deflection of any spring."""
QUICK_MARCH_STEP_S = 1e-3
"""Step of the march that finds the directions of friction, during a search."""
EXACT_MARCH_STEP_S = 2.5e-4
EXACT_DIVISIONS = 8
"""Step at the end of a search, and number of its parts where a direction changes. Undivided, the likelihood jumped by
up to 0.9 where a reversal became slower than a step, more than a standard error costs."""


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """Motion of the links, (N, n) each, with its derivatives by the parameters.

    Attributes:
        position, velocity: Positions in rad or m, velocities per s.
        derive: Function that computes `by_parameters`, which costs more than the motion; refused steps do not need it.
    """

    position: NDArray
    velocity: NDArray
    derive: Callable[[], NDArray]

    @cached_property
    def by_parameters(self) -> NDArray:
        """Derivatives (N, n, p) of the positions.

        Columns are base parameters of links, Coulomb and viscous friction, values of the springs, position and velocity
        at the start, stiction of the joints, and corrections of each motor.
        """
        return self.derive()


class LinkResponse:
    """Motion of the links behind springs for one stretch of the motors' motion.

    Args:
        robot: Kinematics and gravity.
        base: Base parameters of the links alone.
        motor: Positions (N, n) of the motors, uniformly sampled.
        step: Time between samples, s.
        tones: Functions of time (N, t) that correct the motion of each motor.

    Attributes:
        by_corrections: Derivatives (N, n, n t) of the positions by the corrections of the motors' motion; None: they
            are computed. Arms of several joints keep them, because they are most of all derivatives and hardly change
            near a minimum.
        exact: Whether the march for the directions of dry friction takes short steps.
    """

    def __init__(self, robot: RobotModel, base: BaseParameters, motor: NDArray, step: float, tones: NDArray) -> None:
        self._recorded = motor
        self._step = step
        self._tones = tones
        self._n_samples, self._n = motor.shape
        self._dynamics = DifferentiableRegressor(robot.chain, robot.gravity, base.columns)
        self._differences = Differences(len(motor), step)
        self._names = robot.joint_names
        self.by_corrections: NDArray | None = None
        self.exact = False
        self._sticking: NDArray | None = None

    def solve(
        self,
        parameters: JointParameters,
        start: NDArray,
        guess: NDArray,
        corrections: NDArray | None = None,
        stiction: NDArray | float = 0.0,
    ) -> LinkMotion:
        """Return the motion for parameters, by Newton's method.

        Args:
            parameters: Links, friction and springs.
            start: Position and velocity (2, n) at the first sample.
            guess: Initial positions (N, n), measured ones or those of similar parameters.
            corrections: Corrections (t, n) of the motors' motion by its tones; None: none.
            stiction: Stiction parameters (3, n), see `friction_directions`; 0: Coulomb's law.

        Raises:
            IdentificationError: No motion was found that obeys the equations.
        """
        motor = self._recorded if corrections is None else self._recorded + self._tones @ corrections
        q = guess.copy()
        sense = np.zeros_like(q)
        moved = np.inf
        marched = None
        for iteration in range(MAX_ITERATIONS):
            advance(0.0)  # a few of these take seconds: it must be possible to end here
            qd, qdd = (self._differences.derivative(q, order) for order in (1, 2))
            smooth, partials, rows = self._equations(q, qd, qdd, motor, parameters)
            by_q, by_qd, by_qdd = partials
            if iteration < FRICTION_ITERATIONS and moved > FIXED_DIRECTION_STEP and parameters.coulomb.any():
                force = np.einsum("kij,kj->ki", by_qd, qd) + np.einsum("kij,kj->ki", by_qdd, qdd) - smooth
                linear = LinearMotion(by_qdd, by_qd, by_q, force, parameters.coulomb, self._step, stiction, q)
                marched = march(linear, start, *self._march_steps, self._sticking)
                self._sticking = marched.sticking
                sense = marched.averaged()
            residual = self._with_start(
                smooth + parameters.coulomb * sense, np.stack([q[0] - start[0], qd[0] - start[1]])
            )
            step = self._solution(self._factors(partials), residual[:, :, None])[:, :, 0]
            q = q - step
            deflection = motor - q
            if not np.abs(deflection).max() < MAX_DEFLECTION:
                break
            moved = np.abs(step).max() / max(np.abs(deflection).max(), 1e-3)
            if moved < CONVERGENCE_STEP:
                velocity = self._differences.derivative(q, 1)
                known = velocity, sense, marched, partials, rows, deflection, parameters
                return LinkMotion(q, velocity, partial(self._derivatives, *known))
        raise IdentificationError(
            f"no motion of the links behind the springs of {', '.join(self._names)} was found for the recorded motion "
            "of the motors: check the units and signs of link angles and torques; a spring whose resonance is above a "
            "third of the recorded rate is to be taken as rigid"
        )

    @property
    def _march_steps(self) -> tuple[float, int]:
        """Longest step of the march, s, and number of its parts where a direction changes."""
        return (EXACT_MARCH_STEP_S, EXACT_DIVISIONS) if self.exact else (QUICK_MARCH_STEP_S, 1)

    def _derivatives(  # noqa: PLR0917
        self,
        qd: NDArray,
        sense: NDArray,
        marched: March | None,
        partials: NDArray,
        rows: NDArray,
        deflection: NDArray,
        parameters: JointParameters,
    ) -> NDArray:
        """Return the derivatives (N, n, p) of the positions; directions of friction change with the parameters."""
        kept = self.by_corrections
        tones = self._tones if kept is None else self._tones[:, :0]
        right, right_start = self._by_parameters(rows, deflection, qd, sense, parameters, tones)
        np.negative(right, out=right)
        if marched is not None:
            first = right.shape[2] - self._n * (len(STICTION) + tones.shape[1])
            by_friction = marched.derivatives(right, -right_start, first)
            by_friction *= parameters.coulomb[:, None]
            right -= by_friction
        found = self._solution(self._factors(partials), self._with_start(right, -right_start))
        if kept is not None:
            return np.concatenate([found, kept], axis=2)
        if self._n > FEW_JOINTS:
            self.by_corrections = found[:, :, found.shape[2] - self._n * tones.shape[1] :].copy()
        return found

    def _equations(
        self, q: NDArray, qd: NDArray, qdd: NDArray, motor: NDArray, parameters: JointParameters
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Return residuals (N, n) without dry friction, partial derivatives (3, N, n, n), and regressor (N, n, r)."""
        n = self._n
        own = np.arange(n)
        matrix = self._dynamics.matrix(*(np.tile(array, (n, 1)) for array in (q, qd, qdd)))
        weights = np.zeros((n, matrix.shape[1], n, self._n_samples))
        weights[own, :, own] = parameters.links[:, None]
        by_motion = self._dynamics.gradient(weights.reshape(matrix.shape))
        # Axes: order of the derivative, sample k, equation i, joint j.
        partials = np.stack(by_motion).reshape(3, n, self._n_samples, n).transpose(0, 2, 1, 3).copy()
        rows = matrix[..., : self._n_samples].transpose(2, 0, 1)
        deflection = motor - q
        partials[0][:, own, own] += parameters.spring_tangent(deflection)
        partials[1][:, own, own] += parameters.viscous
        residual = rows @ parameters.links + parameters.viscous * qd - parameters.spring_torque(deflection)
        return residual, partials, rows

    def _with_start(self, equations: NDArray, start: NDArray) -> NDArray:
        """Return the equations (N, n, ...) without first and last sample, after those (2, n, ...) of the start.

        One sample at each end is dropped. Differences over seven samples have six solutions: four, with the two true
        ones, need a condition at the start, and two need one at the end. With both at the start the equations would be
        singular.
        """
        return np.concatenate([start, equations[1:-1]])

    def _by_parameters(  # noqa: PLR0917
        self,
        rows: NDArray,
        deflection: NDArray,
        qd: NDArray,
        sense: NDArray,
        parameters: JointParameters,
        tones: NDArray,
    ) -> tuple[NDArray, NDArray]:
        """Return the derivatives (N, n, p) of the residuals and (2, n, p) of the start for a fixed motion.

        The last ones are by corrections of each motor's motion, functions of time `tones` (N, t).
        """
        n = self._n
        own = np.arange(self._n)
        diagonal = np.zeros((2, self._n_samples, n, n))
        diagonal[0][:, own, own] = sense
        diagonal[1][:, own, own] = qd
        springs = -parameters.spring_columns(deflection)
        tangent = parameters.spring_tangent(deflection)
        by_motor = np.zeros((self._n_samples, n, n, tones.shape[1]))
        by_motor[:, own, own] = -tangent[:, :, None] * tones[:, None, :]
        others = np.zeros((self._n_samples, n, (2 + len(STICTION)) * n))
        by_motors = by_motor.reshape(self._n_samples, n, n * tones.shape[1])
        found = np.concatenate([rows, *diagonal, springs, others, by_motors], axis=2)
        start = np.zeros((2, n, found.shape[2]))
        first = found.shape[2] - by_motors.shape[2] - others.shape[2]
        start[0, own, first + own] = -1.0
        start[1, own, first + n + own] = -1.0
        return found, start

    def _factors(self, partials: NDArray) -> tuple[NDArray, NDArray, int]:
        """Return banded LU factors of the derivatives of all residuals by all positions."""
        n = self._n
        size = self._n * self._n_samples
        width = STENCIL * n - 1
        banded = np.zeros((3 * width + 1, size))
        weights = self._differences.weights
        first = self._differences.first
        values = np.einsum("dkij,dks->kisj", partials, weights)
        # The start fixes the first sample and its derivative.
        start = np.einsum("ij,ds->disj", np.eye(n), weights[:2, 0])
        values = self._with_start(values, start)
        first = np.concatenate([first[:1], first[:1], first[1:-1]])
        row = n * np.arange(self._n_samples)[:, None, None, None] + np.arange(n)[:, None, None]
        column = n * (first[:, None, None, None] + np.arange(STENCIL)[:, None]) + np.arange(n)
        row, column = np.broadcast_arrays(row, column)
        banded[2 * width + row - column, column] = values
        factors, pivots, info = dgbtrf(banded, width, width, overwrite_ab=True)
        if info:
            raise IdentificationError(
                f"the equations of the links of {', '.join(self._names)} are singular: a link without inertia, or a "
                "spring far too stiff for the rate of the recording"
            )
        return factors, pivots, width

    def _solution(self, factors: tuple[NDArray, NDArray, int], right: NDArray) -> NDArray:
        """Return the solution (N, n, p) for right-hand sides (N, n, p)."""
        banded, pivots, width = factors
        flat = right.reshape(self._n * self._n_samples, -1)
        solution, _ = dgbtrs(banded, width, width, flat, pivots)
        return solution.reshape(right.shape)
