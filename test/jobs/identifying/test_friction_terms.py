"""Friction as a user writes it."""

import pytest

from dynid_ros.errors import ModelError
from dynid_ros.model.friction import JointFriction, friction_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", "auto"),
        ("none", JointFriction.none()),
        ("viscous", JointFriction(coulomb=False)),
        ("coulomb, viscous,offset", JointFriction(offset=True)),
        (
            "coulomb,asymmetric,rotor_inertia,stribeck_velocity=0.1,smoothing=2e-2,dead_zone=0",
            JointFriction(viscous=False, asymmetric=True, rotor_inertia=True, stribeck_velocity=0.1, smoothing=0.02),
        ),
    ],
)
def test_terms(text, expected):
    assert friction_terms(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("columb", "'columb' is no term; expected auto, none, or some of coulomb, viscous"),
        ("", "'' is no term"),
        ("coulomb,auto", "'auto' is no term"),
        ("coulomb=1", "'coulomb=1' is no term"),
        ("smoothing", "'smoothing' is no term"),
        ("smoothing=fast", "smoothing is 'fast'"),
        ("smoothing=-1", "smoothing is -1.0"),
        ("stribeck_velocity=0", "stribeck_velocity is 0.0"),
    ],
)
def test_what_is_none(text, words):
    with pytest.raises(ModelError, match=words):
        friction_terms(text)
