"""Test friction compensation at rest: a small push starts a motion, and nothing else does."""

import math

import numpy as np
import pytest
from helpers.floating_arm import STRANGERS
from helpers.guided_arm import SCENARIOS, spontaneous_motion, starting_motion

from dynid_ros.control.joint_feedback import IdentifiedFriction
from dynid_ros.control.rest_friction import MAX_REST_SCALE, BreakawayFriction, RestFriction
from dynid_ros.errors import ControlError, IdentifiedFileError

PERIOD_S = 0.004
STEP_S = 0.0005
MAX_SPONTANEOUS_RAD = 1e-3
MAX_TOOL_RAD = 0.022
"""Largest motion in rad until a lost weight is distinguished from a hand."""


def compensate(friction, time, q, v, level, **settings):
    """Return the compensating torque of one joint with this level of dry friction."""
    defaults = {"damping": [math.inf], "planned": [0.0], "friction_velocity": 0.05, "payload": [0.0]}
    return friction.torque(time, [q], [v], [level], **(defaults | settings))[0]


def stick_slip_range(rest, *, stiffness, damping, inertia, stribeck, speed=0.01):
    """Return the range in rad of the error of a joint that PD drives slowly against Stribeck friction."""
    coulomb = 3.0
    velocity_scale = 0.05
    friction = RestFriction(1)
    assumed = BreakawayFriction((rest * coulomb,), (rest * stribeck,), (velocity_scale,), (0.0,))
    q = v = torque = pending = 0.0
    errors = []
    for k in range(round(16.0 / STEP_S)):
        time = k * STEP_S
        planned = speed if time > 1.0 else 0.0
        if k % round(PERIOD_S / STEP_S) == 0:
            torque = pending
            desired = speed * max(time - 1.0, 0.0)
            pending = stiffness * (desired - q) + damping * (planned - v)
            level = assumed.levels([v], [0.0])[0]
            pending += compensate(friction, time, q, v, level, rates=[300.0], planned=[planned])
            if time > 6.0:
                errors.append(q - desired)
        dry = coulomb + stribeck * math.exp(-((v / velocity_scale) ** 2))
        if v == 0.0:
            v = STEP_S * math.copysign(max(abs(torque) - dry, 0.0), torque) / inertia
        else:
            after = v + STEP_S * (torque - math.copysign(dry, v)) / inertia
            v = after if after * v > 0.0 else 0.0
        q += STEP_S * v
    return np.ptp(errors)


@pytest.mark.parametrize(
    "joint",
    [
        {"stiffness": 200.0, "damping": 8.0, "inertia": 1.0, "stribeck": 1.5},
        {"stiffness": 100.0, "damping": 3.0, "inertia": 0.3, "stribeck": 1.5},
    ],
)
def test_stick_slip_is_four_times_smaller(joint):
    ranges = [stick_slip_range(rest, **joint) for rest in (0.0, MAX_REST_SCALE)]
    assert ranges[0] > 1e-3, "the uncompensated joint sticks and slips"
    assert ranges[1] < 0.25 * ranges[0]


def test_torque_stays_below_the_compensated_friction():
    friction = RestFriction(1)
    rng = np.random.default_rng(0)
    q = 0.0
    for k in range(5000):
        v = 0.1 * rng.standard_normal()
        q += PERIOD_S * v
        assert abs(compensate(friction, k * PERIOD_S, q, v, 2.0, rates=[100.0], damping=[50.0])) <= 2.0


def make_document(**entry):
    return {"friction": {"joint_1": {"std": {}, **entry}}}


def test_breakaway_friction_is_the_lower_bound_of_all_dry_terms():
    entry = make_document(coulomb=2.0, viscous=1.0, stribeck=1.0, stribeck_velocity=0.1, load=0.05)
    entry["friction"]["joint_1"]["std"] = {"coulomb": 0.1, "stribeck": 0.2}
    friction = IdentifiedFriction.from_document(entry, ["joint_1"]).compensated_at_rest([0.5])
    assert friction.levels([0.0], [-40.0]) == pytest.approx([0.5 * (1.8 + 0.6 + 0.05 * 40.0)])
    assert friction.levels([10.0], [0.0]) == pytest.approx([0.5 * 1.8])
    without_stribeck = IdentifiedFriction.from_document(make_document(coulomb=2.0, viscous=1.0), ["joint_1"])
    assert without_stribeck.compensated_at_rest([0.5]).levels([0.0], [40.0]) == pytest.approx([1.0])
    assert without_stribeck.compensated_at_rest([0.0]) is None


def test_too_large_scale_and_missing_friction_are_refused():
    identified = IdentifiedFriction.from_document(make_document(coulomb=2.0, viscous=1.0), ["joint_1"])
    with pytest.raises(ControlError, match=r"friction_at_rest of joint 'joint_1' is 0\.8; expected at most 0\.76"):
        identified.compensated_at_rest([0.8])
    unknown = IdentifiedFriction.from_document({"friction": {}}, ["joint_1"])
    with pytest.raises(IdentifiedFileError, match="joint_1"):
        unknown.compensated_at_rest([0.5])


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_push_of_30_percent_starts_a_motion(stranger):
    joint = 1
    assert abs(starting_motion(STRANGERS[stranger], joint, 0.3, rest=0.0)) < 1e-5
    assert abs(starting_motion(STRANGERS[stranger], joint, 0.3)) > 5e-4
    assert abs(starting_motion(STRANGERS[stranger], joint, 0.5)) > 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_arm_does_not_move_spontaneously(stranger, scenario):
    assert spontaneous_motion(STRANGERS[stranger], scenario) < MAX_SPONTANEOUS_RAD


@pytest.mark.slow
@pytest.mark.parametrize("stranger", STRANGERS)
def test_arm_stops_soon_after_losing_a_tool(stranger):
    motion = spontaneous_motion(STRANGERS[stranger], "payload removed", is_tool=True)
    assert MAX_SPONTANEOUS_RAD < motion < MAX_TOOL_RAD


@pytest.mark.parametrize(("payload", "fraction"), [(0.0, 1.0), (1.2, 0.4), (-1.2, 1.0), (3.0, 0.0), (8.0, 1.0)])
def test_torque_against_a_payload_is_reduced_by_its_weight(payload, fraction):
    friction = RestFriction(1)
    torques = [compensate(friction, k * PERIOD_S, 0.0, 0.0, 2.0, rates=[1e3], payload=[payload]) for k in range(1000)]
    assert max(torques) == pytest.approx(2.0 * fraction)
    if payload >= 0.0:
        assert min(torques) == pytest.approx(-2.0)


@pytest.mark.parametrize(("later", "is_led"), [(0.008, False), (0.014, True)])
def test_hand_and_weight_are_distinguished_by_a_change_of_speed(later, is_led):
    """Let a joint creep at constant speed: the torque helps it on trial, and ends if the speed never changes."""
    friction = RestFriction(1)
    speeds = [0.0] * 500 + [0.008] * 125 + [later] * 150
    position = 0.0
    torques = []
    for k, speed in enumerate(speeds):
        position += PERIOD_S * speed
        torques.append(compensate(friction, k * PERIOD_S, position, speed, 2.0, rates=[1e3]))
    assert max(torques[550:600]) > 1.0
    assert (torques[-1] > 1.0) is is_led
    assert friction.trust == [1.0 if is_led else 0.0]
