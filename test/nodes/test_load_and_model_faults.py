"""Test the refusals of implausible models and loads in docs/promises.md, which would lift or drop the arm."""

from types import SimpleNamespace

import planar_arm
import pytest
from geometry_msgs.msg import InertiaStamped
from helpers.compensation_bench import LATCHED, POSE, Bench
from helpers.node_threads import assert_refused, assert_success
from helpers.waiting import wait
from lifecycle_msgs.msg import State
from rclpy.parameter import Parameter

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(Bench(model_file, **arguments))


def activate_beside_position_controller(bench):
    """Activate the node next to an active position controller that holds the arm."""
    bench.activate()
    position = SimpleNamespace(name="position", state=SimpleNamespace(id=State.PRIMARY_STATE_ACTIVE))
    bench.node._controller.position.on_activity(SimpleNamespace(controllers=[position]))
    n_states = bench.node._loop.states.states
    wait(lambda: bench.node._loop.states.states > n_states + 2)


def publish_load(bench, mass, lever):
    """Publish a load on the axis of the last link."""
    message = InertiaStamped()
    message.header.frame_id = "link_3"
    message.inertia.m = mass
    message.inertia.com.x = lever
    bench.robot.create_publisher(InertiaStamped, "load", LATCHED).publish(message)


def set_load(bench, *values):
    """Set the parameter; return whether it was accepted, and the reason of a refusal."""
    result = bench.node.set_parameters([Parameter("carried_load", value=[float(value) for value in values])])[0]
    return result.successful, result.reason


@pytest.mark.parametrize("factor", [1.25, 0.7])
def test_reload_of_a_very_different_model_is_refused(bench, model_file, factor):
    bench = bench().run()
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    assert_refused(bench.reload(), "the model in force stays: the gravity torque of joint 'joint_2' changes by up to")
    assert bench.state == "active"
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))


def test_reload_of_a_similar_model_makes_no_step(bench, model_file):
    bench = bench().run()
    planar_arm.write(model_file, planar_arm.document(factor=1.1))
    assert bench.reload().success
    bench.wait_for_torque(planar_arm.gravity_torque(POSE, 1.1))


@pytest.mark.parametrize("factor", [1.5, 0.5, -1.0, 1e5])
def test_reload_of_a_model_far_from_the_urdf_is_refused(bench, model_file, factor):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    assert_refused(bench.reload(), "the model in force stays: the gravity torque of joint 'joint_")
    bench.enable_until_active()
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))


@pytest.mark.parametrize("factor", [1.5, 0.5, -1.0])
def test_enable_refuses_a_model_far_from_the_urdf(bench, model_file, factor):
    planar_arm.write(model_file, planar_arm.document(factor=factor))
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    assert_refused(bench.enable(), "cannot enable: the gravity torque of joint 'joint_")
    assert not bench.robot.commands


def test_enable_refuses_a_model_that_contradicts_the_effort(bench):
    """URDF and model agree, but the arm is lighter than both."""
    bench = bench(effort_convention="torque", position_controller="position")
    half_torque = planar_arm.gravity_torque(POSE, 0.5)
    bench.robot.spoil = lambda message: setattr(message, "effort", half_torque)
    activate_beside_position_controller(bench)
    assert_refused(bench.enable(), "hold it")


def test_enable_accepts_a_model_that_the_effort_confirms(bench, model_file):
    planar_arm.write(model_file, planar_arm.document(factor=1.5))
    true_torque = planar_arm.gravity_torque(POSE, 1.5)
    bench = bench(effort_convention="torque", position_controller="position")
    bench.robot.spoil = lambda message: setattr(message, "effort", true_torque)
    activate_beside_position_controller(bench)
    assert_success(bench.enable())
    bench.wait_for_torque(true_torque)


def test_load_is_added_and_removed_while_enabled(bench):
    bench = bench().run()
    publish_load(bench, 4.0, 0.1)
    wait(lambda: bench.torque[1] < planar_arm.gravity_torque(POSE)[1] - 15.0)
    assert bench.node._loop.load.load.mass == 4.0
    publish_load(bench, 0.0, 0.0)
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))
    assert bench.state == "active"


def test_load_parameter_is_accepted_or_refused_with_a_reason(bench):
    bench = bench().run()
    accepted, _ = set_load(bench, 2.0, 0.1, 0.0, 0.0)
    assert accepted
    wait(lambda: bench.torque[1] < planar_arm.gravity_torque(POSE)[1] - 7.0)
    accepted, reason = set_load(bench, 4.9, 1.9, 0.0, 0.0)
    assert not accepted
    assert "effort limit" in reason
    assert bench.node._loop.load.load.mass == 2.0
    assert set_load(bench, 0.0) == (True, "")
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))


def test_load_too_heavy_for_the_pose_is_refused(bench):
    """Each joint could hold the load alone, but not arm and load together."""
    bench = bench().run()
    accepted, reason = set_load(bench, 4.9, 0.55, 0.0, 0.0)
    assert not accepted
    assert "in this pose" in reason
    assert bench.state == "active"


@pytest.mark.parametrize("enabled", [True, False])
def test_load_beyond_the_effort_limits_is_refused(bench, enabled):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    if enabled:
        bench.enable_until_active()
    publish_load(bench, 4.9, 1.9)
    load = bench.node._loop.load
    wait(lambda: load.refused == 1)
    assert "changes with the load" in load.problem
    bench.enable(False)
    wait(lambda: bench.state == "disabled")
    bench.enable_until_active()
    bench.wait_for_torque(planar_arm.gravity_torque(POSE))


def test_only_the_load_in_force_is_published(bench):
    bench = bench().run()
    received = []
    subscribe = bench.robot.create_subscription
    task = bench.robot.executor.create_task(
        subscribe, InertiaStamped, "gravity_compensation/load_in_force", received.append, LATCHED
    )
    wait(task.done)
    wait(lambda: received and received[-1].inertia.m == 0.0)
    assert set_load(bench, 2.0, 0.1, 0.0, 0.0)[0]
    wait(lambda: received[-1].inertia.m == 2.0)
    assert received[-1].inertia.com.x == 0.1
    assert not set_load(bench, 4.9, 1.9, 0.0, 0.0)[0]
    assert set_load(bench, 0.0)[0]
    wait(lambda: received[-1].inertia.m == 0.0)
    assert all(message.inertia.m in (0.0, 2.0) for message in received)
