"""Test the page of an `identified.yaml`: all sections, values of the file, and refusals."""

import copy

import link_experiment
import numpy as np
import planar_arm
import pytest
from command_line import URDF, run
from gravity_experiment import planned_recording
from html_page import HOSTILE, Page, assert_self_contained
from pictures import unrendered
from test_cli_links import planar_recording

from dynid_ros.commands.report import write_document_report
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identified.flexible_joints import flexible_joint_entry
from dynid_ros.identified.identified_file import load_identified, new_document, save_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model.friction import JointFriction
from dynid_ros.report.formats import percent

ROBOT, _ = link_experiment.build_planar()


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """Return a folder with recordings `run.npz` and `other.npz` of the planar arm."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "arm.urdf").write_text(planar_arm.urdf())
    for seed, name in enumerate(("run", "other")):
        planar_recording(seed).write_npz(folder / f"{name}.npz")
    return folder


@pytest.fixture(name="model", scope="module")
def fixture_model(folder):
    friction = JointFriction(coulomb=True, viscous=True, offset=True)
    result = LinkIdentification(ROBOT, friction=friction, prior_weight=1.0).fit(planar_recording())
    return result.save(folder / "links.yaml", [result.validate(planar_recording(1))])


def read_page(path):
    page = Page(path.read_text(encoding="utf-8"))
    assert_self_contained(page)
    return page


def test_page_of_links_needs_only_the_file(folder, model, capsys):
    code, out, err = run(capsys, "report", "--model", model, "--output", folder / "page.html")
    assert (code, out.splitlines()[-1]) == (0, f"wrote {folder / 'page.html'}"), err
    text = read_page(folder / "page.html").text
    build_document = load_identified(model)
    total = sum(link["mass"] for link in build_document["links"].values())
    assert f"The 3 links of the identified model weigh {total:.1f} kg" in text
    for title in ("Gravity", "Links", "Friction", "Base parameters", "Validation"):
        assert title in text
    assert build_document["base_parameters"][0]["expression"] in text
    assert f"Condition number {build_document['condition_number']:.1f}" in text
    assert "Measured and predicted torque" not in text


def test_page_with_a_recording_shows_the_prediction(folder, model, capsys):
    inputs = ("--urdf", folder / "arm.urdf", "--recording", folder / "other.npz")
    code, _, err = run(capsys, "report", "--model", model, *inputs, "--output", folder / "page.html")
    assert code == 0, err
    page = read_page(folder / "page.html")
    assert "Measured and predicted torque" in page.text
    assert "not used to fit" not in page.text, "the file does not list its recordings"
    validation = validate(link_model(load_identified(model), ROBOT), planar_recording(1))
    assert percent(np.max(validation.relative_rms)) in page.text


@unrendered()
def test_page_of_gravity_with_and_without_its_recording(folder, capsys):
    rests = folder / "rests.npz"
    planned_recording().write_npz(rests)
    inputs = ("--urdf", URDF, "--recording", rests)
    assert run(capsys, "identify", "gravity", *inputs, "--output", folder)[0] == 0
    model = folder / "identified.yaml"
    original = (folder / "report.html").read_text()
    assert run(capsys, "report", "--model", model, "--output", folder / "page.html")[0] == 0
    text = read_page(folder / "page.html").text
    assert "Gravity parameters of 5 of the 5 joints that gravity loads" in text
    value = load_identified(model)["gravity"]["joint_2"]["n_y"]
    assert value < 0
    assert f"−{str(-value)[:3]}" in text
    assert run(capsys, "report", "--model", model, *inputs, "--output", folder / "again.html")[0] == 0
    assert (folder / "again.html").read_text() == original


def build_document(**content):
    return new_document(ROBOT, ["run.npz"], {"estimator": "x"}) | content


FLEXIBLE = {
    "joint_1": {"spring": "linear", "stiffness": 6349.2, "motor_inertia": 0.787, "std": {"stiffness": 25.0}},
    "joint_2": {"spring": "linear", "stiffness": None, "motor_inertia": 0.8, "std": None},
}
TERMS = {"stiffness": (900.0, 10.0, True), "coulomb": (0.5, 0.01, True), "viscous": (1.25, 0.03, True)}
ENTRY = flexible_joint_entry("linear", TERMS, np.array([880.0, 921.0]), 12.0)
SENSORS = {"joint_1": {"gain": 0.91, "offset": 11.5, "std": {"gain": 0.001, "offset": 0.02}}}
LOAD = {
    "frame": "link_3",
    "loaded": True,
    "mass": 2.005,
    "center": [0.05, -0.03, 0.08],
    "inertia": [None] * 6,
    "interval": {"mass": [1.99, 2.02]},
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"flexible_joints": FLEXIBLE}, ["The stiffness of 1 of 2 joints was identified", "6349 ± 49", "0.787"]),
        (
            {"flexible_joints": {"joint_1": ENTRY}},
            ["Coulomb, link N m", "0.500 ± 0.020", "Viscous, link", "1.250 ± 0.059", "880 to 921"],
        ),
        ({"torque_sensors": SENSORS}, ["Gains of 1 of 1 torque sensors", "0.9100 ± 0.0020", "11.500 ± 0.039"]),
        ({"load": LOAD}, ["The arm carries 2.005 kg", "1.990 to 2.020", "(50.000, −30.000, 80.000) mm", "at link_3"]),
        ({"load": {"loaded": False, "mass": 0.0}}, ["No load is measured"]),
        (
            {"torsion": {"joint_1": {"stiffness": 2e5, "stiffness_interval": [1.9e5, 2.1e5]}}},
            ["200000", "190000 to 210000", "Torsion"],
        ),
    ],
)
def test_page_shows_other_sections(content, words, tmp_path):
    text = read_page(write_document_report(tmp_path / "page.html", build_document(**content))).text
    for word in words:
        assert word in text


def test_names_are_escaped(tmp_path):
    hostile = build_document(load=LOAD | {"frame": HOSTILE}, remarks=[HOSTILE])
    hostile["robot"]["name"] = HOSTILE
    assert HOSTILE in read_page(write_document_report(tmp_path / "page.html", hostile)).text


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"links": {"link_1": {"mass": 1.0, "mass_moment": [0.0], "inertia": [0.0] * 6}}, "base_parameters": []},
        {"flexible_joints": {"elbow": {}}},
        {"links": {"link_1": {"mass": 1.0}}, "base_parameters": "many"},
        {"gravity": "heavy"},
        {"load": LOAD, "source": {"settings": "default"}},
    ],
)
def test_malformed_documents_are_refused(content, tmp_path):
    with pytest.raises(IdentifiedFileError, match=r"identified.yaml"):
        write_document_report(tmp_path / "page.html", build_document(**content))
    assert not list(tmp_path.iterdir())


def test_invalid_inputs_are_refused(folder, model, capsys, tmp_path):
    out = ("--output", tmp_path / "page.html")
    recording = ("--recording", folder / "other.npz")
    code, _, err = run(capsys, "report", "--model", model, *recording, *out)
    assert (code, "needs --urdf" in err) == (2, True)
    springs = save_identified(tmp_path / "springs.yaml", build_document(flexible_joints=copy.deepcopy(FLEXIBLE)))
    code, _, err = run(capsys, "report", "--model", springs, "--urdf", folder / "arm.urdf", *recording, *out)
    assert code == 2
    assert "it holds flexible_joints, which predicts no torque of a recording" in err
    code, _, err = run(capsys, "report", "--model", model, "--urdf", URDF, *out)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()
