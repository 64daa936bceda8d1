"""Fuzzing targets: messages that nodes receive. They need ROS 2."""

import math
from pathlib import Path
from types import SimpleNamespace

import planar_arm
import pytest
from fuzzing import arms
from fuzzing.models import require_arm
from fuzzing.mutations import texts
from fuzzing.outcome import require
from fuzzing.target import Target
from hypothesis import strategies as st

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, Timing
from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording.effort import EffortConvention

rclpy = pytest.importorskip("rclpy")

from sensor_msgs.msg import JointState  # noqa: E402

from dynid_ros.identified.torque_sensors import TorqueSensors  # noqa: E402
from dynid_ros.nodes.external_torque import external_torque_of  # noqa: E402
from dynid_ros.nodes.shared.diagnostics import robot_name  # noqa: E402
from dynid_ros.nodes.shared.robot_description import (  # noqa: E402
    JointOrder,
    TorqueSamples,
    checked_description,
)

NAMES = list(planar_arm.JOINTS)
ROBOT = arms.create_robot()
TIMING = Timing(ramp_time=0.2, fault_ramp_time=0.1, timeout=0.1)
SETTINGS = JointSettings.from_robot(ROBOT, fault_ramp_time=TIMING.fault_ramp_time)
MODEL = GravityModel(ROBOT)
MOMENTS = MODEL.project(ROBOT.parameters)
MAX_LOAD_KG = 5.0
LOADED_GRAVITY = LoadedGravity(MODEL, MOMENTS, largest_load=MAX_LOAD_KG)

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


def fuzz_joint_states(events: list[tuple], _folder: Path) -> None:
    """Require finite commands within their limits of torque and rate after any sequence of events."""
    order = JointOrder(NAMES)
    gravity = LOADED_GRAVITY
    compensator = GravityCompensator(gravity, SETTINGS, TIMING)
    now = 0.0
    newest = 0.0
    last = (0.0,) * 3
    refused = []
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
        require(gravity.load is None or 0 <= gravity.load.mass <= MAX_LOAD_KG, f"a load of {gravity.load}")
        newest = max(now, newest)
        last = compensator.torque
    if refused:
        raise refused[0]


MONITOR = arms.create_contact_monitor()
SENSORS = TorqueSensors.ideal(MONITOR.joint_names)
_SLOW = st.lists(_NEAR, min_size=3, max_size=3)
_EFFORT = st.lists(st.sampled_from([0.0, 5.0, -40.0]), min_size=3, max_size=3)
_FIELD = st.lists(_NUMBER, max_size=5)
_CLOCK = st.sampled_from([None] * 6 + [0, 1, 2**31 - 1])
TOUCHES = st.lists(
    st.one_of(
        st.tuples(st.just("state"), _STEP, _NAME_LIST, _POSITION, _SLOW | _FIELD, _EFFORT | _FIELD, _CLOCK),
        st.tuples(st.just("state"), _STEP, st.just(NAMES), _SLOW, _SLOW, _EFFORT, st.none()),
        st.tuples(st.just("load"), _STEP, _LOAD),
    ),
    min_size=1,
    max_size=40,
)
SILENT_NODE = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=lambda text: None))


def fuzz_contacts(events: list[tuple], _folder: Path) -> None:
    """Require finite external torques, positive thresholds and contacts at joints, or no result."""
    samples = TorqueSamples(SILENT_NODE, NAMES, EffortConvention("torque"), anew=True)
    order = JointOrder(NAMES)
    MONITOR.carry(None)
    now = 10.0
    refused = []
    for kind, step, *details in events:
        now += step
        try:
            if kind == "load":
                MONITOR.carry(CarriedLoad(*details[0]))
                continue
            names, position, velocity, effort, seconds = details
            message = JointState(name=names, position=position, velocity=velocity, effort=effort)
            stamp = now if seconds is None else seconds
            message.header.stamp.sec = int(min(max(stamp, 0.0), 2**31 - 1))
            message.header.stamp.nanosec = round(stamp % 1.0 * 1e9) % 10**9
            external_torque = external_torque_of(samples, order, MONITOR, message, SENSORS)
        except DynidError as error:
            refused.append(error)
            continue
        if samples.problem:
            refused.append(DynidError(samples.problem))
        if external_torque is not None:
            require(all(map(math.isfinite, external_torque.torque)), f"a torque of {external_torque.torque}")
            require(
                all(threshold > 0.0 for threshold in external_torque.threshold),
                f"a threshold of {external_torque.threshold}",
            )
            require({*external_torque.contact} <= {*NAMES}, f"contact at {external_torque.contact}")
    if refused:
        raise refused[0]


DESCRIPTIONS = [arms.write_urdf().encode(), arms.write_urdf(rich=True).encode(), b"<robot name='a'" * 3]


def fuzz_description(data: bytes, _folder: Path) -> None:
    """Require that robot_description is accepted as the URDF of an arm only, never as a file name."""
    text = data.decode(errors="replace")
    name = robot_name(text)
    require(name in text, "the robot's name is not in the URDF")
    require_arm(RobotModel.from_urdf(checked_description(text, "robot_description"), "link_3", "base_link"))


TARGETS = (
    Target("joint states", EVENTS, fuzz_joint_states, share=2.0),
    Target("external torques", TOUCHES, fuzz_contacts, share=0.5),
    Target(
        "descriptions",
        texts(DESCRIPTIONS)
        | st.sampled_from([b"/etc/passwd", b"arm.urdf", b"<robot name= " * 50_000, b"<robot \n" * 50_000]),
        fuzz_description,
        share=0.5,
    ),
)
