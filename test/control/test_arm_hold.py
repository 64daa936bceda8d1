"""Brakes that act on an arm besides the gravity torque."""

import numpy as np
from helpers.floating_arm import PERIOD_S, STRANGERS, FloatingArm


def test_a_joint_above_its_speed_limit_is_braked_and_no_other():
    arm = FloatingArm(STRANGERS["ur5"]).enable(2.5)
    position = arm.arm.position.tolist()
    limit = arm.compensator.joints.speed_limit[1]
    for velocity in (0.9 * limit, 1.5 * limit):
        arm.time += PERIOD_S
        torque = arm.compensator.update(arm.time, position, arm.time, None, [0.0, velocity, 0.0, 0.0, 0.0, 0.0])
        change = np.subtract(torque, arm.torques[-1])
        assert change[1] < -1.0 if velocity > limit else abs(change[1]) < 1.0
        assert np.abs(np.delete(change, 1)).max() < 1.0
