"""Test the compensator on the simulated arm, connected as by the three routes of ros2_controllers."""

import demo_arm_model
import numpy as np
import pytest

from dynid_ros.control import FeedbackGains, GravityCompensator, JointSettings, State, Timing, load_gravity_torque
from dynid_ros.simulation import ControlledArm, Drives, Sensors, SimulatedArm, TrajectoryPoints, TrajectorySettings

START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
ROTORS = [0.8, 0.8, 0.4, 0.04, 0.04, 0.02]
GAINS = {"stiffness": [800.0, 800.0, 400.0, 60.0, 60.0, 30.0], "damping": [80.0, 80.0, 40.0, 6.0, 6.0, 3.0]}
PERIOD_S = 0.004
PUSH = [0.0, 30.0, -60.0, 0.0, 0.0, 0.0]


class Bench:
    """Arm, compensator, and the function that applies torques to the arm."""

    def __init__(self, model_file, *, coulomb=None, start=START, gains=None, **settings):
        robot, gravity = load_gravity_torque(model_file, demo_arm_model.demo_robot().urdf)
        rng = np.random.default_rng(1)
        sensors = Sensors.draw(robot.limits.effort, rng, velocity_noise=1e-3, position_noise=2e-5)
        drives = Drives(coulomb=coulomb, rotor_inertia=ROTORS)
        self.arm = SimulatedArm(robot, start=start, drives=drives, sensors=sensors, **settings)
        feedback = FeedbackGains.from_robot(robot, **gains) if gains else None
        joints = JointSettings.from_robot(robot, fault_ramp_time=0.5, feedback=feedback)
        self.compensator = GravityCompensator(gravity, joints, Timing(ramp_time=0.5))
        self.time = 0.0
        self.apply_torque = lambda _torque: None
        self.before_step = lambda: None

    def run(self, seconds):
        """Run for some seconds and return the true position."""
        for _ in range(round(seconds / PERIOD_S)):
            self.time += PERIOD_S
            position, velocity, _ = self.arm.measure()
            torque = self.compensator.update(self.time, position.tolist(), self.time, None, velocity.tolist())
            if torque is None:
                torque = self.compensator.watch(self.time)
            if torque is not None:
                self.apply_torque(torque)
            self.before_step()
            self.arm.step(PERIOD_S)
        return self.arm.position

    def enable(self):
        self.run(0.1)
        self.compensator.enable(self.time)
        self.run(0.6)
        assert self.compensator.state is State.ACTIVE
        return self

    def release_to_effort(self):
        """Enable while the servo holds the arm, and then leave the arm to the torque."""
        self.enable()
        self.arm.release()
        self.apply_torque = self.arm.command_effort
        return self


@pytest.fixture
def model_file(tmp_path):
    return demo_arm_model.write(tmp_path / "identified.yaml", friction=demo_arm_model.FRICTION)


def test_arm_floats_and_stays_where_a_push_leaves_it(model_file):
    bench = Bench(model_file).release_to_effort()
    assert bench.run(2.0) == pytest.approx(START, abs=1e-6)
    bench.arm.push([0.0, 10.0, -30.0, 0.0, 0.0, 0.0], duration=0.5)
    position_after_push = bench.run(2.5)
    assert np.abs(position_after_push - START).max() > 0.3
    assert bench.run(1.0) == pytest.approx(position_after_push, abs=1e-6)


def test_pd_resists_a_push_and_returns(model_file):
    """Stiffness and friction carry the push in static equilibrium."""
    bench = Bench(model_file, gains=GAINS).release_to_effort()
    assert bench.run(1.0) == pytest.approx(START, abs=1e-3)
    bench.arm.push(PUSH, duration=2.0)
    pushed = bench.run(2.0)
    deflection = pushed - START
    assert np.abs(deflection).max() > 0.05
    wrench = np.array(PUSH)
    jacobian = tip_jacobian(bench.arm.robot, pushed)
    coulomb = np.array([4.0, 6.1, 2.3, 0.1, 0.4, 0.1]) + 0.3
    assert np.all(np.abs(GAINS["stiffness"] * deflection - jacobian.T @ wrench[:3]) < coulomb)
    returned = bench.run(2.0)
    assert np.all(np.abs(GAINS["stiffness"] * (returned - START)) < coulomb)
    assert np.abs(returned - START).max() < 0.15 * np.abs(deflection).max()


def tip_jacobian(robot, position, step=1e-6):
    """Return the Jacobian (3, n) of the tip's position."""

    def tip(q):
        return (robot.forward_kinematics(q[np.newaxis])[0, -1] @ robot.tip_offset)[:3, 3]

    return np.stack([(tip(position + d) - tip(position - d)) / (2 * step) for d in step * np.eye(6)], axis=1)


def test_friction_compensation_prolongs_a_push_without_own_motion(model_file):
    """A fifth of the friction of joint 1 remains, so the joint coasts, comes to rest and stays."""
    compensation = {"coulomb": [3.2, 0.0, 0.0, 0.0, 0.0, 0.0], "viscous": [1.6, 0.0, 0.0, 0.0, 0.0, 0.0]}
    displacements = []
    for gains in (None, compensation):
        bench = Bench(model_file, gains=gains).release_to_effort()
        bench.arm.push([0.0, 0.0, 0.0, 0.0, 0.0, 7.0], link="link_1", duration=0.4)
        position_after_push = bench.run(4.0)
        displacements.append(position_after_push[0] - START[0])
        assert bench.run(1.0) == pytest.approx(position_after_push, abs=1e-6)
    without, compensated = displacements
    assert compensated > 2.0 * without > 0.0


@pytest.mark.parametrize(("coulomb", "ratio"), [(None, 7.0), (0.0, 100.0)])
def test_added_effort_reduces_the_sag_of_a_position_controller(model_file, coulomb, ratio):
    """Stiction carries the remainder, 5 % of the largest gravity torque."""
    bench = Bench(model_file, coulomb=coulomb, servo_model=False)
    sag = np.abs(bench.run(1.5) - START).max()
    assert sag > 4e-3
    bench.apply_torque = bench.arm.add_effort
    bench.enable()
    assert np.abs(bench.run(1.5) - START).max() < sag / ratio


def make_trajectory_route(model_file, **settings):
    """Return a bench that sends a one-point trajectory with efforts for each joint state."""
    bench = Bench(model_file, servo_model=False)
    settings = TrajectorySettings(command_interfaces=("position", "effort"), **settings)
    controlled = ControlledArm(bench.arm, settings, sums=True)
    names = bench.arm.robot.joint_names

    def send(torque):
        desired = np.array([bench.compensator.desired])
        controlled.trajectory.topic(TrajectoryPoints(names, [0.0], desired, effort=[torque]), bench.arm.time)

    bench.apply_torque = send
    bench.before_step = lambda: controlled.update(PERIOD_S)
    return bench, controlled


@pytest.mark.parametrize("has_goal", [True, False])
def test_effort_after_an_abort_ends_with_the_next_joint_state(model_file, has_goal):
    """The controller aborts without commands, and holds the effort of the last action goal, if any."""
    bench, controlled = make_trajectory_route(model_file, cmd_timeout=0.1)
    send = bench.apply_torque
    trajectory = controlled.trajectory
    stale = np.array([0.0, -40.0, -20.0, 0.0, 0.0, 0.0])
    if has_goal:
        names = bench.arm.robot.joint_names
        trajectory.goal(TrajectoryPoints(names, [0.1], [bench.arm.position], effort=[stale]), bench.arm.time)
        bench.run(1.0)
    bench.enable()
    assert trajectory.aborts == 0
    bench.apply_torque = lambda _torque: None
    bench.run(0.2)
    assert trajectory.aborts == 1
    assert controlled.interfaces.effort == pytest.approx(stale if has_goal else np.zeros(6), abs=1e-6)
    bench.compensator.aim(START + 0.2)
    bench.run(1.0)
    bench.apply_torque = send
    bench.run(PERIOD_S)
    assert controlled.interfaces.effort == pytest.approx(bench.compensator.torque, abs=1e-9)
    assert np.abs(bench.run(2.0) - START - 0.2).max() < 5e-3
    assert trajectory.aborts == 1


def test_last_effort_of_a_trajectory_is_zero(model_file):
    """The controller keeps the last effort for ever."""
    bench, controlled = make_trajectory_route(model_file)
    bench.enable().run(0.5)
    assert np.abs(controlled.interfaces.effort).max() > 20.0
    bench.compensator.stop(bench.time)
    bench.run(0.7)
    assert bench.compensator.state is State.DISABLED
    assert not controlled.interfaces.effort.any()
