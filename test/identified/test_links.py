"""Test links in `identified.yaml`: round trip, use for gravity compensation, and malformed files."""

import copy
import json
from contextlib import suppress

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from link_problems import Drive, Fourier, chain, distort, record, ur10, with_links

from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import DynidError, IdentifiedFileError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import DOF, load_identified
from dynid_ros.identified.joint_friction import own_angle_torque
from dynid_ros.identified.links import base_parameters_section, link_model, signals_section
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.gravity import GravityModel
from dynid_ros.recording.uniform_motion import LinkSignals

JOINT_FRICTION = [
    JointFriction(offset=True, asymmetric=True, rotor_inertia=True, smoothing=0.05),
    JointFriction(offset=True, stribeck_velocity=0.25, dead_zone=1e-3),
    JointFriction(viscous=False, smoothing=0.02),
]
LOADED_FRICTION = JointFriction(load=True, spring=True, offset=True, sliding_length=1e-3, saturation_velocity=2.0)
HARMONIC_FRICTION = JointFriction(harmonics=(1.0, 2.0), smoothing=0.02)
ARMS = {
    "chain": (chain, FrictionModel(JOINT_FRICTION)),
    "coupled": (
        ur10,
        FrictionModel([*JOINT_FRICTION, JointFriction(coulomb=False), JOINT_FRICTION[0], JOINT_FRICTION[0]], [(4, 5)]),
    ),
    "new terms": (ur10, FrictionModel([LOADED_FRICTION, *[JointFriction(offset=True)] * 4, HARMONIC_FRICTION])),
    "none": (chain, FrictionModel(JointFriction.none())),
}


def identify_arm(robot, friction, still=(), size=0.6, **arguments):
    """Return the links identified from a simulated Fourier motion."""
    recording = record(robot, Fourier(robot.n_joints, size=size, still=still), Drive(), duration=12.0)
    return LinkIdentification(distort(robot), friction=friction, estimator="weighted", **arguments).fit(recording)


@pytest.fixture(name="result", scope="module", params=ARMS)
def fixture_result(request):
    arm, friction = ARMS[request.param]
    return identify_arm(
        arm(), friction, size=2.6 if request.param == "new terms" else 0.6
    )  # harmonics need a revolution


@pytest.fixture(name="document", scope="module")
def fixture_document():
    arm, friction = ARMS["coupled"]
    return identify_arm(arm(), friction).document()


def test_predicts_long_motions_in_blocks(result):
    time = 1e-3 * np.arange(45_000)[:, None]
    motion = [0.5 * np.sin((1 + np.arange(result.robot.n_joints)) * time + k * np.pi / 2) for k in range(3)]
    model = result.model
    friction = model.friction.of_motion(model.robot, *motion, model.friction.memory(motion[0])) @ model.coefficients
    torque = model.robot.inverse_dynamics(*motion, model.parameters) + friction
    np.testing.assert_allclose(model.predict(*motion), torque, atol=1e-12 * np.abs(torque).max())


def test_model_round_trips(result, tmp_path):
    path = result.save(tmp_path / "identified.yaml")
    document = load_identified(path)
    assert document == yaml.safe_load(yaml.safe_dump(result.document())) | {"validation": []}
    model = link_model(document, result.robot)
    n = result.robot.n_joints
    motion = Fourier(n, seed=9)(np.linspace(0, 5, 50))
    np.testing.assert_array_equal(model.predict(*motion), result.predict(*motion))
    assert model.signals == result.model.signals
    assert model.friction.names(model.robot) == result.friction.names(result.robot)
    assert list(model.joints) == list(result.model.joints)
    assert model.friction.coupled == result.friction.coupled
    # The file's parameters are used even if the URDF has other ones now.
    massless = link_model(document, with_links(result.robot, np.zeros(10 * n)))
    np.testing.assert_array_equal(massless.predict(*motion), result.predict(*motion))


def test_uses_the_oldest_format_that_supports_the_terms(result):
    new = any(joint in (LOADED_FRICTION, HARMONIC_FRICTION) for joint in result.model.joints)
    assert result.document()["format"] == ("dynid/2" if new else "dynid/1")


def test_compensates_torques_at_standstill(tmp_path):
    """Gravity, springs and harmonics are compensated; terms that depend on the previous motion are not."""
    arm, friction = ARMS["new terms"]
    result = identify_arm(arm(), friction, size=2.6)
    robot, torque = load_gravity_torque(result.save(tmp_path / "identified.yaml"), result.robot.urdf)
    coefficients = result.friction_coefficients
    for q in np.random.default_rng(0).uniform(-2.0, 2.0, (10, 6)):
        still = np.zeros((1, 6))
        expected = robot.inverse_dynamics(q[None], still, still, result.parameters)[0]
        expected[0] += coefficients["spring shoulder_pan_joint"] * q[0] + coefficients["offset shoulder_pan_joint"]
        for h in (1, 2):
            expected[5] += coefficients[f"cos_{h} wrist_3_joint"] * np.cos(h * q[5])
            expected[5] += coefficients[f"sin_{h} wrist_3_joint"] * np.sin(h * q[5])
        np.testing.assert_allclose(torque(q.tolist()), expected, atol=1e-9)
    assert abs(coefficients["spring shoulder_pan_joint"]) > 1e-6


@pytest.mark.parametrize("terms", [["cos_x", "sin_x"], ["cos_1"], ["cos_1", "sin_2"]])
def test_refuses_malformed_harmonics(terms):
    document = {"friction": {"joint_1": {"terms": terms} | dict.fromkeys(terms, 1.0)}}
    with pytest.raises(IdentifiedFileError, match=r"friction of joint 'joint_1' has terms .*expected pairs cos_H"):
        own_angle_torque(document, ["joint_1"])


def test_sections_contain_parameters_and_errors(result):
    document = result.document()
    assert list(document["links"]) == list(result.robot.link_names)
    for link, parameters in zip(document["links"].values(), result.parameters.reshape(-1, 10), strict=True):
        assert [link["mass"], *link["mass_moment"], *link["inertia"]] == list(parameters)
        assert set(link["std"]) == {"mass", "mass_moment", "inertia"}
    for name, joint in zip(result.robot.joint_names, result.model.joints, strict=True):
        entry = document["friction"][name]
        assert set(entry) >= {"coulomb", "viscous", "offset", "rotor_inertia", "terms", "std", "smoothing"}
        both = {"torque_positive", "torque_negative"} if joint.offset and joint.coulomb else set()
        assert set(entry["std"]) - both == set(entry["terms"]) == set(joint.terms)
        assert both <= set(entry)
        assert both <= set(entry["std"])
        if both and not joint.asymmetric and joint.stribeck_velocity is None:
            assert entry["torque_positive"] == pytest.approx(entry["offset"] + entry["coulomb"])
            assert entry["torque_negative"] == pytest.approx(entry["offset"] - entry["coulomb"])
        if joint.asymmetric:
            mean = (entry["coulomb_positive"] + entry["coulomb_negative"]) / 2
            assert entry["coulomb"] == pytest.approx(mean)
    text = yaml.safe_dump(document)
    assert "!!" not in text
    assert ".nan" not in text
    assert ".inf" not in text


def test_compensator_uses_gravity_of_the_links(tmp_path):
    robot = ur10()
    result = identify_arm(robot, JointFriction(offset=True, smoothing=0.02))
    path = result.save(tmp_path / "identified.yaml")
    _, gravity = load_gravity_torque(path, robot.urdf)
    section = load_identified(path)["gravity"]
    assert section["shoulder_pan_joint"]["torque_free"] is True
    assert all(section[joint]["observable"] for joint in robot.joint_names[1:])
    poses = np.random.default_rng(0).uniform(-2, 2, (20, 6))
    expected = robot.gravity_torque(poses, result.parameters)
    np.testing.assert_allclose([gravity(q) for q in poses.tolist()], expected, atol=1e-6)
    nominal = robot.gravity_torque(poses, result.robot.parameters)
    assert np.max(np.abs(expected - robot.gravity_torque(poses))) < 0.3
    assert np.max(np.abs(nominal - robot.gravity_torque(poses))) > 3


def test_standard_errors_of_moments_cover_the_truth():
    robot = ur10()
    gravity = GravityModel(robot)
    truth = dict(zip(gravity.names, gravity.project(robot.parameters), strict=True))
    section = identify_arm(robot, JointFriction(offset=True, smoothing=0.02), torque_gain_error=0.0).document()[
        "gravity"
    ]
    scores = [
        (section[joint][moment] - truth[f"{moment} {joint}"]) / section[joint]["std"][moment]
        for joint in robot.joint_names[1:]
        for moment in ("n_x", "n_y")
    ]
    assert np.sqrt(np.mean(np.square(scores))) < 3
    assert max(section[joint]["std"]["n_x"] for joint in robot.joint_names[1:]) < 0.1


def test_does_not_compensate_locked_joints(tmp_path):
    """The gravity torque of the joint cannot be distinguished from its offset; joints before it depend on it."""
    robot = ur10()
    result = identify_arm(robot, JointFriction(offset=True, smoothing=0.02), still=(1, 2, 3))
    section = result.document()["gravity"]
    assert section["shoulder_pan_joint"]["torque_free"] is True
    unobservable = [joint for joint in robot.joint_names[1:] if not section[joint]["observable"]]
    assert "shoulder_lift_joint" in unobservable
    for joint in unobservable:
        assert section[joint]["torque_free"] is False
        assert section[joint]["reason"]
        assert None in section[joint]["std"].values()
    path = result.save(tmp_path / "identified.yaml")
    with pytest.raises(IdentifiedFileError, match=f"joint '{unobservable[0]}' was not observable"):
        load_gravity_torque(path, robot.urdf)
    with pytest.raises(IdentifiedFileError, match="was not observable"):
        gravity_moments(load_identified(path), GravityModel(robot))


def test_prismatic_joints_have_a_mass(tmp_path):
    result = identify_arm(chain(), JointFriction(offset=True, smoothing=0.02))
    section = result.document()["gravity"]
    assert section["joint_2"]["mass"] > 0
    assert section["joint_2"]["std"]["mass"] > 0
    path = result.save(tmp_path / "identified.yaml")
    _, gravity = load_gravity_torque(path, chain().urdf)
    q = [0.3, -0.2, 0.5]
    expected = chain().gravity_torque([q], result.parameters)[0]
    np.testing.assert_allclose(gravity(q), expected, atol=1e-6)


DELETE = object()


def change_document(document: dict, path: tuple, value: object) -> dict:
    """Return the document with another value at a path; other sections are shared."""
    result = copy.copy(document)
    section = result
    *parents, last = path
    for key in parents:
        section[key] = copy.copy(section[key])
        section = section[key]
    if value is DELETE:
        del section[last]
    else:
        section[last] = value
    return result


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("links",), DELETE, "no section 'links'"),
        (("links",), [1, 2], "no section 'links'"),
        (("links", "forearm_link"), DELETE, "link 'forearm_link' is missing"),
        (("links", "forearm_link", "mass"), "heavy", "link 'forearm_link'.*mass"),
        (("links", "forearm_link", "mass"), True, "link 'forearm_link'.*mass"),
        (("links", "forearm_link", "mass"), float("nan"), "all finite"),
        (("links", "forearm_link", "mass"), 10**400, "all finite"),
        (("links", "forearm_link", "mass_moment"), "123", "link 'forearm_link'.*mass"),
        (("links", "forearm_link", "mass_moment"), [1, 2, 3, 4], "link 'forearm_link'.*mass"),
        (("links", "forearm_link", "inertia"), [1, 2, 3, 4, 5], "link 'forearm_link'.*mass"),
        (("links", "forearm_link", "inertia", 2), None, "link 'forearm_link'.*mass"),
        (("friction",), DELETE, "no section 'friction'"),
        (("friction", "elbow_joint"), DELETE, "joint 'elbow_joint' is missing"),
        (("friction", "elbow_joint", "terms"), "coulomb", "joint 'elbow_joint'.*terms"),
        (("friction", "elbow_joint", "terms"), ["magic"], "elbow_joint.*magic"),
        (("friction", "elbow_joint", "terms"), [["coulomb"]], "elbow_joint.*terms"),
        (("friction", "elbow_joint", "coulomb"), DELETE, "joint 'elbow_joint'.*coulomb is None"),
        (("friction", "elbow_joint", "smoothing"), -1.0, "joint 'elbow_joint'.*smoothing is -1"),
        (("friction", "elbow_joint", "smoothing"), None, "joint 'elbow_joint'.*smoothing is None"),
        (("friction", "shoulder_lift_joint", "stribeck_velocity"), 0, "stribeck_velocity is 0"),
        (("friction", "coupled"), 5, "coupled is 5"),
        (("friction", "coupled"), [5], "coupled.* 5"),
        (("friction", "coupled", 0, "joints"), ["wrist_2_joint"], "coupled"),
        (("friction", "coupled", 0, "joints"), ["wrist_2_joint", "wrist_2_joint"], "coupled"),
        (("friction", "coupled", 0, "joints"), ["wrist_2_joint", "finger"], "coupled joints .*finger.*; the robot has"),
        (("friction", "coupled", 0, "coupling_viscous"), DELETE, "coupling_viscous is None"),
        (("signals",), DELETE, "no section 'signals'"),
        (("signals", "cutoff"), "fast", "signals: cutoff is 'fast'"),
        (("signals", "motion_cutoff"), 0.0, "signals: motion_cutoff is 0"),
        (("robot", "joints"), ["a"], "this robot has"),
        (("robot", "kinematics_sha256"), "0", "other axes or placements"),
    ],
)
def test_refuses_malformed_sections(document, path, value, message):
    with pytest.raises(IdentifiedFileError, match=message):
        link_model(change_document(document, path, value), distort(ur10()))


def list_paths(node, path=()):
    """Yield the paths of all entries of a document."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from list_paths(value, (*path, key))


ARBITRARY_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=7),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just(DELETE),
)


@pytest.fixture(name="readable", scope="module")
def fixture_readable(document):
    """Return the paths of entries that are read, and the gravity model of the arm."""
    sections = ("links", "friction", "signals", "robot", "gravity")
    # `load_identified` requires the section of the robot.
    return [p for p in list_paths(document) if p[0] in sections and p != ("robot",)], GravityModel(ur10())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_document_yields_a_model_or_an_error(document, readable, data):
    paths, gravity = readable
    broken = change_document(document, data.draw(st.sampled_from(paths)), data.draw(ARBITRARY_VALUES))
    for read in (lambda: link_model(broken, ur10()), lambda: gravity_moments(broken, gravity)):
        with suppress(DynidError):
            content = read()
            assert np.isfinite(getattr(content, "parameters", content)).all()


def test_base_parameters_section_has_null_for_nan():
    columns = [[2.0, np.nan, -0.5], [0.2, np.nan, 0.1], [2.5, 0.3, np.nan], [10.0, 10.0, 10.0]]
    expressions = ("Izz1 + Ixx2", "mcx2", "coulomb joint_1")
    section = base_parameters_section(expressions, *map(np.array, columns))
    assert section == [
        {"expression": "Izz1 + Ixx2", "value": 2.0, "std": 0.2, DOF: 10.0, "urdf": 2.5},
        {"expression": "mcx2", "value": None, "std": None, DOF: 10.0, "urdf": 0.3},
        {"expression": "coulomb joint_1", "value": -0.5, "std": 0.1, DOF: 10.0, "urdf": None},
    ]
    json.dumps(section, allow_nan=False)


def test_signals_section_contains_the_cutoff_frequencies():
    section = signals_section(LinkSignals(3.0, 11.0, "given"))
    assert section == {"cutoff": 3.0, "motion_cutoff": 11.0, "reason": "given"}
