"""Compare pushes and flexible joints with closed forms, SciPy's integration and Pinocchio's dynamics."""

import carried_loads
import numpy as np
import pytest
from pendulum import LENGTH, MASS, urdf
from pinocchio_arm import PinocchioArm
from scipy.integrate import solve_ivp

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, SimulatedArm, Springs, simulate

G = 9.80665
POSE = np.array([0.4, 0.7, 0.9, 0.5, -0.8, 0.3])
WRENCH = np.array([20.0, -15.0, 30.0, 2.0, 1.0, -3.0])
STEP_S = 0.0005


def create_free_arm(robot, **settings):
    """Return an arm in effort mode without friction."""
    arm = SimulatedArm(robot, drives=Drives(coulomb=0.0, viscous=0.0), timestep=STEP_S, **settings)
    arm.release()
    return arm


@pytest.mark.parametrize(("link", "axes"), [("tool", "base_link"), ("tool", "tool"), ("link_3", "link_2")])
def test_push_acceleration_matches_pinocchio(demo_robot, link, axes):
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(demo_robot.urdf)
    data = model.createData()
    frame = model.getFrameId(link)
    along = model.getFrameId(axes)
    jacobian = pinocchio.computeFrameJacobian(model, data, POSE, frame, pinocchio.LOCAL_WORLD_ALIGNED)
    pinocchio.forwardKinematics(model, data, POSE)
    rotation = pinocchio.updateFramePlacement(model, data, along).rotation
    world = np.concatenate([rotation @ WRENCH[:3], rotation @ WRENCH[3:]])
    model.gravity.linear = np.array([0.0, 0.0, -G])
    weight = pinocchio.computeGeneralizedGravity(model, data, POSE)
    expected = pinocchio.aba(model, data, POSE, np.zeros(6), weight + jacobian.T @ world)

    arm = create_free_arm(demo_robot, start=POSE)
    arm.command_effort(weight)
    arm.push(WRENCH, link, axes, duration=1.0)
    arm.step(STEP_S)
    before = arm.velocity
    arm.step(STEP_S)
    assert np.abs(before).max() <= np.abs(expected).max() * 1.1 * STEP_S
    assert (arm.velocity - before) / STEP_S == pytest.approx(expected, rel=0.02, abs=0.02 * np.abs(expected).max())


def test_push_ends_after_its_duration():
    """The axis is vertical: the arm accelerates by F L / (m L²) for 0.1 s, then keeps its speed."""
    arm = create_free_arm(RobotModel.from_urdf(urdf(axis="0 0 1")), start=[0.0])
    arm.push([0.0, 0.0, 0.0, 0.0, 0.0, 6.0], duration=0.1)
    arm.step(0.1 + 2 * STEP_S)
    speed = 6.0 / (MASS * LENGTH**2) * 0.1
    assert arm.velocity == pytest.approx([speed], rel=1e-3)
    arm.step(0.5)
    assert arm.velocity == pytest.approx([speed], rel=1e-3)


def test_a_new_push_replaces_the_previous_one(demo_robot):
    replaced = create_free_arm(demo_robot, start=POSE)
    replaced.push(WRENCH, "link_3", duration=1.0)
    reference = create_free_arm(demo_robot, start=POSE)
    for arm in (replaced, reference):
        arm.push(WRENCH, "tool", duration=1.0)
        arm.step(0.05)
    assert replaced.velocity == pytest.approx(reference.velocity, abs=1e-12)


def test_reset_ends_the_push(demo_robot):
    arm = SimulatedArm(demo_robot, start=POSE)
    arm.push(WRENCH * 5, duration=10.0)
    arm.step(0.2)
    assert np.abs(arm.position - POSE).max() > 1e-3
    arm.reset()
    arm.step(0.2)
    assert arm.position == pytest.approx(POSE, abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link": "hand"}, "no link 'hand' to push; its links are base_link, link_1"),
        ({"axes": "load of the simulated arm"}, "no link 'load of the simulated arm'"),
        ({"wrench": [1.0, 2.0, 3.0]}, "push (force, torque): shape (3,); expected (6,)"),
        ({"wrench": [np.nan] * 6}, "is not finite"),
        ({"duration": 0.0}, "a push for 0.0 s; expected a time above 0"),
        ({"duration": np.inf}, "a push for inf s"),
        ({"duration": 1e308}, "a push for 1e+308 s; expected a time above 0, up to 3600 s"),
        ({"wrench": [1e300] * 6}, "expected numbers up to 1e+12"),
    ],
)
def test_refuses_invalid_pushes(demo_robot, arguments, message):
    arm = SimulatedArm(demo_robot, start=POSE)
    with pytest.raises(DynidError) as error:
        arm.push(**{"wrench": WRENCH} | arguments)
    assert message in str(error.value)
    arm.step(0.1)
    assert arm.position == pytest.approx(POSE, abs=1e-4)


START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
STIFFNESS = np.array([5980.0, 11900.0, 4600.0, 709.0, 772.0, 478.0])
"""Stiffnesses of Table I in Lightcap and Banks (2007)."""
MOTOR_INERTIA = np.array([1.06, 1.2, 0.8, 0.03, 0.05, 0.03])
MOTOR_VISCOUS = np.array([10.0, 6.0, 3.0, 0.5, 0.5, 0.3])
VISCOUS = np.array([2.0, 3.0, 1.5, 0.1, 0.1, 0.05])
SPRINGS = Springs(STIFFNESS, motor_viscous=MOTOR_VISCOUS)
STIFFENING = Springs(STIFFNESS, 1e4 * STIFFNESS, 1e-3, 1e-3 * STIFFNESS, MOTOR_VISCOUS)


def create_flexible_arm(robot, springs=SPRINGS, drives=None, start=START, **settings):
    """Return the arm with springs; `drives` overrides single settings of its drives."""
    values = {"coulomb": 0.0, "viscous": VISCOUS, "rotor_inertia": MOTOR_INERTIA}
    values.update(drives or {})
    return SimulatedArm(robot, drives=Drives(**values), springs=springs, start=start, **settings)


@pytest.mark.parametrize("springs", [SPRINGS, STIFFENING])
def test_flexible_motion_matches_an_independent_integration(demo_robot, springs):
    """SciPy integrates Pinocchio's forward dynamics; half the timestep must halve the difference."""
    law = springs.of(6)
    reference = PinocchioArm(demo_robot.urdf, demo_robot.joint_names, demo_robot.gravity)
    kick = np.array([8.0, -10.0, 3.0, 0.3, -0.3, 0.1])

    def derivative(_, state, torque):
        q, q_m, qd, qd_m = state.reshape(4, 6)
        excess = np.sign(q_m - q) * np.maximum(np.abs(q_m - q) - law.dead_zone, 0.0)
        spring = law.stiffness * excess + law.cubic * excess**3 + law.damping * (qd_m - qd)
        link = reference.pinocchio.aba(reference.model, reference.data, q, qd, spring - VISCOUS * qd)
        return np.concatenate([qd, qd_m, link, (torque - spring - MOTOR_VISCOUS * qd_m) / MOTOR_INERTIA])

    differences = []
    for timestep in (0.001, 0.0005):
        arm = create_flexible_arm(demo_robot, springs, timestep=timestep)
        arm.release()
        links = arm.link_position
        torque = arm.truth.gravity_torque(links)[0] + kick
        arm.command_effort(torque)
        arm.step(timestep)  # a command acts one timestep later
        assert arm.position == pytest.approx(START, abs=1e-6)
        first = np.concatenate([arm.link_position - links, arm.position - START])
        arm.step(timestep)
        # MuJoCo's velocities are mean velocities between two positions, at the middle of a step.
        speed = 0.5 * (np.concatenate([arm.link_position - links, arm.position - START]) - first) / timestep
        arm.reset()
        arm.release()
        arm.command_effort(torque)
        arm.step(timestep)
        samples = []
        for _ in range(10):
            arm.step(0.05)
            samples.append([*arm.link_position, *arm.position])
        state = np.concatenate([links, START, speed])
        times = 0.05 * np.arange(1, 11)
        solved = solve_ivp(
            derivative, (0.0, 0.5), state, "DOP853", times, args=(torque,), rtol=1e-8, atol=1e-10, max_step=2e-3
        )
        differences.append(np.abs(solved.y[:12].T - samples).max())
        assert np.ptp(solved.y[6:12] - solved.y[:6], axis=1).min() > 2e-4, "the springs deflect"
    assert differences[0] < 1e-4
    assert differences[1] < 0.6 * differences[0]


def test_samples_satisfy_both_equations_of_motion(demo_robot, trajectory):
    """Eq. 1 of Lightcap and Banks holds, with Pinocchio's dynamics, away from reversals of friction."""
    arm = create_flexible_arm(demo_robot, drives={"coulomb": None})
    reference = PinocchioArm(demo_robot.urdf, demo_robot.joint_names, demo_robot.gravity)
    true = simulate(arm, trajectory, 1000.0, link_encoders=True)
    q = true.link_position
    q_m = true.position
    qd = np.gradient(q, 0.001, axis=0)
    qdd, qdd_m = (np.diff(x, 2, axis=0) / 1e-6 for x in (q, q_m))
    spring = STIFFNESS * (q_m - q)
    motor = spring[1:-1] + MOTOR_INERTIA * qdd_m + MOTOR_VISCOUS * np.gradient(q_m, 0.001, axis=0)[1:-1]
    assert true.torque[1:-1] == pytest.approx(motor, abs=1e-6)
    moving = np.flatnonzero(np.all(np.abs(qd) > 0.05, axis=1))[1:-1]
    assert len(moving) > 1500
    for i in moving[::20]:
        friction = arm.drives.coulomb * np.sign(qd[i]) + VISCOUS * qd[i]
        expected = reference.inverse_dynamics(q[i], qd[i], qdd[i - 1]) + friction
        assert spring[i] == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("springs", [SPRINGS, STIFFENING])
def test_spring_torque_balances_gravity_at_rest(demo_robot, springs):
    arm = create_flexible_arm(demo_robot, springs)
    first = arm.link_position
    arm.step(3.0)
    gravity = arm.truth.gravity_torque(arm.link_position)[0]
    assert arm.torque == pytest.approx(gravity, abs=2e-3)
    assert arm.springs.torque(arm.position - arm.link_position, np.zeros(6)) == pytest.approx(gravity, abs=2e-3)
    assert arm.link_position == pytest.approx(first, abs=3e-3)
    assert np.abs(arm.position - arm.link_position).max() > 2e-3


def test_prismatic_spring_deflects_by_weight_over_stiffness():
    """A vertical prismatic joint deflects by m g / k; the motor's own weight does not count."""
    limit = '<limit lower="-1" upper="1" velocity="1" effort="500"/>'
    lift = RobotModel.from_urdf(urdf(axis="0 0 1", kind="prismatic", limit=limit))
    drives = Drives(coulomb=0.0, viscous=0.0, rotor_inertia=2.0)
    arm = SimulatedArm(lift, drives=drives, springs=Springs(5000.0))
    arm.step(1.0)
    assert arm.position[0] - arm.link_position[0] == pytest.approx(MASS * G / 5000.0, rel=1e-6)
    assert arm.torque == pytest.approx([MASS * G], rel=1e-6)


def test_very_stiff_springs_match_the_rigid_arm(demo_robot, trajectory):
    settings = {"drives": {"coulomb": None}, "timestep": 0.0005}
    stiff_springs = Springs(3e3 * MOTOR_INERTIA * 30)
    stiff = simulate(create_flexible_arm(demo_robot, stiff_springs, **settings), trajectory)
    rigid = simulate(create_flexible_arm(demo_robot, None, **settings), trajectory)
    assert stiff.position == pytest.approx(rigid.position, abs=2e-3)
    assert stiff.link_position is None


def test_payload_deflects_the_springs_and_loads_the_wrist_sensor(demo_robot):
    arm = create_flexible_arm(demo_robot)
    before = arm.link_position
    arm.attach_load(carried_loads.parameters())
    assert np.array_equal(arm.link_position, before)
    arm.step(4.0)
    assert arm.torque == pytest.approx(arm.truth.gravity_torque(arm.link_position)[0], abs=0.02)
    sag = np.abs(arm.link_position - before) - np.abs(arm.position - START)
    assert sag.max() > 1e-3
    tip = (demo_robot.forward_kinematics(arm.link_position[np.newaxis])[0, -1] @ demo_robot.tip_offset)[:3, :3]
    force, _ = arm.measure_wrench()
    assert force == pytest.approx(tip.T @ [0.0, 0.0, -carried_loads.MASS * G], abs=0.02)
    arm.detach_load()
    arm.reset()
    assert arm.link_position == pytest.approx(before, abs=1e-12)


def test_links_of_flexible_joints_stop_at_their_limits(demo_robot):
    arm = create_flexible_arm(demo_robot)
    arm.release()
    arm.command_effort([0, 60, 0, 0, 0, 0])
    arm.step(4.0)
    assert arm.link_position[1] == pytest.approx(demo_robot.limits.upper[1], abs=0.02)
    assert arm.position[1] > arm.link_position[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drives": {"rotor_inertia": 0.0}}, "joint 'joint_1' is flexible, its motor has no inertia"),
        ({"springs": Springs(1e9)}, r"joint \'joint_\d\' swings on its spring at .* timestep of 0.001 s is too long"),
        ({"springs": Springs(0.0)}, "stiffness is .* expected more than 0"),
        ({"springs": Springs(100.0, dead_zone=-1e-3)}, "dead_zone of joint '1' is -0.001"),
    ],
)
def test_refuses_springs_that_cannot_be_simulated(demo_robot, settings, message):
    with pytest.raises(DynidError, match=message):
        create_flexible_arm(demo_robot, **settings)
