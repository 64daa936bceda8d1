"""What docs/promises.md says of models and loads that cannot be, or would be a step for an arm held by them."""

import planar_arm
import pytest

rclpy = pytest.importorskip("rclpy")

from compensation_bench import LATCHED, POSE, Bench  # noqa: E402
from geometry_msgs.msg import InertiaStamped  # noqa: E402
from waiting import wait  # noqa: E402

pytestmark = pytest.mark.usefixtures("ros")

HEAVY, FLIPPED = {"factor": 1.45}, {"factor": -1.0}


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(Bench(model_file, **arguments))


def follows(bench, torque):
    wait(lambda: bench.torque == pytest.approx(torque, abs=1e-9))


def tell(bench, mass, lever):
    """Of a load on the axis of the last link, and keep on."""
    message = InertiaStamped()
    message.header.frame_id = "link_3"
    message.inertia.m, message.inertia.com.x = mass, lever
    bench.robot.create_publisher(InertiaStamped, "load", LATCHED).publish(message)


def test_a_reload_that_would_be_a_step_needs_disable_and_enable(bench, model_file):
    planar_arm.write(model_file, planar_arm.document(factor=0.5))
    bench = bench().run()
    follows(bench, planar_arm.gravity_torque(POSE, 0.5))
    planar_arm.write(model_file, planar_arm.document(**HEAVY))
    answer = bench.reload()
    assert not answer.success
    assert "the model in force stays: the gravity torque of joint 'joint_2' changes by up to 15." in answer.message
    assert "0.32 of its effort limit; at most 0.3 is taken: disable and enable" in answer.message
    assert bench.state == "active"
    follows(bench, planar_arm.gravity_torque(POSE, 0.5))
    bench.enable(False)
    wait(lambda: bench.state == "disabled")
    assert bench.reload().success
    bench.enabled()
    follows(bench, planar_arm.gravity_torque(POSE, 1.45))


def test_a_model_that_cannot_be_is_refused_at_reload_and_enable(bench, model_file):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    planar_arm.write(model_file, planar_arm.document(**FLIPPED))
    answer = bench.reload()
    assert not answer.success
    assert "the model in force stays: the gravity torque of joint 'joint_2' has the other sign" in answer.message
    bench.enabled()
    follows(bench, planar_arm.gravity_torque(POSE))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (FLIPPED, "the gravity torque of joint 'joint_2' has the other sign than by the URDF"),
        ({"factor": 1e5}, "the gravity torque of joint 'joint_2' differs from the URDF's by up to"),
    ],
    ids=["flipped", "huge"],
)
def test_enable_refuses_a_model_that_cannot_be(bench, model_file, change, said):
    planar_arm.write(model_file, planar_arm.document(**change))
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    answer = bench.enable()
    assert not answer.success
    assert f"cannot enable: {said}" in answer.message
    assert not bench.robot.commands


def test_a_load_that_would_be_a_step_waits_for_disable_and_enable(bench):
    bench = bench().run()
    follows(bench, planar_arm.gravity_torque(POSE))
    tell(bench, 4.0, 0.1)
    load = bench.node._loop.load
    wait(lambda: load.refused == 1)
    assert "the gravity torque of joint 'joint_2' changes by up to 19." in load.problem
    assert "disable and enable" in load.problem
    follows(bench, planar_arm.gravity_torque(POSE))
    bench.enable(False)
    wait(lambda: bench.state == "disabled")
    bench.enabled()
    wait(lambda: bench.torque[1] < planar_arm.gravity_torque(POSE)[1] - 15.0)
    assert load.load is not None
    assert load.load.mass == 4.0
    assert not load.problem


@pytest.mark.parametrize("enabled", [True, False])
def test_a_load_that_no_joint_could_hold_is_refused(bench, enabled):
    bench = bench()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    if enabled:
        bench.enabled()
    tell(bench, 4.9, 1.9)
    load = bench.node._loop.load
    wait(lambda: load.refused == 1)
    assert "changes with the load by up to 110 N m (N), 2.2 of its effort limit" in load.problem
    bench.enable(False)
    wait(lambda: bench.state == "disabled")
    bench.enabled()
    follows(bench, planar_arm.gravity_torque(POSE))
