"""What docs/promises.md says of models and loads that cannot be right, or would lift or drop an arm held by them."""

from types import SimpleNamespace

import planar_arm
import pytest
from geometry_msgs.msg import InertiaStamped
from helpers.compensation_bench import LATCHED, POSE, Bench
from helpers.waiting import wait
from lifecycle_msgs.msg import State
from rclpy.parameter import Parameter

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(Bench(model_file, **arguments))


def follows(bench, torque):
    wait(lambda: bench.robot.commands and bench.torque == pytest.approx(torque, abs=1e-9))


def held_by_position(bench):
    """Activate the node beside a position controller that holds the arm, as its manager says."""
    bench.activate()
    position = SimpleNamespace(name="position", state=SimpleNamespace(id=State.PRIMARY_STATE_ACTIVE))
    bench.node._controller.position.on_activity(SimpleNamespace(controllers=[position]))
    seen = bench.node._loop.states.states
    wait(lambda: bench.node._loop.states.states > seen + 2)


def announce(bench, mass, lever):
    """Announce a load on the axis of the last link, and keep on."""
    message = InertiaStamped()
    message.header.frame_id = "link_3"
    message.inertia.m = mass
    message.inertia.com.x = lever
    bench.robot.create_publisher(InertiaStamped, "load", LATCHED).publish(message)


def set_load(bench, *values):
    """Set the parameter, and return whether it was taken and why not."""
    result = bench.node.set_parameters([Parameter("carried_load", value=[float(value) for value in values])])[0]
    return result.successful, result.reason


@pytest.mark.parametrize("factor", [1.25, 0.7])
def test_a_reload_that_is_far_off_the_model_in_force_is_refused(bench, model_file, factor):
    bench = bench().run()
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    answer = bench.reload()
    assert not answer.success
    assert "the model in force stays: the gravity torque of joint 'joint_2' changes by up to" in answer.message
    assert bench.state == "active"
    follows(bench, planar_arm.gravity_torque(POSE))


def test_a_reload_near_the_model_in_force_comes_in_without_a_step(bench, model_file):
    bench = bench().run()
    planar_arm.write(model_file, planar_arm.document(factor=1.1))
    assert bench.reload().success
    follows(bench, planar_arm.gravity_torque(POSE, 1.1))


@pytest.mark.parametrize("factor", [1.5, 0.5, -1.0, 1e5])
def test_a_model_far_off_the_urdf_is_refused_at_reload_and_enable(bench, model_file, factor):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    answer = bench.reload()
    assert not answer.success
    assert "the model in force stays: the gravity torque of joint 'joint_" in answer.message
    bench.enabled()
    follows(bench, planar_arm.gravity_torque(POSE))


@pytest.mark.parametrize("factor", [1.5, 0.5, -1.0])
def test_enable_refuses_a_model_far_off_the_urdf(bench, model_file, factor):
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    answer = bench.enable()
    assert not answer.success
    assert "cannot enable: the gravity torque of joint 'joint_" in answer.message
    assert not bench.robot.commands


def test_enable_refuses_a_model_that_the_holding_effort_contradicts(bench):
    """URDF and model agree, and the arm is lighter than both."""
    bench = bench(effort_convention="torque", position_controller="position")
    light = planar_arm.gravity_torque(POSE, 0.5)
    bench.robot.spoil = lambda message: setattr(message, "effort", light)
    held_by_position(bench)
    answer = bench.enable()
    assert not answer.success
    assert "hold it" in answer.message


def test_a_model_that_the_holding_effort_confirms_is_taken_though_the_urdf_is_wrong(bench, model_file):
    planar_arm.write(model_file, planar_arm.document(factor=1.5))
    right = planar_arm.gravity_torque(POSE, 1.5)
    bench = bench(effort_convention="torque", position_controller="position")
    bench.robot.spoil = lambda message: setattr(message, "effort", right)
    held_by_position(bench)
    answer = bench.enable()
    assert answer.success, answer.message
    follows(bench, right)


def test_a_load_is_taken_while_enabled_and_put_down_again(bench):
    bench = bench().run()
    announce(bench, 4.0, 0.1)
    wait(lambda: bench.torque[1] < planar_arm.gravity_torque(POSE)[1] - 15.0)
    assert bench.node._loop.load.load.mass == 4.0
    announce(bench, 0.0, 0.0)
    follows(bench, planar_arm.gravity_torque(POSE))
    assert bench.state == "active"


def test_a_load_as_a_parameter_is_accepted_or_refused_with_the_reason(bench):
    bench = bench().run()
    taken, _ = set_load(bench, 2.0, 0.1, 0.0, 0.0)
    assert taken
    wait(lambda: bench.torque[1] < planar_arm.gravity_torque(POSE)[1] - 7.0)
    taken, reason = set_load(bench, 4.9, 1.9, 0.0, 0.0)
    assert not taken
    assert "effort limit" in reason
    assert bench.node._loop.load.load.mass == 2.0
    assert set_load(bench, 0.0) == (True, "")
    follows(bench, planar_arm.gravity_torque(POSE))


def test_a_load_that_the_arm_cannot_carry_in_its_pose_is_refused(bench):
    """Alone any joint could hold it, but not the arm and the load together."""
    bench = bench().run()
    taken, reason = set_load(bench, 4.9, 0.55, 0.0, 0.0)
    assert not taken
    assert "in this pose" in reason
    assert bench.state == "active"


@pytest.mark.parametrize("enabled", [True, False])
def test_a_load_that_no_joint_could_hold_is_refused(bench, enabled):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    if enabled:
        bench.enabled()
    announce(bench, 4.9, 1.9)
    load = bench.node._loop.load
    wait(lambda: load.refused == 1)
    assert "changes with the load" in load.problem
    bench.enable(False)
    wait(lambda: bench.state == "disabled")
    bench.enabled()
    follows(bench, planar_arm.gravity_torque(POSE))


def test_the_load_in_force_is_published_and_a_refused_one_is_not(bench):
    bench = bench().run()
    heard = []
    subscribe = bench.robot.create_subscription
    made = bench.robot.executor.create_task(
        subscribe, InertiaStamped, "gravity_compensation/load_in_force", heard.append, LATCHED
    )
    wait(made.done)
    wait(lambda: heard and heard[-1].inertia.m == 0.0)
    assert set_load(bench, 2.0, 0.1, 0.0, 0.0)[0]
    wait(lambda: heard[-1].inertia.m == 2.0)
    assert heard[-1].inertia.com.x == 0.1
    assert not set_load(bench, 4.9, 1.9, 0.0, 0.0)[0]
    assert set_load(bench, 0.0)[0]
    wait(lambda: heard[-1].inertia.m == 0.0)
    assert all(message.inertia.m in (0.0, 2.0) for message in heard)
