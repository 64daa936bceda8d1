"""Compare the friction terms of the simulated arm with Pinocchio and an independent friction law."""

from itertools import pairwise

import numpy as np
import pytest
import yaml
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.simulation import Drives, KnownFriction, SimulatedArm, Springs, simulate, tabled_arm, truth_table
from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.trajectory import move

DAHL_LENGTH = 5e-4
STRIBECK_VELOCITY = 0.1
SATURATION_VELOCITY = 1.0
TERMS = JointFriction(
    offset=True,
    load=True,
    spring=True,
    rotor_inertia=True,
    harmonics=(2,),
    sliding_length=DAHL_LENGTH,
    stribeck_velocity=STRIBECK_VELOCITY,
    saturation_velocity=SATURATION_VELOCITY,
)
JOINT_SCALE = np.array([4.0, 4.0, 2.0, 0.5, 0.5, 0.2])
UNIT_COEFFICIENTS = {
    "coulomb": 2.0,
    "viscous": 1.0,
    "stribeck": 0.5,
    "load": 0.02,
    "offset": 0.2,
    "spring": 0.8,
    "cos_2": 0.3,
    "sin_2": -0.4,
    "rotor_inertia": 0.1,
}


def scale_friction(robot, terms=TERMS, unit_coefficients=UNIT_COEFFICIENTS):
    """Return friction whose coefficients are scaled to the size of each joint; "load" is dimensionless."""
    model = FrictionModel(terms, (), robot.parameters)
    coefficients = [
        unit_coefficients[name] * (1.0 if name == "load" else JOINT_SCALE[j])
        for j in range(robot.n_joints)
        for name in model.per_joint(robot.n_joints)[j].terms
    ]
    return KnownFriction(model, np.array(coefficients))


def move_back_and_forth(robot, rest=0.5):
    """Return a trajectory that moves to a goal, rests and moves to the opposite side."""
    goal = np.array([0.5, 0.6, -0.6, 0.4, 0.5, 0.3])
    names = robot.joint_names
    zero = np.zeros(6)
    parts = [move(names, zero, goal, 1.5), move(names, goal, goal, rest), move(names, goal, -0.5 * goal, 2.0)]
    return Trajectory.join(parts).sample(100.0)


@pytest.fixture(scope="module")
def run(demo_robot):
    arm = SimulatedArm(demo_robot, friction=scale_friction(demo_robot))
    return arm, simulate(arm, move_back_and_forth(demo_robot), 1000.0)


def dahl(position):
    """Return the direction with memory by integrating its differential equation in small steps."""
    state = np.zeros_like(position)
    for k in range(1, len(position)):
        state[k] = state[k - 1]
        for _ in range(50):
            step = (position[k] - position[k - 1]) / 50
            state[k] += (1.0 - state[k] * np.sign(step)) * step / DAHL_LENGTH
    return state


def test_drive_torque_matches_the_friction_law(run, demo_robot):
    _, recording = run
    q = recording.position
    qd = recording.velocity
    qdd = np.gradient(qd, recording.time, axis=0)
    pinocchio = PinocchioArm(demo_robot.urdf, demo_robot.joint_names, demo_robot.gravity)
    rigid = np.array([pinocchio.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
    c = {name: value * (JOINT_SCALE if name != "load" else 1.0) for name, value in UNIT_COEFFICIENTS.items()}
    level = c["coulomb"] + c["stribeck"] * np.exp(-((qd / STRIBECK_VELOCITY) ** 2)) + c["load"] * np.abs(rigid)
    law = (
        level * dahl(q)
        + c["viscous"] * SATURATION_VELOCITY * np.tanh(qd / SATURATION_VELOCITY)
        + c["offset"]
        + c["spring"] * q
    )
    law += c["cos_2"] * np.cos(2 * q) + c["sin_2"] * np.sin(2 * q) + c["rotor_inertia"] * qdd
    error = recording.torque - rigid - law
    settled = recording.time > 0.1
    assert np.all(np.sqrt(np.mean(error[settled] ** 2, axis=0)) < 0.01 * np.sqrt(np.mean(law**2, axis=0)))
    assert np.all(np.abs(error[settled]).max(axis=0) < 0.1 * c["coulomb"])


def test_joints_at_rest_keep_their_friction_without_creep(run, demo_robot):
    arm, recording = run
    rest = (recording.time > 1.7) & (recording.time < 1.99)
    assert np.abs(np.ptp(recording.position[rest], axis=0)).max() < 1e-5
    q = recording.position[rest]
    c = {name: value * JOINT_SCALE for name, value in UNIT_COEFFICIENTS.items()}
    position_terms = c["offset"] + c["spring"] * q + c["cos_2"] * np.cos(2 * q) + c["sin_2"] * np.sin(2 * q)
    friction = recording.torque[rest] - arm.truth.gravity_torque(q) - position_terms
    assert np.all(np.abs(friction).max(axis=0) > 0.5 * c["coulomb"])


@pytest.mark.parametrize("length", [0.0, 1e-3])
def test_dry_friction_holds_joints_up_to_its_level(turntable, length):
    """Viscous friction damps Dahl's spring, which alone oscillates for long and gives way with each swing."""
    friction = KnownFriction(FrictionModel(JointFriction(sliding_length=length)), np.array([2.0, 150.0]))
    for torque, moves in ((1.8, False), (2.2, True)):
        arm = SimulatedArm(turntable, friction=friction)
        arm.release()
        arm.command_effort([torque])
        arm.step(4.0)
        assert (np.abs(arm.velocity[0]) > 5e-4) == moves
        if not moves:
            # exp(-displacement / length) is the remaining share of the level of 2 N m.
            assert arm.position[0] == pytest.approx(np.log(2.0 / 0.2) * length, rel=0.01, abs=1e-5)


def test_friction_with_memory_needs_no_smaller_timestep(demo_robot):
    """Stiff memory is integrated implicitly: doubling the timestep leaves the torques equal."""
    stiff = scale_friction(demo_robot, JointFriction(sliding_length=2e-4), {"coulomb": 5.0, "viscous": 1.0})
    runs = [
        simulate(SimulatedArm(demo_robot, friction=stiff, timestep=step), move_back_and_forth(demo_robot), 100.0)
        for step in (0.001, 0.002)
    ]
    difference = runs[0].torque - runs[1].torque
    assert np.all(np.sqrt(np.mean(difference**2, axis=0)) < 0.03 * np.sqrt(np.mean(runs[0].torque ** 2, axis=0)) + 0.02)


def test_simulates_friction_from_an_identified_file(demo_robot, tmp_path):
    terms = JointFriction(sliding_length=DAHL_LENGTH)
    arm = SimulatedArm(demo_robot, friction=scale_friction(demo_robot, terms))
    goals = np.random.default_rng(3).uniform(-0.8, 0.8, (8, 6))
    parts = [move(demo_robot.joint_names, first, then, 1.5) for first, then in pairwise(goals)]
    motion = simulate(arm, Trajectory.join(parts).sample(100.0), 200.0)
    result = LinkIdentification(demo_robot, terms, prior_weight=1.0).fit(motion)
    result.save(tmp_path / "identified.yaml")
    friction = KnownFriction.read(tmp_path / "identified.yaml", demo_robot)
    assert friction.model.per_joint(6)[0] == terms
    np.testing.assert_allclose(friction.coefficients, result.model.coefficients, rtol=1e-9)
    arm = SimulatedArm(demo_robot, friction=friction)
    arm.step(0.1)
    assert np.isfinite(arm.torque).all()


def test_truth_table_restores_the_friction(run, demo_robot):
    arm, _ = run
    table = yaml.safe_load(yaml.safe_dump(truth_table(arm), sort_keys=False))
    assert table["friction"]["coefficients"]["coulomb joint_3"] == 4.0
    assert table["joints"]["joint_1"]["rotor_inertia"] == pytest.approx(0.4)
    restored = tabled_arm(table)
    assert truth_table(restored) == table
    motion = move_back_and_forth(demo_robot)
    fresh = SimulatedArm(demo_robot, friction=scale_friction(demo_robot))
    np.testing.assert_array_equal(simulate(restored, motion, 100.0).torque, simulate(fresh, motion, 100.0).torque)


def test_refuses_inconsistent_friction_settings(demo_robot):
    friction = scale_friction(demo_robot)
    with pytest.raises(DynidError, match="besides coulomb of the drives"):
        SimulatedArm(demo_robot, drives=Drives(1.0), friction=friction)
    with pytest.raises(DynidError, match="besides springs"):
        SimulatedArm(demo_robot, drives=Drives(rotor_inertia=1.0), springs=Springs(1e3), friction=friction)
    with pytest.raises(DynidError, match="has 2 coefficients; expected 54: coulomb joint_1"):
        SimulatedArm(demo_robot, friction=KnownFriction(friction.model, np.ones(2)))
    coupled = FrictionModel(JointFriction(), [(4, 5)])
    with pytest.raises(DynidError, match="coupled joints"):
        SimulatedArm(demo_robot, friction=KnownFriction(coupled, np.ones(15)))
