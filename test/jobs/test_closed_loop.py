"""Test the whole chain from a designed motion, simulated by MuJoCo for an inaccurate URDF, to the identified model."""

from types import SimpleNamespace

import numpy as np
import pytest
from command_line import run
from pinocchio_arm import example_urdf

from dynid_ros.control.gravity_feedforward import load_gravity_torque
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.simulation import Drives, Sensors, SimulatedArm
from dynid_ros.simulation.replay import measure, simulate
from dynid_ros.trajectories import Trajectory

pytestmark = pytest.mark.slow

RATE_HZ = 200.0
LINK_ERROR = 0.25
"""Largest relative error of each link in the URDF."""
LOAD = from_center_of_mass(1.5, np.array([0.02, -0.03, 0.08]), np.diag([0.004, 0.005, 0.003]))
DESIGN = ("--acceleration-limits", "4", "--skip-meshes")
SEARCH = ("--design-time", "10", "--workers", "1")


@pytest.fixture(name="arm", scope="module")
def fixture_arm(tmp_path_factory):
    """Make an xArm 7 whose links, friction and rotors differ from its URDF."""
    urdf = example_urdf("xarm_description/urdf/xarm7.urdf")
    robot = RobotModel.from_urdf(urdf)
    rng = np.random.default_rng(7)
    factors = rng.uniform(1 - LINK_ERROR, 1 + LINK_ERROR, robot.n_links)
    truth = RobotModel.from_urdf(urdf_with_inertias(robot, robot.parameters * np.repeat(factors, PARAMETERS_PER_LINK)))
    effort = robot.limits.effort
    drives = Drives(0.02 * effort, 0.015 * effort, 0.003 * effort)
    noise = {"torque_noise": 0.003, "position_noise": 2e-5, "velocity_noise": 1e-3}
    sensors = Sensors.draw(effort, rng, torque_offset=0.005, **noise)
    folder = tmp_path_factory.mktemp("loop")
    return SimpleNamespace(urdf=urdf, robot=robot, truth=truth, drives=drives, sensors=sensors, folder=folder)


def design(capsys, arm, name, *options):
    """Return the trajectory of a motion that `dynid excite` designs."""
    folder = arm.folder / name
    code, _, err = run(capsys, "excite", "--urdf", arm.urdf, *DESIGN, *options, "--output", folder)
    assert code in (0, 1), err
    return Trajectory.read(folder / "trajectory.yaml")


def record(arm, name, trajectory, load=None):
    """Simulate and record a motion with sensor errors; return the path of the recording."""
    plant = SimulatedArm(arm.truth, drives=arm.drives)
    if load is not None:
        plant.attach_load(load)
    recording = measure(simulate(plant, trajectory, RATE_HZ), arm.sensors, np.random.default_rng(len(name)))
    path = arm.folder / f"{name}.npz"
    recording.write_npz(path)
    return path


def identify(capsys, arm, kind, name, *options):
    """Return the file of an identification that accepts the recording."""
    folder = arm.folder / f"{name}_identified"
    code, out, err = run(capsys, "identify", kind, "--urdf", arm.urdf, *options, "--output", folder)
    assert code == 0, f"{out}{err}"
    return folder / "identified.yaml"


def gravity_error(arm, file):
    """Return the RMS error of the gravity torque in random poses by joint, relative to its RMS or to 1 N m."""
    robot, torque = load_gravity_torque(file, str(arm.urdf))
    limits = robot.limits
    poses = np.random.default_rng(3).uniform(limits.lower, limits.upper, (200, robot.n_joints))
    true = arm.truth.gravity_torque(poses)
    error = np.array([torque(pose) for pose in poses]) - true
    return np.sqrt(np.mean(error**2, axis=0)) / np.maximum(1.0, np.sqrt(np.mean(true**2, axis=0)))


@pytest.mark.parametrize("options", [("static_rotation",), ("poses",)], ids=["static_rotation", "poses"])
def test_gravity_motions_identify_the_gravity_torque(arm, capsys, options):
    name = "_".join(options)
    path = record(arm, name, design(capsys, arm, name, "--motion", *options))
    file = identify(capsys, arm, "gravity", name, "--recording", path)
    assert np.all(gravity_error(arm, file) < 0.05)


def test_joint_by_joint_motion_identifies_the_gravity_torque(arm, capsys):
    path = record(arm, "joint_by_joint", design(capsys, arm, "joint_by_joint", "--motion", "joint_by_joint"))
    file = identify(capsys, arm, "links", "joint_by_joint", "--recording", path)
    assert np.all(gravity_error(arm, file) < 0.05)


@pytest.mark.parametrize("target", ["links", "gravity", "load"])
def test_fourier_motions_determine_all_base_parameters(arm, capsys, target):
    name = f"fourier_{target}"
    trajectory = design(capsys, arm, name, "--target", target, *SEARCH)
    path = record(arm, name, trajectory)
    file = identify(capsys, arm, "links", name, "--recording", path)
    assert np.all(gravity_error(arm, file) < 0.05)
    document = load_identified(file)
    undetermined = [entry for entry in document["base_parameters"] if not np.isfinite(entry["std"])]
    assert not undetermined


@pytest.mark.parametrize(
    ("motion", "options"),
    [("payload", ()), ("fourier", ("--target", "load", *SEARCH)), ("poses", ("--target", "load"))],
)
def test_load_motions_identify_mass_and_center(arm, capsys, motion, options):
    model_file = arm.folder / "arm_identified" / "identified.yaml"
    if not model_file.exists():
        path = record(arm, "arm", design(capsys, arm, "arm", "--seed", "1", *SEARCH))
        identify(capsys, arm, "links", "arm", "--recording", path)
    name = f"load_{motion}"
    path = record(arm, name, design(capsys, arm, name, "--motion", motion, *options), LOAD)
    static = ("--static",) if motion == "poses" else ()
    file = identify(capsys, arm, "load", name, "--model", model_file, "--recording", path, *static)
    load = load_identified(file)["load"]
    low, high = load["interval"]["mass"]
    assert low < LOAD[0] < high
    assert high - low < 0.4 * LOAD[0]
    assert load["center"] == pytest.approx(LOAD[1:4] / LOAD[0], abs=0.02)
