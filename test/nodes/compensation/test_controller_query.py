"""Test how `gravity_compensation` queries a controller's parameters, which the robot answers."""

import time

import planar_arm
import pytest
from helpers.compensation_bench import FAULT_RAMP_S, POSE, Bench
from helpers.node_threads import assert_refused
from helpers.waiting import wait
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter

from dynid_ros.errors import DynidError
from dynid_ros.nodes.gravity_compensation import GravityCompensation

FORWARD = "forward_effort_controller"
TRAJECTORY = "joint_trajectory_controller"
ORDER = ["joint_3", "joint_1", "joint_2"]
FORWARD_PARAMETERS = {"joints": ORDER, "interface_name": "effort"}
TRAJECTORY_PARAMETERS = {"joints": ORDER, "command_interfaces": ["position", "effort"], "cmd_timeout": 0.5}
TRAJECTORY_OUTPUT = {"output": "trajectory"}


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(tmp_path, keep):
    """Return a function that starts a bench, whose controller answers with `values`."""

    def make(values=None, controller=FORWARD, **arguments):
        model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
        bench = keep(Bench(model_file, controller=controller, **({"unchecked_controller": False} | arguments)))
        if values is not None:
            serve(bench, controller, values)
        return bench

    return make


def view_of(bench):
    return bench.node._controller.view


def serve(bench, controller, values):
    """Answer like rclcpp: nothing at all if one of several names is not declared."""

    def callback(request, response):
        if set(request.names) <= values.keys():
            response.values = [Parameter(name, value=values[name]).to_parameter_msg().value for name in request.names]
        return response

    bench.robot.create_service(GetParameters, f"{controller}/get_parameters", callback)
    wait(lambda: view_of(bench).answer or view_of(bench).problem.startswith("'"))


def test_autostart_waits_for_the_controller(bench):
    bench = bench(autostart=True)
    wait(lambda: "there is no controller" in view_of(bench).problem)
    assert bench.state == "unconfigured"
    serve(bench, FORWARD, FORWARD_PARAMETERS)
    wait(lambda: bench.state == "disabled")


def test_missing_controller_fails_the_transition_at_once(bench, capfd):
    bench = bench()
    wait(lambda: "there is no controller" in view_of(bench).problem)
    assert not bench.configure()
    error = capfd.readouterr().err
    assert "there is no controller 'forward_effort_controller' (no service forward_effort_controller/get_par" in error
    assert "or, where it is none that answers, set unchecked_controller to true" in error


@pytest.mark.parametrize(
    ("values", "controller", "parameters", "message"),
    [
        ({"joints": [*ORDER, "rail"], "interface_name": "effort"}, FORWARD, {}, "does not know: rail"),
        ({"joints": ORDER[:2], "interface_name": "effort"}, FORWARD, {}, "lacks joint_2; give it these joints"),
        ({"joints": ORDER, "interface_name": "position"}, FORWARD, {}, "commands position; expected effort"),
        ({"interface_name": "effort"}, FORWARD, {}, "has no parameter joints"),
        (FORWARD_PARAMETERS, FORWARD, TRAJECTORY_OUTPUT, "follows no trajectories; set output to effort"),
        (TRAJECTORY_PARAMETERS, TRAJECTORY, {}, "follows trajectories; set output to trajectory"),
        (
            TRAJECTORY_PARAMETERS | {"command_interfaces": ["position"]},
            TRAJECTORY,
            TRAJECTORY_OUTPUT,
            "commands position; expected position and effort (joint_trajectory_controller 4.22 or newer)",
        ),
        (
            TRAJECTORY_PARAMETERS | {"constraints.joint_1.trajectory": 0.1},
            TRAJECTORY,
            TRAJECTORY_OUTPUT,
            "takes no effort from then on; set its parameters constraints.<joint>.trajectory to 0.0",
        ),
        (TRAJECTORY_PARAMETERS, TRAJECTORY, TRAJECTORY_OUTPUT | {"damping": [1.0]}, "are for output effort"),
    ],
)
def test_unsuitable_controller_is_refused(bench, capfd, values, controller, parameters, message):
    bench = bench(values, controller, **parameters)
    assert not bench.configure()
    assert message in capfd.readouterr().err


def test_joints_that_differ_from_the_controllers_are_refused(bench, capfd):
    bench = bench(FORWARD_PARAMETERS, controller_joints=planar_arm.JOINTS, unchecked_controller=True)
    assert not bench.configure()
    expected = (
        "controller_joints is joint_1, joint_2, joint_3, and controller 'forward_effort_controller' has joint_3, "
    )
    assert f"{expected}joint_1, joint_2; give these in this order" in capfd.readouterr().err


def test_controller_may_have_fewer_joints(bench):
    joints = ["joint_3", "joint_2"]
    bench = bench(FORWARD_PARAMETERS | {"joints": joints}, controller_joints=joints).run()
    _, second, third = planar_arm.gravity_torque(POSE)
    bench.wait_for_torque([third, second])


def expect_new_order(bench):
    """Restart the watch of commands: from now on torques come in the controller's new order of joints."""
    bench.robot.watch.commands.clear()
    bench.start = [bench.node._loop.compensator.torque[i] for i in bench.node._loop.commands.order]


def test_late_answer_with_other_joints_is_a_fault(bench):
    bench = bench(unchecked_controller=True).run()
    serve(bench, FORWARD, FORWARD_PARAMETERS)
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    expect_new_order(bench)


def test_late_answer_with_the_same_joints_is_accepted(bench):
    bench = bench(unchecked_controller=True, controller_joints=ORDER).run()
    serve(bench, FORWARD, FORWARD_PARAMETERS)
    wait(lambda: bench.node._controller.described == FORWARD)
    assert bench.state == "active"
    assert bench.enable().success


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("", FORWARD),
        ("/left/arm_controller/commands", "/left/arm_controller"),
        ("arm_controller/commands", "arm_controller"),
    ],
)
def test_controller_name_follows_from_the_topic(bench, topic, name):
    bench = bench(controller="", command_topic=topic)
    assert bench.node._controller.name == name
    wait(lambda: f"there is no controller '{name}'" in view_of(bench).problem)


@pytest.mark.parametrize("parameter", ["controller", "position_controller"])
def test_invalid_controller_name_is_refused(model_file, parameter):
    values = {"model_file": str(model_file), parameter: "no name"}
    with pytest.raises(DynidError, match=f"Parameter '{parameter}' of node 'gravity_compensation' is 'no name/"):
        GravityCompensation(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])


def test_restarted_controller_with_other_joints_is_a_fault(bench):
    values = dict(FORWARD_PARAMETERS)
    bench = bench(values).run()
    values["joints"] = planar_arm.JOINTS
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    expect_new_order(bench)
    assert_refused(bench.enable(), "configure anew")


def test_reordered_joints_keep_their_torques_while_held(bench):
    values = dict(FORWARD_PARAMETERS)
    bench = bench(values, descent_time=30.0).run()
    values["joints"] = planar_arm.JOINTS
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    expect_new_order(bench)
    time.sleep(2.0 * FAULT_RAMP_S)
    assert bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)
