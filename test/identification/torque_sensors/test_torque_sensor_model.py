"""Readings and their derivatives, against Pinocchio's torques and finite differences, on random chains."""

import numpy as np
import pytest
from carried_loads import parent_joint
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.identification.static_samples import Samples
from dynid_ros.identification.torque_sensors.torque_sensor_model import ReferenceMass, TorqueSensorModel
from dynid_ros.model import RobotModel

MASS = 2.5
CENTER = (0.1, -0.2, 0.05)
GRAVITY = (1.0, -2.0, -9.0)


def random_model(seed, center=None):
    rng = np.random.default_rng(seed)
    urdf = random_urdf(rng, 5)
    robot = RobotModel.from_urdf(urdf, tip=TIP, gravity=GRAVITY)
    q = rng.uniform(-1.5, 1.5, (8, 5))
    samples = Samples(
        position=q,
        velocity=np.zeros_like(q),
        torque=np.zeros_like(q),
        direction=rng.choice([-1.0, 0.0, 1.0], q.shape),
        static=np.ones(8, bool),
        time=np.arange(8.0),
        part=np.zeros(8, int),
    )
    loaded = np.arange(8) % 2 == 0
    model = TorqueSensorModel(robot, samples, loaded, ReferenceMass(MASS, center), None, positions=True)
    return urdf, model, rng.uniform(-1, 1, len(model.names))


@pytest.mark.parametrize("seed", range(6))
def test_jacobian_equals_finite_differences(seed):
    _, model, values = random_model(seed)
    jacobian = model.at(values).jacobian()
    for k in range(len(values)):
        step = np.zeros(len(values))
        step[k] = 1e-5
        change = model.at(values + step).readings() - model.at(values - step).readings()
        np.testing.assert_allclose(jacobian[..., k], change / 2e-5, atol=1e-6 * (1 + np.abs(jacobian).max()))


@pytest.mark.parametrize("seed", range(6))
def test_torques_with_the_mass_agree_with_pinocchio(seed):
    urdf, model, _ = random_model(seed, CENTER)
    values = np.zeros(len(model.names))
    values[model.index("position_gain")] = 1.0
    values[model.free_moments] = model.gravity.project(model.robot.parameters)[model.moment_columns]
    torques = model.at(values).torque
    bare, loaded = (PinocchioArm(urdf, model.robot.joint_names, GRAVITY) for _ in range(2))
    frame = loaded.model.frames[loaded.model.getFrameId(TIP)]
    body = loaded.pinocchio.Inertia(MASS, np.array(CENTER), np.eye(3) * 1e-3)
    loaded.model.appendBodyToJoint(parent_joint(frame), body, frame.placement)
    loaded.data = loaded.model.createData()
    for q, with_mass, torque in zip(model.samples.position, model.loaded, torques, strict=True):
        np.testing.assert_allclose(torque, (loaded if with_mass else bare).gravity_torque(q), atol=1e-9)
