"""Simulate arms in MuJoCo with and without external pushes, identified from motion of another kind.

The user's URDF has errors of up to 20 %; torque sensors have gain errors of 1 % and offsets. Friction has terms that
the model lacks: presliding, ripple over the position, asymmetry and dependence on the load.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import clean_recordings
import numpy as np
import whole_experiments
from coverage_experiments import fourier_motion, link_inertia, torque_scale
from live_load_experiments import block
from online_experiment import moves

from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, Sensors, SimulatedArm
from dynid_ros.simulation.descriptions import misjudged_urdf
from dynid_ros.simulation.drives import KnownFriction
from dynid_ros.simulation.trajectory_points import TrajectoryPoints

SPLITS = {"develop": ("panda", "ur10"), "judge": ("talos", "centauro", "xarm7")}
"""Arms for the choice of thresholds, and for their evaluation; fixed before either was run."""
TIMESTEP = 0.004
FIT_RATE = 200.0
FIT_DURATION = 24.0
GAIN_ERROR, OFFSET, NOISE = 0.01, 0.03, (0.002, 0.01)
"""Relative error of torque gains; offset and noise of samples as fractions of a joint's largest torque."""
POSITION_NOISE = 1e-5
VELOCITY_NOISE = 1e-3
MISJUDGED = 0.2
KNOT = 0.02


@dataclass(frozen=True)
class Push:
    """Moment about the axis of a joint in N m, on the link that it moves, from time `start` in s."""

    joint: int
    torque: float
    start: float
    duration: float = 0.3


@cache
def arm(name: str) -> RobotModel:
    """Return one of SPLITS with joints outside the chain fixed."""
    if name in whole_experiments.ARMS:
        return whole_experiments.arm(name)
    return clean_recordings.arm(name)


class ContactExperiment:
    """Arm with its friction, sensors and load.

    Args:
        name: name of the arm.
        seed: seed of the random numbers.
        loaded: whether the arm carries a known load during work.

    Attributes:
        robot: model that the user has.
        load: (10,) parameters about the tip's frame, or None.
    """

    def __init__(self, name: str, seed: int, *, loaded: bool = False) -> None:
        true = arm(name)
        rng = np.random.default_rng([41, seed])
        self._true = true
        self._rng = rng
        n = true.n_joints
        self._rotors = rng.uniform(0.1, 0.4, n) * link_inertia(true)
        motion = fourier_motion(true, np.arange(0.0, FIT_DURATION, 0.01), 2 / FIT_DURATION, rng)
        self.size = torque_scale(SimulatedArm(true, drives=Drives(0.0, 0.0)).truth.drive_torque(*motion))
        self._friction = KnownFriction(*_friction(true, self.size, rng))
        self._sensors = Sensors.draw(
            self.size,
            rng,
            torque_offset=OFFSET,
            torque_gain_error=GAIN_ERROR,
            torque_noise=rng.uniform(*NOISE, n),
            position_noise=POSITION_NOISE,
            velocity_noise=VELOCITY_NOISE,
        )
        mass = min(true.parameters[::10].sum() * 0.2, 3.0)
        self.load = block(mass, rng) if loaded else None
        # speed of the work, natural frequency in rad/s and damping of the servo
        self._speed = rng.uniform(0.3, 0.8)
        self._servo = 2 * np.pi * rng.uniform(3.0, 8.0), rng.uniform(0.5, 0.9)
        urdf = misjudged_urdf(true, MISJUDGED, rng)
        self.robot = RobotModel.from_urdf(urdf, tip=true.tip, base=true.base)

    def recordings(self) -> list[Recording]:
        """Return recordings of the unloaded arm: all joints at once, and from pose to pose."""
        time = np.arange(0.0, FIT_DURATION, 1 / FIT_RATE)
        truth = SimulatedArm(self._true, drives=Drives(0.0, 0.0, self._rotors)).truth
        motions = [fourier_motion(self._true, time, 2 / FIT_DURATION, self._rng)]
        motions.append(np.array(moves(self._true, FIT_DURATION, FIT_RATE, self._rng, 0.6)[1:]))
        recordings = []
        for q, qd, qdd in motions:
            friction = self._friction.model.of_motion(self._true, q, qd, qdd) @ self._friction.coefficients
            readings = self._sensors.measure(q, qd, truth.drive_torque(q, qd, qdd) + friction, self._rng)
            recordings.append(Recording(self.robot.joint_names, time[: len(q)], *readings, source="alone"))
        return recordings

    def work(self, duration: float) -> tuple[np.ndarray, ...]:
        """Return time (N,), positions, velocities and measured torques (N, n) of undisturbed motion by MuJoCo.

        The servo moves the arm from pose to pose with rests, as a second-order system that overshoots a little.
        """
        time = np.arange(0.0, duration, TIMESTEP)
        motion = self._moves(duration, TIMESTEP)[:2]
        natural, damping = self._servo
        q = motion[0].copy()
        qd = motion[1].copy()
        qdd = np.zeros_like(q)
        place = q[0].copy()
        speed = qd[0].copy()
        for k in range(len(q)):
            q[k] = place
            qd[k] = speed
            qdd[k] = natural**2 * (motion[0][k] - place) + 2 * damping * natural * (motion[1][k] - speed)
            speed = speed + TIMESTEP * qdd[k]
            place = place + TIMESTEP * speed
        drives = Drives(0.0, 0.0, self._rotors)
        simulated = SimulatedArm(self._true, drives=drives)
        if self.load is not None:
            simulated.attach_load(self.load)
        torque = simulated.truth.drive_torque(q, qd, qdd)
        torque += self._friction.model.of_motion(self._true, q, qd, qdd) @ self._friction.coefficients
        return (time[: len(q)], *self._sensors.measure(q, qd, torque, self._rng))

    def pushed(self, duration: float, pushes: Sequence[Push]) -> tuple[np.ndarray, ...]:
        """Return a result like `work` of MuJoCo's own motion under a servo and pushes."""
        true = self._true
        simulated = SimulatedArm(
            true,
            drives=Drives(0.0, 0.0, self._rotors),
            friction=self._friction,
            sensors=self._sensors,
            timestep=TIMESTEP,
            seed=int(self._rng.integers(2**31)),
        )
        if self.load is not None:
            simulated.attach_load(self.load)
        motion = self._moves(duration, KNOT)
        motion[1:, -1] = 0.0
        simulated.reset(motion[0, 0])
        simulated.follow(TrajectoryPoints(true.joint_names, KNOT * np.arange(motion.shape[1]), *motion), TIMESTEP)
        axes = np.linalg.inv(true.chain.link_offsets[:, :3, :3])[:, :, 2]
        waiting = sorted(pushes, key=lambda push: push.start)
        rows = []
        for _ in range(round((duration - KNOT) / TIMESTEP)):
            simulated.step(TIMESTEP)
            if waiting and simulated.time >= waiting[0].start:
                push = waiting.pop(0)
                link = true.link_names[push.joint]
                simulated.push([0.0, 0.0, 0.0, *(push.torque * axes[push.joint])], link, link, push.duration)
            rows.append((simulated.time, *simulated.measure()))
        return tuple(np.array(column) for column in zip(*rows, strict=True))

    def _moves(self, duration: float, step: float) -> np.ndarray:
        return np.array(moves(self._true, duration, 1 / step, self._rng, self._speed)[1:])


def _friction(robot: RobotModel, scale: np.ndarray, rng: np.random.Generator) -> tuple[FrictionModel, np.ndarray]:
    joints = []
    coefficients = []
    for largest in scale:
        joint = JointFriction(
            sliding_length=float(np.exp(rng.uniform(*np.log([2e-4, 3e-3])))),
            asymmetric=True,
            load=bool(rng.random() < 0.3),
            stribeck_velocity=float(rng.uniform(0.03, 0.2)) if rng.random() < 0.5 else None,
            saturation_velocity=float(rng.uniform(0.5, 1.5)) if rng.random() < 0.5 else None,
            harmonics=(float(rng.integers(2, 12)),),
        )
        coulomb = largest * rng.uniform(0.03, 0.15)
        viscous = largest * rng.uniform(0.02, 0.1)
        ripple = coulomb * rng.uniform(0.0, 0.2)
        phase = rng.uniform(0, 2 * np.pi)
        side = rng.uniform(-0.1, 0.1)
        for term in joint.terms:
            coefficients.append(
                {
                    "coulomb_positive": coulomb * (1 + side),
                    "coulomb_negative": coulomb * (1 - side),
                    "viscous_positive": viscous * (1 + side),
                    "viscous_negative": viscous * (1 - side),
                    "stribeck": coulomb * rng.uniform(0.1, 0.4),
                    "load": rng.uniform(0.01, 0.05),
                }.get(term, ripple * (np.cos(phase) if term.startswith("cos") else np.sin(phase)))
            )
        joints.append(joint)
    return FrictionModel(joints, (), robot.parameters), np.array(coefficients)
