"""Whether the friction that was simulated is the friction that is chosen."""

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record, ur10, wrong

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links.friction_choice import FrictionChoice, choose_friction, friction_candidates
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals

SIGNALS = LinkSignals(7.0, 17.5)


def choice(robot, recordings, candidates=None) -> tuple[FrictionChoice, list[JointFriction]]:
    """What is chosen for the recordings of an arm whose URDF is wrong, and the terms of each joint."""
    nominal = wrong(robot)
    equations = LinkEquations(SIGNALS, recordings)
    own = [candidates or friction_candidates(float(speed)) for speed in equations.speed_rms]
    columns = LinkColumns(nominal, own)
    factors = equations.factors(columns)
    _, noise = WeightedProblem(factors, columns.chosen([0] * robot.n_joints)).weighted()
    found = choose_friction(
        columns, FoldGrams(WeightedProblem(factors, np.arange(columns.size)), noise), nominal.parameters
    )
    return found, [candidate[i] for candidate, i in zip(own, found.choice, strict=True)]


def runs(robot, drive, noise=0.2, size=0.6, seed=0):
    return [
        record(robot, Fourier(robot.n_joints, seed + k, size=size), drive, noise=noise, seed=seed + k) for k in (0, 1)
    ]


def matched(robot, seed=0, size=0.6, **drive) -> Drive:
    """Friction that reverses as fast as the first candidates."""
    speeds = [Fourier(robot.n_joints, seed + k, size=size)(np.arange(0, 20, 0.01))[1] for k in (0, 1)]
    speed = np.sqrt(np.mean(np.concatenate(speeds) ** 2, axis=0))
    return Drive(smoothing=0.02 * speed, **drive)


def test_candidates_start_with_the_simplest():
    first, *others = friction_candidates(1.0)
    assert first == JointFriction(offset=True, smoothing=0.02)
    assert all(len(other.terms) >= 3 for other in others)
    assert len(others) == 15
    assert all(friction.offset for friction in others)
    assert not any(friction.rotor_inertia for friction in friction_candidates(1.0, rotor_inertia=False))
    assert friction_candidates(0.0) == friction_candidates(1.0)  # a joint at standstill
    for friction in friction_candidates(1234.56):
        assert friction.smoothing in (25.0, 99.0)


@pytest.mark.parametrize(("arm", "seeds"), [(chain, (0, 10, 20)), (ur10, (0,))])
def test_plain_friction_stays_plain(arm, seeds):
    robot = arm()
    needless = 0
    for seed in seeds:
        found, _ = choice(robot, runs(robot, matched(robot, seed), seed=seed))
        needless += len(found.gains)
        assert set(found.gains) == {robot.joint_names[j] for j, index in enumerate(found.choice) if index}
    assert needless <= 0.1 * len(seeds) * robot.n_joints


@pytest.mark.parametrize(
    ("drive", "term"),
    [
        ({"stribeck": 1.5}, "stribeck"),
        ({"backward": 1.8, "coulomb": 2.0}, "coulomb_negative"),
    ],
)
def test_other_friction_is_found(drive, term):
    robot = chain()
    found, joints = choice(robot, runs(robot, matched(robot, **drive)))
    having = [term in friction.terms for friction in joints]
    assert sum(having) >= 2
    assert all(found.gains[name] > 0.03 for name, has in zip(robot.joint_names, having, strict=True) if has)


def test_rotors_are_found_where_they_are_told_from_links():
    """Joint 1 of any arm has its rotor with its link; behind it gyroscopic torques tell them apart."""
    robot = ur10()
    _, joints = choice(robot, runs(robot, matched(robot, rotor=1.5)))
    assert sum(friction.rotor_inertia for friction in joints[1:]) >= 4


def test_how_fast_friction_turns_round():
    robot = chain()
    soft = Drive(smoothing=matched(robot).smoothing * 4)
    _, joints = choice(robot, runs(robot, soft, noise=0.05))
    expected = [friction_candidates(float(s) / 0.08)[1].smoothing for s in soft.smoothing]
    assert [friction.smoothing for friction in joints] == pytest.approx(expected, rel=0.1)


def test_one_candidate_or_too_few_samples_choose_nothing():
    robot = chain()
    only = (JointFriction(offset=True),)
    assert choice(robot, runs(robot, Drive()), only)[0] == FrictionChoice((0, 0, 0), {})
    short = [record(robot, Fourier(3, size=0.6), Drive(), duration=0.9)]
    assert choice(robot, short)[0] == FrictionChoice((0, 0, 0), {})


def test_exact_torques_are_no_trouble():
    robot = chain()
    found, _ = choice(robot, runs(robot, matched(robot), noise=0.0))
    assert all(np.isfinite(gain) for gain in found.gains.values())
