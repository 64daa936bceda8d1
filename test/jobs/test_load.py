"""The arm and the tare that a load identification reads from files."""

from dataclasses import replace

import numpy as np
import pytest
import weighed_loads as known
import yaml

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import LoadIdentification
from dynid_ros.jobs.load import read_arm, read_tare
from dynid_ros.model import RobotModel

EXPERIMENT = known.experiment()
ROBOT = EXPERIMENT.robot


@pytest.fixture(name="written", scope="module")
def fixture_written(tmp_path_factory):
    """What a load identification wrote."""
    result = LoadIdentification(ROBOT, known.arm().known_arm).fit(EXPERIMENT.loaded)
    folder = tmp_path_factory.mktemp("tare")
    return (
        result,
        result.save(folder / "alone.yaml"),
        replace(result, arm=known.arm().document()).save(folder / "both.yaml"),
    )


def changed(path, tmp_path, change):
    document = yaml.safe_load(path.read_text())
    change(document)
    other = tmp_path / "changed.yaml"
    other.write_text(yaml.safe_dump(document))
    return other


def test_the_arm_with_its_errors(tmp_path):
    path = known.arm().save(tmp_path / "arm.yaml")
    arm, document = read_arm(path, ROBOT)
    assert arm.source == str(path)
    assert arm.covariance == pytest.approx(known.arm().known_arm.covariance, rel=1e-4, abs=1e-12)
    assert document["links"]


@pytest.mark.parametrize("kind", [1, 2])
def test_a_tare_has_the_values_and_intervals_of_its_file(written, kind):
    result, tare = written[0], read_tare(written[kind], ROBOT)
    assert tare.body.parameters == pytest.approx(result.body.parameters)
    assert tare.confidence_intervals()[0] == pytest.approx(result.confidence_intervals()[0])
    assert tare.sources == ("loaded",)


def test_a_tare_of_rests_has_no_inertia(tmp_path):
    result = LoadIdentification(ROBOT, known.arm().known_arm, motion="static").fit(known.resting())
    assert read_tare(result.save(tmp_path / "static.yaml"), ROBOT).n_load == 4


def test_a_load_less_itself_is_none(written):
    """Subtracting what was just found leaves nothing, with errors that add up."""
    result, path, _ = written
    rest = LoadIdentification(ROBOT, known.arm().known_arm, tare=read_tare(path, ROBOT)).fit(EXPERIMENT.loaded)
    assert rest.body.parameters == pytest.approx(np.zeros(10), abs=1e-9)
    assert not rest.is_loaded
    assert rest.body.mass_error > 1.3 * result.body.mass_error


def test_no_links_for_an_arm(written):
    with pytest.raises(IdentifiedFileError, match="no links"):
        read_arm(written[1], ROBOT)


def test_another_robot(tmp_path, written):
    other = RobotModel.from_urdf(ROBOT.urdf, tip="link_5")
    path = known.arm().save(tmp_path / "arm.yaml")
    with pytest.raises(IdentifiedFileError, match=f"{path} is of robot"):
        read_arm(path, other)
    with pytest.raises(IdentifiedFileError, match=f"{written[1]} is of robot"):
        read_tare(written[1], other)


def test_a_tare_at_another_link(written):
    with pytest.raises(IdentifiedFileError, match="its load is at tool, the one to identify at link_6"):
        read_tare(written[1], RobotModel.from_urdf(ROBOT.urdf, tip="link_6"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("load"), "no section 'load'"),
        (lambda d: d["load"]["estimate"].update(parameters=[1.0]), "parameters is .*, expected 10"),
        (lambda d: d["load"]["estimate"].update(parameters=[None] * 10), "mass of its load is undetermined"),
        (lambda d: d["load"]["estimate"].update(std=["x"] * 10), "std is .*, expected 10"),
        (lambda d: d["load"].pop("estimate"), "parameters is None"),
    ],
)
def test_a_malformed_tare(written, tmp_path, change, words):
    with pytest.raises(IdentifiedFileError, match=words):
        read_tare(changed(written[1], tmp_path, change), ROBOT)


def test_a_malformed_arm_is_named_by_its_file(tmp_path):
    path = changed(known.arm().save(tmp_path / "arm.yaml"), tmp_path, lambda d: d["friction"].pop("joint_2"))
    with pytest.raises(IdentifiedFileError, match=f"^{path}: friction: joint 'joint_2' is missing"):
        read_arm(path, ROBOT)
