"""Identification of position-commanded servos without torque measurement, from commands and positions.

A servo turns the error of its position into torque, by an unknown gain. Divided by that gain, the equation of motion of
a joint contains times and angles only: the delay of the command, inertia over gain (s²), viscous friction and damping
by the controller over gain (s), dry friction and gravity over gain (rad). These quantities predict its motion and can
be found without a torque. A known gain, as of drives in MIT mode, gives all quantities in N m. Without it, a mass of
known weight at a known place, attached in some recordings, adds the gain of each joint that it loads. The method is
output error as in Ljung 1999, "System identification", section 4.3. The first estimate minimises equation errors over a
grid of delays (Gautier and others 2013, "DIDIM", work without torque likewise, but with a known gain).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.rank import column_norms
from dynid_ros.identification.servo.closed_loop import (
    DELAY_DIFFERENCE_S,
    DIFFERENCE_FRACTION,
    STEP_PER_TIME_CONSTANT,
    STEP_RANGE_S,
    ClosedLoops,
    JointLayout,
    Normal,
    output_error,
)
from dynid_ros.identification.servo.servo_result import ServoResult
from dynid_ros.identification.servo.servo_runs import (
    ServoModel,
    ServoRun,
    commanded_gains,
    moving_joints,
    servo_runs,
    with_known_gains,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import ball
from dynid_ros.model.arrays import per_joint
from dynid_ros.model.inertia import transformed
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.settings import check, setting, settings_of
from dynid_ros.signals import LowPass

DELAY_GRID_S = 2e-3
"""s between delays that are tried first."""
MIN_SPEED_FRACTION = 0.05
"""Fraction of a joint's largest velocity below which the direction of its friction is uncertain."""
START_CUTOFF_HZ = 6.0
"""Hz, of the low-pass for a first estimate: counts of an encoder, differentiated twice, hide slow accelerations."""
RIDGE_FRACTION = 1e-3
"""Ridge, as a fraction of a unit column, on undetermined parts of the first estimate."""
MIN_INERTIA_FRACTION = 0.2
"""Smallest inertia of a pose, in parts of the median, of a first estimate to begin with."""
MIN_INERTIA_S2 = 1e-6
"""s², of a first estimate: a loop of 160 Hz."""
MAX_UNEXPLAINED_FRACTION = 0.5
"""Largest unexplained fraction of the following error's RMS. Fault-free servos leave less than 0.01. At 0.5 a joint
does not act as a linear servo."""
SATURATED_FRACTION = 0.2
"""Unexplained fraction of the following error's RMS above which a joint is named too: servos with saturated torque
leave 0.2 and more."""


@dataclass
class ServoIdentification:
    """Fit of delay, inertia, damping, friction and gravity, each over the gain of its joint, to commands and positions.

    Joints that do not move are held at their position. Each joint has its own gain and its own base parameters.

    Attributes:
        robot: kinematics and gravity; its inertias are not used.
        between_commands: motion of the set-point until the next command.
        error_derivative: whether the derivative gain acts on the error.
        longest_delay: largest delay of the command that is tried, s.
        stiffness: known gains, N m/rad (N/m), one for all joints or one per joint, as commanded to drives in MIT mode;
            zero: unknown.
        damping: known damping of the drives, N m s/rad (N s/m), likewise; with stiffness.
        reference_mass: weight of the mass in the recordings with mass, kg; None: no mass.
        reference_center: (3,) centre of the mass in the frame of the tip link, m.

    Raises:
        IdentificationError: an impossible setting, a mass that is not positive, or a mass without a centre.
    """

    robot: RobotModel
    between_commands: str = setting(
        "hold",
        "motion of a servo until the next command: hold the last one, or a line to the next",
        choices=("hold", "line"),
    )
    error_derivative: bool = setting(
        False, "estimate a derivative gain that acts on the error, not on the measured velocity"
    )
    longest_delay: float = setting(0.15, "delay of the command up to which the search goes", unit="s", above=0)
    stiffness: Sequence[float] = setting(
        (0.0,), "known gains of the position error; 0: unknown", unit="N m/rad (N/m), one for all or one per joint"
    )
    damping: Sequence[float] = setting(
        (0.0,), "known gains of the velocity error, with stiffness", unit="N m s/rad (N s/m), likewise"
    )
    reference_mass: float | None = setting(
        None, "mass that is attached in the recordings with mass; default: none", unit="kg", symbol="KG"
    )
    reference_center: ArrayLike | None = setting(
        None, "centre of the reference mass in the frame of the tip link", unit="m", parts=("X", "Y", "Z")
    )

    def __post_init__(self) -> None:
        check(self, IdentificationError)
        if self._gains and self.reference_mass is not None:
            raise IdentificationError(
                "stiffness and reference_mass both give the gains; leave one out, and compare the two results"
            )
        if self.reference_mass is None:
            if self.reference_center is not None:
                raise IdentificationError("reference_center is given without reference_mass; give the mass in kg too")
            return
        if not self.reference_mass > 0:
            raise IdentificationError(f"reference_mass is {self.reference_mass:g} kg; expected a weight above 0")
        center = np.asarray([] if self.reference_center is None else self.reference_center, dtype=float)
        if center.shape != (3,) or not np.isfinite(center).all():
            raise IdentificationError(
                f"reference_mass is {self.reference_mass:g} kg, but reference_center is "
                f"{'not given' if not center.size else center.tolist()}; give the place of its centre, X Y Z in m"
            )

    def fit(self, *given: Recordings, with_mass: Sequence[Recordings] = ()) -> ServoResult:
        """Fit all recordings together.

        Args:
            given: with commands, without the reference mass; recordings or files of these.
            with_mass: with it.

        Raises:
            RecordingError: a joint of the robot is not in a recording.
            IdentificationError: no commands, or such as determine nothing, see `moving_joints`; too short recordings; a
                mass without recordings with it, or the reverse; a fit that does not get anywhere.
        """
        recordings = read_all(given, self.robot.joint_names)
        loaded = read_all(with_mass, self.robot.joint_names)
        self._check_given(recordings, loaded)
        selected = [each.select(self.robot.joint_names) for each in (*recordings, *loaded)]
        gains = self._gains or ({} if loaded else commanded_gains(selected))
        selected = [with_known_gains(each, gains) for each in selected]
        robot = moving_joints(self.robot, selected)
        selected = [each.select(robot.joint_names) for each in selected]
        model = ServoModel(robot, self._load(robot), LinkSignals.choose(selected).motion_cutoff)
        runs = [
            run
            for k, recording in enumerate(selected)
            for run in servo_runs(
                model, recording, self.longest_delay, loaded=k >= len(recordings), linear=self._linear
            )
        ]
        layouts = [JointLayout(model.names(j), self.error_derivative) for j in range(robot.n_joints)]
        start, sizes = zip(*(self._start(runs, layout, j) for j, layout in enumerate(layouts)), strict=True)
        fastest = min(float(np.median(_inertia(runs, layouts[j], values, j))) for j, values in enumerate(start))
        loops = ClosedLoops(runs, layouts, float(np.clip(STEP_PER_TIME_CONSTANT * np.sqrt(fastest), *STEP_RANGE_S)))
        found = output_error(loops, start, sizes)
        _require_explained(robot, runs, found[1])
        sources = [recording.source for recording in selected]
        return ServoResult.from_search(
            self.robot, self.document(), model, loops, end=found, sources=sources, gains=gains
        )

    def document(self) -> dict:
        """Return the settings for the file."""
        center = None if self.reference_center is None else np.asarray(self.reference_center, dtype=float).tolist()
        own = {each.name: getattr(self, each.name) for each in settings_of(type(self))}
        gains = {name: [float(value) for value in own[name]] for name in ("stiffness", "damping")}
        return own | gains | {"reference_center": center}

    @property
    def _gains(self) -> dict[str, tuple[float, float]]:
        """Known stiffness and damping by joint; empty if the gains are unknown."""
        names = self.robot.joint_names
        stiffness, damping = (
            per_joint(values, names, what, error=IdentificationError, least=0.0)
            for what, values in (("stiffness", self.stiffness), ("damping", self.damping))
        )
        if not stiffness.any():
            if damping.any():
                raise IdentificationError("damping is given without stiffness; give the gains of the position too")
            return {}
        if not stiffness.all():
            without = ", ".join(name for name, value in zip(names, stiffness, strict=True) if not value)
            raise IdentificationError(f"the stiffness of {without} is 0; give the gain of every joint, or of none")
        return dict(zip(names, zip(stiffness.tolist(), damping.tolist(), strict=True), strict=True))

    @property
    def _linear(self) -> bool:
        return self.between_commands == "line"

    def _check_given(self, plain: Sequence[Recording], loaded: Sequence[Recording]) -> None:
        if not plain and not loaded:
            raise IdentificationError("no recording given")
        if self.reference_mass is None and loaded:
            raise IdentificationError("recordings with a mass, but no reference_mass; give its weight in kg")
        if self.reference_mass is not None and not (plain and loaded):
            raise IdentificationError(
                f"reference_mass is {self.reference_mass:g} kg, but no recording was made "
                f"{'with it attached' if plain else 'without it'}; both are needed, of the same motion"
            )

    def _load(self, robot: RobotModel) -> NDArray | None:
        if self.reference_mass is None:
            return None
        body = ball(self.reference_mass, np.asarray(self.reference_center, dtype=float))
        return transformed(body, robot.tip_offset)

    def _start(self, runs: Sequence[ServoRun], layout: JointLayout, joint: int) -> tuple[NDArray, NDArray]:
        """First values (p,) of a joint, and by how much to change them for derivatives.

        Equation errors, low-pass filtered as the motion is, for each delay of a grid; the best counts.
        """
        matrix = np.concatenate([_smooth(run, _equations(run, joint)) for run in runs])
        fast = np.abs(matrix[:, 0]) > MIN_SPEED_FRACTION * np.abs(matrix[:, 0]).max()
        scale = column_norms(matrix[fast])
        delays = np.arange(0.0, self.longest_delay, DELAY_GRID_S)
        errors = np.concatenate(
            [_smooth(run, np.column_stack([_position_error(run, joint, delay) for delay in delays])) for run in runs]
        )[fast]
        rows = np.vstack([matrix[fast] / scale, RIDGE_FRACTION * np.eye(len(scale))])
        every = np.linalg.lstsq(rows, np.vstack([errors, np.zeros((len(scale), len(delays)))]), rcond=None)[0]
        left = np.sum((errors - matrix[fast] / scale @ every) ** 2, axis=0)
        # A longer delay takes the place of friction and inertia, down to less than none: no loop to begin with.
        own = np.concatenate([run.columns[joint].inertia for run in runs]) @ (every / scale[:, None])[2:]
        sound = own.min(axis=0) > np.maximum(MIN_INERTIA_FRACTION * np.median(own, axis=0), MIN_INERTIA_S2)
        # Counts of the encoder hide small dry friction: a negative one alone does not exclude all delays.
        brakes = sound & (every[:2] > 0.0).all(axis=0)
        sound = brakes if brakes.any() else sound & (every[0] > 0.0)
        best = int(np.argmin(np.where(sound, left, np.inf) if sound.any() else left))
        delay = delays[best]
        found = every[:, best] / scale
        size = float(np.sqrt(np.mean(errors[:, best] ** 2)))
        values = np.zeros(len(layout.names))
        values[[0, 1, 2]] = delay, max(found[0], 0.0), max(found[1], 0.0)
        values[layout.first :] = found[2:]
        change = np.zeros(len(values))
        per = np.sqrt(np.mean(matrix[fast] ** 2, axis=0))
        change[[1, 2]] = per[:2]
        change[layout.first :] = per[2:]
        change = np.where(change > 0, DIFFERENCE_FRACTION * size / np.where(change > 0, change, 1.0), 0.0)
        change[0] = DELAY_DIFFERENCE_S
        if layout.derivative:
            change[3] = change[1]
        inertia = _inertia(runs, layout, values, joint)
        if not inertia.min() > MIN_INERTIA_S2:
            values = self._with_inertia(runs, layout, values, joint)
        return values, change

    @staticmethod
    def _with_inertia(runs: Sequence[ServoRun], layout: JointLayout, values: NDArray, joint: int) -> NDArray:
        """Return values with a positive inertia in all poses, by the columns whose inertia is constant."""
        own = np.concatenate([run.columns[joint].inertia for run in runs])
        spread = own.std(axis=0)
        mean = own.mean(axis=0)
        constant = np.flatnonzero(spread <= 1e-6 * np.abs(mean))
        constant = constant[mean[constant] != 0]
        found = values.copy()
        level = max(float(np.median(own @ values[layout.first :])), 10 * MIN_INERTIA_S2)
        found[layout.first :][mean != 0] = 0.0
        found[layout.first + constant[0]] = level / mean[constant[0]]
        return found


def _require_explained(robot: RobotModel, runs: Sequence[ServoRun], normals: Sequence[Normal]) -> None:
    """Refuse joints whose positions no closed loop explains.

    Raises:
        IdentificationError: names the joints and how far they stay behind their commands.
    """
    fractions = []
    followings = []
    for j, normal in enumerate(normals):
        following = np.concatenate([run.commands[j].at(run.time) - run.position[:, j] for run in runs])
        finite = np.isfinite(normal.matrices).all()
        fractions.append(normal.rms / float(np.std(following)) if finite else np.inf)
        followings.append(float(np.abs(following).max()))
    if max(fractions) < MAX_UNEXPLAINED_FRACTION:
        return
    saturated = [
        f"{name} by up to {following:.2g}"
        for name, following, fraction in zip(robot.joint_names, followings, fractions, strict=True)
        if not fraction < SATURATED_FRACTION
    ]
    raise IdentificationError(
        f"{', '.join(dict.fromkeys(run.source for run in runs))}: joints stay far behind their commands "
        f"({', '.join(saturated)} rad or m), as no servo whose torque grows with its error does: the torque ends "
        "(saturation), or something blocks them; move slower and over less, or hold these joints still"
    )


def _inertia(runs: Sequence[ServoRun], layout: JointLayout, values: NDArray, joint: int) -> NDArray:
    """Return inertia over gain (K,) in the poses of the runs, s²."""
    return np.concatenate([run.columns[joint].inertia for run in runs]) @ values[layout.first :]


def _equations(run: ServoRun, joint: int) -> NDArray:
    """Return velocity, its direction, and columns (G, 2 + c), without the ends that the filter spoils."""
    columns = run.columns[joint]
    motion = run.motion
    velocity = motion.velocity[:, joint]
    acceleration = motion.acceleration[:, joint]
    whole = columns.inertia * acceleration[:, None] + columns.rest
    return np.column_stack([velocity, np.sign(velocity), whole])


def _smooth(run: ServoRun, values: NDArray) -> NDArray:
    """Return low-pass filtered values (G, ...)."""
    rate = (len(run.grid) - 1) / (run.grid[-1] - run.grid[0])
    return LowPass(min(START_CUTOFF_HZ, 0.4 * rate), rate).filter(values)


def _position_error(run: ServoRun, joint: int, delay: float) -> NDArray:
    """Return commanded minus measured position (G,); the command is averaged over a step."""
    step = run.grid[1] - run.grid[0]
    edges = np.append(run.grid - step / 2, run.grid[-1] + step / 2) - delay
    return np.diff(run.commands[joint].integral(edges)) / step - run.motion.position[:, joint]
