"""Test reading of the arm and the tare of a load identification from files."""

from dataclasses import replace

import numpy as np
import pytest
import weighed_loads
import yaml

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import LoadIdentification
from dynid_ros.jobs.load import read_arm, read_tare
from dynid_ros.model import RobotModel

EXPERIMENT = weighed_loads.experiment()
ROBOT = EXPERIMENT.robot


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    """Return a load result, its file without the arm, and its file with the arm."""
    result = LoadIdentification(ROBOT, weighed_loads.arm().known_arm).fit(EXPERIMENT.loaded)
    folder = tmp_path_factory.mktemp("tare")
    return (
        result,
        result.save(folder / "alone.yaml"),
        replace(result, arm=weighed_loads.arm().document()).save(folder / "both.yaml"),
    )


def write_changed(path, tmp_path, change):
    document = yaml.safe_load(path.read_text())
    change(document)
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(document))
    return changed


def test_arm_is_read_with_its_covariance(tmp_path):
    path = weighed_loads.arm().save(tmp_path / "arm.yaml")
    arm, document = read_arm(path, ROBOT)
    assert arm.source == str(path)
    assert arm.covariance == pytest.approx(weighed_loads.arm().known_arm.covariance, rel=1e-4, abs=1e-12)
    assert document["links"]


@pytest.mark.parametrize("kind", [1, 2])
def test_tare_has_the_values_and_intervals_of_its_file(files, kind):
    result = files[0]
    tare = read_tare(files[kind], ROBOT)
    assert tare.body.parameters == pytest.approx(result.body.parameters)
    assert tare.confidence_intervals()[0] == pytest.approx(result.confidence_intervals()[0])
    assert tare.sources == ("loaded",)


def test_static_tare_has_no_inertia(tmp_path):
    result = LoadIdentification(ROBOT, weighed_loads.arm().known_arm, motion="static").fit(weighed_loads.record_rests())
    assert read_tare(result.save(tmp_path / "static.yaml"), ROBOT).n_load == 4


def test_load_minus_itself_is_no_load(files):
    """The difference is zero, and its errors add up."""
    result, path, _ = files
    difference = LoadIdentification(ROBOT, weighed_loads.arm().known_arm, tare=read_tare(path, ROBOT)).fit(
        EXPERIMENT.loaded
    )
    assert difference.body.parameters == pytest.approx(np.zeros(10), abs=1e-9)
    assert not difference.is_loaded
    assert difference.body.mass_error > 1.3 * result.body.mass_error


def test_file_without_links_is_no_arm(files):
    with pytest.raises(IdentifiedFileError, match="no links"):
        read_arm(files[1], ROBOT)


def test_files_of_another_robot_are_refused(tmp_path, files):
    other = RobotModel.from_urdf(ROBOT.urdf, tip="link_5")
    path = weighed_loads.arm().save(tmp_path / "arm.yaml")
    with pytest.raises(IdentifiedFileError, match=f"{path} is of robot"):
        read_arm(path, other)
    with pytest.raises(IdentifiedFileError, match=f"{files[1]} is of robot"):
        read_tare(files[1], other)


def test_tare_at_another_link_is_refused(files):
    with pytest.raises(IdentifiedFileError, match="its load is at tool, the one to identify at link_6"):
        read_tare(files[1], RobotModel.from_urdf(ROBOT.urdf, tip="link_6"))


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
def test_malformed_tare_is_refused(files, tmp_path, change, words):
    with pytest.raises(IdentifiedFileError, match=words):
        read_tare(write_changed(files[1], tmp_path, change), ROBOT)


def test_malformed_arm_is_named_by_its_file(tmp_path):
    path = write_changed(
        weighed_loads.arm().save(tmp_path / "arm.yaml"), tmp_path, lambda d: d["friction"].pop("joint_2")
    )
    with pytest.raises(IdentifiedFileError, match=f"^{path}: friction: joint 'joint_2' is missing"):
        read_arm(path, ROBOT)
