"""Provide a double pendulum that `GravityCompensator` drives, without ROS."""

import math

from dynid_ros.control import FeedbackGains, GravityCompensator, JointSettings, Timing

TIMING = Timing(ramp_time=1.0, fault_ramp_time=0.5, timeout=0.1)
TORQUE_LIMITS = (20.0, 10.0)


def make_gains(**changes):
    values = dict.fromkeys(("stiffness", "damping", "coulomb", "viscous"), (0.0, 0.0))
    return FeedbackGains(**({"setpoint_velocity": (0.5, 1.0)} | values | changes))


def make_joint_settings(**changes):
    values = {
        "names": ("shoulder", "elbow"),
        "gain": (1.0, 1.0),
        "torque": TORQUE_LIMITS,
        "rate": tuple(limit / TIMING.fault_ramp_time for limit in TORQUE_LIMITS),
        "lower": (-3.0, -math.inf),
        "upper": (3.0, math.inf),
        "velocity": (2.0, 4.0),
        "feedback": make_gains(),
        "margin": 0.1,
    }
    return JointSettings(**(values | changes))


def pendulum_gravity(q):
    return [12.0 * math.sin(q[0]) + 4.0 * math.sin(q[0] + q[1]), 4.0 * math.sin(q[0] + q[1])]


def bias_gravity(bias):
    return lambda q: [torque + bias for torque in pendulum_gravity(q)]


class Arm:
    """Arm that feeds a compensator with joint states every 10 ms."""

    def __init__(self, gravity=pendulum_gravity, joints=None, position=(1.0, 0.3), timing=TIMING):
        self.compensator = GravityCompensator(gravity, joints or make_joint_settings(), timing)
        self.position = list(position)
        self.time = 100.0
        self.commands = []

    def ready(self):
        """Feed joint states without enabling."""
        return self.run(0.02)

    def run(self, seconds, dt=0.01):
        for _ in range(round(seconds / dt)):
            self.time += dt
            self.commands.append(self.compensator.update(self.time, self.position))
        return self

    def watch(self, seconds, dt=0.01):
        for _ in range(round(seconds / dt)):
            self.time += dt
            self.commands.append(self.compensator.watch(self.time))
        return self

    def run_enabled(self):
        self.run(0.02)
        self.compensator.enable(self.time)
        return self.run(1.5)
