"""Selection of friction terms, compared with the simulated friction."""

from dataclasses import replace

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, distort, record, ur10
from slide_arms import scara

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.links.friction_choice import (
    FrictionChoice,
    FrictionMenu,
    choose_friction,
    falling_joints,
    friction_menus,
)
from dynid_ros.identification.links.link_identification import LinkIdentification
from dynid_ros.information.friction_needs import own_gravity
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals

SIGNALS = LinkSignals(7.0, 17.5)


def select_friction(robot, recordings, menus=None) -> FrictionChoice:
    """Return the friction selected for the recordings of an arm with an inaccurate URDF."""
    nominal = distort(robot)
    equations = LinkEquations(SIGNALS, recordings)
    spans = np.ptp(np.concatenate([run.position for run in recordings]), axis=0)
    menus = menus or friction_menus(nominal, equations.speed_rms, spans)
    columns = LinkColumns(nominal, [menu.candidates for menu in menus])
    factors = equations.factors(columns)
    _, noise = WeightedProblem(factors, columns.chosen(columns.first)).weighted()
    return choose_friction(columns, menus, FoldGrams(factors, noise), nominal.parameters)


def runs(robot, drive, noise=0.2, size=0.6, seed=0):
    return [
        record(robot, Fourier(robot.n_joints, seed + k, size=size), drive, noise=noise, seed=seed + k) for k in (0, 1)
    ]


def matched(robot, seed=0, size=0.6, **drive) -> Drive:
    """Return friction whose smoothing is that of the first candidates."""
    speeds = [Fourier(robot.n_joints, seed + k, size=size)(np.arange(0, 20, 0.01))[1] for k in (0, 1)]
    speed = np.sqrt(np.mean(np.concatenate(speeds) ** 2, axis=0))
    return Drive(smoothing=0.02 * speed, **drive)


def test_menus_start_with_the_simplest_friction():
    menu = FrictionMenu.for_joint(1.0)
    assert menu.first == JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
    assert menu.candidates[0] == menu.first
    assert all(friction.offset and friction.viscous and friction.coulomb for friction in menu.candidates)
    assert FrictionMenu.for_joint(0.0) == menu  # a joint at standstill
    assert {friction.smoothing for friction in FrictionMenu.for_joint(1234.56).candidates} == {
        0.0,
        25.0,
        6.2,
        62.0,
        150.0,
    }
    slide = FrictionMenu.for_joint(1.0, prismatic=True)
    assert max(friction.sliding_length for friction in slide.candidates) == pytest.approx(2e-3)
    alone = FrictionMenu.for_joint(1.0, own_angle=False)
    assert not any(friction.spring for friction in alone.candidates)


def test_gravity_depends_on_one_angle_only():
    """The property holds for the second joint of an upright arm, and for the first joint on a wall."""
    assert own_gravity(ur10()).tolist() == [False, True, False, False, False, False]
    wall = RobotModel(ur10().chain, ur10().parameters, gravity=[0.0, 9.81, 0.0])
    assert own_gravity(wall).tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(("arm", "seeds"), [(chain, (0, 10, 20)), pytest.param(ur10, (0,), marks=pytest.mark.slow)])
def test_selects_no_needless_terms(arm, seeds):
    robot = arm()
    needless = 0
    for seed in seeds:
        selection = select_friction(robot, runs(robot, matched(robot, seed, rotor=0.5), seed=seed))
        plain = {"coulomb", "viscous", "offset", "rotor_inertia"}
        needless += sum(bool(set(friction.terms) - plain or friction.sliding_length) for friction in selection.joints)
        assert not any(friction.harmonics for friction in selection.joints)
    assert needless <= 0.1 * len(seeds) * robot.n_joints


@pytest.mark.parametrize("share", [0.06, 0.1])
def test_soft_reversal_is_no_saturation(share):
    """Saturation would double the viscous coefficient, and predict wrong friction at other speeds."""
    robot = chain()
    drive = Drive(coulomb=3.0, viscous=1.0, rotor=0.5, smoothing=share / 0.02 * matched(robot).smoothing)
    selection = select_friction(robot, runs(robot, drive, noise=0.05))
    assert [friction.saturation_velocity for friction in selection.joints] == [None] * 3


def test_selects_saturation_and_reports_its_velocity():
    robot = chain()
    speed = matched(robot).smoothing / 0.02
    plain = runs(robot, matched(robot, coulomb=2.0, viscous=0.0), noise=0.05)
    velocities = [Fourier(3, seed, size=0.6)(run.time)[1] for seed, run in enumerate(plain)]
    bent = [
        replace(run, torque=run.torque + 6.0 * speed * np.tanh(qd / speed))
        for run, qd in zip(plain, velocities, strict=True)
    ]
    selection = select_friction(robot, bent)
    assert all(friction.saturation_velocity for friction in selection.joints)
    remarks = selection.remarks(robot.joint_names)
    assert all(
        f"saturation_velocity={friction.saturation_velocity:g}" in remark
        for friction, remark in zip(selection.joints, remarks, strict=True)
    )


def test_menus_contain_the_harmonics_that_the_motion_covers():
    waves = {friction.harmonics for friction in FrictionMenu.for_joint(1.0, 2.0).candidates}
    assert waves == {(), (3.0,), (4.0,), (5.0,), (6.0,)}, "2 rad are a whole wave of 3 in a turn, not of 2"
    below_weight = FrictionMenu.for_joint(1.0, 7.0, own_angle=False).candidates
    assert min(friction.harmonics for friction in below_weight if friction.harmonics) == (2.0,)
    slide = FrictionMenu.for_joint(1.0, 7.0, prismatic=True).candidates
    assert not any(friction.harmonics for friction in slide)


def test_selects_harmonics_of_the_angle():
    """The torque sensors of a KUKA LWR4 have three or four periods per turn."""
    robot = chain()
    wavy = [
        replace(run, torque=run.torque + np.array([0.0, 0.0, 1.0]) * np.cos(3.0 * run.position + 0.5))
        for run in runs(robot, matched(robot, size=1.2), size=1.2)
    ]
    assert [friction.harmonics for friction in select_friction(robot, wavy).joints] == [(), (), (3.0,)]


def test_rotors_inseparable_from_links_are_always_included():
    arm = scara()
    menus = friction_menus(arm, np.ones(4))
    always = [all(friction.rotor_inertia for friction in menu.candidates) for menu in menus]
    assert always == [True, False, True, False]


def test_selects_stribeck_friction():
    robot = chain()
    selection = select_friction(robot, runs(robot, matched(robot, stribeck=1.5)))
    has_stribeck = ["stribeck" in friction.terms for friction in selection.joints]
    assert sum(has_stribeck) >= 2
    assert all(selection.gains[name] > 0.03 for name, has in zip(robot.joint_names, has_stribeck, strict=True) if has)


def test_selects_rotor_inertia():
    robot = ur10()
    selection = select_friction(robot, runs(robot, matched(robot, rotor=1.5)))
    assert all(friction.rotor_inertia for friction in selection.joints[1:])


@pytest.mark.parametrize("length", [5e-4, pytest.param(2e-3, marks=pytest.mark.slow)])
def test_selects_the_sliding_length(length):
    """Dahl's differential equation is solved with the velocity of each millisecond, in a motion with dwells."""
    robot = chain()
    selection = select_friction(robot, [sliding(robot, length, seed) for seed in (0, 1)])
    lengths = [friction.sliding_length for friction in selection.joints]
    assert np.median(lengths) == length
    assert all(0.2 * length < estimate < 5.0 * length for estimate in lengths)


def sliding(robot, length: float, seed: int):
    """Return a recording of joints with friction of 3 N m that reverses over a sliding length."""
    run = record(robot, Fourier(3, seed, size=0.1), Drive(coulomb=0.0), noise=0.01, seed=seed)
    fine = np.arange(0.0, run.time[-1], 1e-3)
    rate = Fourier(3, seed, size=0.1)(fine)[1]
    kept = np.exp(-1e-3 * np.abs(rate) / length)
    target = np.sign(rate)
    state = np.zeros((len(fine), 3))
    for k in range(1, len(fine)):
        state[k] = target[k] + kept[k] * (state[k - 1] - target[k])
    added = 3.0 * np.column_stack([np.interp(run.time, fine, column) for column in state.T])
    return replace(run, torque=run.torque + added)


def test_selects_a_spring_about_a_vertical_axis():
    robot = ur10()
    plain = runs(robot, matched(robot, rotor=0.5))
    selection = select_friction(
        robot, [replace(run, torque=run.torque + 5.0 * run.position * [1, 0, 0, 0, 0, 0]) for run in plain]
    )
    assert [friction.spring for friction in selection.joints] == [True] + [False] * 5
    others = selection.alternatives(robot.joint_names[0])
    assert "no spring +" in others
    assert {"stribeck_velocity", "load", "saturation_velocity"} <= set(others.replace(",", "").split())


@pytest.mark.parametrize("seed", [0, 1])
def test_ripple_over_the_position_is_no_spring(seed):
    robot = chain()
    plain = runs(robot, matched(robot, seed=seed), noise=0.05, seed=seed)
    ripple = [0.15 * run.torque.std(axis=0) * np.sin(3 * run.position + seed) for run in plain]
    selection = select_friction(
        robot, [replace(run, torque=run.torque + more) for run, more in zip(plain, ripple, strict=True)]
    )
    assert not any(friction.spring for friction in selection.joints)


def test_single_candidate_or_few_samples_yield_no_selection():
    robot = chain()
    only = FrictionMenu(JointFriction(offset=True), (({"spring": False},),))
    assert select_friction(robot, runs(robot, Drive()), [only] * 3).joints == (only.first,) * 3
    short = [record(robot, Fourier(3, size=0.6), Drive(), duration=0.9)]
    assert select_friction(robot, short).gains == {}


def test_reports_torque_that_decreases_with_speed():
    """The driver compensates more viscous friction than there is; sound joints keep their bound."""
    robot = chain()
    drive = Drive(coulomb=2.0, viscous=np.array([1.0, 1.0, -9.0]))
    result = LinkIdentification(distort(robot), friction=JointFriction(offset=True)).fit(*runs(robot, drive))
    values = [result.friction_coefficients[f"viscous {joint}"] for joint in robot.joint_names]
    assert values == pytest.approx([1.0, 1.0, -9.0], abs=0.3)
    falling = [remark for remark in result.remarks if "falls with speed" in remark]
    assert len(falling) == 1
    assert falling[0].startswith(f"torque of {robot.joint_names[2]} ")


def test_negligible_friction_does_not_decrease_with_speed():
    robot = chain()
    drive = Drive(coulomb=0.0, viscous=0.0)
    result = LinkIdentification(distort(robot), friction=JointFriction(offset=True)).fit(*runs(robot, drive, noise=1.0))
    assert not any("falls with speed" in remark for remark in result.remarks)


def test_detects_decreasing_torque_without_dry_friction():
    robot = distort(chain())
    drive = Drive(coulomb=0.0, viscous=np.array([1.0, -0.5, 1.0]))
    equations = LinkEquations(SIGNALS, runs(chain(), drive, noise=0.05))
    columns = LinkColumns(robot, [(JointFriction(coulomb=False),)] * 3)
    problem = WeightedProblem(equations.factors(columns), columns.chosen(columns.first))
    falling, _ = falling_joints(columns, problem, equations.motion, robot.parameters)
    assert falling == (robot.joint_names[1],)
