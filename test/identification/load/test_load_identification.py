"""Load identification from joint torques of arms in MuJoCo, in motion and in static poses."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from coverage_experiments import fourier_motion
from gravity_experiment import demo_robot
from live_load_experiments import draw_live
from load_experiments import LoadConditions, draw, draw_load, draw_rests

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification, LoadIdentification
from dynid_ros.identification.load.load_fit import LoadEquations
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import KnownArm, LinkModel, known_arm
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import LoadBody, transformed
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals

FRICTION = JointFriction(offset=True, smoothing=0.02)
CONDITIONS = LoadConditions("panda", duration=10.0, unloaded=15.0)


@cache
def experiment():
    return draw(CONDITIONS, np.random.default_rng(0))


@cache
def arm():
    links = LinkIdentification(experiment().robot, friction=FRICTION, prior_weight=1.0, torque_gain_error=0.003)
    return links.fit(experiment().unloaded)


def identify_load(recording, **settings):
    """Return the load on the Panda, with the identified arm unless the settings contain another one."""
    settings = {"arm": arm(), "torque_gain_error": 0.003, **settings}
    return LoadIdentification(experiment().robot, **settings).fit(recording)


def exact_arm(robot: RobotModel) -> LinkModel:
    """Return the exact model of the demo arm, without friction and rotors."""
    friction = FrictionModel(JointFriction(coulomb=False, viscous=False, offset=True))
    return LinkModel(robot, robot.parameters, friction, np.zeros(robot.n_joints), LinkSignals(7.0, 17.5))


def test_identifies_the_load_and_covers_it():
    result = identify_load(experiment().loaded)
    truth = LoadBody(experiment().load, np.zeros((10, 10)))
    assert result.frame == experiment().robot.tip
    assert result.mass == pytest.approx(truth.mass, rel=0.01)
    np.testing.assert_allclose(result.center, truth.center, atol=4e-3)
    low, high = result.confidence_intervals(0.99).T
    assert np.all((low <= experiment().load) & (experiment().load <= high))
    low, high = result.center_intervals(0.99).T
    assert np.all((low <= truth.center) & (truth.center <= high))
    assert "kg" in result.summary()
    # The standard error of the mass is not much larger than the actual error.
    assert result.body.mass_error < 0.02 * truth.mass


def test_refuses_an_arm_with_other_link_lengths():
    robot = demo_robot()
    longer = RobotModel.from_urdf(robot.urdf.replace('xyz="0 -0.45 0" rpy="0 0 0"', 'xyz="0 -0.5 0" rpy="0 0 0"'))
    assert longer.joint_names == robot.joint_names
    recording = draw_rests(robot, draw_load(np.random.default_rng(0), 1.0), 8, np.random.default_rng(1), 0.01)
    with pytest.raises(IdentificationError, match="which is not 'demo_arm'"):
        LoadIdentification(robot, exact_arm(longer)).fit(recording)


def test_unloaded_arm_has_no_load():
    robot = experiment().robot
    empty = draw(CONDITIONS, np.random.default_rng(0), load=np.array([1e-6, *[0.0] * 9]))
    result = LoadIdentification(robot, arm()).fit(empty.loaded)
    low, high = result.confidence_intervals()[0]
    assert low < 0 < high
    assert not result.is_loaded
    np.testing.assert_array_equal(result.parameters, np.zeros(10))
    assert "no load is shown" in result.summary()
    assert result.document()["load"]["mass"] == 0.0


def test_file_of_the_arm_is_equivalent_to_its_result(tmp_path):
    path = arm().save(tmp_path / "identified.yaml")
    from_file = identify_load(experiment().loaded, arm=known_arm(load_identified(path), experiment().robot))
    first = identify_load(experiment().loaded)
    np.testing.assert_allclose(from_file.parameters, first.parameters, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(from_file.standard_errors, first.standard_errors, rtol=1e-3)
    saved = load_identified(replace(from_file, arm=load_identified(path)).save(tmp_path / "loaded.yaml"))
    assert saved["load"]["mass"] == pytest.approx(first.mass)
    assert saved["links"] == load_identified(path)["links"]


def test_standard_errors_include_those_of_the_arm():
    exact = identify_load(experiment().loaded, arm=KnownArm(arm().model))
    assert np.all(exact.standard_errors < identify_load(experiment().loaded).standard_errors)
    assert any("are not known, nor counted" in remark for remark in exact.remarks)


@pytest.mark.slow
def test_unloaded_recording_replaces_the_model():
    links = LoadIdentification(experiment().robot, torque_gain_error=0.003)
    result = links.fit(experiment().loaded, unloaded=[experiment().unloaded])
    assert result.mass == pytest.approx(experiment().load[0], rel=0.015)


def test_subtracts_the_tare_with_its_errors():
    tool = identify_load(experiment().loaded)
    two_loads = draw(
        CONDITIONS, np.random.default_rng(0), load=experiment().load + draw_load(np.random.default_rng(5), 1.5)
    )
    result = identify_load(two_loads.loaded, tare=tool)
    whole = identify_load(two_loads.loaded)
    assert result.mass == pytest.approx(1.5, abs=0.05)
    np.testing.assert_allclose(
        np.diag(result.body.covariance), np.diag(whole.body.covariance) + np.diag(tool.body.covariance)
    )
    with pytest.raises(IdentificationError, match="the tare is at"):
        LoadIdentification(demo_robot(), arm(), tare=tool)


def test_load_is_independent_of_the_tip_link():
    robot = experiment().robot
    moved = RobotModel.from_urdf(robot.urdf, tip=robot.link_names[-1])
    identification = LoadIdentification(
        moved, replace(arm().known_arm, model=replace(arm().model, robot=moved)), torque_gain_error=0.003
    )
    other = identification.fit(experiment().loaded)
    first = identify_load(experiment().loaded)
    np.testing.assert_allclose(other.in_last_link()[:4], first.in_last_link()[:4], atol=2e-3)


def test_refuses_a_load_that_slips_with_the_time():
    robot = experiment().robot
    first = draw_load(np.random.default_rng(8), 2.0)
    conditions = replace(CONDITIONS, duration=20.0)
    shift = np.eye(4)
    shift[0, 3] = 0.06
    slipped = transformed(first, shift)
    before, after = (draw(conditions, np.random.default_rng(0), load=body).loaded for body in (first, slipped))
    late = before.time >= 12.0
    torque = np.where(late[:, None], after.torque, before.torque)
    with pytest.raises(IdentificationError, match=r"the load changed at about t = 1[123]\.\d s.*slipped"):
        LoadIdentification(robot, arm()).fit(replace(before, torque=torque))
    assert LoadIdentification(robot, arm()).fit(before).mass == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("seed", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_dwells_with_presliding_friction_are_no_load_change(seed):
    """Between poses joints stop and start, where their friction has any value up to stiction."""
    drawn = draw_live("ur5", 24.0, seed)
    links = LinkIdentification(drawn.robot, friction=FRICTION, prior_weight=1.0).fit(drawn.unloaded)
    result = LoadIdentification(drawn.robot, links).fit(drawn.loaded)
    low, high = result.confidence_intervals()[0]
    assert low < drawn.load[0] < high
    assert high - low < 0.1 * drawn.load[0]


@pytest.mark.parametrize("coulomb", [0.0, 2.0])
def test_joint_at_rest_counts_only_without_stiction(coulomb):
    robot = demo_robot()
    rng = np.random.default_rng(1)
    time = np.arange(0.0, 12.0, 0.005)
    motion = np.array(fourier_motion(robot, time, 0.2, rng))
    motion[:, :, 1] = 0.0
    friction = FrictionModel(JointFriction(viscous=False, smoothing=0.02))
    model = LinkModel(robot, robot.parameters, friction, np.full(robot.n_joints, coulomb), LinkSignals(7.0, 17.5))
    torque = model.predict(*motion) + 0.05 * rng.standard_normal(motion[0].shape)
    recording = Recording(robot.joint_names, time, motion[0], np.full_like(torque, np.nan), torque)
    share = LoadEquations(KnownArm(model), [recording]).loosened(np.full(robot.n_joints, 0.05)).share
    assert share[1] == (0.0 if coulomb else 1.0)
    # The other joints are at rest only while they reverse.
    assert np.delete(share, 1).min() > 0.6


def test_refuses_a_negative_mass():
    loaded = draw(CONDITIONS, np.random.default_rng(0), load=experiment().load).loaded
    with_load = LinkIdentification(experiment().robot, friction=FRICTION, prior_weight=1.0).fit(loaded)
    with pytest.raises(IdentificationError, match=r"below zero beyond doubt.*on the arm when its model"):
        LoadIdentification(experiment().robot, with_load).fit(experiment().unloaded)


def test_refuses_invalid_settings_and_missing_arms():
    robot = experiment().robot
    with pytest.raises(IdentificationError, match="motion is 'fast'; expected one of dynamic, static"):
        LoadIdentification(robot, arm(), motion="fast")
    with pytest.raises(IdentificationError, match="torques of the arm itself are not known"):
        LoadIdentification(robot).fit(experiment().loaded)
    with pytest.raises(IdentificationError, match="needs at least one recording"):
        LoadIdentification(robot, arm()).fit()
    with pytest.raises(IdentificationError, match=r"is of robot 'demo_arm'.*identify this arm's links"):
        LoadIdentification(robot, exact_arm(demo_robot())).fit(experiment().loaded)
    short = experiment().loaded.slice(slice(0, 30))
    with pytest.raises(IdentificationError, match="loaded: "):
        LoadIdentification(robot, arm()).fit(short)


def test_refuses_a_recording_at_rest():
    loaded = experiment().loaded
    with pytest.raises(IdentificationError, match="at rest"):
        LoadIdentification(experiment().robot, arm()).fit(
            replace(loaded, position=np.broadcast_to(loaded.position[0], loaded.position.shape))
        )


def record_rests(n_poses: int = 8, seed: int = 3):
    """Return a recording of the demo arm in static poses with a load, and the load."""
    rng = np.random.default_rng(seed)
    load = draw_load(rng, 2.0)
    return draw_rests(demo_robot(), load, n_poses, rng, noise=1.0), load


def identify_static_load(recording, **settings):
    """Return the load on the demo arm in static poses."""
    return LoadIdentification(demo_robot(), exact_arm(demo_robot()), motion="static", **settings).fit(recording)


def test_static_poses_determine_mass_and_center_but_no_inertia():
    recording, load = record_rests()
    result = identify_static_load(recording)
    truth = LoadBody(load, np.zeros((10, 10)))
    assert result.n_samples == 16
    assert result.mass == pytest.approx(2.0, rel=0.03)
    np.testing.assert_allclose(result.center, truth.center, atol=5e-3)
    low, high = result.confidence_intervals(0.99)[:4].T
    assert np.all((low <= load[:4]) & (load[:4] <= high))
    assert np.isnan(result.parameters[4:]).all()
    assert np.isnan(result.in_last_link()[4:]).all()
    assert "inertia   not known: the arm was at rest" in result.summary()
    assert result.document()["load"]["inertia"] == [None] * 6


def test_reports_the_mass_with_a_partly_known_center():
    recording, _ = record_rests()
    result = identify_static_load(recording)
    values = np.where(np.arange(len(result.estimate.values)) == 3, np.nan, result.estimate.values)
    partly = replace(result, estimate=replace(result.estimate, values=values))
    lines = [line.split() for line in partly.summary().splitlines()]
    assert ["mass", f"{result.estimate.values[0]:.4f}"] in [words[:2] for words in lines]
    assert ["centre", "z", "not", "determined"] in lines
    assert "nan" not in partly.summary()


def test_reports_a_mass_below_zero():
    recording, _ = record_rests()
    result = identify_static_load(recording)
    mass = result.estimate.values[0]
    values = np.where(np.arange(len(result.estimate.values)) == 0, -2 * mass, result.estimate.values)
    below = replace(result, estimate=replace(result.estimate, values=values))
    assert "no load is shown: the interval of the mass lies below zero" in below.summary()
    assert "may be there" not in below.summary()
    (missing,) = below.missing
    assert "the mass of the load comes out below zero; the arm carried more when it was identified" in missing


def test_default_gain_error_is_one_percent():
    recording, _ = record_rests()
    default, same, larger = (
        identify_static_load(recording, **settings).estimate.standard_errors[0]
        for settings in ({}, {"torque_gain_error": 0.01}, {"torque_gain_error": 0.03})
    )
    assert default == same < larger


@pytest.mark.slow
def test_intervals_of_static_poses_cover_the_load():
    covered = []
    for seed in range(40):
        recording, load = record_rests(5, seed)
        low, high = identify_static_load(recording, torque_gain_error=0.0).confidence_intervals()[:4].T
        covered.append((low <= load[:4]) & (load[:4] <= high))
    assert 0.92 <= np.mean(covered) <= 0.99


def test_refuses_few_static_poses():
    recording, _ = record_rests(1)
    with pytest.raises(IdentificationError, match="leave 0 equations to see the errors by"):
        identify_static_load(recording)
    moving = recording.slice(recording.time < 0.35)
    with pytest.raises(IdentificationError, match="no rest of at least"):
        identify_static_load(moving)
