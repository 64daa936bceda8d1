"""Results of link identifications: standard errors, documents, validation and URDF files."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml
from link_problems import Drive, Fourier, chain, distort, record, rigid_torque, ur10, with_links
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import is_possible

FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
DRIVE = Drive(rotor=0.3)


def runs(robot):
    return [record(robot, Fourier(robot.n_joints, seed, size=0.6), DRIVE, seed=seed) for seed in (0, 1)]


@pytest.fixture(name="result", scope="module")
def fixture_result():
    return LinkIdentification(distort(ur10()), friction=FRICTION).fit(*runs(ur10()))


def test_identifiable_parameters_have_standard_errors(result):
    finite = np.isfinite(result.standard_errors)
    identifiable = [category == "identifiable" for category in result.base.categories[:60]]
    np.testing.assert_array_equal(finite, identifiable)
    low, high = result.confidence_intervals(0.99).T
    np.testing.assert_array_equal(np.isfinite(low), identifiable)
    truth = ur10().parameters
    inside = (low[finite] <= truth[finite]) & (truth[finite] <= high[finite])
    assert inside.mean() > 0.8
    wide = np.diff(result.confidence_intervals(0.999)[finite]) > np.diff(result.confidence_intervals(0.5)[finite])
    assert wide.all()


def test_explained_variance_and_residuals_agree(result):
    assert np.all(result.r_squared > 0.99)
    assert np.all(result.urdf_residual_rms > result.residual_rms)
    np.testing.assert_allclose(1 - result.r_squared, (result.residual_rms / result.torque_rms) ** 2)
    truth = rigid_torque(ur10(), *Fourier(6, size=0.6)(np.arange(0, 20, 0.01)))
    assert np.all(result.torque_rms > 0.5 * truth.std(axis=0))


def test_document_contains_settings_and_sources(result):
    document = result.document()
    json.dumps(document, allow_nan=False)
    assert yaml.safe_load(yaml.safe_dump(document)) == document
    assert document["source"]["recordings"] == ["run_0", "run_1"]
    settings = document["source"]["settings"]
    assert settings["estimator"] == "consistent"
    assert settings["friction"] == "given"
    assert settings["prior_weight"] in result.scores
    assert document["degrees_of_freedom"] == pytest.approx(np.median(result.base_parameters.dof))
    assert document["condition_number"] == pytest.approx(result.condition_number)
    assert len(document["base_parameters"]) == result.base.rank


def test_errors_of_gravity_include_the_prior():
    """The prior brings moments of consistent links nearer to the truth, and their errors are smaller."""

    def errors(**settings) -> np.ndarray:
        result = LinkIdentification(distort(ur10()), friction=FRICTION, **settings).fit(*runs(ur10()))
        section = result.document()["gravity"]
        return np.array([value or 0.0 for joint in section.values() for value in joint["std"].values()])

    by_data = errors(estimator="weighted")
    ratio = errors(prior_weight=1e5)[by_data > 0.0] / by_data[by_data > 0.0]
    assert np.all(ratio < 1.0)
    assert np.median(ratio) < 0.7
    np.testing.assert_allclose(errors(prior_weight=1e-2), by_data, rtol=0.02)


def test_file_contains_the_validation(result, tmp_path):
    validation = result.validate(record(ur10(), Fourier(6, 5, size=0.6), DRIVE, seed=5))
    assert np.all(validation.relative_rms < 0.1)
    saved = yaml.safe_load(result.save(tmp_path / "a.yaml", [validation]).read_text())
    (entry,) = saved["validation"]
    assert entry["recording"] == "run_5"
    assert list(entry["rms"]) == list(result.robot.joint_names)


def test_urdf_file_has_the_identified_links(result, tmp_path):
    path = result.write_urdf(tmp_path / "identified.urdf")
    exported = RobotModel.from_urdf(path, tip="wrist_3_link")
    np.testing.assert_allclose(exported.parameters, result.parameters, rtol=1e-8, atol=1e-10)
    assert ET.parse(path).getroot().get("name") == result.robot.name
    q, qd, qdd = Fourier(6)(np.linspace(0, 3, 20))
    arm = PinocchioArm(path.read_text(), exported.joint_names, exported.gravity)
    torque = [arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)]
    expected = result.robot.inverse_dynamics(q, qd, qdd, result.parameters)
    np.testing.assert_allclose(torque, expected, atol=1e-6)


def test_refuses_urdf_of_impossible_links_or_without_urdf(tmp_path):
    robot = chain()
    light = with_links(robot, np.tile(robot.parameters[:10] * [1e-3, *[0] * 3, *[1e-6] * 6] + 1e-9, 3))
    result = LinkIdentification(light, friction=FRICTION, estimator="weighted").fit(*runs(robot))
    possible = is_possible(result.parameters.reshape(3, 10))
    assert not possible.all()
    impossible = [name for name, good in zip(robot.link_names, possible, strict=True) if not good]
    with pytest.raises(IdentificationError, match=rf"inertia of {', '.join(impossible)}; use the estimator 'consist"):
        result.write_urdf(tmp_path / "a.urdf")
    assert not (tmp_path / "a.urdf").exists()
    table = RobotModel(robot.chain, robot.parameters, robot.gravity)
    result = LinkIdentification(table, friction=FRICTION).fit(*runs(robot))
    with pytest.raises(ModelError, match="does not come from a URDF"):
        result.write_urdf(tmp_path / "a.urdf")
