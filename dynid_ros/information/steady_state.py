"""Steady motion of the links of an arm with flexible joints whose motors follow a periodic motion.

The motion of the links follows from the motion of the motors by the dynamics (Lightcap and Banks 2007, eqs 1 and 10),
and a prior model is sufficient for planning. Harmonic balance computes the steady state directly, without a transient:
the links' motion is a Fourier series too, and Newton's method finds the coefficients for which the harmonics of the
equations of motion vanish.
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


@dataclass(frozen=True, eq=False)
class FlexibleJoints:
    """Prior model of n flexible joints, with one value for all or (n,); units of sliding joints are N/m, kg and so on.

    Attributes:
        stiffness: stiffness k of the spring between motor and link, N m/rad.
        motor_inertia: inertia J of the motor at the link side, kg m².
        motor_viscous: viscous friction b at the motor side, N m s/rad.
        coulomb: Coulomb friction c at the link side, N m.
        viscous: viscous friction v at the link side, N m s/rad. With Coulomb friction, it limits a resonance.
    """

    stiffness: ArrayLike
    motor_inertia: ArrayLike = 0.0
    motor_viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    viscous: ArrayLike = 0.0

    def of(self, robot: RobotModel) -> tuple[NDArray, ...]:
        """Return the five values in the order of the attributes, (n,) each.

        Raises:
            TrajectoryError: a wrong number of values, a stiffness that is not positive, or another negative value.
        """
        values = []
        for quantity in ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous"):
            value = per_joint(getattr(self, quantity), robot.joint_names, quantity)
            for name, number in zip(robot.joint_names, value, strict=True):
                if not (np.isfinite(number) and (number > 0 or (number == 0 and quantity != "stiffness"))):
                    expected = "positive" if quantity == "stiffness" else "zero or more"
                    raise TrajectoryError(
                        f"{quantity} of joint '{name}' is {number:g}; it must be finite and {expected}"
                    )
            values.append(value)
        return tuple(values)


HIGHEST_HARMONIC_OF_RESONANCE = 1.25
"""Highest harmonic, relative to the highest resonance."""
MAX_BASE_FREQUENCY_OF_RESONANCE = 0.5
"""Largest base frequency, relative to the lowest resonance."""
MIN_COMMANDS_PER_CYCLE = 10
"""Commands per cycle of the highest harmonic that a controller needs to follow."""


class Resonance(NamedTuple):
    """Natural frequencies (n,) of small motions without friction and gravity, ascending, Hz.

    Attributes:
        driven: frequencies of the links with driven or held motor positions, relevant to a design of motor motions.
        free: frequencies of links and motors together with free motors, excited by torques.
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
    """Compute the natural frequencies in a pose.

    Args:
        robot: the arm; its nominal parameters give the inertia.
        stiffness: stiffness of the springs between motors and links, one value or (n,), N m/rad or N/m.
        motor_inertia: inertia of the motors at the link side, one value or (n,), kg m² or kg.
        q: (n,) pose, rad or m.
        joints: names of the moving joints; the others are rigid. None: all.

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
    springs = springs[moving]
    motors = motors[moving]
    links = ((links + links.T) / 2)[np.ix_(moving, moving)]
    try:
        driven = eigh(np.diag(springs), links, eigvals_only=True)
    except np.linalg.LinAlgError as error:
        raise TrajectoryError(
            f"resonance: in this pose links of {robot.name}'s description have no inertia about a joint; give them some"
        ) from error
    # For the deflection, M qdd = -K (q - q_m) and J qdd_m = K (q - q_m).
    root_stiffness = np.sqrt(springs)
    both = root_stiffness[:, None] * (np.linalg.inv(links) + np.diag(1.0 / motors)) * root_stiffness
    free = np.linalg.eigvalsh(both)
    return Resonance(*(np.sqrt(values) / (2 * np.pi) for values in (driven, free)))


def proposed_base_frequency(driven: ArrayLike, harmonics: int, rate: float = np.inf) -> float:
    """Propose the base frequency, Hz, of a motor motion whose harmonics lie on both sides of the resonances.

    Far below its resonance a link moves like its motor, and only the sums of their inertias and of their frictions can
    be determined. Far above it the link does not move. Harmonics below, near and above the resonance differ most in the
    ratio of the two motions. The highest harmonic is therefore a quarter above the highest resonance, and the lowest
    harmonics give the wide and slow motion that gravity needs. A base frequency at the resonance itself, a possible
    reading of the paper's advice, leaves the motion hardly any width within its velocity limits.

    Args:
        driven: resonances of the moving joints with driven motors, Hz.
        harmonics: number of harmonics.
        rate: rate of the controller's commands, Hz. If it keeps all harmonics far below the resonance, no motion of the
            motors distinguishes motors and links.

    Raises:
        TrajectoryError: a number that is not positive.
    """
    frequencies = np.atleast_1d(np.asarray(driven, dtype=float))
    if not (frequencies.size and (frequencies > 0).all() and harmonics > 0 and rate > 0):
        raise TrajectoryError("base frequency: resonances, harmonics and rate must be positive")
    reach = min(HIGHEST_HARMONIC_OF_RESONANCE * frequencies.max(), rate / MIN_COMMANDS_PER_CYCLE)
    return float(min(reach / harmonics, MAX_BASE_FREQUENCY_OF_RESONANCE * frequencies.min()))


LINK_HARMONICS_FACTOR = 4
"""Number of harmonics of the links relative to the motors; friction and gravity are not linear."""
SAMPLES_PER_HARMONIC = 3
"""Smallest number of samples for each harmonic of the links; the sampling theorem requires two."""
MAX_DEFLECTION = {"revolute": np.deg2rad(20.0), "prismatic": 0.05}
"""Largest deflection of a spring that the model describes, rad or m."""
MAX_NEWTON_STEPS = 40
MAX_STEP_HALVINGS = 12
STEP_TOLERANCE = 1e-9
"""Last step of Newton's method, rad or m; the remaining error is far smaller."""
SMOOTHING_FACTORS = (30.0, 10.0, 3.0, 1.0)
"""Factors by which Coulomb friction is smoothed more, in turn, where Newton's method does not converge directly."""


class LinkPrediction:
    """Steady motion of the links for periodic motions of the motors.

    Args:
        robot: the arm; its nominal parameters are the prior of the links.
        joints: prior of springs and friction.
        base_frequency: frequency of the first harmonic, Hz.
        harmonics: number of harmonics of the motors' motion.
        smoothing: (n,) velocity range of the reversal of Coulomb friction, rad/s or m/s.
        detail: number of harmonics of the links relative to the motors. Vibrations at higher frequencies, after
            reversals of friction, are neglected.
    """

    def __init__(
        self,
        robot: RobotModel,
        joints: FlexibleJoints,
        *,
        base_frequency: float,
        harmonics: int,
        smoothing: NDArray,
        detail: int = LINK_HARMONICS_FACTOR,
    ) -> None:
        self._robot = robot
        self._base_frequency = base_frequency
        self._motor_harmonics = harmonics
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
        self._max_deflection = np.array([MAX_DEFLECTION[kind] for kind in robot.joint_types])
        self._bases: dict[int, NDArray] = {}

    def motion(self, motor: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Compute positions, velocities and accelerations (N, n) of the links, and keep them for `gradient`.

        Args:
            motor: (N, n) positions of the motors at N equidistant times over a period.

        Raises:
            TrajectoryError: no steady motion is found, as at a resonance without damping; a spring deflects by more
                than 20°; or the samples are too few for the harmonics.
        """
        needed = SAMPLES_PER_HARMONIC * self._harmonics
        if len(motor) < needed:
            raise TrajectoryError(
                f"{len(motor)} samples of a period are too few for {self._motor_harmonics} harmonics of flexible "
                f"joints; at least {needed} are needed"
            )
        # A subset of denser samples is enough to find the series.
        stride = max(step for step in range(1, len(motor) // needed + 1) if len(motor) % step == 0)
        coefficients = self._solved(motor[::stride])
        position, velocity, acceleration = np.tensordot(self._basis(len(motor)), coefficients, axes=1)
        deflection = np.abs(position - motor).max(axis=0)
        worst = int(np.argmax(deflection / self._max_deflection))
        if deflection[worst] > self._max_deflection[worst]:
            turns = self._robot.joint_types[worst] == "revolute"
            shown = f"{np.rad2deg(deflection[worst]):.0f}°" if turns else f"{deflection[worst]:.3g} m"
            raise TrajectoryError(
                f"the spring of joint '{self._robot.joint_names[worst]}' would wind up by {shown}: the motion is too "
                "large near the resonance, or the stiffness too low"
            )
        return position, velocity, acceleration

    def gradient(self, by_position: NDArray, by_velocity: NDArray, by_acceleration: NDArray) -> NDArray:
        """Return the gradient (N, n) by the motors' positions, for gradients (N, n) by the last motion of the links.

        The implicit function theorem requires one solution with the transpose of Newton's last matrix.
        """
        by = np.stack([by_position, by_velocity, by_acceleration])
        basis = self._basis(len(by_position))
        by_coefficients = np.einsum("dsk,dsi->ki", basis, by)
        if self._factor is None:
            raise TrajectoryError("there is no motion of the links yet whose gradient could be taken")
        multipliers = lu_solve(self._factor, by_coefficients.ravel(), trans=1).reshape(by_coefficients.shape)
        return self.stiffness * (basis[0] @ multipliers) / len(by_position)

    def _solved(self, motor: NDArray) -> NDArray:
        """Return the coefficients (k, n) of the steady motion."""
        rigid = self._basis(len(motor))[0].T @ motor / len(motor)
        coefficients, solved = self._newton(motor, rigid, self._smoothing)
        if not solved:
            coefficients = rigid
            for factor in SMOOTHING_FACTORS:
                coefficients, solved = self._newton(motor, coefficients, factor * self._smoothing)
        if not solved:
            raise TrajectoryError(
                f"no steady motion of the links is found for motors at {self._base_frequency:.3g} to "
                f"{self._motor_harmonics * self._base_frequency:.3g} Hz: make the motion smaller or keep its "
                "frequencies off the resonance, or give the links the viscous friction they have"
            )
        return coefficients

    def _newton(self, motor: NDArray, coefficients: NDArray, smoothing: NDArray) -> tuple[NDArray, bool]:
        """Return coefficients and whether they solve the equations, and keep the factors of the last matrix."""
        residual, partials = self._equations(motor, coefficients, smoothing)
        for _ in range(MAX_NEWTON_STEPS):
            try:
                self._factor = lu_factor(self._matrix(partials), check_finite=False)
            except LinAlgError:
                return coefficients, False
            step = lu_solve(self._factor, residual.ravel(), check_finite=False).reshape(residual.shape)
            if not np.isfinite(step).all():
                return coefficients, False
            size = np.abs(step).max()
            fraction = 1.0
            if size < STEP_TOLERANCE:
                return coefficients - step, True
            for _ in range(MAX_STEP_HALVINGS):
                trial = coefficients - fraction * step
                new_residual, new_partials = self._equations(motor, trial, smoothing)
                if np.linalg.norm(new_residual) < (1.0 - 0.1 * fraction) * np.linalg.norm(residual):
                    break
                fraction /= 2.0
            else:
                # Rounding alone may keep the residual from decreasing further.
                return coefficients, bool(size < 100.0 * STEP_TOLERANCE)
            coefficients = trial
            residual = new_residual
            partials = new_partials
        return coefficients, False

    def _equations(self, motor: NDArray, coefficients: NDArray, smoothing: NDArray) -> tuple[NDArray, NDArray]:
        """Return the harmonics (k, n) of K (q - q_m) + M qdd + V qd + G + F, and partial derivatives of its samples.

        The partial derivatives (3, n, n, N) are by position, velocity and acceleration, of equation i by joint j.
        """
        basis = self._basis(len(motor))
        q, qd, qdd = np.tensordot(basis, coefficients, axes=1)
        samples, n = q.shape
        joint = np.arange(n)
        # One copy of the motion for each equation: one call for all is little slower than a call for one.
        matrix = self._dynamics.matrix(*(np.tile(array, (n, 1)) for array in (q, qd, qdd)))
        weights = np.zeros((*matrix.shape[:2], n, samples))
        weights[joint, :, joint] = self._parameters[:, None]
        by_motion = self._dynamics.gradient(weights.reshape(matrix.shape))
        partials = np.stack(by_motion).reshape(3, n, samples, n).transpose(0, 1, 3, 2)
        matrix = matrix[..., :samples]
        direction = np.tanh(qd / smoothing)
        partials[0, joint, joint] += self.stiffness[:, None]
        partials[1, joint, joint] += (self._viscous + self._coulomb * (1.0 - direction**2) / smoothing).T
        torque = np.einsum("icm,c->mi", matrix, self._parameters) + self._coulomb * direction + self._viscous * qd
        residual = self.stiffness * (q - motor) + torque
        return basis[0].T @ residual / len(motor), partials

    def _matrix(self, partials: NDArray) -> NDArray:
        """Return the derivative (k n, k n) of the harmonics by the coefficients."""
        _, n, _, samples = partials.shape
        basis = self._basis(samples)
        size = basis.shape[-1]
        blocks = np.empty((size, n, size, n))
        for i in range(n):
            for j in range(n):
                weighted = np.einsum("ds,dsk->sk", partials[:, i, j], basis)
                blocks[:, i, :, j] = basis[0].T @ weighted / samples
        return blocks.reshape(size * n, size * n)

    def _basis(self, samples: int) -> NDArray:
        """Return the functions of the series, of mean square 1, and two derivatives at the samples (3, N, k)."""
        if samples not in self._bases:
            order = np.arange(1, self._harmonics + 1)
            rate = 2 * np.pi * self._base_frequency * order
            angle = np.outer(2 * np.pi * np.arange(samples) / samples, order)
            sin = np.sqrt(2.0) * np.sin(angle)
            cos = np.sqrt(2.0) * np.cos(angle)
            one = np.ones((samples, 1))
            self._bases[samples] = np.stack(
                [
                    np.hstack([one, cos, sin]),
                    np.hstack([0 * one, -sin * rate, cos * rate]),
                    np.hstack([0 * one, -cos * rate**2, -sin * rate**2]),
                ]
            )
        return self._bases[samples]
