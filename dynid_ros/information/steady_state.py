"""Where the links of an arm with flexible joints go while its motors follow a periodic motion.

The motion of the links cannot be chosen: it follows from that of the motors by the dynamics (Lightcap and Banks 2007,
eqs 1 and 10), of which a prior model is enough to plan with. What is sought is the steady state, so no transient has to
die out first, and harmonic balance finds it: the links' motion is a Fourier series too, whose coefficients make the
harmonics of the equations of motion zero, by Newton's method.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, eigh, lu_factor, lu_solve

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.regressor import DifferentiableRegressor
from dynid_ros.trajectories.limits import per_joint

# What is known of flexible joints before they are identified.


@dataclass(frozen=True, eq=False)
class FlexibleJoints:
    """Prior model of n flexible joints; each one value for all or (n,), of sliding joints N/m, kg and so on.

    Attributes:
        stiffness: k, of the spring between motor and link, N m/rad.
        motor_inertia: J, seen from the link, kg m².
        motor_viscous: b, of the motor's side, N m s/rad.
        coulomb: c, of the link's side, N m.
        viscous: v, of the link's side, N m s/rad. It is all that keeps a resonance finite, Coulomb friction aside.
    """

    stiffness: ArrayLike
    motor_inertia: ArrayLike = 0.0
    motor_viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    viscous: ArrayLike = 0.0

    def of(self, robot: RobotModel) -> tuple[NDArray, ...]:
        """The five, (n,) each.

        Raises:
            TrajectoryError: another number of values, a stiffness that is not positive, or others below zero.
        """
        values = []
        for what in ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous"):
            value = per_joint(getattr(self, what), robot.joint_names, what)
            for name, number in zip(robot.joint_names, value, strict=True):
                if not (np.isfinite(number) and (number > 0 or (number == 0 and what != "stiffness"))):
                    least = "positive" if what == "stiffness" else "zero or more"
                    raise TrajectoryError(f"{what} of joint '{name}' is {number:g}; it must be finite and {least}")
            values.append(value)
        return tuple(values)


# At which frequencies an arm with flexible joints resonates.


PAST = 1.25
"""How far the highest harmonic goes past the highest resonance."""
BELOW = 0.5
"""Highest base frequency, in parts of the lowest resonance."""
COMMANDS_PER_CYCLE = 10
"""Fewest commands per cycle of the highest harmonic, for a controller to follow."""


class Resonance(NamedTuple):
    """Natural frequencies (n,) of small motions without friction and gravity, ascending, Hz.

    Attributes:
        driven: of the links, with motors whose positions are driven or held: what a design of motors' motions meets.
        free: of links and motors together, with motors that nothing drives: what a torque excites.
    """

    driven: NDArray
    free: NDArray


def resonance(
    robot: RobotModel,
    stiffness: ArrayLike,
    motor_inertia: ArrayLike,
    q: ArrayLike,
    joints: Collection[str] | None = None,
) -> Resonance:
    """Natural frequencies in a pose.

    Args:
        robot: the arm; its nominal parameters give the inertia.
        stiffness: of the springs between motors and links, one value or (n,), N m/rad or N/m.
        motor_inertia: seen from the links, one value or (n,), kg m² or kg.
        q: (n,) rad or m.
        joints: those that move; the others are taken as rigid. None: all.

    Raises:
        TrajectoryError: a stiffness or motor inertia that is not positive; links without inertia; an unknown joint.
    """
    springs, motors = (
        per_joint(value, robot.joint_names, what)
        for what, value in (("stiffness", stiffness), ("motor_inertia", motor_inertia))
    )
    if not (springs > 0).all() or not (motors > 0).all():
        raise TrajectoryError("resonance: stiffness and motor_inertia must be positive")
    n = robot.n_joints
    pose = np.broadcast_to(np.asarray(q, dtype=float), (n, n))
    still = np.zeros((n, n))
    links = robot.inverse_dynamics(pose, still, np.eye(n)) - robot.gravity_torque(pose)
    names = robot.joint_names if joints is None else tuple(joints)
    unknown = sorted(set(names) - set(robot.joint_names))
    if unknown or not names:
        raise TrajectoryError(f"resonance: joints {', '.join(names)}; expected some of {', '.join(robot.joint_names)}")
    moving = [robot.joint_names.index(name) for name in names]
    springs, motors, links = springs[moving], motors[moving], ((links + links.T) / 2)[np.ix_(moving, moving)]
    try:
        driven = eigh(np.diag(springs), links, eigvals_only=True)
    except np.linalg.LinAlgError as error:
        raise TrajectoryError(
            f"resonance: in this pose links of {robot.name}'s description have no inertia about a joint; give them some"
        ) from error
    # M qdd = -K (q - q_m) and J qdd_m = K (q - q_m), for the deflection alone.
    compliant = np.sqrt(springs)
    both = compliant[:, None] * (np.linalg.inv(links) + np.diag(1.0 / motors)) * compliant
    free = np.linalg.eigvalsh(both)
    return Resonance(*(np.sqrt(values) / (2 * np.pi) for values in (driven, free)))


def proposed_base_frequency(driven: ArrayLike, harmonics: int, rate: float = np.inf) -> float:
    """Base frequency, Hz, of a motion of motors whose harmonics lie on both sides of the resonances.

    Far below its resonance a link moves as its motor does, and nothing but the sums of their inertias and of their
    frictions can be determined; far above it the link stands still. Harmonics below, near and above it have ratios of
    the two motions that differ most. The highest harmonic is therefore put a quarter above the highest resonance, and
    the
    lowest ones are left to the wide and slow motion that gravity needs: a base frequency at the resonance itself, as
    the paper's advice may be read, leaves the motion hardly any width within its velocity limits.

    Args:
        driven: resonances of the joints that move, with driven motors, Hz.
        harmonics: of the motion.
        rate: of the controller's commands, Hz. Where it keeps all harmonics far below the resonance, no motion of the
            motors distinguishes motors and links.

    Raises:
        TrajectoryError: a number that is not positive.
    """
    frequencies = np.atleast_1d(np.asarray(driven, dtype=float))
    if not (frequencies.size and (frequencies > 0).all() and harmonics > 0 and rate > 0):
        raise TrajectoryError("base frequency: resonances, harmonics and rate must be positive")
    reach = min(PAST * frequencies.max(), rate / COMMANDS_PER_CYCLE)
    return float(min(reach / harmonics, BELOW * frequencies.min()))


DETAIL = 4
"""The links' series has so many times the harmonics of the motors', for friction and gravity are not linear."""
SAMPLES = 3
"""At least so many samples are taken for each harmonic of the links, twice of which would be the least."""
MOST_DEFLECTION = {"revolute": np.deg2rad(20.0), "prismatic": 0.05}
"""A spring that winds up more, rad or m, is not one that the model describes."""
ITERATIONS, HALVINGS = 40, 12
CONVERGED = 1e-9
"""Last step of Newton's method, rad or m; what it leaves is far less."""
EASING = (30.0, 10.0, 3.0, 1.0)
"""Coulomb friction's velocity is made so many times wider, in turn, where Newton's method fails at once."""


class LinkPrediction:
    """Steady motion of the links for periodic motions of the motors.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        joints: prior of springs and friction.
        base_frequency: of the motors' motion, Hz.
        harmonics: of the base frequency, in the motors' motion.
        smoothing: (n,) velocity within which Coulomb friction changes its sign, rad/s or m/s.
        detail: the links' series has so many times the harmonics of the motors'. What reversals of friction set ringing
            at a resonance beyond them is left out.

    Raises:
        TrajectoryError: the nominal links weigh nothing, or the prior makes no sense.
    """

    def __init__(
        self,
        robot: RobotModel,
        joints: FlexibleJoints,
        *,
        base_frequency: float,
        harmonics: int,
        smoothing: NDArray,
        detail: int = DETAIL,
    ) -> None:
        self._robot, self._base_frequency, self._motor_harmonics = robot, base_frequency, harmonics
        self._harmonics = detail * harmonics
        self.stiffness, _, _, self._coulomb, self._viscous = joints.of(robot)
        self._smoothing = smoothing
        base = robot.base_parameters()
        self._parameters = base.project(robot.parameters)
        if not self._parameters.any():
            raise TrajectoryError(
                f"{robot.name}'s description has no masses: the motion of links behind springs cannot be predicted; "
                "give it masses and inertias, of 10 % if need be"
            )
        self._factor: tuple[NDArray, NDArray] | None = None
        self._dynamics = DifferentiableRegressor(robot.chain, robot.gravity, base.columns)
        self._most = np.array([MOST_DEFLECTION[kind] for kind in robot.joint_types])
        self._bases: dict[int, NDArray] = {}

    def motion(self, motor: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Positions, velocities and accelerations (N, n) of the links, remembered for `gradient`.

        Args:
            motor: (N, n) positions of the motors at N times spread evenly over a period.

        Raises:
            TrajectoryError: no steady motion is found, as at a resonance without damping; a spring winds up by more
                than 20°; or the samples are too few for the harmonics.
        """
        needed = SAMPLES * self._harmonics
        if len(motor) < needed:
            raise TrajectoryError(
                f"{len(motor)} samples of a period are too few for {self._motor_harmonics} harmonics of flexible "
                f"joints; at least {needed} are needed"
            )
        # Of denser samples some are enough to find the series.
        stride = max(step for step in range(1, len(motor) // needed + 1) if len(motor) % step == 0)
        coefficients = self._solved(motor[::stride])
        position, velocity, acceleration = np.tensordot(self._basis(len(motor)), coefficients, axes=1)
        deflection = np.abs(position - motor).max(axis=0)
        worst = int(np.argmax(deflection / self._most))
        if deflection[worst] > self._most[worst]:
            turns = self._robot.joint_types[worst] == "revolute"
            shown = f"{np.rad2deg(deflection[worst]):.0f}°" if turns else f"{deflection[worst]:.3g} m"
            raise TrajectoryError(
                f"the spring of joint '{self._robot.joint_names[worst]}' would wind up by {shown}: the motion is too "
                "large near the resonance, or the stiffness too low"
            )
        return position, velocity, acceleration

    def gradient(self, by_position: NDArray, by_velocity: NDArray, by_acceleration: NDArray) -> NDArray:
        """Gradient (N, n) by the motors' positions, of the last motion, that of a function with these by the links'.

        By the implicit function theorem: one solution with the transpose of Newton's last matrix.
        """
        by = np.stack([by_position, by_velocity, by_acceleration])
        basis = self._basis(len(by_position))
        by_coefficients = np.einsum("dsk,dsi->ki", basis, by)
        if self._factor is None:
            raise TrajectoryError("there is no motion of the links yet whose gradient could be taken")
        multipliers = lu_solve(self._factor, by_coefficients.ravel(), trans=1).reshape(by_coefficients.shape)
        return self.stiffness * (basis[0] @ multipliers) / len(by_position)

    def _solved(self, motor: NDArray) -> NDArray:
        """Coefficients (k, n) of the steady motion."""
        rigid = self._basis(len(motor))[0].T @ motor / len(motor)
        coefficients, solved = self._newton(motor, rigid, self._smoothing)
        if not solved:
            coefficients = rigid
            for easing in EASING:
                coefficients, solved = self._newton(motor, coefficients, easing * self._smoothing)
        if not solved:
            raise TrajectoryError(
                f"no steady motion of the links is found for motors at {self._base_frequency:.3g} to "
                f"{self._motor_harmonics * self._base_frequency:.3g} Hz: make the motion smaller or keep its "
                "frequencies off the resonance, or give the links the viscous friction they have"
            )
        return coefficients

    def _newton(self, motor: NDArray, coefficients: NDArray, smoothing: NDArray) -> tuple[NDArray, bool]:
        """Coefficients, and whether they solve the equations; keeps the factors of the last matrix."""
        residual, partials = self._equations(motor, coefficients, smoothing)
        for _ in range(ITERATIONS):
            try:
                self._factor = lu_factor(self._matrix(partials), check_finite=False)
            except LinAlgError:
                return coefficients, False
            step = lu_solve(self._factor, residual.ravel(), check_finite=False).reshape(residual.shape)
            if not np.isfinite(step).all():
                return coefficients, False
            size, part = np.abs(step).max(), 1.0
            if size < CONVERGED:
                return coefficients - step, True
            for _ in range(HALVINGS):
                trial = coefficients - part * step
                new_residual, new_partials = self._equations(motor, trial, smoothing)
                if np.linalg.norm(new_residual) < (1.0 - 0.1 * part) * np.linalg.norm(residual):
                    break
                part /= 2.0
            else:
                # Rounding alone may keep the residual from falling any further.
                return coefficients, bool(size < 100.0 * CONVERGED)
            coefficients, residual, partials = trial, new_residual, new_partials
        return coefficients, False

    def _equations(self, motor: NDArray, coefficients: NDArray, smoothing: NDArray) -> tuple[NDArray, NDArray]:
        """Harmonics (k, n) of K (q - q_m) + M qdd + V qd + G + F, and (3, n, n, N) partial derivatives of its samples.

        Partial derivatives are by position, velocity and acceleration, of equation i by joint j.
        """
        basis = self._basis(len(motor))
        q, qd, qdd = np.tensordot(basis, coefficients, axes=1)
        samples, n = q.shape
        own = np.arange(n)
        # The motion once for each equation: together they cost little more than one.
        matrix = self._dynamics.matrix(*(np.tile(array, (n, 1)) for array in (q, qd, qdd)))
        weights = np.zeros((*matrix.shape[:2], n, samples))
        weights[own, :, own] = self._parameters[:, None]
        by_motion = self._dynamics.gradient(weights.reshape(matrix.shape))
        partials = np.stack(by_motion).reshape(3, n, samples, n).transpose(0, 1, 3, 2)
        matrix = matrix[..., :samples]
        direction = np.tanh(qd / smoothing)
        partials[0, own, own] += self.stiffness[:, None]
        partials[1, own, own] += (self._viscous + self._coulomb * (1.0 - direction**2) / smoothing).T
        torque = np.einsum("icm,c->mi", matrix, self._parameters) + self._coulomb * direction + self._viscous * qd
        residual = self.stiffness * (q - motor) + torque
        return basis[0].T @ residual / len(motor), partials

    def _matrix(self, partials: NDArray) -> NDArray:
        """Derivative of the harmonics by the coefficients, (k n, k n)."""
        samples, n = partials.shape[-1], partials.shape[1]
        basis = self._basis(samples)
        size = basis.shape[-1]
        blocks = np.empty((size, n, size, n))
        for i in range(n):
            for j in range(n):
                weighted = np.einsum("ds,dsk->sk", partials[:, i, j], basis)
                blocks[:, i, :, j] = basis[0].T @ weighted / samples
        return blocks.reshape(size * n, size * n)

    def _basis(self, samples: int) -> NDArray:
        """(3, N, k) functions of the series, of mean square 1, and their derivatives at the samples."""
        if samples not in self._bases:
            order = np.arange(1, self._harmonics + 1)
            rate = 2 * np.pi * self._base_frequency * order
            angle = np.outer(2 * np.pi * np.arange(samples) / samples, order)
            sin, cos = np.sqrt(2.0) * np.sin(angle), np.sqrt(2.0) * np.cos(angle)
            one = np.ones((samples, 1))
            self._bases[samples] = np.stack(
                [
                    np.hstack([one, cos, sin]),
                    np.hstack([0 * one, -sin * rate, cos * rate]),
                    np.hstack([0 * one, -cos * rate**2, -sin * rate**2]),
                ]
            )
        return self._bases[samples]
