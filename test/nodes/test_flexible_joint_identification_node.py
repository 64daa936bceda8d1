"""The node over DDS: motors and links in, springs out; from a file, from a bag's second topic, from cameras."""

from functools import lru_cache

import numpy as np
import pytest
from bag_files import START, joint_state, write_bag
from command_line import run
from helpers.identification_bench import starter

from dynid_ros.demo.sensor_acts import START_POSE as POSE
from dynid_ros.model import RobotModel
from dynid_ros.nodes.flexible_joint_identification import FlexibleJointIdentificationNode
from dynid_ros.simulation import Drives, SimulatedArm, Springs, simulate
from dynid_ros.simulation.descriptions import demo_arm_urdf
from dynid_ros.trajectories.fourier import FourierSeries

URDF = demo_arm_urdf(["joint_1"])
STIFFNESS, MOTOR_INERTIA = 4000.0, 0.8


@lru_cache
def recording(periods=2):
    """One joint of the demo's arm near its resonance, in MuJoCo, with link encoders."""
    robot = RobotModel.from_urdf(URDF)
    arm = SimulatedArm(
        robot,
        drives=Drives(4.0, 2.0, MOTOR_INERTIA),
        springs=Springs(STIFFNESS, motor_viscous=2.0),
        start=POSE[:1],
    )
    sine, cosine = np.random.default_rng(0).standard_normal((2, 1, 16)) / np.arange(1, 17)
    series = FourierSeries.at_rest(robot.joint_names, 0.5, sine, cosine)
    series = series.scaled(0.6 * robot.limits.velocity / series.peaks()[2]).shifted(np.array(POSE[:1]))
    return simulate(arm, series.trajectory(periods), 250.0, link_encoders=True)


@pytest.fixture(name="start")
def fixture_start(tmp_path, keep):
    """Function that makes the node with parameters and spins it."""
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(URDF)

    return starter(
        keep,
        FlexibleJointIdentificationNode,
        robot_description=urdf,
        effort_convention="torque",
        output=tmp_path / "out",
    )


def as_bag(path, true):
    """Motors and links on topics of their own, the links' a hundredth of a step later."""

    def messages():
        for k in range(true.n_samples):
            at = START + round(true.time[k] * 1e9)
            names = true.joint_names
            yield "/joint_states", at, joint_state(at, names, true.position[k], true.velocity[k], true.torque[k])
            later = at + 40_000
            yield "/link_states", later, joint_state(later, names, true.link_position[k])

    return write_bag(path, messages())


def test_springs_from_the_links_of_another_topic(start, tmp_path):
    bench = start(recording=as_bag(tmp_path / "bag", recording()), link_states_topic="/link_states")
    response = bench.identify()
    assert response.success, response.message
    found = bench.result()["flexible_joints"]["joint_1"]
    assert found["stiffness"] == pytest.approx(STIFFNESS, rel=0.02)
    assert found["motor_inertia"] == pytest.approx(MOTOR_INERTIA, rel=0.1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiment.yaml",
        "identified.yaml",
        "report.html",
    ]


def test_torsion_alone(start, tmp_path, capsys):
    bag = as_bag(tmp_path / "bag", recording())
    bench = start(recording=bag, link_states_topic="/link_states", torsion=True)
    response = bench.identify()
    assert response.success, response.message
    assert "stiffness" in bench.result()["torsion"]["joint_1"]
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_repetitions_are_recordings_of_their_own(start, tmp_path):
    bag = as_bag(tmp_path / "bag", recording(1))
    bench = start(recording=bag, link_states_topic="/link_states", repeats=True, joint="joint_1")
    response = bench.identify()
    assert not response.success
    assert "only one recording" in response.message
    bench.set_parameters(more_recordings=[str(as_bag(tmp_path / "again", recording(1)))])
    response = bench.identify()
    assert response.success, response.message
    assert "from bag, again" in response.message


def test_what_tells_no_links_is_answered_and_the_node_lives(start, tmp_path):
    bench = start(recording=as_bag(tmp_path / "bag", recording()))
    for _ in range(2):
        response = bench.identify()
        assert not response.success
        assert "nothing determines where the links are" in response.message
