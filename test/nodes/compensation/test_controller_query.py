"""`gravity_compensation` asks a controller for its joints; here the robot answers as the controller's node would."""

import time

import planar_arm
import pytest
from helpers.compensation_bench import FAULT_RAMP, POSE, Bench
from helpers.waiting import wait
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter

from dynid_ros.errors import DynidError
from dynid_ros.nodes.gravity_compensation import GravityCompensation

FORWARD, TRAJECTORY = "forward_effort_controller", "joint_trajectory_controller"
ORDER = ["joint_3", "joint_1", "joint_2"]
FORWARDED = {"joints": ORDER, "interface_name": "effort"}
FOLLOWED = {"joints": ORDER, "command_interfaces": ["position", "effort"], "cmd_timeout": 0.5}
PLANNED = {"output": "trajectory"}


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(tmp_path, keep):
    def make(values=None, controller=FORWARD, **arguments):
        model_file = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
        made = keep(Bench(model_file, controller=controller, **({"unchecked_controller": False} | arguments)))
        if values is not None:
            serve(made, controller, values)
        return made

    return make


def query_of(bench):
    return bench.node._controller.view


def serve(bench, controller, values):
    """Answer as rclcpp does, which says nothing at all where one of several names is not declared."""

    def callback(request, response):
        if set(request.names) <= values.keys():
            response.values = [Parameter(name, value=values[name]).to_parameter_msg().value for name in request.names]
        return response

    bench.robot.create_service(GetParameters, f"{controller}/get_parameters", callback)
    wait(lambda: query_of(bench).answer or query_of(bench).problem.startswith("'"))


def test_autostart_waits_for_the_controller(bench):
    bench = bench(autostart=True)
    wait(lambda: "there is no controller" in query_of(bench).problem)
    assert bench.state == "unconfigured"
    serve(bench, FORWARD, FORWARDED)
    wait(lambda: bench.state == "disabled")


def test_a_controller_that_is_not_there_fails_the_transition_at_once(bench, capfd):
    bench = bench()
    wait(lambda: "there is no controller" in query_of(bench).problem)
    assert not bench.configure()
    said = capfd.readouterr().err
    assert "there is no controller 'forward_effort_controller' (no service forward_effort_controller/get_par" in said
    assert "or, where it is none that answers, set unchecked_controller to true" in said


@pytest.mark.parametrize(
    ("values", "controller", "parameters", "message"),
    [
        ({"joints": [*ORDER, "rail"], "interface_name": "effort"}, FORWARD, {}, "does not know: rail"),
        ({"joints": ORDER[:2], "interface_name": "effort"}, FORWARD, {}, "lacks joint_2; give it these joints"),
        ({"joints": ORDER, "interface_name": "position"}, FORWARD, {}, "commands position; expected effort"),
        ({"interface_name": "effort"}, FORWARD, {}, "has no parameter joints"),
        (FORWARDED, FORWARD, PLANNED, "follows no trajectories; set output to effort"),
        (FOLLOWED, TRAJECTORY, {}, "follows trajectories; set output to trajectory"),
        (
            FOLLOWED | {"command_interfaces": ["position"]},
            TRAJECTORY,
            PLANNED,
            "commands position; expected position and effort (joint_trajectory_controller 4.22 or newer)",
        ),
        (
            FOLLOWED | {"constraints.joint_1.trajectory": 0.1},
            TRAJECTORY,
            PLANNED,
            "takes no effort from then on; set its parameters constraints.<joint>.trajectory to 0.0",
        ),
        (FOLLOWED, TRAJECTORY, PLANNED | {"damping": [1.0]}, "are for output effort"),
    ],
)
def test_a_controller_that_does_not_fit_is_refused(bench, capfd, values, controller, parameters, message):
    bench = bench(values, controller, **parameters)
    assert not bench.configure()
    assert message in capfd.readouterr().err


def test_of_an_answering_controller_the_joints_win_and_others_are_refused(bench, capfd):
    bench = bench(FORWARDED, controller_joints=planar_arm.JOINTS, unchecked_controller=True)
    assert not bench.configure()
    expected = (
        "controller_joints is joint_1, joint_2, joint_3, and controller 'forward_effort_controller' has joint_3, "
    )
    assert f"{expected}joint_1, joint_2; give these in this order" in capfd.readouterr().err


def test_joints_may_be_left_out_where_the_controller_has_no_others(bench):
    some = ["joint_3", "joint_2"]
    bench = bench(FORWARDED | {"joints": some}, controller_joints=some).run()
    _, second, third = planar_arm.gravity_torque(POSE)
    wait(lambda: bench.torque == pytest.approx([third, second], abs=1e-9))


def in_another_order(bench):
    """Look at the commands that come from now on: each joint's torque goes on at another place."""
    bench.robot.watch.commands.clear()
    bench.start = [bench.node._loop.compensator.torque[i] for i in bench.node._loop.commands.order]


def test_a_controller_that_answers_late_with_other_joints_is_a_fault(bench):
    bench = bench(unchecked_controller=True).run()
    serve(bench, FORWARD, FORWARDED)
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    in_another_order(bench)


def test_one_that_answers_late_with_the_same_joints_is_taken(bench):
    bench = bench(unchecked_controller=True, controller_joints=ORDER).run()
    serve(bench, FORWARD, FORWARDED)
    wait(lambda: bench.node._controller.described == FORWARD)
    assert bench.state == "active"
    assert bench.enable().success


@pytest.mark.parametrize(
    ("topic", "asked"),
    [
        ("", FORWARD),
        ("/left/arm_controller/commands", "/left/arm_controller"),
        ("arm_controller/commands", "arm_controller"),
    ],
)
def test_without_a_name_the_controller_of_the_topic_is_asked(bench, topic, asked):
    bench = bench(controller="", command_topic=topic)
    assert bench.node._controller.name == asked
    wait(lambda: f"there is no controller '{asked}'" in query_of(bench).problem)


@pytest.mark.parametrize("parameter", ["controller", "position_controller"])
def test_a_name_that_no_controller_can_have_is_refused(model_file, parameter):
    values = {"model_file": str(model_file), parameter: "no name"}
    with pytest.raises(DynidError, match=f"Parameter '{parameter}' of node 'gravity_compensation' is 'no name/"):
        GravityCompensation(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])


def test_a_controller_that_comes_back_with_other_joints_is_a_fault(bench):
    values = dict(FORWARDED)
    bench = bench(values).run()
    values["joints"] = planar_arm.JOINTS
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    in_another_order(bench)
    answer = bench.enable()
    assert not answer.success
    assert "configure anew" in answer.message


def test_joints_in_another_order_get_their_torques_and_the_arm_is_held(bench):
    values = dict(FORWARDED)
    bench = bench(values, descent_time=30.0).run()
    values["joints"] = planar_arm.JOINTS
    wait(lambda: bench.state.startswith("fault: controller 'forward_effort_controller' has other joints"))
    in_another_order(bench)
    time.sleep(2.0 * FAULT_RAMP)
    assert bench.torque == pytest.approx(planar_arm.gravity_torque(POSE), abs=1e-9)
