"""Test the external torque node: joint states in; torques, thresholds and contact out."""

import math
import time

import link_experiment
import numpy as np
import planar_arm
import pytest
import rclpy
from geometry_msgs.msg import InertiaStamped
from helpers.node_threads import NodeThreads
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import load_identified, save_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.model.inertia import from_center_of_mass, transformed
from dynid_ros.nodes.external_torque import ExternalTorqueNode
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN
from dynid_ros.nodes.shared.topics import LATCHED

pytestmark = pytest.mark.usefixtures("ros")
RATE_HZ = 100.0
START_S = 1_700_000_000.0


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """Identify the planar arm from recordings; return the model and its file."""
    robot, truth = link_experiment.build_planar()
    result = LinkIdentification(robot, friction=link_experiment.FRICTION).fit(
        link_experiment.record(robot, truth), link_experiment.record(robot, truth, seed=1)
    )
    return result.model, result.save(tmp_path_factory.mktemp("arm") / "identified.yaml")


class Bench:
    """Node that receives joint states one by one, and its published messages."""

    def __init__(self, arm, keep, **parameters):
        self.model, file = arm
        values = {
            "robot_description": planar_arm.urdf(),
            "model_file": str(file),
            "effort_convention": "torque",
            "false_alarms_per_hour": 0.1,
        }
        overrides = [Parameter(name, value=value) for name, value in (values | parameters).items()]
        self.node = ExternalTorqueNode(parameter_overrides=overrides)
        self.names = list(self.model.robot.joint_names)
        self.published = {"torques": [], "thresholds": [], "contact": []}
        for name, messages in self.published.items():
            getattr(self.node, f"_{name}").publish = messages.append
        keep(self)

    def close(self):
        self.node.destroy_node()

    def states(self, duration, external=(0.0, 0.0, 0.0), start=0.0, load=None):
        """Yield joint states of the moving arm and a gripper, in the reverse order of joints."""
        time = start + np.arange(0.0, duration, 1 / RATE_HZ)
        angle = np.multiply.outer(time, [1.0, 1.7, 2.4])
        q = np.sin(angle)
        qd = [1.0, 1.7, 2.4] * np.cos(angle)
        qdd = -np.square([1.0, 1.7, 2.4]) * np.sin(angle)
        torque = self.model.predict(q, qd, qdd) - external
        if load is not None:
            links = np.zeros(30)
            links[self.model.robot.tip_columns] = transformed(load, self.model.robot.tip_offset)
            torque += self.model.robot.inverse_dynamics(q, qd, qdd, links)
        for k, moment in enumerate(time.tolist()):
            message = JointState(name=["finger", *self.names[::-1]])
            message.header.stamp.sec = int(START_S + moment)
            message.header.stamp.nanosec = round((START_S + moment) % 1.0 * 1e9) % 10**9
            message.position, message.velocity, message.effort = (
                [0.0, *series[k, ::-1].tolist()] for series in (q, qd, torque)
            )
            yield message

    def run(self, messages):
        for message in messages:
            self.node._on_state(message)

    @property
    def contacts(self):
        return [message.data for message in self.published["contact"]]


def test_push_is_reported_as_contact_at_its_joint(arm, keep):
    bench = Bench(arm, keep)
    bench.run(bench.states(2.0))
    assert not any(bench.contacts)
    assert bench.node.status()[:2] == (OK, "no contact")
    bench.published["contact"].clear()
    bench.run(bench.states(0.2, (0.0, 0.0, 5.0), start=2.0))
    assert bench.contacts.index(True) <= 0.05 * RATE_HZ
    level, message, values = bench.node.status()
    assert (level, values["alarms"]) == (WARN, 1)
    assert message.startswith(f"contact at {bench.names[2]}")
    torques = bench.published["torques"][-1]
    thresholds = bench.published["thresholds"][-1]
    assert torques.name == thresholds.name == bench.names
    assert torques.effort[2] == pytest.approx(5.0, abs=0.5)
    assert torques.effort[2] > thresholds.effort[2]
    assert torques.effort[0] < thresholds.effort[0]
    assert math.isinf(bench.published["thresholds"][0].effort[0])


def test_calibrated_sensors_are_corrected(arm, keep, tmp_path):
    sensors = TorqueSensors.of(
        arm[0].robot.joint_names,
        {
            "gain": np.array([1.1, 0.9, 1.2]),
            "offset": np.array([3.0, -2.0, 1.0]),
            "position_gain": np.array([1.0, 1.0, -1.0]),
            "position_offset": np.array([0.0, 0.2, 0.0]),
        },
    )
    labels = ("gain", "offset", "position_gain", "position_offset")
    section = {
        name: {label: float(getattr(sensors, label)[j]) for label in labels}
        for j, name in enumerate(sensors.joint_names)
    }
    head = {key: value for key, value in load_identified(arm[1]).items() if key in ("format", "robot", "source")}
    file = save_identified(tmp_path / "sensors.yaml", head | {"torque_sensors": section})

    def distort_states(bench):
        for message in bench.states(1.0):
            fields = (message.position, message.velocity, message.effort)
            position, velocity, torque = (np.array(values)[:0:-1] for values in fields)
            position, velocity = (
                (position - sensors.position_offset) / sensors.position_gain,
                velocity / sensors.position_gain,
            )
            torque = torque / sensors.gain + sensors.offset
            message.position, message.velocity, message.effort = (
                [0.0, *values[::-1].tolist()] for values in (position, velocity, torque)
            )
            yield message

    corrected = Bench(arm, keep, torque_sensors=str(file))
    corrected.run(distort_states(corrected))
    assert len(corrected.contacts) == RATE_HZ
    assert not any(corrected.contacts)
    raw = Bench(arm, keep)
    raw.run(distort_states(raw))
    assert any(raw.contacts)
    with pytest.raises(DynidError, match="no section 'torque_sensors'"):
        Bench(arm, keep, torque_sensors=str(arm[1]))


def test_invalid_joint_states_leave_contact_unknown(arm, keep):
    bench = Bench(arm, keep)
    bench.run(bench.states(1.0))
    for spoil, words in (
        (lambda m: m.position.__setitem__(1, math.nan), "expected a finite number"),
        (lambda m: m.effort.__setitem__(2, math.inf), "expected a finite number"),
        (lambda m: m.name.__setitem__(1, "another"), "lacks joint"),
        (lambda m: m.name.__setitem__(2, m.name[1]), "lacks joint"),
        (lambda m: setattr(m, "effort", []), "the driver must fill effort"),
        (lambda m: m.velocity.__setitem__(2, 1e308), "external torque is not finite"),
    ):
        message = next(bench.states(1.0, start=1.0))
        spoil(message)
        before = len(bench.contacts)
        bench.node._on_state(message)
        assert len(bench.contacts) == before
        level, text, _ = bench.node.status()
        assert level == ERROR
        assert text.startswith("contact is not known: ")
        assert words in text
    bench.run(bench.states(1.0, start=1.01))
    assert bench.node.status()[:2] == (OK, "no contact")
    bench.node._samples.received -= 5.0
    assert bench.node.status()[1].startswith("contact is not known: no message on")


def test_gap_and_clock_jump_restart_the_thresholds(arm, keep):
    bench = Bench(arm, keep)
    bench.run(bench.states(1.0))
    for start in (1.5, -3600.0):
        bench.published["thresholds"].clear()
        bench.run(bench.states(1.0, start=start))
        bounds = [message.effort[0] for message in bench.published["thresholds"]]
        assert math.isinf(bounds[0])
        assert math.isfinite(bounds[-1])
    assert not any(bench.contacts)


def test_missing_velocities_are_differentiated(arm, keep):
    bench = Bench(arm, keep)
    messages = list(bench.states(2.0))
    for message in messages:
        message.velocity = []
    bench.run(messages)
    assert not any(bench.contacts)
    assert max(abs(value) for message in bench.published["torques"][50:] for value in message.effort) < 1.0


def test_load_is_subtracted_and_impossible_load_refused(arm, keep):
    bench = Bench(arm, keep)
    load = from_center_of_mass(1.0, np.array([0.05, 0.0, 0.1]), 0.004 * np.eye(3))
    bench.run(bench.states(1.0, load=load))
    assert any(bench.contacts)
    message = InertiaStamped()
    message.header.frame_id = bench.model.robot.tip
    message.inertia.m = 1.0
    message.inertia.com.x = 0.05
    message.inertia.com.z = 0.1
    message.inertia.ixx = message.inertia.iyy = message.inertia.izz = 0.004
    bench.node.load._on_message(message)
    message.inertia.m = -1.0
    bench.node.load._on_message(message)
    assert "a load was refused" in bench.node.status()[1]
    bench.published["contact"].clear()
    bench.run(bench.states(1.0, start=2.0, load=load))
    assert not any(bench.contacts)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"model_file": ""}, "model_file is empty"),
        ({"effort_convention": "gravity_compensated"}, "neither torques"),
        ({"effort_convention": "motor_current"}, "needs gains"),
        ({"false_alarms_per_hour": 0.0}, "false_alarms_per_hour"),
        ({"false_alarms_per_hour": 5e-324}, "false_alarms_per_hour is 4.94066e-324; expected 1e-06 to 3600"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"bandwidth": 1e308}, r"bandwidth is 1e\+308; expected above 0 and at most 1e\+06 rad/s"),
        ({"gravity": [0.5] * 100}, "gravity"),
        ({"torque_gain_error": -0.1}, "torque_gain_error"),
        ({"contact_free_recording": "/nowhere"}, "/nowhere"),
    ],
)
def test_invalid_parameters_are_refused(arm, keep, parameters, words):
    with pytest.raises(DynidError, match=words):
        Bench(arm, keep, **parameters)


def test_node_communicates_over_dds(arm, keep):
    bench = Bench(arm, keep)
    node = bench.node
    client = rclpy.create_node("client")
    received = []
    for name in ("torques", "thresholds", "contact"):
        del getattr(node, f"_{name}").publish
    client.create_subscription(Bool, "external_torque/contact", lambda m: received.append("contact"), 10)
    client.create_subscription(JointState, "external_torque/joint_torques", lambda m: received.append("torque"), 10)
    client.create_subscription(JointState, "external_torque/thresholds", lambda m: received.append("threshold"), 10)
    states = client.create_publisher(JointState, "joint_states", 10)
    loads = client.create_publisher(InertiaStamped, "load", LATCHED)
    load = InertiaStamped()
    load.header.frame_id = bench.model.robot.tip
    loads.publish(load)
    threads = NodeThreads(node, client)
    try:
        deadline = time.monotonic() + 60.0
        messages = bench.states(1000.0)
        while set(received) != {"contact", "torque", "threshold"} or node.monitor.load is None:
            assert time.monotonic() < deadline
            states.publish(next(messages))
            time.sleep(0.01)
    finally:
        threads.close()
        client.destroy_node()
