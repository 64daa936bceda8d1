"""Motions for flexible joints from files and arguments."""

import numpy as np
import pa10
import pytest

from dynid_ros.errors import IdentifiedFileError, TrajectoryError
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.experiments import KEYS, flexible_motion, flexible_prior
from dynid_ros.trajectories import MotionLimits, Workspace

ROBOT, ROW = pa10.single_joint_robot(2), pa10.table_one(2)
VALUES = {name: getattr(ROW, name) for name in KEYS}
RESONANCE = np.sqrt(ROW.stiffness / (pa10.LIGHTER * ROW.inertia)) / (2 * np.pi)
LIMITS = MotionLimits.of(ROBOT, acceleration_limits=30.0)
WORKSPACE = Workspace(ROBOT)
QUICK = {"design_time": 0.0, "workers": 1}


def identified(folder, decided=True, **changes):
    entry = {KEYS[name]: value for name, value in (VALUES | changes).items()}
    document = new_document(ROBOT, ["run"], {})
    document["flexible_joints"] = {"joint_2": {**entry, "decided": {"stiffness": decided}}}
    return save_identified(folder / "identified.yaml", document)


def test_the_file_is_the_prior_and_arguments_overrule_it(tmp_path):
    found = flexible_prior(
        ROBOT, {"viscous": np.array([5.0]), "coulomb": None}, identified(tmp_path, motor_viscous=-0.1)
    )
    assert found.stiffness == pytest.approx(ROW.stiffness)
    assert found.coulomb == pytest.approx(ROW.coulomb)
    assert (found.viscous, found.motor_viscous) == (5.0, 0.0)


def test_harmonics_lie_on_both_sides_of_the_resonance():
    series = flexible_motion(ROBOT, LIMITS, WORKSPACE, FlexibleJoints(**VALUES), **QUICK).plan().series
    assert series.base_frequency < RESONANCE < 8 * series.base_frequency
    wanted = flexible_motion(ROBOT, LIMITS, WORKSPACE, FlexibleJoints(**VALUES), base_frequency=1.0, **QUICK)
    assert wanted.plan().series.base_frequency == 1.0


@pytest.mark.slow
def test_held_joints_stand_still():
    arm = pa10.arm_robot()
    limits = MotionLimits.of(arm, acceleration_limits=30.0)
    joints = FlexibleJoints(11900.0, 2.0, 5.0, 5.0, 10.0)
    held = np.array([0.3, np.nan, 1.2, 0.3, 0.9, 0.2])
    motion = flexible_motion(arm, limits, Workspace(arm), joints, held, **QUICK).plan().trajectory.position
    assert np.ptp(motion[:, 1]) > 0.05
    assert np.ptp(np.delete(motion, 1, axis=1), axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    assert np.delete(motion[0], 1) == pytest.approx(np.delete(held, 1))


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(TrajectoryError, match="motor_inertia of the joints is not known"):
        flexible_prior(ROBOT, {"stiffness": np.array([1e4])})
    with pytest.raises(IdentifiedFileError, match="stiffness of joint 'joint_2' is not decided"):
        flexible_prior(ROBOT, {}, identified(tmp_path, decided=False))
    with pytest.raises(IdentifiedFileError, match="motor_inertia of joint 'joint_2' is None"):
        flexible_prior(ROBOT, {}, identified(tmp_path, motor_inertia=None))
    with pytest.raises(IdentifiedFileError, match="is of robot 'pa10_joint_2'"):
        flexible_prior(pa10.single_joint_robot(3), {}, identified(tmp_path))
    with pytest.raises(TrajectoryError, match="needs to know about the joints"):
        excite("flexible", ROBOT, LIMITS, WORKSPACE, tmp_path)
    with pytest.raises(TrajectoryError, match="shows flexible joints, not links"):
        excite("flexible", ROBOT, LIMITS, WORKSPACE, tmp_path, target="links", joints=FlexibleJoints(**VALUES))
    with pytest.raises(TrajectoryError, match="motion flexible has no setting sweep"):
        excite("flexible", ROBOT, LIMITS, WORKSPACE, tmp_path, joints=FlexibleJoints(**VALUES), sweep=1.0)
