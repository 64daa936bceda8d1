"""Simulate a floating arm with compensated friction at rest: spontaneous motion, and motion started by a push."""

from dataclasses import replace

import numpy as np
from helpers.floating_arm import FloatingArm, Stranger

from dynid_ros.control import CarriedLoad, FeedbackGains, JointSettings
from dynid_ros.control.rest_friction import MAX_REST_SCALE, BreakawayFriction
from dynid_ros.model.inertia import from_center_of_mass

LEAD_SCALE = 0.8
"""Compensated part of the friction of moving joints."""
PAYLOAD_FRACTION = 0.8
"""Largest torque of a payload as a fraction of the dry friction of a joint, so the arm rests without it."""


class GuidedArm(FloatingArm):
    """Floating arm with friction compensation at rest and in motion.

    Args:
        stranger: the arm.
        rest: compensated fraction of the dry friction at rest.
        lead: compensated fraction of the friction of moving joints.
        error: factor of the assumed friction.
        noise: factor of the encoder noise.
        arguments: arguments of `FloatingArm`.
    """

    def __init__(
        self,
        stranger: Stranger,
        *,
        rest: float = MAX_REST_SCALE,
        lead: float = LEAD_SCALE,
        error: float = 1.0,
        noise: float = 1.0,
        **arguments,
    ) -> None:
        self.friction = (rest, lead, error)
        self.coulomb = stranger.coulomb * np.asarray(stranger.robot().limits.effort)
        super().__init__(stranger, **arguments)
        sensors = self.arm.sensors
        self.arm.sensors = replace(
            sensors, position_noise=noise * sensors.position_noise, velocity_noise=noise * sensors.velocity_noise
        )

    def settings(self, scale: float = 1.0) -> JointSettings:
        """Return the joints' settings at a scale."""
        rest, lead, error = self.friction
        assumed = error * self.coulomb
        zeros = np.zeros_like(assumed)
        breakaway = BreakawayFriction(tuple(rest * assumed), tuple(zeros), tuple(zeros + np.inf), tuple(zeros))
        gains = FeedbackGains.from_robot(
            self.robot, coulomb=lead * assumed, viscous=0.5 * lead * assumed, rest=breakaway if rest else None
        )
        return JointSettings.from_robot(self.robot, fault_ramp_time=0.5, gain=[scale], brake=self.brake, feedback=gains)

    def let_go(self) -> "GuidedArm":
        """Leave the arm to the compensator, as at the activation of its controller."""
        super().let_go()
        self.compensator.released()
        return self

    def payload(self) -> float:
        """Return the mass, kg, at the tip whose weight is `PAYLOAD_FRACTION` of the dry friction of a joint."""
        loaded = self.gravity().carrying(CarriedLoad(1.0, (0.0, 0.0, 0.0), self.robot.tip))
        pose = self.arm.position.tolist()
        weight = np.abs(np.subtract(loaded(pose), self.gravity()(pose)))
        return float(PAYLOAD_FRACTION / np.max(weight / self.coulomb))

    def grasp(self, mass: float, *, is_tool: bool = False) -> None:
        """Carry a payload, in truth and in the model."""
        self.arm.attach_load(from_center_of_mass(mass, np.zeros(3), 1e-6 * np.eye(3)))
        load = CarriedLoad(mass, (0.0, 0.0, 0.0), self.robot.tip, is_tool=is_tool)
        self.compensator.replace(self.gravity().carrying(load), self.settings(), load=True)


SCENARIOS = {
    "friction 25 % too high": {"error": 1.25},
    "noise of the encoders five times larger": {"noise": 5.0},
    "payload removed": {},
    "payload removed, friction 25 % too high": {"error": 1.25},
}


def spontaneous_motion(stranger: Stranger, scenario: str, *, seed: int = 0, is_tool: bool = False) -> float:
    """Return the largest displacement in rad of a joint that nothing touches for a minute."""
    arm = GuidedArm(stranger, seed=seed, **SCENARIOS[scenario])
    if scenario.startswith("payload"):
        arm.grasp(arm.payload(), is_tool=is_tool)
    arm.enable()
    arm.let_go()
    arm.run(8.0)
    start = arm.time
    if scenario.startswith("payload"):
        arm.arm.detach_load()
    arm.run(48.0)
    assert not arm.compensator.fault_reason
    return arm.motion(start)


def starting_motion(stranger: Stranger, joint: int, part: float, *, rest: float = MAX_REST_SCALE) -> float:
    """Return the motion, rad, of a joint under a constant push of a part of its dry friction for two seconds."""
    arm = GuidedArm(stranger, rest=rest).enable().let_go()
    arm.run(5.0)
    before = arm.arm.position[joint]
    link = arm.robot.link_names[joint]
    poses = arm.robot.joint_axes(arm.arm.position[np.newaxis])
    axis = np.asarray(poses)[0][joint][:3]
    torque = part * arm.coulomb[joint] * axis
    arm.arm.push([0.0, 0.0, 0.0, *torque], link, arm.root, 2.0)
    arm.run(2.0)
    return float(arm.arm.position[joint] - before)
