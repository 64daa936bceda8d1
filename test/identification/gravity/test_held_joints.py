"""Joints turn one by one while the others are held by an unknown stiction that compensates their load."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from clean_recordings import arm
from sticking_arms import StickingArm

from dynid_ros.identification import GravityIdentification


@cache
def sticking(name):
    return StickingArm(arm(name))


@cache
def experiment(name, poses, *, seed=0, ways="one_by_one"):
    """Return samples with friction of 2 % of the largest torque, as in the model except while joints are held."""
    stick = sticking(name)
    rng = np.random.default_rng([poses, seed])
    friction = stick.friction(rng, 0.02, lacking=False)
    return stick.samples(getattr(stick, ways)(stick.holds(poses, rng)), friction, rng)


@cache
def fitted(name, poses, estimator="global", seed=0):
    return GravityIdentification(sticking(name).robot, estimator=estimator).fit_samples(
        experiment(name, poses, seed=seed)
    )


def relative_error(name, result):
    """Return the RMS torque error per joint in new poses, % of the largest torque."""
    stick = sticking(name)
    fresh = np.random.default_rng(9).uniform(*stick.reach, (60, stick.robot.n_joints))
    truth = np.array([stick.pinocchio.gravity_torque(q) for q in fresh])
    return 100 * np.sqrt(np.mean((result.predict(fresh) - truth) ** 2, axis=0)) / stick.largest


def disagreements(result):
    """Return the remarks on moments for which the two estimators disagree."""
    return [remark for remark in result.remarks if "turning joints alone" in remark]


@pytest.mark.parametrize(
    ("name", "poses"),
    [
        ("ur10", 1),
        ("kinova", 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("ur10", 2), ("kinova", 1))),
    ],
)
def test_global_fit_is_as_accurate_as_the_recursion(name, poses):
    together, alone = (relative_error(name, fitted(name, poses, estimator)) for estimator in ("global", "recursive"))
    assert np.all(together <= 1.2 * alone + 0.05)
    assert not disagreements(fitted(name, poses))


@pytest.mark.parametrize("name", ["ur10", pytest.param("kinova", marks=pytest.mark.slow)])
def test_more_poses_determine_no_fewer_joints(name):
    observable = [
        {joint for joint, state in fitted(name, n).observability.items() if state.observable} for n in (1, 2, 3)
    ]
    assert observable[0] <= observable[1] <= observable[2]
    assert len(observable[1]) == sticking(name).robot.n_joints - 1  # gravity never loads the first joint


def test_friction_side_of_held_joints_is_unknown():
    stick = sticking("ur10")
    rng = np.random.default_rng(3)
    recording = stick.record(stick.one_by_one(stick.holds(1, rng)), stick.friction(rng, 0.02, lacking=False), rng)
    identification = GravityIdentification(stick.robot)
    samples = identification.extract(recording)
    assert len(samples) == 144
    turning = np.repeat(np.arange(6), 24)
    held = np.arange(144) % 24 > 0
    others = np.arange(6) != turning[:, None]
    assert not samples.friction_known[held[:, None] & others].any()
    assert samples.friction_known[~others].all()
    assert np.median(relative_error("ur10", identification.fit_samples(samples))) < 0.3


def test_joint_that_never_turns_is_not_observable():
    stick = sticking("kinova")
    samples = experiment("kinova", 1)
    result = GravityIdentification(stick.robot).fit_samples(
        samples.take(np.arange(96, 144))
    )  # the last two joints turn
    state = result.observability[stick.robot.joint_names[2]]
    assert not state.observable
    direction = samples.direction.copy()
    direction[:, 2] = 0.0
    held = replace(samples, direction=direction, position=np.where(np.arange(6) == 2, 0.3, samples.position))
    reason = GravityIdentification(stick.robot).fit_samples(held).observability[stick.robot.joint_names[2]].reason
    assert "different angle" in reason or "held in all samples" in reason


def test_friction_is_known_where_a_joint_reached_a_new_angle():
    samples = experiment("kinova", 1)
    unknown = replace(samples, direction=np.zeros_like(samples.direction))
    turning = np.repeat(np.arange(6), 24)
    # At an end of its range a joint reaches the same angle twice.
    inner = ~np.isin(np.arange(144) % 24, (0, 12))
    assert unknown.friction_known[np.arange(144), turning][inner].all()
    assert not unknown.friction_known[np.arange(144), (turning + 1) % 6][inner].any()


def test_remarks_on_disagreement_due_to_a_wrong_gain():
    stick = sticking("kinova")
    samples = experiment("kinova", 2, ways="approached")
    identification = GravityIdentification(stick.robot)
    assert not disagreements(identification.fit_samples(samples))
    torque = samples.torque.copy()
    torque[:, 3] *= 1.2
    result = identification.fit_samples(replace(samples, torque=torque))
    assert "by those of the turning joints alone" in result.remarks[0]
    assert result.remarks[0] in result.summary()
    assert result.document()["remarks"] == list(result.remarks)


def test_friction_torques_differ_by_direction():
    stick = sticking("kinova")
    samples = experiment("kinova", 1, ways="approached")
    extra = np.where(samples.direction > 0, 0.5, 0.0)
    result = GravityIdentification(stick.robot).fit_samples(replace(samples, torque=samples.torque + extra))
    plain = GravityIdentification(stick.robot).fit_samples(samples)
    friction, errors = result.friction_torque()
    before, _ = plain.friction_torque()
    np.testing.assert_allclose(friction - before, np.tile([0.5, 0.0], (6, 1)), atol=1e-6)
    offset, _ = result.per_joint("offset")
    coulomb, _ = result.per_joint("coulomb")
    np.testing.assert_allclose(friction, np.stack([offset + coulomb, offset - coulomb], axis=1))
    assert np.all(errors > 0)
    assert f"{friction[1, 0]:+.3f}" in result.summary()
    entry = result.document()["friction"][stick.robot.joint_names[1]]
    assert [entry["torque_positive"], entry["torque_negative"]] == pytest.approx(friction[1])
    assert entry["std"]["torque_positive"] == pytest.approx(errors[1, 0])


def test_one_approach_side_determines_one_friction_torque():
    stick = sticking("kinova")
    samples = experiment("kinova", 1, ways="approached")
    upwards = samples.take(np.flatnonzero(samples.direction[:, 1] > 0))
    result = GravityIdentification(stick.robot).fit_samples(upwards)
    assert np.isnan(result.per_joint("offset")[0]).all()
    friction = result.friction_torque()[0]
    expected = GravityIdentification(stick.robot).fit_samples(samples).friction_torque()[0]
    np.testing.assert_allclose(friction[:, 0], expected[:, 0], atol=0.01 * stick.largest.max())
    assert np.isnan(friction[:, 1]).all()


@cache
def joint_held(name, joint):
    """Return samples in which one joint is held at a fixed position while the others turn."""
    stick = sticking(name)
    rng = np.random.default_rng([3, joint])
    path = stick.one_by_one(stick.holds(2, rng))
    position = stick.holds(1, rng)[0][joint]
    path.points = [np.where(np.arange(stick.robot.n_joints) == joint, position, point) for point in path.points]
    return stick.samples(path, stick.friction(rng, 0.02, lacking=False), rng)


@pytest.mark.parametrize(("name", "joint"), [("ur10", 3), ("ur10", 4), ("kinova", 2), ("kinova", 4)])
def test_joints_depending_on_an_unobservable_moment_are_unobservable(name, joint):
    stick = sticking(name)
    samples = joint_held(name, joint)
    result = GravityIdentification(stick.robot, "recursive").fit_samples(samples)
    assert not result.observability[stick.robot.joint_names[joint]].observable
    low, high = result.confidence_intervals().T
    finite = np.isfinite(low)
    assert finite[result.gravity.columns(joint + 1).start :].all()
    excess = np.maximum(low - stick.truth, stick.truth - high)[finite] / (high - low)[finite]
    assert np.all(excess < 1.0)
    for inner in range(joint):
        state = result.observability[stick.robot.joint_names[inner]]
        assert state.torque_free or (not state.observable and stick.robot.joint_names[joint] in state.reason)
    assert not disagreements(GravityIdentification(stick.robot).fit_samples(samples))


def test_recursion_predicts_determined_torques_only():
    stick = sticking("ur10")
    samples = joint_held("ur10", 4)
    result = GravityIdentification(stick.robot, "recursive").fit_samples(samples)
    fresh = np.random.default_rng(2).uniform(*stick.reach, (50, stick.robot.n_joints))
    truth = np.array([stick.pinocchio.gravity_torque(pose) for pose in fresh])
    predicted = result.predict(fresh)
    finite = np.isfinite(predicted)
    assert finite[:, 5].all()
    assert not finite[:, 1:5].any()
    np.testing.assert_allclose(predicted[finite], truth[finite], atol=0.02 * stick.largest.max())
