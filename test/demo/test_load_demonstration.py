"""Test the verdict on a load: passed for the true load in time, failed for another load or a late estimate."""

import copy
from dataclasses import replace

import numpy as np
import online_experiment
import pytest

from dynid_ros.demo.motion_acts import LoadRun, judge_load
from dynid_ros.errors import DynidError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.identification import LoadIdentification
from dynid_ros.identification.load_result import section_of_load
from dynid_ros.identification.online.online_identification import OnlineIdentification
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf, measure, simulate, truth_table
from dynid_ros.trajectories import MotionLimits

PUT_DOWN_S = 11.0
DROPPED = {"time": PUT_DOWN_S + 0.1, "noticed": PUT_DOWN_S + 0.2, "mass": -1.8}


@pytest.fixture(name="demonstration", scope="module")
def fixture_demonstration(tmp_path_factory):
    """Return truth, folder of the file, and the observations of a run."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    effort = robot.limits.effort
    speed = robot.limits.velocity
    rng = np.random.default_rng(0)
    sensors = Sensors.draw(effort, rng, torque_offset=0.0, torque_noise=0.005, position_noise=2e-5)
    drives = Drives(coulomb=online_experiment.COULOMB * effort, viscous=online_experiment.VISCOUS * effort / speed)
    arm = SimulatedArm(robot, drives=drives, sensors=sensors)
    arm.attach_load(from_center_of_mass(2.0, np.array([0.05, -0.03, 0.08]), np.diag([0.0033, 0.0167, 0.0167])))
    settings = {"base_frequency": 0.2, "harmonics": 5, "periods": 2, "design_time": 0.0, "workers": 1}
    motion = FourierExcitation(robot, MotionLimits.of(robot, 8.0), target="load", **settings).plan().trajectory
    recording = replace(measure(simulate(arm, motion), sensors, rng), source="loaded")
    folder = tmp_path_factory.mktemp("load")
    model = online_experiment.identified_model(robot)
    LoadIdentification(robot, model).fit(recording).save(folder / "identified.yaml")
    online = OnlineIdentification(robot, "load", model)
    estimates = []
    for row, (time, position, torque) in enumerate(
        zip(recording.time, recording.position, recording.torque, strict=True)
    ):
        online.sample(time, position, torque)
        if row % 125 == 124:
            estimates.append((time, {**section_of_load(online.estimate().load()), "changes": []}))
    estimates.append((PUT_DOWN_S + 0.5, {**estimates[-1][1], "changes": [DROPPED]}))
    observed = LoadRun(began=0.0, put_down=PUT_DOWN_S, estimates=estimates, sag=0.4, drift=0.001)
    return truth_table(arm), folder, observed


def test_identified_load_passes(demonstration):
    act = judge_load(*demonstration)
    assert act.passed, act.sentences
    assert len(act.pictures) == 1


def test_another_load_fails(demonstration):
    truth, folder, observed = demonstration
    other = copy.deepcopy(truth)
    other["load"]["mass"] = 2.3
    act = judge_load(other, folder, observed)
    assert not act.passed
    assert not act.comparisons[0].is_covered


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({"began": -10.0}, "Mass estimated live"),
        ({"drift": 0.1}, "Largest joint drift with the load known"),
        ({"sag": 0.0}, "Largest joint drift without the load known"),
        ({"put_down": PUT_DOWN_S - 2.0}, "Time at which the load was put down"),
        ({"put_down": PUT_DOWN_S + 2.0}, "Time at which the load was put down"),
    ],
)
def test_observations_are_checked(demonstration, change, failed):
    truth, folder, observed = demonstration
    act = judge_load(truth, folder, replace(observed, **change))
    (check,) = [check for check in act.checks if not check.passed]
    assert check.label.startswith(failed)


def test_unidentified_load_is_refused(demonstration, tmp_path):
    truth, folder, observed = demonstration
    text = (folder / "identified.yaml").read_text()
    (tmp_path / "identified.yaml").write_text(text.replace("loaded: true", "loaded: false"))
    with pytest.raises(DynidError, match="was not found"):
        judge_load(truth, tmp_path, observed)
