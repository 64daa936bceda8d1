"""One joint turns, the others are held: by a stiction that nobody knows, which follows their load as it likes."""

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
    """Friction of 2 % of the largest torque, as the model has it but for the holds."""
    own, rng = sticking(name), np.random.default_rng([poses, seed])
    friction = own.friction(rng, 0.02, lacking=False)
    return own.samples(getattr(own, ways)(own.holds(poses, rng)), friction, rng)


@cache
def fitted(name, poses, estimator="global", seed=0):
    return GravityIdentification(sticking(name).robot, estimator=estimator).fit_samples(
        experiment(name, poses, seed=seed)
    )


def error(name, result):
    """RMS torque error per joint in fresh poses, % of the largest."""
    own = sticking(name)
    fresh = np.random.default_rng(9).uniform(*own.reach, (60, own.robot.n_joints))
    truth = np.array([own.pinocchio.gravity_torque(q) for q in fresh])
    return 100 * np.sqrt(np.mean((result.predict(fresh) - truth) ** 2, axis=0)) / own.largest


def disagreements(result):
    """Remarks on moments by which the two estimators differ."""
    return [remark for remark in result.remarks if "turning joints alone" in remark]


@pytest.mark.parametrize(
    ("name", "poses"),
    [
        ("ur10", 1),
        ("kinova", 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("ur10", 2), ("kinova", 1))),
    ],
)
def test_all_torques_are_no_worse_than_those_of_the_turning_joints(name, poses):
    together, alone = (error(name, fitted(name, poses, estimator)) for estimator in ("global", "recursive"))
    assert np.all(together <= 1.2 * alone + 0.05)
    assert not disagreements(fitted(name, poses))


@pytest.mark.parametrize("name", ["ur10", "kinova"])
def test_more_poses_know_no_less(name):
    known = [{joint for joint, state in fitted(name, n).observability.items() if state.observable} for n in (1, 2, 3)]
    assert known[0] <= known[1] <= known[2]
    assert len(known[1]) == sticking(name).robot.n_joints - 1  # gravity never loads the first


def test_a_recording_of_held_joints_tells_no_side_of_theirs():
    own, rng = sticking("ur10"), np.random.default_rng(3)
    recording = own.record(own.one_by_one(own.holds(1, rng)), own.friction(rng, 0.02, lacking=False), rng)
    identification = GravityIdentification(own.robot)
    samples = identification.extract(recording)
    assert len(samples) == 144
    turning = np.repeat(np.arange(6), 24)
    held = np.arange(144) % 24 > 0
    others = np.arange(6) != turning[:, None]
    assert not samples.friction_known[held[:, None] & others].any()
    assert samples.friction_known[~others].all()
    assert np.median(error("ur10", identification.fit_samples(samples))) < 0.3


def test_a_joint_that_is_never_turned_is_not_judged_by_its_stiction():
    own = sticking("kinova")
    samples = experiment("kinova", 1)
    found = GravityIdentification(own.robot).fit_samples(samples.take(np.arange(96, 144)))  # the last two joints turn
    state = found.observability[own.robot.joint_names[2]]
    assert not state.observable
    direction = samples.direction.copy()
    direction[:, 2] = 0.0
    held = replace(samples, direction=direction, position=np.where(np.arange(6) == 2, 0.3, samples.position))
    reason = GravityIdentification(own.robot).fit_samples(held).observability[own.robot.joint_names[2]].reason
    assert "different angle" in reason or "held in all samples" in reason


def test_dwells_that_were_cut_out_count_where_each_joint_came_to_anew():
    samples = experiment("kinova", 1)
    unknown = replace(samples, direction=np.zeros_like(samples.direction))
    turning = np.repeat(np.arange(6), 24)
    # At an end of its range a joint comes to the same angle twice.
    inner = ~np.isin(np.arange(144) % 24, (0, 12))
    assert unknown.friction_known[np.arange(144), turning][inner].all()
    assert not unknown.friction_known[np.arange(144), (turning + 1) % 6][inner].any()


def test_a_wrong_gain_makes_both_estimators_disagree_and_is_said():
    own = sticking("kinova")
    samples = experiment("kinova", 2, ways="approached")
    identification = GravityIdentification(own.robot)
    assert not disagreements(identification.fit_samples(samples))
    torque = samples.torque.copy()
    torque[:, 3] *= 1.2
    found = identification.fit_samples(replace(samples, torque=torque))
    assert "by those of the turning joints alone" in found.remarks[0]
    assert found.remarks[0] in found.summary()
    assert found.document()["remarks"] == list(found.remarks)


def test_friction_that_differs_by_direction_is_two_torques():
    own = sticking("kinova")
    samples = experiment("kinova", 1, ways="approached")
    extra = np.where(samples.direction > 0, 0.5, 0.0)
    found = GravityIdentification(own.robot).fit_samples(replace(samples, torque=samples.torque + extra))
    plain = GravityIdentification(own.robot).fit_samples(samples)
    (both, errors), (before, _) = found.friction_torque(), plain.friction_torque()
    np.testing.assert_allclose(both - before, np.tile([0.5, 0.0], (6, 1)), atol=1e-6)
    offset, coulomb = found.per_joint("offset")[0], found.per_joint("coulomb")[0]
    np.testing.assert_allclose(both, np.stack([offset + coulomb, offset - coulomb], axis=1))
    assert np.all(errors > 0)
    assert f"{both[1, 0]:+.3f}" in found.summary()
    entry = found.document()["friction"][own.robot.joint_names[1]]
    assert [entry["torque_positive"], entry["torque_negative"]] == pytest.approx(both[1])
    assert entry["std"]["torque_positive"] == pytest.approx(errors[1, 0])


def test_joints_that_come_from_one_side_alone_tell_the_torque_of_that_direction():
    own = sticking("kinova")
    samples = experiment("kinova", 1, ways="approached")
    upwards = samples.take(np.flatnonzero(samples.direction[:, 1] > 0))
    found = GravityIdentification(own.robot).fit_samples(upwards)
    assert np.isnan(found.per_joint("offset")[0]).all()
    both = found.friction_torque()[0]
    expected = GravityIdentification(own.robot).fit_samples(samples).friction_torque()[0]
    np.testing.assert_allclose(both[:, 0], expected[:, 0], atol=0.01 * own.largest.max())
    assert np.isnan(both[:, 1]).all()


@cache
def joint_held(name, joint):
    """Experiment in which one joint stays where it is, in samples that the other joints turn in."""
    own, rng = sticking(name), np.random.default_rng([3, joint])
    way = own.one_by_one(own.holds(2, rng))
    position = own.holds(1, rng)[0][joint]
    way.points = [np.where(np.arange(own.robot.n_joints) == joint, position, point) for point in way.points]
    return own.samples(way, own.friction(rng, 0.02, lacking=False), rng)


@pytest.mark.parametrize(("name", "joint"), [("ur10", 3), ("ur10", 4), ("kinova", 2), ("kinova", 4)])
def test_what_depends_on_an_unobservable_moment_is_not_observable(name, joint):
    own, samples = sticking(name), joint_held(name, joint)
    result = GravityIdentification(own.robot, "recursive").fit_samples(samples)
    assert not result.observability[own.robot.joint_names[joint]].observable
    low, high = result.confidence_intervals().T
    known = np.isfinite(low)
    assert known[result.gravity.columns(joint + 1).start :].all()
    excess = np.maximum(low - own.truth, own.truth - high)[known] / (high - low)[known]
    assert np.all(excess < 1.0)
    for inner in range(joint):
        state = result.observability[own.robot.joint_names[inner]]
        assert state.torque_free or (not state.observable and own.robot.joint_names[joint] in state.reason)
    assert not disagreements(GravityIdentification(own.robot).fit_samples(samples))


def test_recursion_predicts_only_what_it_determines():
    own, samples = sticking("ur10"), joint_held("ur10", 4)
    result = GravityIdentification(own.robot, "recursive").fit_samples(samples)
    fresh = np.random.default_rng(2).uniform(*own.reach, (50, own.robot.n_joints))
    truth = np.array([own.pinocchio.gravity_torque(pose) for pose in fresh])
    predicted = result.predict(fresh)
    known = np.isfinite(predicted)
    assert known[:, 5].all()
    assert not known[:, 1:5].any()
    np.testing.assert_allclose(predicted[known], truth[known], atol=0.02 * own.largest.max())
