"""Simulate readings of a force/torque sensor at rest in random poses with MuJoCo."""

from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from dynid_ros.identification import LoadIdentification, LoadResult, WrenchSource
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, WrenchSeries

GRAVITY = 9.80665
BIAS = np.array([3.0, -5.0, 8.0, 0.2, -0.3, 0.1])
NOISE = np.repeat([0.05, 0.002], 3)
MASS = 1.3
CENTER = np.array([0.01, -0.02, 0.06])
SENSOR = """<mujoco><option gravity="0 0 -9.80665"/><worldbody><body><freejoint/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body><site name="sensor"/><inertial pos="{center}" mass="{mass}" diaginertia="0.003 0.002 0.001"/></body>
  </body></worldbody><sensor><force site="sensor"/><torque site="sensor"/></sensor></mujoco>"""


@dataclass(frozen=True)
class Readings:
    """Orientations (M, 3, 3) of the sensor in the base, and wrenches (M, 6) of the load in sensor axes."""

    rotations: np.ndarray
    load: np.ndarray

    def read(self, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """Return readings (M, 6) with bias and noise."""
        return self.load + BIAS + noise * NOISE * rng.standard_normal(self.load.shape)

    def in_base(self, wrench: np.ndarray) -> np.ndarray:
        """Return wrenches (M, 6) in axes of the base."""
        force, torque = (np.einsum("nij,nj->ni", self.rotations, part) for part in np.split(wrench, 2, axis=1))
        return np.hstack([force, torque])


def readings(poses: int, seed: int = 0) -> Readings:
    """Return exact readings in random orientations at rest."""
    center = " ".join(map(repr, CENTER.tolist()))
    model = mujoco.MjModel.from_xml_string(SENSOR.format(center=center, mass=MASS))
    data = mujoco.MjData(model)
    rotations = Rotation.random(poses, random_state=seed)
    load = []
    for quaternion in np.roll(rotations.as_quat(), 1, axis=1):
        data.qpos[3:] = quaternion
        data.qacc[:] = 0.0
        mujoco.mj_inverse(model, data)
        # MuJoCo's sensors measure the wrench of the arm on the load.
        load.append(-data.sensordata)
    return Readings(rotations.as_matrix(), np.array(load))


AXES = {"z": "0 0 1", "y": "0 1 0", "x": "1 0 0"}
WRIST = RobotModel.from_urdf(
    '<robot name="wrist"><link name="base"/>'
    + "".join(
        f'<link name="link_{axis}"/><joint name="{axis}" type="continuous"><parent link="{parent}"/>'
        f'<child link="link_{axis}"/><axis xyz="{vector}"/></joint>'
        for (axis, vector), parent in zip(AXES.items(), ("base", "link_z", "link_y"), strict=True)
    )
    + "</robot>"
)
"""Three massless joints that give a sensor any orientation."""
RATE_HZ = 50.0
MOVE_S = 0.5
DWELL_S = 1.2


def recording(rotations: np.ndarray, wrench: np.ndarray, frame: str = WRIST.tip) -> Recording:
    """Return a recording of `WRIST` that dwells in each pose (M, 3, 3) with its wrench (M, 6)."""
    angles = Rotation.from_matrix(rotations).as_euler("ZYX")
    share = np.concatenate([np.linspace(0.0, 1.0, int(MOVE_S * RATE_HZ)), np.ones(int(DWELL_S * RATE_HZ))])
    before = np.vstack([angles[:1], angles[:-1]])
    position = (before[:, None] + share[:, None] * (angles - before)[:, None]).reshape(-1, 3)
    readings = np.repeat(wrench, len(share), axis=0)
    readings = readings + NOISE * np.random.default_rng(0).standard_normal(readings.shape)
    time = np.arange(len(position)) / RATE_HZ
    return Recording(
        time=time,
        position=position,
        velocity=np.gradient(position, 1 / RATE_HZ, axis=0),
        torque=np.zeros_like(position),
        joint_names=WRIST.joint_names,
        source="poses",
        wrenches={"/wrench": WrenchSeries(time, readings[:, :3], readings[:, 3:], frame)},
    )


def calibrate(rotations: np.ndarray, wrench: np.ndarray, frame: str = WRIST.tip, **settings: object) -> LoadResult:
    """Identify the load and the sensor's bias from poses at rest, with settings of `WrenchSource`."""
    sensor = WrenchSource(**{"joint_deflection": 0.0, **settings})
    return LoadIdentification(WRIST, sensor=sensor, motion="static").fit(recording(rotations, wrench, frame))
