"""Experiments by name."""

import inspect

import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import GuardedExperiment
from dynid_ros.jobs.experiments import KINDS, make_experiment
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 4.0)


def make(kind, target=None, **settings):
    return make_experiment(kind, ROBOT, LIMITS, Workspace(ROBOT), target, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_one_of_the_experiment(kind):
    known = set(inspect.signature(KINDS[kind].make).parameters)
    known |= set(inspect.signature(GuardedExperiment).parameters)
    assert set(KINDS[kind].settings) <= known
    assert ("target" in known) == (len(KINDS[kind].targets) > 1)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_reach_the_experiment(kind):
    made = make(kind, speed_fraction=0.3, dwell=None)
    assert isinstance(made, KINDS[kind].make)
    assert made.workspace.floor_height == -float("inf")


def test_target_reaches_the_experiment():
    assert make("poses", "load", count=9).target == "load"


def test_joints_move_in_steps_where_steps_are_asked_for():
    assert make("joint_by_joint", frequencies=[0.2]).motion == "sinusoid"
    assert make("joint_by_joint", steps=4).motion == "steps"


@pytest.mark.parametrize(
    ("kind", "target", "settings", "words"),
    [
        ("dance", None, {}, "motion is 'dance'; expected fourier, static_rotation"),
        ("poses", "links", {}, "target is 'links'; motion poses shows gravity or load"),
        ("poses", None, {"harmonics": 3}, "motion poses has no setting harmonics, which is one of fourier"),
        ("payload", None, {"known": [1.0]}, "motion payload has no setting known"),
        ("fourier", None, {"harmonics": 1}, "harmonics is 1; it must be at least 2"),
    ],
)
def test_refusals(kind, target, settings, words):
    with pytest.raises(TrajectoryError, match=words):
        make(kind, target, **settings)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("static_rotation", "steps"),
        ("poses", "count"),
        ("fourier", "harmonics"),
        ("fourier", "workers"),
        ("payload", "repeats"),
    ],
)
def test_numbers_that_no_memory_holds_are_refused(kind, name):
    with pytest.raises(TrajectoryError, match=rf"{name} is 4611686018427387904; expected at most (1000|64)"):
        make(kind, **{name: 2**62})
