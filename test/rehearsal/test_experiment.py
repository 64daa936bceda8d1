"""Test rehearsals of public arms: their numbers agree with Pinocchio, which reads the truth."""

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
ALLOWED_PAIRS = "LeftWristYawLink:LeftShoulderYawLink,LeftWristRollLink:LeftShoulderYawLink"
"""Links of Alex that never touch, although their capsules are near each other in half of all poses."""


MAX_LAG_FRACTION = 0.03
"""Largest distance from the plan as a fraction of the range of the motion."""


class TruthInPinocchio:
    """True model of a rehearsal in Pinocchio, with the joints besides the arm fixed."""

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
        """Return link and rotor parameters by name; Pinocchio's joint frames are those of the URDF."""
        values = dict(zip([f"rotor_inertia {name}" for name in self.names], self.joint("rotor_inertia"), strict=True))
        for number, inertia in enumerate(list(self.model.inertias)[1:], 1):
            link_parameters = inertia.toDynamicParameters()[REGRESSOR_ORDER]
            values |= {f"{label}{number}": x for label, x in zip(LOAD_NAMES, link_parameters, strict=True)}
        return values

    def friction(self, q, qd, carried):
        """Return friction (N, n) by the true laws: Dahl, Stribeck, load and saturating viscosity."""
        true_friction = self.table["friction"]
        total = np.zeros_like(q)
        length = np.array([joint["sliding_length"] for joint in true_friction["joints"]])
        direction = direction_of(q, length, np.zeros(len(length)))
        for i, (name, joint) in enumerate(zip(self.names, true_friction["joints"], strict=True)):
            value = {key.split()[0]: x for key, x in true_friction["coefficients"].items() if key.endswith(f" {name}")}
            dry = value["coulomb"] + value.get("load", 0.0) * np.abs(carried[:, i])
            if joint["stribeck_velocity"] is not None:
                dry = dry + value["stribeck"] * np.exp(-((qd[:, i] / joint["stribeck_velocity"]) ** 2))
            speed = qd[:, i]
            saturation = joint["saturation_velocity"]
            if saturation is not None:
                speed = saturation * np.tanh(speed / saturation)
            total[:, i] = dry * direction[:, i] + value["viscous"] * speed
        return total


@pytest.fixture(name="rehearsal", scope="module", params=list(ARMS))
def fixture_rehearsed(request, tmp_path_factory):
    """Return folder and document of a rehearsal, robot, and truth in Pinocchio."""
    path, tip, base = ARMS[request.param]
    urdf = example_urdf(path)
    folder = tmp_path_factory.mktemp(request.param)
    words = ["--tip", tip, "--base", base, "--floor-height", "-inf", "--design-time", "5"]
    words += ["--allowed-pairs", ALLOWED_PAIRS] if request.param == "alex" else []
    command = [sys.executable, "-m", "dynid_ros", "rehearse", "--urdf", str(urdf), "--output", str(folder), *words]
    process = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert process.returncode in (0, 1), process.stderr
    robot = RobotModel.from_urdf(urdf, tip, base)
    truth = TruthInPinocchio(yaml.safe_load((folder / "truth.yaml").read_text()))
    return folder, json.loads(process.stdout), robot, truth


def draw_poses(robot):
    return MotionLimits.of(robot, 2.0).poses(N_JUDGED_POSES)


def read_column(document, quantity, key, robot):
    values = document["joints"][quantity][key]
    return np.array([np.nan if values[name] is None else values[name] for name in robot.joint_names])


def test_gravity_errors_agree_with_pinocchio(rehearsal):
    folder, document, robot, truth = rehearsal
    q = draw_poses(robot)
    true = truth.torque(q)
    largest = np.abs(true).max(axis=0)
    np.testing.assert_allclose(read_column(document, "gravity", "torque", robot), largest, atol=1e-6)
    model = IdentifiedGravity(robot, load_identified(folder / "gravity" / "identified.yaml"))
    estimated = model.gravity.regressor(q) @ np.nan_to_num(model.moments)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.abs(estimated - true).max(axis=0) / largest
    reported = read_column(document, "gravity", "error", robot)
    is_reported = np.isfinite(reported)
    assert is_reported.any()
    np.testing.assert_allclose(reported[is_reported], expected[is_reported], atol=1e-6)


def test_load_torque_agrees_with_pinocchio(rehearsal):
    _, document, robot, truth = rehearsal
    q = draw_poses(robot)
    expected = np.abs(truth.loaded_torque(q) - truth.torque(q)).max(axis=0)
    np.testing.assert_allclose(read_column(document, "load", "torque", robot), expected, atol=1e-6)


def test_coverage_of_intervals_agrees_with_pinocchio(rehearsal):
    folder, document, _, truth = rehearsal
    entries = load_identified(folder / "links" / "identified.yaml")["base_parameters"]
    values = truth.parameters()
    counts = [0, 0]
    for entry in entries:
        true = evaluate_expression(entry["expression"], values)
        if np.isfinite(true) and entry["value"] is not None:
            half = half_width(entry["std"], entry.get(DOF) or np.inf)
            counts = [counts[0] + bool(abs(entry["value"] - true) <= half), counts[1] + 1]
    reported = document["intervals"]["links"]
    assert counts[1] == reported["count"]
    assert abs(counts[0] - reported["covered"]) <= 1  # expressions in the file are rounded


def test_held_out_error_agrees_with_a_simulation_by_pinocchio(rehearsal):
    folder, document, robot, truth = rehearsal
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
    # The recorded stamps jitter about a steady clock, which is estimated. The simulated arm is at its planned place at
    # # these stamps, so additional jitter would fit no clock.
    expected = validate(model, replace(recorded, position=measured, torque=torque)).relative_rms
    # Only MuJoCo simulates the drive of a joint that sticks at reversals, so it deviates from the plan. A joint without
    # # gravity has hardly any torque but friction, which depends on these reversals.
    deviates = np.abs(recorded.position - q).max(axis=0) > MAX_LAG_FRACTION * np.ptp(q, axis=0)
    is_judged = ~deviates & np.isfinite(read_column(document, "gravity", "error", robot))
    assert np.count_nonzero(is_judged) >= robot.n_joints - 4
    reported = read_column(document, "unseen_torque", "error", robot)
    np.testing.assert_allclose(reported[is_judged], expected[is_judged], rtol=0.25, atol=0.003)
