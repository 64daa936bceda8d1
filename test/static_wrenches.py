"""What a force/torque sensor reads at rest in random poses, from MuJoCo."""

from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

GRAVITY = 9.80665
BIAS = np.array([3.0, -5.0, 8.0, 0.2, -0.3, 0.1])
NOISE = np.repeat([0.05, 0.002], 3)
MASS, CENTER = 1.3, np.array([0.01, -0.02, 0.06])
SENSOR = """<mujoco><option gravity="0 0 -9.80665"/><worldbody><body><freejoint/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body><site name="sensor"/><inertial pos="{center}" mass="{mass}" diaginertia="0.003 0.002 0.001"/></body>
  </body></worldbody><sensor><force site="sensor"/><torque site="sensor"/></sensor></mujoco>"""


@dataclass(frozen=True)
class Readings:
    """Of M poses: sensor's axes in the base (M, 3, 3) as columns, wrench of the load on the sensor (M, 6) in them."""

    rotations: np.ndarray
    load: np.ndarray

    def read(self, rng: np.random.Generator, noise: float = 1.0) -> np.ndarray:
        """(M, 6) with bias and noise."""
        return self.load + BIAS + noise * NOISE * rng.standard_normal(self.load.shape)

    def in_base(self, wrench: np.ndarray) -> np.ndarray:
        """The same in the axes of the base."""
        force, torque = (np.einsum("nij,nj->ni", self.rotations, part) for part in np.split(wrench, 2, axis=1))
        return np.hstack([force, torque])


def readings(poses: int, seed: int = 0) -> Readings:
    """Of random orientations, held still."""
    center = " ".join(map(repr, CENTER.tolist()))
    model = mujoco.MjModel.from_xml_string(SENSOR.format(center=center, mass=MASS))
    data = mujoco.MjData(model)
    rotations = Rotation.random(poses, random_state=seed)
    load = []
    for quaternion in np.roll(rotations.as_quat(), 1, axis=1):
        data.qpos[3:] = quaternion
        data.qacc[:] = 0.0
        mujoco.mj_inverse(model, data)
        # MuJoCo reads what the arm does to the load.
        load.append(-data.sensordata)
    return Readings(rotations.as_matrix(), np.array(load))
