"""Arms that carry a load on a wrist sensor: MuJoCo's wrenches, and sensors that err as real ones do."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from clean_recordings import arm
from coverage_experiments import ENCODER_STEP, fourier_motion
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording import Recording, WrenchSeries
from dynid_ros.simulation import SimulatedArm

TOPIC = "/wrench"
FINE = 500.0
"""Samples per second of the true motion; a cubic spline through them is off by 1e-6 of the wrench."""
MARGIN = 0.1
"""Motion before and after the recording, s."""


@dataclass(frozen=True)
class Sensor:
    """A kind of wrist sensor, and how it is mounted.

    Attributes:
        rate: Hz.
        noise: standard deviation of force, N, and torque, N m.
        bias: size of the offset of force, N, and torque, N m.
        gain_error: standard deviation of the relative error of each axis' gain.
        turn: standard deviation of the turn of its axes about each of the tip's, degrees.
        lag: by how much later than the joints' its clock is, s.
        step: least step of the readings of force, N, and torque, N m.
    """

    rate: float = 100.0
    noise: tuple[float, float] = (0.1, 0.005)
    bias: tuple[float, float] = (10.0, 0.5)
    gain_error: float = 0.005
    turn: float = 0.2
    lag: float = 0.005
    step: tuple[float, float] = (0.01, 0.001)


FT_300 = Sensor()
"""Like a Robotiq FT 300: 100 Hz, steps of 0.01 N and 0.001 N m."""
STRAIN_GAUGE = Sensor(rate=500.0, noise=(0.05, 0.002), step=(1 / 16, 1 / 752))
"""Like an ATI Mini45 of 145 N and 5 N m."""
BUILT_IN = Sensor(rate=500.0, noise=(1.0, 0.05), step=(0.0, 0.0))
"""As noisy as those built into a UR e-series, which state a precision of 3.5 to 5 N and 0.2 N m."""


@dataclass(frozen=True)
class CarriedMotion:
    """An arm, its load (10,), and the motion: times (N,), positions (N, n) and wrenches of the load (N, 6)."""

    robot: RobotModel
    load: np.ndarray
    time: np.ndarray
    position: np.ndarray
    wrench: np.ndarray

    def record(
        self,
        sensor: Sensor,
        rng: np.random.Generator,
        rate: float = 250.0,
        encoder: float = 2e-5,
        turn: np.ndarray | None = None,
    ) -> Recording:
        """What encoders with noise, rad, and a sensor of that kind show of it; no joint torques.

        Args:
            sensor: its kind.
            rng: draws all errors.
            rate: of the joint states, Hz.
            encoder: noise, rad.
            turn: (3,) rotation vector of the sensor's axes in the tip's, rad; None: drawn.
        """
        duration = self.time[-1] - MARGIN
        time, readings_at = np.arange(0.0, duration, 1 / rate), np.arange(0.0, duration, 1 / sensor.rate)
        q = CubicSpline(self.time, self.position)(time)
        q = np.round((q + rng.normal(0.0, encoder, q.shape)) / ENCODER_STEP) * ENCODER_STEP
        drawn = np.radians(sensor.turn) * rng.standard_normal(3)
        axes = Rotation.from_rotvec(drawn if turn is None else turn).as_matrix()
        wrench = CubicSpline(self.time, self.wrench)(readings_at).reshape(-1, 2, 3) @ axes
        readings = wrench.reshape(-1, 6) * (1 + sensor.gain_error * rng.standard_normal(6))
        readings += np.repeat(sensor.bias, 3) * rng.uniform(-1, 1, 6)
        readings += np.repeat(sensor.noise, 3) * rng.standard_normal(readings.shape)
        steps = np.repeat(sensor.step, 3)
        readings = np.where(steps > 0, np.round(readings / np.where(steps > 0, steps, 1)) * steps, readings)
        series = WrenchSeries(readings_at + sensor.lag, readings[:, :3], readings[:, 3:], self.robot.tip)
        unknown = np.full_like(q, np.nan)
        return Recording(self.robot.joint_names, time, q, unknown, unknown, wrenches={TOPIC: series}, source="run")


def random_load(rng: np.random.Generator) -> np.ndarray:
    """(10,) of a tool or a workpiece of 0.5 to 4 kg, within 15 cm of the sensor."""
    mass = rng.uniform(0.5, 4.0)
    center = np.array([*rng.uniform(-0.05, 0.05, 2), rng.uniform(0.04, 0.15)])
    radii = rng.uniform(0.03, 0.1, 3)
    axes = Rotation.random(random_state=rng).as_matrix()
    moments = mass / 5 * (radii @ radii - radii**2)
    return from_center_of_mass(mass, center, axes * moments @ axes.T)


@cache
def carried_motion(name: str, duration: float, seed: int) -> CarriedMotion:
    """A random load on one of `clean_recordings.ARMS` in a random Fourier motion of a period of 5 s."""
    rng = np.random.default_rng([seed, round(1000 * duration)])
    robot, load = arm(name), random_load(rng)
    time = np.arange(-MARGIN, duration + MARGIN, 1 / FINE)
    motion = fourier_motion(robot, time, 0.2, rng)
    truth = SimulatedArm(robot)
    truth.attach_load(load)
    return CarriedMotion(robot, load, time, motion[0], truth.truth.wrench(*motion))


def with_wrench(recording: Recording, wrench: np.ndarray, frame_id: str | None = None) -> Recording:
    """The recording with other readings (M, 6)."""
    series = recording.wrenches[TOPIC]
    frame = series.frame_id if frame_id is None else frame_id
    other = replace(series, force=wrench[:, :3], torque=wrench[:, 3:], frame_id=frame)
    return replace(recording, wrenches={TOPIC: other})


def wrench_of(recording: Recording) -> np.ndarray:
    """(M, 6) readings."""
    series = recording.wrenches[TOPIC]
    return np.hstack([series.force, series.torque])
