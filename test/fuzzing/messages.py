"""Targets: what arrives at nodes. Needs ROS 2."""

# ruff: noqa: E501 - tables of inputs

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import planar_arm
import pytest
import yaml
from fuzzing import arms
from fuzzing.mutations import VALUES
from fuzzing.outcome import require
from fuzzing.target import Target
from hypothesis import strategies as st

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, Timing
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.model.gravity import GravityModel

rclpy = pytest.importorskip("rclpy")

from rclpy.parameter import Parameter  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from dynid_ros.nodes.compensation.parameters import PARAMETERS, feedforward, timing  # noqa: E402
from dynid_ros.nodes.shared.joint_states import JointOrder  # noqa: E402
from dynid_ros.nodes.shared.parameters import declare  # noqa: E402

NAMES = list(planar_arm.JOINTS)
ROBOT = arms.robot()
TIMING = Timing(ramp_time=0.2, fault_ramp_time=0.1, timeout=0.1)
SETTINGS = JointSettings.of(ROBOT, fault_ramp_time=TIMING.fault_ramp_time)
MODEL = GravityModel(ROBOT)
MOMENTS = MODEL.project(ROBOT.parameters)
HEAVIEST = 5.0
FRAMES = LoadedGravity(MODEL, MOMENTS, largest_load=HEAVIEST)

_NUMBER = st.sampled_from([0.0, 0.1, -0.1, 0.5, 2.4, -2.6, 100.0, math.nan, math.inf, -math.inf, 1e308, 5e-324])
_NEAR = st.sampled_from([0.0, 0.01, 0.02, -0.01])
_POSITION = (
    st.lists(_NEAR, min_size=3, max_size=3) | st.lists(_NEAR, min_size=3, max_size=3) | st.lists(_NUMBER, max_size=5)
)
_NAME_LIST = st.sampled_from(
    [NAMES] * 6 + [NAMES[::-1], NAMES[:2], [], ["joint_1"] * 3, [*NAMES, "Δ\n"], ["a" * 1000] * 5]
)
_STEP = st.sampled_from([0.001, 0.001, 0.01, 0.01, 0.05, 0.0, -0.01, 0.2, 1e6])
_STAMP = st.sampled_from([None, None, 0.0, 0.001, -1.0, 1e9, math.nan, math.inf])
_LOAD = st.tuples(
    _NUMBER, st.tuples(_NUMBER, _NUMBER, _NUMBER), st.sampled_from(["link_3", "link_3", "tool", "", "\n"])
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("state"), _STEP, _NAME_LIST, _POSITION, _STAMP),
        st.tuples(st.just("state"), _STEP, st.just(NAMES), st.lists(_NEAR, min_size=3, max_size=3), st.none()),
        st.tuples(st.just("load"), _STEP, _LOAD),
        st.tuples(st.sampled_from(["enable", "enable", "disable", "watch", "stop"]), _STEP),
    ),
    min_size=1,
    max_size=12,
)


def joint_states(events: list[tuple], _folder: Path) -> None:
    """Commands are finite, within their limits, and change no faster than they may, whatever arrives."""
    order = JointOrder(NAMES)
    gravity = FRAMES
    compensator = GravityCompensator(gravity, SETTINGS, TIMING)
    now, newest, last, refused = 0.0, 0.0, (0.0,) * 3, []
    for kind, step, *details in [("state", 0.001, NAMES, [0.0] * 3, None), ("enable", 0.0), *events]:
        now += step
        command = None
        try:
            if kind == "state":
                names, position, stamp = details
                message = JointState(name=names, position=position)
                command = compensator.update(now, order.pick(message, "position"), stamp)
            elif kind == "load":
                gravity = gravity.carrying(CarriedLoad(*details[0]))
                compensator.replace(gravity, SETTINGS)
            elif kind == "watch":
                command = compensator.watch(now)
            elif kind == "enable":
                compensator.enable(now)
            elif kind == "stop":
                compensator.stop(now)
            else:
                compensator.disable()
        except DynidError as error:
            refused.append(error)
            if kind == "state":
                compensator.fault(now, str(error))
                command = compensator.watch(now)
        for values in (compensator.torque, command or ()):
            require(all(map(math.isfinite, values)), f"a command of {values}")
            limits = zip(values, SETTINGS.torque, strict=True) if values else ()
            require(all(abs(value) <= limit for value, limit in limits), f"a command of {values}")
        allowed = max(now - newest, 0.0) + TIMING.timeout
        for value, before, rate in zip(compensator.torque, last, SETTINGS.rate, strict=True):
            require(abs(value - before) <= rate * allowed + 1e-9, f"a step from {before} to {value}")
        require(gravity.load is None or 0 <= gravity.load.mass <= HEAVIEST, f"a load of {gravity.load}")
        newest, last = max(now, newest), compensator.torque
    if refused:
        raise refused[0]


class Parameters:
    """The parameters of gravity compensation, some of them spoiled, as a node declares them."""

    def __init__(self) -> None:
        self._context = rclpy.Context()
        self._node: Any = None

    def read(self, overrides: dict[str, Any], folder: Path) -> None:
        """They make settings that can be used."""
        model = folder / "identified.yaml"
        if not model.exists():
            model.write_text(yaml.safe_dump(arms.identified()))
        given = {"robot_description": planar_arm.urdf(), "model_file": str(model)} | overrides
        settings = self._declared(given)
        gravity, joints = feedforward(settings, settings.robot_description)
        times = timing(settings)
        require(all(map(math.isfinite, (times.ramp_time, times.fault_ramp_time, times.timeout))), "a time")
        for field in ("gain", "torque", "rate"):
            values = getattr(joints, field)
            require(len(values) == len(joints.names) and all(map(math.isfinite, values)), field)
        require(
            not any(math.isnan(value) for value in (*joints.lower, *joints.upper, *joints.velocity)), "a limit is NaN"
        )
        try:
            require(all(map(math.isfinite, gravity([0.1] * len(joints.names)))), "a torque")
        except ControlError:
            return

    def _declared(self, given: dict[str, Any]) -> SimpleNamespace:
        if self._node is None:
            self._context.init()
            self._node = rclpy.create_node(
                "fuzzed", context=self._context, start_parameter_services=False, enable_rosout=False
            )
        node = self._node
        node._parameter_overrides = {name: Parameter(name, value=value) for name, value in given.items()}
        try:
            return declare(node, PARAMETERS)
        finally:
            node._parameters.clear()
            node._descriptors.clear()


_ROS_VALUES = [
    value
    for value in VALUES
    if isinstance(value, (bool, str, float)) or (isinstance(value, int) and abs(value) < 2**63)
] + [
    [0.0], [1.0] * 3, [math.nan] * 3, [math.inf], [1.0, 2.0], [0.5] * 200, ["a"], ["joint_1"], [True], [1, 2, 3], [b"x"],
    [-1.0], [1e308] * 3, [0.0, 0.0, 9.8], "/dev/zero", "/", "\0", "<robot/>", "<", planar_arm.urdf(length=0.5), 2.0, 1e-300,
]  # fmt: skip
_CHANGES = [(parameter, value) for parameter in PARAMETERS for value in _ROS_VALUES]
_FITTING = [(parameter.name, value) for parameter, value in _CHANGES if type(value) is type(parameter.default)]
OVERRIDES = st.lists(
    st.sampled_from(_FITTING) | st.sampled_from([(parameter.name, value) for parameter, value in _CHANGES]), max_size=3
).map(dict)
TARGETS = (
    Target("joint states", EVENTS, joint_states, share=2.0),
    Target("parameters", OVERRIDES, Parameters().read, share=0.4),
)
