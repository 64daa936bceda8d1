"""Fuzzing targets: parameters of all nodes, and the motions designed from them."""

# ruff: noqa: E501 - tables of inputs

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import planar_arm
import pytest
import yaml
from fuzzing import arms
from fuzzing.models import require_arm
from fuzzing.mutations import VALUES
from fuzzing.outcome import require
from fuzzing.target import Target
from hypothesis import strategies as st

from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import check_limits

rclpy = pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

from rclpy.logging import LoggingSeverity, set_logger_level  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from std_msgs.msg import Header  # noqa: E402

from dynid_ros.nodes import module_of  # noqa: E402
from dynid_ros.nodes.compensation import configuration as compensation  # noqa: E402
from dynid_ros.nodes.excitation import ExcitationNode  # noqa: E402
from dynid_ros.nodes.experiment.design import (  # noqa: E402
    PARAMETERS as EXCITATION,
    Design,
    Safety,
)
from dynid_ros.nodes.external_torque import ExternalTorqueNode  # noqa: E402
from dynid_ros.nodes.flexible_joint_identification import FlexibleJointIdentificationNode  # noqa: E402
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode  # noqa: E402
from dynid_ros.nodes.gravity_markers import (  # noqa: E402
    GravityMarkers,
    Shapes,
    draw_gravity,
)
from dynid_ros.nodes.link_identification import LinkIdentificationNode  # noqa: E402
from dynid_ros.nodes.load_identification import LoadIdentificationNode  # noqa: E402
from dynid_ros.nodes.recorder import Recorder  # noqa: E402
from dynid_ros.nodes.shared.parameters import NodeParameter, declare  # noqa: E402
from dynid_ros.nodes.simulator import SimulatorNode  # noqa: E402
from dynid_ros.nodes.torque_sensor_calibration import TorqueSensorCalibrationNode  # noqa: E402

URDF = planar_arm.urdf()
POSE = [0.1, 0.2, 0.3]


class Settings(Node):
    """Node with only the parameters of gravity compensation, which configures itself later."""

    def __init__(self) -> None:
        super().__init__("gravity_compensation")
        self.settings = declare(self, compensation.PARAMETERS)


def judge_compensation(node: Settings) -> None:
    """Require finite times, gains and limits, and a finite gravity torque."""
    settings = node.settings
    arm = compensation.read_arm(settings, settings.robot_description)
    gravity = arm.gravity
    joints = compensation.joint_settings(settings, arm)
    times = compensation.timing(settings)
    require(all(map(math.isfinite, (times.ramp_time, times.fault_ramp_time, times.timeout))), "a time")
    for field in ("gain", "torque", "rate"):
        values = getattr(joints, field)
        require(len(values) == len(joints.names) and all(map(math.isfinite, values)), field)
    require(not any(math.isnan(value) for value in (*joints.lower, *joints.upper, *joints.velocity)), "a limit is NaN")
    with contextlib.suppress(ControlError):
        require(all(map(math.isfinite, gravity([0.1] * len(joints.names)))), "a torque")


def judge_excitation(node: ExcitationNode) -> None:
    """Require limits that leave room for a motion and monitors that can stop it."""
    require_limits(node.safety)
    require_numbers(
        node._described_design(node.settings).experiment(),
        "information",
        "limits",
        "workspace",
        "robot",
        "position_margin",
    )
    arm = node.arm
    require(not np.isnan(arm._tracking_error_limit).any() and (arm._tracking_error_limit > 0).all(), "never stops")
    require((arm._efforts._limit > 0).all() and 0 <= arm._efforts._grace < math.inf, "efforts are not watched")


def require_limits(safety: Safety) -> None:
    """Require limits that are finite and positive."""
    limits = safety.limits
    workspace = safety.workspace
    require((limits.lower < limits.upper).all() and np.isfinite([limits.lower, limits.upper]).all(), "no room")
    for values in (limits.velocity, limits.acceleration):
        require(np.isfinite(values).all() and (values > 0).all(), "a limit is invalid")
    require((limits.jerk > 0).all() and (limits.torque > 0).all(), "a limit is invalid")
    require(not math.isnan(workspace.floor_height), "no floor")
    require(0 <= workspace.clearance < math.inf, "no clearance")
    require(workspace.box is None or (workspace.box[0] < workspace.box[1]).all(), "no box")


def judge_recorder(node: Recorder) -> None:
    """Require distinct, valid topic names."""
    topics = [topic.topic for topic in node._topics]
    require(topics and len(set(topics)) == len(topics), "topics repeat")
    require(all(topic.startswith("/") and topic.isprintable() for topic in topics), "a topic is invalid")


def judge_markers(node: GravityMarkers) -> None:
    """Require markers with finite positions and sizes."""
    view = node.view
    require_arm(view.robot)
    require(np.isfinite(view.full_scale).all() and (view.full_scale > 0).all(), "a scale is invalid")
    try:
        picture = view.at(POSE[: view.robot.n_joints])
    except ControlError:  # too heavy for its springs
        return
    require(np.isfinite(picture.torque).all(), "a torque is not finite")
    shapes = Shapes(Header(), 1.0)
    draw_gravity(shapes, view, picture, node.settings.size)
    for marker in shapes.markers:
        pose = marker.pose
        numbers = [
            *(pose.position.x, pose.position.y, pose.position.z),
            *(pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w),
            *(marker.scale.x, marker.scale.y, marker.scale.z),
        ]
        numbers += [value for point in marker.points for value in (point.x, point.y, point.z)]
        require(all(map(math.isfinite, numbers)), f"marker {marker.ns} is not finite")


def judge_simulator(node: SimulatorNode) -> None:
    """Require that the simulated arm moves and returns finite readings."""
    arm = node.arm
    require_arm(arm.robot)
    require(0 < arm.timestep <= 0.005 and 10**6 <= node._period <= 10**9, "time")
    node.pick_up()
    for _ in range(3):
        node._controller.update(arm.timestep)
        arm.step(arm.timestep)
        if node._camera is not None:
            node._stamp += round(arm.timestep * 1e9)
            node._camera.look(node._stamp)
        for values in (arm.position, arm.velocity, arm.link_position, *arm.measure(), *arm.measure_wrench()):
            require(np.isfinite(values).all(), "a reading is not finite")
    require((arm.truth.load[0] >= 0) and np.isfinite(arm.truth.load).all(), "a load is invalid")


def judge_external_torque(node: ExternalTorqueNode) -> None:
    """Require positive, finite thresholds and finite external torques."""
    require((node.monitor.levels > 0).all() and np.isfinite(node.monitor.levels).all(), "a level cannot be exceeded")
    require(0 < node.monitor.observer.bandwidth < math.inf, "no bandwidth")
    for time in (0.0, 0.01, 0.02):
        with contextlib.suppress(ControlError):  # a load or a bandwidth beyond all numbers
            external_torque = node.monitor.update(time, POSE, [0.0] * 3, [1.0] * 3)
            require(
                np.isfinite(external_torque.torque).all() and not np.isnan(external_torque.threshold).any(), "no torque"
            )


def judge_identification(node: Any) -> None:
    """Require that the settings of the identification are numbers."""
    require_numbers(node.estimator, "robot", "arm", "tare", "reference_center", "gravity")


def judge_load(node: LoadIdentificationNode) -> None:
    """Require numbers, and thresholds that a load can exceed."""
    judge_identification(node)
    settings = node.settings
    require(0 < settings.largest_error < math.inf and 0 <= settings.smallest_load < math.inf, "no threshold")


def judge_sensors(node: TorqueSensorCalibrationNode) -> None:
    """Require numbers, and a monitor that can both alarm and stay silent."""
    judge_identification(node)
    center = node.estimator.calibration.reference_center
    require(center is None or np.isfinite(center).all(), "a center of mass is not finite")
    if node.settings.observe:
        observer = node.watch.observer
        require(0 < observer.false_alarm_rate < 1, "the monitor alarms always or never")
        require(0 < observer.memory < math.inf, "the observer does not adapt")
        require(not np.isinf([*observer.gain, *observer.offset]).any(), "a gain is infinite")


def require_numbers(settings: Any, *excluded: str) -> None:
    """Require that all settings except the excluded ones are numbers."""
    names = [field.name for field in fields(settings)] if is_dataclass(settings) else list(vars(settings))
    for name in names:
        value = getattr(settings, name)
        if name not in excluded and isinstance(value, (float, list, tuple, np.ndarray)):
            numbers = [value] if isinstance(value, float) else [item for item in value if isinstance(item, float)]
            require(not any(map(math.isnan, numbers)), f"{name} of {type(settings).__name__} is {value}")


class Case(NamedTuple):
    """A node under test.

    Attributes:
        make: class of the node.
        judge: requires that a node that started is usable.
        required: parameters without which the node does not start.
        parameters: table of all parameters.
    """

    make: Callable[[], Any]
    judge: Callable[[Any], None]
    required: dict[str, Any]
    parameters: Sequence[NodeParameter]


ARM = {"robot_description": URDF}
MODEL = "model_file"
EFFORT = {"effort_convention": "torque"}
MOTION: dict[str, Any] = {
    "acceleration_limits": [12.0], "steps": 3, "dwell": 0.05, "sweep": 0.8, "count": 4, "cycles": 1, "frequencies": [0.8],
    "design_time": 0.0, "workers": 1, "harmonics": 2, "base_frequency": 0.5, "floor_height": -5.0, "link_shapes": "none",
}  # fmt: skip


def _read_table(node: type | str) -> Sequence[NodeParameter]:
    from importlib import import_module  # noqa: PLC0415

    return import_module(module_of(node)).PARAMETERS


CASES = {
    "gravity_compensation": Case(Settings, judge_compensation, ARM | {MODEL: ""}, compensation.PARAMETERS),
    "excitation": Case(ExcitationNode, judge_excitation, ARM | MOTION, EXCITATION),
    "recorder": Case(Recorder, judge_recorder, {}, _read_table("recorder")),
    "gravity_markers": Case(GravityMarkers, judge_markers, ARM | {MODEL: ""}, _read_table("gravity_markers")),
    "simulator": Case(SimulatorNode, judge_simulator, ARM, _read_table("simulator")),
    "external_torque": Case(
        ExternalTorqueNode, judge_external_torque, ARM | EFFORT | {MODEL: ""}, _read_table("external_torque")
    ),
    "gravity_identification": Case(
        GravityIdentificationNode, judge_identification, ARM | EFFORT, _read_table("gravity_identification")
    ),
    "link_identification": Case(LinkIdentificationNode, judge_identification, ARM | EFFORT, _read_table("link_identification")),
    "load_identification": Case(
        LoadIdentificationNode, judge_load, ARM | EFFORT | {MODEL: "", "live": True}, _read_table("load_identification")
    ),
    "torque_sensor_calibration": Case(
        TorqueSensorCalibrationNode, judge_sensors, ARM | EFFORT | {MODEL: "", "observe": True},
        _read_table("torque_sensor_calibration"),
    ),
    "flexible_joint_identification": Case(
        FlexibleJointIdentificationNode, judge_identification, ARM | EFFORT, _read_table("flexible_joint_identification")
    ),
}  # fmt: skip


class Nodes:
    """Starts nodes with overridden parameters in a separate ROS context."""

    def __init__(self) -> None:
        self._context = rclpy.Context()

    def read(self, data: tuple[str, dict[str, Any]], folder: Path) -> None:
        """Require that a node starts with usable settings or ends with a one-line error."""
        name, overrides = data
        case = CASES[name]
        model = folder / "identified.yaml"
        if not model.exists():
            model.write_text(yaml.safe_dump(arms.create_identified()))
        parameters = {key: str(model) if key == MODEL else value for key, value in case.required.items()}
        node = None
        parameters.update(overrides)
        if not parameters.get("robot_description", URDF):
            parameters["robot_description"] = URDF  # otherwise the node waits for a topic
        with self._override(parameters), contextlib.chdir(folder):
            try:
                node = case.make()
                case.judge(node)
            finally:
                if node is not None:
                    node.destroy_node()

    @contextlib.contextmanager
    def _override(self, parameters: dict[str, Any]) -> Iterator[None]:
        if not self._context.ok():
            self._context.init(args=[])
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        original = Node.__init__

        def initialize(node: Node, name: str, **_: Any) -> None:
            original(
                node,
                name,
                context=self._context,
                start_parameter_services=False,
                enable_rosout=False,
                parameter_overrides=overrides,
            )
            set_logger_level(name, LoggingSeverity.FATAL)

        with mock.patch.object(Node, "__init__", initialize):
            yield


def fuzz_design(overrides: dict[str, Any], folder: Path) -> None:
    """Require that a designed motion keeps its limits."""
    values = {parameter.name: parameter.default for parameter in EXCITATION}
    values.update(MOTION)
    values.update(overrides)
    settings = SimpleNamespace(
        **{parameter.name: parameter.checked(values[parameter.name], "excitation") for parameter in EXCITATION}
    )
    robot = RobotModel.from_urdf(URDF)
    with contextlib.chdir(folder):
        safety = Safety(robot, settings)
        require_limits(safety)
        _, plan = Design(robot, safety, settings, 50.0).plan(lambda *_: None)
    motion = plan.trajectory
    require((np.diff(motion.time) > 0).all() and motion.joint_names == robot.joint_names, "time or names are wrong")
    for values in (motion.position, motion.velocity, motion.acceleration):
        require(np.isfinite(values).all(), "a motion is not finite")
    require(np.abs([motion.velocity[0], motion.velocity[-1]]).max() < 1e-6, "the motion does not start and end at rest")
    check_limits(motion, safety.limits)


_ROS_VALUES = [
    value
    for value in VALUES
    if isinstance(value, (bool, str, float)) or (isinstance(value, int) and abs(value) < 2**63)
] + [
    [0.0], [1.0] * 3, [math.nan] * 3, [math.inf], [1.0, 2.0], [0.5] * 200, ["a"], ["joint_1"], [True], [1, 2, 3], [b"x"],
    [-1.0], [1e308] * 3, [0.0, 0.0, 9.8], [1e6], [5e-324], [0.1, math.nan, 0.1], [1e-12] * 6, "/dev/zero", "/proc", "\0",
    "<robot/>", "<", planar_arm.urdf(length=0.5), 2.0, 1e-300, 2, 7, 50, 100_000, 2**31, 2**62, -(2**62), "a b", "~/x",
    "//", "a/", "1a", "{x}", ["a b"], ["joint_1", "joint_2", "joint_3"], ["joint_3", "joint_1", "joint_2"], "../up",
]  # fmt: skip
_WORDS = {
    "motion": ["static_rotation", "fourier", "joint_by_joint", "payload", "poses", "file"], "target": ["links", "gravity", "load"],
    "criterion": ["determinant", "condition", "condition_unscaled"], "joint_motion": ["sinusoid", "steps"],
    "link_shapes": ["available", "required", "none"], "effort_convention": ["torque", "motor_current", "gravity_compensated"],
    "estimator": ["global", "recursive", "consistent", "weighted", "ordinary"], "samples": ["static", "slow", "both"],
    "friction": ["auto", "none", "coulomb,viscous"], "source": ["torque", "wrench"], "wrench_acts_on": ["sensor", "load"],
    "spring": ["linear", "cubic", "dead_zone", "auto"], "clock": ["own", "same", "auto"], "markers_topic": ["markers"],
    "mocap_prefix": ["mocap"], "controller": ["effort", "position_and_effort", "trajectory_effort"],
    "stiffness": [[1e4], [1e4, 1e5, 1e6], [1e-12]], "output": ["effort", "trajectory"], "live": [False], "observe": [False],
}  # fmt: skip


def _draw_value(parameter: NodeParameter) -> st.SearchStrategy[tuple[str, Any]]:
    kind = type(parameter.default)
    fitting = [value for value in _ROS_VALUES if type(value) is kind]
    if kind is list:
        fitting = [value for value in fitting if type(value[0]) is type(parameter.default[0])]
    if parameter.name.endswith(("_topic", "_topics")) and kind is str:
        # ROS keeps the type of a topic for all nodes of a process, so two parameters must not share a topic.
        fitting = [parameter.name, "~/x y", *(value for value in fitting if not value.replace("/", "").isalnum())]
    likely = [*_WORDS.get(parameter.name, ()), *fitting]
    others = [value for value in _ROS_VALUES if type(value) is not kind]
    return st.tuples(st.just(parameter.name), st.sampled_from(likely * (500 // len(likely)) + others))


def _draw_overrides(parameters: Sequence[NodeParameter]) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(st.one_of([_draw_value(parameter) for parameter in parameters]), max_size=4).map(dict)


def _keep_well_typed(overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the overrides without those that `declare` refuses."""
    kinds = {parameter.name: parameter.default for parameter in EXCITATION}
    return {
        name: value
        for name, value in overrides.items()
        if type(value) is type(kinds[name])
        and (not isinstance(value, list) or {type(item) for item in value} == {type(kinds[name][0])})
    }


_BY_NODE = [st.tuples(st.just(name), _draw_overrides(case.parameters)) for name, case in CASES.items()]
_SHAPING = [parameter for parameter in EXCITATION if parameter.adjustable and parameter.name != "trajectory_file"]
_MOTION = st.tuples(st.sampled_from([{"motion": word} for word in _WORDS["motion"]]), _draw_overrides(_SHAPING))

TARGETS = (
    Target("parameters", st.one_of(_BY_NODE), Nodes().read, share=1.5),
    Target("designs", _MOTION.map(lambda pair: pair[0] | _keep_well_typed(pair[1])), fuzz_design, share=0.05),
)
