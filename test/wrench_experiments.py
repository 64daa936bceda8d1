"""Simulate arms that carry a load on a wrist sensor: MuJoCo's wrenches with realistic sensor errors."""

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
"""Sampling rate of the true motion in Hz; its cubic spline is accurate to 1e-6 of the wrench."""
MARGIN = 0.1
"""Duration of motion before and after the recording in s."""


@dataclass(frozen=True)
class Sensor:
    """Kind of wrist sensor with its mounting.

    Attributes:
        rate: sampling rate in Hz.
        noise: standard deviation of force in N and torque in N m.
        bias: magnitude of the offset of force in N and torque in N m.
        gain_error: standard deviation of the relative error of each axis' gain.
        turn: standard deviation of the rotation of its axes about each of the tip's in degrees.
        lag: lag of its clock behind that of the joints in s.
        step: quantization of force in N and torque in N m.
    """

    rate: float = 100.0
    noise: tuple[float, float] = (0.1, 0.005)
    bias: tuple[float, float] = (10.0, 0.5)
    gain_error: float = 0.005
    turn: float = 0.2
    lag: float = 0.005
    step: tuple[float, float] = (0.01, 0.001)


FT_300 = Sensor()
"""Sensor like a Robotiq FT 300: 100 Hz, steps of 0.01 N and 0.001 N m."""
STRAIN_GAUGE = Sensor(rate=500.0, noise=(0.05, 0.002), step=(1 / 16, 1 / 752))
"""Sensor like an ATI Mini45 of 145 N and 5 N m."""
BUILT_IN = Sensor(rate=500.0, noise=(1.0, 0.05), step=(0.0, 0.0))
"""Sensor like those of a UR e-series, with a stated precision of 3.5 to 5 N and 0.2 N m."""


@dataclass(frozen=True)
class CarriedMotion:
    """Arm with its load (10,) and motion: times (N,), positions (N, n) and wrenches of the load (N, 6)."""

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
        """Return a recording by encoders and a sensor, without joint torques.

        Args:
            sensor: kind of the sensor.
            rng: random generator.
            rate: rate of the joint states in Hz.
            encoder: encoder noise in rad.
            turn: (3,) rotation vector of the sensor's axes in the tip's in rad; None: random.
        """
        duration = self.time[-1] - MARGIN
        time = np.arange(0.0, duration, 1 / rate)
        readings_at = np.arange(0.0, duration, 1 / sensor.rate)
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
    """Return the parameters (10,) of a tool or a workpiece of 0.5 to 4 kg, within 15 cm of the sensor."""
    mass = rng.uniform(0.5, 4.0)
    center = np.array([*rng.uniform(-0.05, 0.05, 2), rng.uniform(0.04, 0.15)])
    radii = rng.uniform(0.03, 0.1, 3)
    axes = Rotation.random(random_state=rng).as_matrix()
    moments = mass / 5 * (radii @ radii - radii**2)
    return from_center_of_mass(mass, center, axes * moments @ axes.T)


@cache
def carried_motion(name: str, duration: float, seed: int) -> CarriedMotion:
    """Return a random load on one of `clean_recordings.ARMS` in a random Fourier motion with a period of 5 s."""
    rng = np.random.default_rng([seed, round(1000 * duration)])
    robot = arm(name)
    load = random_load(rng)
    time = np.arange(-MARGIN, duration + MARGIN, 1 / FINE)
    motion = fourier_motion(robot, time, 0.2, rng)
    truth = SimulatedArm(robot)
    truth.attach_load(load)
    return CarriedMotion(robot, load, time, motion[0], truth.truth.wrench(*motion))


def with_wrench(recording: Recording, wrench: np.ndarray, frame_id: str | None = None) -> Recording:
    """Return the recording with other readings (M, 6)."""
    series = recording.wrenches[TOPIC]
    frame = series.frame_id if frame_id is None else frame_id
    other = replace(series, force=wrench[:, :3], torque=wrench[:, 3:], frame_id=frame)
    return replace(recording, wrenches={TOPIC: other})


def wrench_of(recording: Recording) -> np.ndarray:
    """Return the readings (M, 6)."""
    series = recording.wrenches[TOPIC]
    return np.hstack([series.force, series.torque])
