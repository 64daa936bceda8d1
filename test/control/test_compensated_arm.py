"""The compensator on the simulated arm, as the three routes through ros2_controllers connect them; sample by sample."""

import demo_arm_model
import numpy as np
import pytest

from dynid_ros.control import FeedbackGains, GravityCompensator, JointSettings, State, Timing, load_gravity_torque
from dynid_ros.simulation import ControlledArm, Drives, Sensors, SimulatedArm, TrajectoryPoints, TrajectorySettings

START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
ROTORS = [0.8, 0.8, 0.4, 0.04, 0.04, 0.02]
GAINS = {"stiffness": [800.0, 800.0, 400.0, 60.0, 60.0, 30.0], "damping": [80.0, 80.0, 40.0, 6.0, 6.0, 3.0]}
PERIOD = 0.004
PUSH = [0.0, 30.0, -60.0, 0.0, 0.0, 0.0]


class Bench:
    """An arm, a compensator, and how torques come to the arm."""

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
        self.take = lambda _torque: None
        self.before_step = lambda: None

    def run(self, seconds):
        """True position at the end."""
        for _ in range(round(seconds / PERIOD)):
            self.time += PERIOD
            position, velocity, _ = self.arm.measure()
            torque = self.compensator.update(self.time, position.tolist(), self.time, None, velocity.tolist())
            if torque is None:
                torque = self.compensator.watch(self.time)
            if torque is not None:
                self.take(torque)
            self.before_step()
            self.arm.step(PERIOD)
        return self.arm.position

    def enable(self):
        self.run(0.1)
        self.compensator.enable(self.time)
        self.run(0.6)
        assert self.compensator.state is State.ACTIVE
        return self

    def in_effort_mode(self):
        """Enabled while the servo holds the arm, which is then left to the torque alone."""
        self.enable()
        self.arm.release()
        self.take = self.arm.command_effort
        return self


@pytest.fixture
def model_file(tmp_path):
    return demo_arm_model.write(tmp_path / "identified.yaml", friction=demo_arm_model.FRICTION)


def test_the_arm_floats_and_stays_where_a_hand_leaves_it(model_file):
    bench = Bench(model_file).in_effort_mode()
    assert bench.run(2.0) == pytest.approx(START, abs=1e-6)
    bench.arm.push([0.0, 10.0, -30.0, 0.0, 0.0, 0.0], duration=0.5)
    left = bench.run(2.5)
    assert np.abs(left - START).max() > 0.3
    assert bench.run(1.0) == pytest.approx(left, abs=1e-6)


def test_pd_holds_against_a_push_and_returns(model_file):
    """By statics stiffness carries the push, up to what friction carries; then the arm comes back."""
    bench = Bench(model_file, gains=GAINS).in_effort_mode()
    assert bench.run(1.0) == pytest.approx(START, abs=1e-3)
    bench.arm.push(PUSH, duration=2.0)
    pushed = bench.run(2.0)
    gone = pushed - START
    assert np.abs(gone).max() > 0.05
    wrench = np.array(PUSH)
    jacobian = tip_jacobian(bench.arm.robot, pushed)
    coulomb = np.array([4.0, 6.1, 2.3, 0.1, 0.4, 0.1]) + 0.3
    assert np.all(np.abs(GAINS["stiffness"] * gone - jacobian.T @ wrench[:3]) < coulomb)
    back = bench.run(2.0)
    assert np.all(np.abs(GAINS["stiffness"] * (back - START)) < coulomb)
    assert np.abs(back - START).max() < 0.15 * np.abs(gone).max()


def tip_jacobian(robot, position, step=1e-6):
    """(3, n) of the tip's place."""

    def tip(q):
        return (robot.forward_kinematics(q[np.newaxis])[0, -1] @ robot.tip_offset)[:3, 3]

    return np.stack([(tip(position + d) - tip(position - d)) / (2 * step) for d in step * np.eye(6)], axis=1)


def test_friction_compensation_lets_a_push_carry_further_and_moves_nothing_by_itself(model_file):
    """A push of joint 1, of whose friction a fifth is left: it coasts on, comes to rest and stays."""
    fifth = {"coulomb": [3.2, 0.0, 0.0, 0.0, 0.0, 0.0], "viscous": [1.6, 0.0, 0.0, 0.0, 0.0, 0.0]}
    gone = []
    for gains in (None, fifth):
        bench = Bench(model_file, gains=gains).in_effort_mode()
        bench.arm.push([0.0, 0.0, 0.0, 0.0, 0.0, 7.0], link="link_1", duration=0.4)
        left = bench.run(4.0)
        gone.append(left[0] - START[0])
        assert bench.run(1.0) == pytest.approx(left, abs=1e-6)
    without, compensated = gone
    assert compensated > 2.0 * without > 0.0


@pytest.mark.parametrize(("coulomb", "ratio"), [(None, 7.0), (0.0, 100.0)])
def test_a_position_controller_sags_less_by_a_ratio(model_file, coulomb, ratio):
    """Route position and effort. What is left is what stiction carries, 5 % of the largest gravity torque."""
    bench = Bench(model_file, coulomb=coulomb, servo_model=False)
    sag = np.abs(bench.run(1.5) - START).max()
    assert sag > 4e-3
    bench.take = bench.arm.add_effort
    bench.enable()
    assert np.abs(bench.run(1.5) - START).max() < sag / ratio


def trajectory_route(model_file, **settings):
    """Route trajectory: a one-point trajectory with efforts at the desired pose for each joint state."""
    bench = Bench(model_file, servo_model=False)
    settings = TrajectorySettings(command_interfaces=("position", "effort"), **settings)
    controlled = ControlledArm(bench.arm, settings, sums=True)
    names = bench.arm.robot.joint_names

    def send(torque):
        desired = np.array([bench.compensator.desired])
        controlled.trajectory.topic(TrajectoryPoints(names, [0.0], desired, effort=[torque]), bench.arm.time)

    bench.take, bench.before_step = send, lambda: controlled.update(PERIOD)
    return bench, controlled


@pytest.mark.parametrize("goal", [True, False])
def test_what_an_abort_leaves_of_the_effort_is_gone_with_the_next_joint_state(model_file, goal):
    """The controller aborts for the lack of commands; it holds with the effort of the last action goal, or none."""
    bench, controlled = trajectory_route(model_file, cmd_timeout=0.1)
    send, trajectory = bench.take, controlled.trajectory
    stale = np.array([0.0, -40.0, -20.0, 0.0, 0.0, 0.0])
    if goal:
        names = bench.arm.robot.joint_names
        trajectory.goal(TrajectoryPoints(names, [0.1], [bench.arm.position], effort=[stale]), bench.arm.time)
        bench.run(1.0)
    bench.enable()
    assert trajectory.aborts == 0
    bench.take = lambda _torque: None
    bench.run(0.2)
    assert trajectory.aborts == 1
    assert controlled.interfaces.effort == pytest.approx(stale if goal else np.zeros(6), abs=1e-6)
    bench.compensator.aim(START + 0.2)
    bench.run(1.0)
    bench.take = send
    bench.run(PERIOD)
    assert controlled.interfaces.effort == pytest.approx(bench.compensator.torque, abs=1e-9)
    assert np.abs(bench.run(2.0) - START - 0.2).max() < 5e-3
    assert trajectory.aborts == 1


def test_the_last_effort_of_a_trajectory_is_zero(model_file):
    """Nothing stale is left in the controller, which keeps the last one for ever."""
    bench, controlled = trajectory_route(model_file)
    bench.enable().run(0.5)
    assert np.abs(controlled.interfaces.effort).max() > 20.0
    bench.compensator.stop(bench.time)
    bench.run(0.7)
    assert bench.compensator.state is State.DISABLED
    assert not controlled.interfaces.effort.any()
