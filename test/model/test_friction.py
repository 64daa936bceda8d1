"""Friction terms against their formulas, and their identifiability by a motion."""

import numpy as np
import pytest
from paper_arms import mit_arm, puma

from dynid_ros.errors import ModelError
from dynid_ros.model import BaseParameters, FrictionModel, JointFriction
from dynid_ros.model.friction import OneSampleFriction
from dynid_ros.model.friction_terms import friction_terms


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
        (
            "coulomb,viscous,load,spring,sliding_length=1e-3,saturation_velocity=2,harmonic=1,harmonic=2",
            JointFriction(load=True, spring=True, sliding_length=1e-3, saturation_velocity=2.0, harmonics=(1.0, 2.0)),
        ),
    ],
)
def test_parses_friction_terms(text, expected):
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
        ("dead_zone=inf", "dead_zone is inf"),
        ("stribeck_velocity=0", "stribeck_velocity is 0.0"),
        ("stribeck_velocity=nan", "stribeck_velocity is nan"),
        ("saturation_velocity=0", "saturation_velocity is 0.0; expected a velocity, rad/s or m/s, above 0"),
        ("sliding_length=nan", "sliding_length is nan; expected a displacement, rad or m, of 0 or more"),
        ("sliding_length=0.1,smoothing=0.1", "sliding_length excludes smoothing"),
        ("harmonic=one", "harmonic is 'one'; expected a number of periods per turn"),
        ("harmonic=1,harmonic=1", "expected different numbers above 0"),
    ],
)
def test_refuses_unknown_terms(text, words):
    with pytest.raises(ModelError, match=words):
        friction_terms(text)


def test_one_sample_friction_equals_that_of_many_samples():
    friction = FrictionModel(
        [
            JointFriction(),
            JointFriction(offset=True, rotor_inertia=True),
            JointFriction(asymmetric=True, offset=True),
            JointFriction(smoothing=0.1, stribeck_velocity=0.3),
            JointFriction(dead_zone=0.4),
            JointFriction.none(),
            JointFriction(asymmetric=True, viscous=False, smoothing=0.2, dead_zone=0.1),
            JointFriction(sliding_length=0.5, stribeck_velocity=0.3, load=True, spring=True, saturation_velocity=0.7),
            JointFriction(sliding_length=0.1, asymmetric=True, harmonics=(1.0, 2.5)),
        ],
        [(4, 5), (0, 1), (7, 8)],
    )
    terms = OneSampleFriction(friction, 9)
    rng = np.random.default_rng(0)
    q, v, a, load = rng.normal(size=(4, 100, 9))
    v[rng.random((100, 9)) < 0.2] = 0.0
    memory = friction.memory(q)
    expected = friction.regressor(v, a, q, load)
    for k in range(100):
        before = [memory[key][k] for key in friction.memory_keys(9)]
        entries = terms.evaluate(*(x[k].tolist() for x in (q, v, a)), before, load[k].tolist())
        np.testing.assert_allclose(np.tensordot(entries, terms.places, 1), expected[k], rtol=1e-14, atol=0)


def test_joints_without_friction_have_no_terms():
    terms = OneSampleFriction(FrictionModel(JointFriction.none()), 3)
    assert terms.evaluate([1.0] * 3, [1.0] * 3, [1.0] * 3, [], [0.0] * 3) == ()
    assert terms.places.shape == (0, 3, 0)


def test_friction_of_a_missing_velocity_is_nan():
    assert np.isnan(OneSampleFriction(FrictionModel(), 1).evaluate([0.0], [np.nan], [0.0], [], [0.0])).all()


def test_refuses_another_number_of_joints():
    with pytest.raises(ModelError, match="2 joints"):
        OneSampleFriction(FrictionModel([JointFriction()] * 2), 3)


V = np.array([[-2.0], [-0.05], [0.0], [0.1], [3.0]])
A = np.array([[1.0], [-2.0], [3.0], [-4.0], [5.0]])


def regressor_columns(**settings) -> np.ndarray:
    """Return the regressor (5, k) of one joint."""
    return FrictionModel(JointFriction(**settings)).regressor(V, A)[:, 0]


def test_terms_have_a_fixed_order():
    joint = JointFriction(offset=True, rotor_inertia=True, stribeck_velocity=0.2)
    assert joint.terms == ("coulomb", "viscous", "stribeck", "offset", "rotor_inertia")
    columns = FrictionModel(joint).regressor(V, A)[:, 0].T
    v = V[:, 0]
    sign = np.array([-1.0, -1.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(columns, [sign, v, sign * np.exp(-((v / 0.2) ** 2)), np.ones(5), A[:, 0]], atol=1e-15)


def test_smoothing_and_dead_zone_shape_the_direction():
    np.testing.assert_allclose(
        regressor_columns(viscous=False, smoothing=0.1)[:, 0], np.tanh(V[:, 0] / 0.1), atol=1e-15
    )
    np.testing.assert_array_equal(regressor_columns(viscous=False, dead_zone=0.05)[:, 0], [-1, 0, 0, 1, 1])


def test_asymmetric_terms_brake_with_positive_coefficients():
    joint = JointFriction(asymmetric=True)
    assert joint.terms == ("coulomb_positive", "coulomb_negative", "viscous_positive", "viscous_negative")
    torque = regressor_columns(asymmetric=True) @ [1.0, 2.0, 10.0, 20.0]
    np.testing.assert_allclose(torque, [-42.0, -3.0, 0.0, 2.0, 31.0], atol=1e-14)


def test_all_terms_of_a_missing_velocity_are_nan():
    settings = {"offset": True, "asymmetric": True, "stribeck_velocity": 0.1, "dead_zone": 0.01, "smoothing": 0.02}
    row = FrictionModel(JointFriction(**settings)).regressor([[np.nan]], [[1.0]])[0, 0]
    assert np.isnan(row[:5]).all()


def test_builds_friction_by_joint_name():
    arm = mit_arm()
    friction = FrictionModel.by_name(arm, {"joint_3": JointFriction(viscous=False), "joint_1": JointFriction()})
    assert friction.names(arm) == ("coulomb joint_1", "viscous joint_1", "coulomb joint_3")
    qd, qdd = np.random.default_rng(0).normal(size=(2, 7, 3))
    expected = np.zeros((7, 3, 3))
    expected[:, 0, 0] = np.sign(qd[:, 0])
    expected[:, 0, 1] = qd[:, 0]
    expected[:, 2, 2] = np.sign(qd[:, 2])
    np.testing.assert_array_equal(friction.regressor(qd, qdd), expected)
    rest = FrictionModel.by_name(arm, {"joint_3": JointFriction.none()}, JointFriction(coulomb=False))
    assert rest.names(arm) == ("viscous joint_1", "viscous joint_2")


def test_coupled_joints_have_coupling_terms():
    """The motor of joint 6 of a Stäubli TX40 turns with joint 5."""
    arm = puma()
    friction = FrictionModel.by_name(arm, {}, coupled=[("joint_5", "joint_6")])
    assert friction.names(arm) == (
        "coupling_inertia joint_5 joint_6",
        "coupling_viscous joint_5 joint_6",
        "coupling_coulomb joint_5 joint_6",
    )
    qd, qdd = np.random.default_rng(1).normal(size=(2, 20, 6))
    inertia, viscous, coulomb = np.moveaxis(friction.regressor(qd, qdd), -1, 0)
    assert not any(matrix[:, :4].any() for matrix in (inertia, viscous, coulomb))
    np.testing.assert_array_equal(inertia[:, 4:], qdd[:, [5, 4]])
    np.testing.assert_array_equal(viscous[:, 4:], qd[:, [5, 4]])
    np.testing.assert_array_equal(coulomb[:, 4:], np.sign(qd[:, [4]] + qd[:, [5]]).repeat(2, axis=1))


def test_coupling_and_rotor_terms_form_a_coupled_rotor():
    """A rotor on the sum of both accelerations has equal rotor and coupling inertias."""
    joints = [JointFriction.none()] * 4 + [JointFriction(coulomb=False, viscous=False, rotor_inertia=True)] * 2
    friction = FrictionModel(joints, coupled=[(4, 5)])
    qd, qdd = np.random.default_rng(2).normal(size=(2, 20, 6))
    torque = friction.regressor(qd, qdd) @ [0.7, 0.7, 0.7, 0.0, 0.0]
    np.testing.assert_allclose(torque[:, 4:], 0.7 * qdd[:, 4:].sum(axis=1, keepdims=True).repeat(2, axis=1), atol=1e-14)


def test_identifiability_of_friction_terms():
    arm = mit_arm()
    joint = JointFriction(offset=True, rotor_inertia=True, stribeck_velocity=0.01, dead_zone=0.002)
    base = arm.base_parameters(FrictionModel(joint))
    assert base.expressions[0] == "Izz1 + Ixx2 + Ixx3 + 0.2025 m3 + rotor_inertia joint_1"
    categories = dict(zip(base.names, base.categories, strict=True))
    # Izz2 + Ixx3 contains the rotor of joint 2; the rotor of joint 3 differs from Izz3 by the gyroscopic torque.
    assert "Izz2 + Ixx3 + rotor_inertia joint_2" in base.expressions
    assert categories["rotor_inertia joint_3"] == "identifiable"
    for term in ("coulomb", "viscous", "offset", "stribeck"):
        assert [categories[f"{term} joint_{i}"] for i in (1, 2, 3)] == ["identifiable"] * 3


def test_offset_is_inseparable_from_asymmetric_coulomb():
    base = mit_arm().base_parameters(FrictionModel(JointFriction(asymmetric=True, offset=True)))
    assert "coulomb_positive joint_2 + offset joint_2" in base.expressions
    assert "coulomb_negative joint_2 - offset joint_2" in base.expressions


def test_offset_and_coulomb_are_inseparable_without_reversal():
    q, qd, qdd = np.random.default_rng(4).uniform(0.1, 2.0, (3, 50, 3))
    base = BaseParameters.of_robot(mit_arm(), FrictionModel(JointFriction(offset=True)), (q, qd, qdd))
    assert "coulomb joint_3 + offset joint_3" in base.expressions


def test_friction_is_stated_per_joint():
    plain = JointFriction()
    offset = JointFriction(offset=True)
    assert list(FrictionModel(plain).per_joint(3)) == [plain] * 3
    assert list(FrictionModel([plain, offset]).per_joint(2)) == [plain, offset]
    with pytest.raises(ModelError, match="for 2 joints; expected the 3"):
        FrictionModel([plain, offset]).per_joint(3)
    for pair in ((2, 3), (1, 1), (-1, 0), (0, 1, 2)):
        with pytest.raises(ModelError, match=r"coupled joints .*; expected two of the joints 0 to 2"):
            FrictionModel(plain, [pair]).per_joint(3)
    assert list(FrictionModel(plain, [(0, 2)]).per_joint(3)) == [plain] * 3


def test_refuses_friction_of_another_robot():
    arm = mit_arm()
    with pytest.raises(ModelError, match=r"no joint wrist.*joint_1, joint_2, joint_3"):
        FrictionModel.by_name(arm, {"wrist": JointFriction()})
    for friction in (FrictionModel([JointFriction()] * 2), FrictionModel(coupled=[(2, 3)])):
        with pytest.raises(ModelError, match="joints"):
            friction.names(arm)
    with pytest.raises(ModelError, match=r"shapes \(4, 3\) and \(4, 2\)"):
        FrictionModel().regressor(np.zeros((4, 3)), np.zeros((4, 2)))


def test_position_and_load_terms():
    joint = JointFriction(
        coulomb=False, saturation_velocity=0.5, load=True, spring=True, harmonics=(1.0, 2.0), smoothing=0.1
    )
    assert joint.terms == ("viscous", "load", "spring", "cos_1", "sin_1", "cos_2", "sin_2")
    q = np.array([[0.3], [-1.0]])
    v = np.array([[2.0], [-0.1]])
    load = np.array([[-7.0], [3.0]])
    columns = FrictionModel(joint).regressor(v, 0 * v, q, load)[:, 0]
    q, v, load = (x[:, 0] for x in (q, v, load))
    waves = [wave(harmonic * q) for harmonic in (1, 2) for wave in (np.cos, np.sin)]
    np.testing.assert_allclose(columns.T, [0.5 * np.tanh(v / 0.5), np.tanh(v / 0.1) * abs(load), q, *waves], rtol=1e-14)


def test_refuses_missing_positions_or_loads():
    still = np.zeros((3, 2))
    for joint in (JointFriction(spring=True), JointFriction(harmonics=(1,)), JointFriction(sliding_length=1e-3)):
        with pytest.raises(ModelError, match=r"terms need q, expected shape \(3, 2\)"):
            FrictionModel(joint).regressor(still, still)
    with pytest.raises(ModelError, match=r"terms need load"):
        FrictionModel(JointFriction(load=True)).regressor(still, still, still)
