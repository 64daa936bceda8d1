import numpy as np
import pendulum as pendulum_model

from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, SimulatedArm


def test_friction_of_the_urdf_unless_told_otherwise():
    limit = pendulum_model.LIMIT + '<dynamics friction="0.4" damping="0.7"/>'
    robot = RobotModel.from_urdf(pendulum_model.urdf(limit=limit))
    drives = SimulatedArm(robot).drives
    assert (drives.coulomb.tolist(), drives.viscous.tolist(), drives.rotor_inertia.tolist()) == ([0.4], [0.7], [0.0])
    drives = SimulatedArm(robot, drives=Drives(coulomb=0.0, rotor_inertia=0.2)).drives
    assert (drives.coulomb.tolist(), drives.viscous.tolist(), drives.rotor_inertia.tolist()) == ([0.0], [0.7], [0.2])


def test_one_number_is_for_every_joint(demo_robot):
    assert np.array_equal(SimulatedArm(demo_robot, drives=Drives(viscous=0.3)).drives.viscous, np.full(6, 0.3))
