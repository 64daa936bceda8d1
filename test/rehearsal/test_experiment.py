"""A rehearsal of public arms, and its numbers by Pinocchio, which reads the truth that no identification has read."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import mujoco  # noqa: F401 - before pinocchio
import numpy as np
import pinocchio
import pytest
import yaml
from live_load_experiments import direction_of
from pinocchio_arm import REGRESSOR_ORDER, example_urdf

from benchmarks.ten_robots import evaluate_expression
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import DOF, load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.verdict import N_JUDGED_POSES
from dynid_ros.trajectories import MotionLimits, Trajectory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ARMS = {
    "so100": ("so_arm_description/urdf/so100.urdf", "gripper", "base"),
    "tiago_dual": ("tiago_description/robots/tiago_dual.urdf", "arm_left_tool_link", "torso_lift_link"),
    "alex": ("alex_description/urdf/alex_sake_hands.urdf", "LeftGripperYawLink", "Torso"),
}
PAIRS = "LeftWristYawLink:LeftShoulderYawLink,LeftWristRollLink:LeftShoulderYawLink"
"""Links of Alex whose capsules are near each other in half of all poses, and that never touch."""


MAX_LAG = 0.03
"""Distance from the plan, relative to the range of the motion, from which a joint does not move as planned."""


class TruthInPinocchio:
    """The truth of a rehearsal, whose joints beside the arm are fixed, as Pinocchio reads its URDF."""

    def __init__(self, table):
        self.table = table
        self.names = list(table["joints"])
        root = ET.fromstring(table["urdf"])
        self.model = pinocchio.buildModelFromXML(ET.tostring(root, encoding="unicode"))
        assert [self.model.names[i] for i in range(1, self.model.njoints)] == self.names
        data = self.model.createData()
        pinocchio.framesForwardKinematics(self.model, data, pinocchio.neutral(self.model))
        base = data.oMf[self.model.getFrameId(table["base"], pinocchio.FrameType.BODY)].rotation
        self.model.gravity.linear = base @ np.array(table["gravity"])
        self.data = self.model.createData()

    def joint(self, key):
        return np.array([self.table["joints"][name][key] for name in self.names])

    def torque(self, q, qd=None, qdd=None):
        still = np.zeros_like(q)
        motion = zip(q, still if qd is None else qd, still if qdd is None else qdd, strict=True)
        return np.array([pinocchio.rnea(self.model, self.data, *sample) for sample in motion])

    def loaded_torque(self, q):
        load = self.table["load"]
        xx, xy, xz, yy, yz, zz = load["inertia"]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        frame = self.model.frames[self.model.getFrameId(self.table["tip"], pinocchio.FrameType.BODY)]
        body = pinocchio.Inertia(load["mass"], np.array(load["center"]), inertia)
        model = self.model.copy()
        model.appendBodyToJoint(frame.parentJoint, body, frame.placement)
        data = model.createData()
        return np.array([pinocchio.rnea(model, data, row, 0 * row, 0 * row) for row in q])

    def parameters(self):
        """Values of the links' and rotors' parameters by name; Pinocchio's joint frames are the URDF's."""
        values = dict(zip([f"rotor_inertia {name}" for name in self.names], self.joint("rotor_inertia"), strict=True))
        for number, inertia in enumerate(list(self.model.inertias)[1:], 1):
            own = inertia.toDynamicParameters()[REGRESSOR_ORDER]
            values |= {f"{label}{number}": x for label, x in zip(LOAD_NAMES, own, strict=True)}
        return values

    def friction(self, q, qd, carried):
        """Friction (N, n) by the laws of the truth, written anew: Dahl, Stribeck, load, saturating viscosity."""
        own = self.table["friction"]
        total = np.zeros_like(q)
        length = np.array([joint["sliding_length"] for joint in own["joints"]])
        direction = direction_of(q, length, np.zeros(len(length)))
        for i, (name, joint) in enumerate(zip(self.names, own["joints"], strict=True)):
            value = {key.split()[0]: x for key, x in own["coefficients"].items() if key.endswith(f" {name}")}
            dry = value["coulomb"] + value.get("load", 0.0) * np.abs(carried[:, i])
            if joint["stribeck_velocity"] is not None:
                dry = dry + value["stribeck"] * np.exp(-((qd[:, i] / joint["stribeck_velocity"]) ** 2))
            speed = qd[:, i]
            if (saturation := joint["saturation_velocity"]) is not None:
                speed = saturation * np.tanh(speed / saturation)
            total[:, i] = dry * direction[:, i] + value["viscous"] * speed
        return total


@pytest.fixture(name="rehearsed", scope="module", params=list(ARMS))
def fixture_rehearsed(request, tmp_path_factory):
    """Folder and document of a rehearsal, robot, truth in Pinocchio."""
    path, tip, base = ARMS[request.param]
    urdf = example_urdf(path)
    folder = tmp_path_factory.mktemp(request.param)
    words = ["--tip", tip, "--base", base, "--floor-height", "-inf", "--design-time", "5"]
    words += ["--allowed-pairs", PAIRS] if request.param == "alex" else []
    command = [sys.executable, "-m", "dynid_ros", "rehearse", "--urdf", str(urdf), "--output", str(folder), *words]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    robot = RobotModel.from_urdf(urdf, tip, base)
    truth = TruthInPinocchio(yaml.safe_load((folder / "truth.yaml").read_text()))
    return folder, json.loads(done.stdout), robot, truth


def poses(robot):
    return MotionLimits.of(robot, 2.0).poses(N_JUDGED_POSES)


def column(document, quantity, what, robot):
    values = document["joints"][quantity][what]
    return np.array([np.nan if values[name] is None else values[name] for name in robot.joint_names])


def test_gravity_errors_are_those_by_pinocchio(rehearsed):
    folder, document, robot, truth = rehearsed
    q = poses(robot)
    true = truth.torque(q)
    largest = np.abs(true).max(axis=0)
    np.testing.assert_allclose(column(document, "gravity", "torque", robot), largest, atol=1e-6)
    model = IdentifiedGravity(robot, load_identified(folder / "gravity" / "identified.yaml"))
    found = model.gravity.regressor(q) @ np.nan_to_num(model.moments)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.abs(found - true).max(axis=0) / largest
    said = column(document, "gravity", "error", robot)
    shown = np.isfinite(said)
    assert shown.any()
    np.testing.assert_allclose(said[shown], expected[shown], atol=1e-6)


def test_load_torque_is_that_by_pinocchio(rehearsed):
    _, document, robot, truth = rehearsed
    q = poses(robot)
    expected = np.abs(truth.loaded_torque(q) - truth.torque(q)).max(axis=0)
    np.testing.assert_allclose(column(document, "load", "torque", robot), expected, atol=1e-6)


def test_intervals_that_contain_the_truth_are_those_by_pinocchio(rehearsed):
    folder, document, _, truth = rehearsed
    entries = load_identified(folder / "links" / "identified.yaml")["base_parameters"]
    values = truth.parameters()
    counts = [0, 0]
    for entry in entries:
        true = evaluate_expression(entry["expression"], values)
        if np.isfinite(true) and entry["value"] is not None:
            half = half_width(entry["std"], entry.get(DOF) or np.inf)
            counts = [counts[0] + bool(abs(entry["value"] - true) <= half), counts[1] + 1]
    said = document["intervals"]["links"]
    assert counts[1] == said["count"]
    assert abs(counts[0] - said["covered"]) <= 1  # expressions are rounded


def test_unseen_torque_is_as_wrong_in_a_simulation_by_pinocchio(rehearsed):
    folder, document, robot, truth = rehearsed
    recorded = Recording.read(folder / "unseen.npz", joint_names=robot.joint_names)
    model = link_model(load_identified(folder / "links" / "identified.yaml"), robot)
    plan = Trajectory.read(folder / "motions" / "unseen" / "trajectory.yaml").select(robot.joint_names)
    q, qd, qdd = plan.at(recorded.time)
    carried = truth.torque(q, qd, qdd)
    torque = carried + truth.joint("rotor_inertia") * qdd + truth.friction(q, qd, carried)
    torque = (1 + truth.joint("torque_gain_error")) * torque + truth.joint("torque_offset")
    rng = np.random.default_rng(5)
    torque += truth.joint("torque_noise") * rng.standard_normal(q.shape)
    measured = q + truth.joint("position_noise") * rng.standard_normal(q.shape)
    # The recorded stamps jitter about a steady clock, which is found. Here the arm is at its planned place at these
    # stamps, so that more jitter would be that of no clock.
    expected = validate(model, replace(recorded, position=measured, torque=torque)).relative_rms
    # A joint that sticks at reversals moves otherwise than planned, and only MuJoCo simulates its drive. A joint
    # without gravity has hardly any torque but friction, which depends on these reversals.
    is_late = np.abs(recorded.position - q).max(axis=0) > MAX_LAG * np.ptp(q, axis=0)
    is_judged = ~is_late & np.isfinite(column(document, "gravity", "error", robot))
    assert np.count_nonzero(is_judged) >= robot.n_joints - 4
    said = column(document, "unseen_torque", "error", robot)
    np.testing.assert_allclose(said[is_judged], expected[is_judged], rtol=0.25, atol=0.003)
