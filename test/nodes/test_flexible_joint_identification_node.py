"""Test the flexible-joint node over DDS: motor and link states in, springs out."""

from functools import lru_cache

import numpy as np
import pytest
from bag_files import START, joint_state, write_bag
from command_line import run
from helpers.identification_bench import make_starter
from helpers.node_threads import assert_refused, assert_success

from dynid_ros.demo.sensor_acts import START_POSE as POSE
from dynid_ros.model import RobotModel
from dynid_ros.nodes.flexible_joint_identification import FlexibleJointIdentificationNode
from dynid_ros.simulation import Drives, SimulatedArm, Springs, simulate
from dynid_ros.simulation.descriptions import demo_arm_urdf
from dynid_ros.trajectories.fourier import FourierSeries

URDF = demo_arm_urdf(["joint_1"])
STIFFNESS = 4000.0
MOTOR_INERTIA = 0.8


@lru_cache
def simulate_recording(periods=2):
    """Simulate one joint of the demo arm near its resonance in MuJoCo, with link encoders."""
    robot = RobotModel.from_urdf(URDF)
    arm = SimulatedArm(
        robot, drives=Drives(4.0, 2.0, MOTOR_INERTIA), springs=Springs(STIFFNESS, motor_viscous=2.0), start=POSE[:1]
    )
    sine, cosine = np.random.default_rng(0).standard_normal((2, 1, 16)) / np.arange(1, 17)
    series = FourierSeries.at_rest(robot.joint_names, 0.5, sine, cosine)
    series = series.scaled(0.6 * robot.limits.velocity / series.peaks()[2]).shifted(np.array(POSE[:1]))
    return simulate(arm, series.trajectory(periods), 250.0, link_encoders=True)


@pytest.fixture(name="start")
def fixture_start(tmp_path, keep):
    """Return a function that starts the node with parameters."""
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(URDF)

    return make_starter(
        keep,
        FlexibleJointIdentificationNode,
        robot_description=urdf,
        effort_convention="torque",
        output=tmp_path / "out",
    )


def write_bag_of(path, recording):
    """Write motor and link states to two topics of a bag, the links 40 µs later."""

    def messages():
        for k in range(recording.n_samples):
            stamp = START + round(recording.time[k] * 1e9)
            names = recording.joint_names
            yield (
                "/joint_states",
                stamp,
                joint_state(stamp, names, recording.position[k], recording.velocity[k], recording.torque[k]),
            )
            link_stamp = stamp + 40_000
            yield "/link_states", link_stamp, joint_state(link_stamp, names, recording.link_position[k])

    return write_bag(path, messages())


def test_springs_from_link_states_of_another_topic(start, tmp_path):
    bench = start(recording=write_bag_of(tmp_path / "bag", simulate_recording(1)), link_states_topic="/link_states")
    assert_success(bench.identify())
    joint = bench.result()["flexible_joints"]["joint_1"]
    assert joint["stiffness"] == pytest.approx(STIFFNESS, rel=0.02)
    assert joint["motor_inertia"] == pytest.approx(MOTOR_INERTIA, rel=0.1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiment.yaml",
        "identified.yaml",
        "report.html",
    ]


def test_torsion_identification_and_its_run_file(start, tmp_path, capsys):
    bags = [write_bag_of(tmp_path / name, simulate_recording()) for name in ("bag", "again")]
    more = f"['{bags[1]}']"
    bench = start(recording=bags[0], more_recordings=more, link_states_topic="/link_states", torsion=True)
    assert_success(bench.identify(), "from bag, again")
    assert "stiffness" in bench.result()["torsion"]["joint_1"]
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_repetitions_need_several_recordings(start, tmp_path):
    bag = write_bag_of(tmp_path / "bag", simulate_recording(1))
    bench = start(recording=bag, link_states_topic="/link_states", repeats=True, joint="joint_1")
    assert_refused(bench.identify(), "only one recording")


def test_recording_without_link_states_is_refused(start, tmp_path):
    bench = start(recording=write_bag_of(tmp_path / "bag", simulate_recording()))
    for _ in range(2):
        assert_refused(bench.identify(), "nothing determines where the links are")
