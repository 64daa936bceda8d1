"""Test that a new kind of identification needs an estimator, a section, a report, a table row and a short node."""

import importlib
import sys
from pathlib import Path

import pytest
from command_line import URDF, run
from gravity_experiment import planned_recording
from helpers.identification_bench import IdentificationBench
from helpers.node_threads import assert_success
from html_page import Page, assert_self_contained

import docs.generate_parameters as generate
import dynid_ros.nodes
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.jobs.kinds import KINDS, Kind

ESTIMATOR = '''
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.result import Result
from dynid_ros.identified.validation import validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.settings import check, setting
from toy.section import bias_section


@dataclass
class BiasIdentification:
    """Mean torque of each joint."""

    robot: RobotModel
    trimmed: float = setting(0.0, "share of the samples left out at both ends", least=0)
    center: str = setting("mean", "estimate of the middle", choices=("mean", "median"))

    def __post_init__(self):
        check(self, IdentificationError)

    def fit(self, recordings):
        torque = np.sort(np.concatenate([recording.torque for recording in recordings]), axis=0)
        skip = int(self.trimmed * len(torque))
        kept = torque[skip : len(torque) - skip]
        settings = {"trimmed": self.trimmed, "center": self.center}
        bias = getattr(np, self.center)(kept, axis=0)
        covariance = np.diag(np.var(kept, axis=0) / len(kept))
        sources = [recording.source for recording in recordings]
        return BiasResult(self.robot, bias, covariance, len(kept) - 1, sources, settings)


@dataclass(frozen=True, eq=False, repr=False)
class BiasResult(Result):
    robot: RobotModel
    parameters: np.ndarray
    covariance: np.ndarray
    dof: int
    sources: list
    settings: dict
    condition_number: float = 1.0
    remarks: tuple = ()

    @property
    def names(self):
        return [f"offset {joint}" for joint in self.robot.joint_names]

    def sections(self):
        return bias_section(self.robot.joint_names, self.parameters)

    def summary(self):
        return "\\n".join(f"{name} {value:.3f}" for name, value in zip(self.names, self.parameters))

    def validate(self, other):
        return validate_torque(other.source, self.robot.joint_names, other.torque, 0 * other.torque + self.parameters)
'''
SECTION = """
def bias_section(joints, bias):
    return {"bias": {joint: float(value) for joint, value in zip(joints, bias)}}
"""
REPORT = """
from dynid_ros.report.page import Section, Table, Tile
from dynid_ros.report.result_page import ResultPart, result_page


def write_result_report(path, result, recordings, validations):
    bias = [f"{value:.3f}" for value in result.parameters]
    table = Table.by_column("Joint", result.robot.joint_names, {("Bias", "N m"): bias})
    part = ResultPart(
        "Bias",
        [f"The bias of {len(result.parameters)} joints was identified."],
        [Tile("Joints", str(len(result.parameters)), "with a bias")],
        [Section("Bias", ["The middle of all torques.", table])],
    )
    return result_page(result.content(validations), part).write(path)
"""
NODE = '''"""Node that turns a recording into the bias of each joint."""

from dynid_ros.nodes.shared.identification_node import IdentificationNode, parameters_of_kind
from dynid_ros.nodes.shared.process import run

PARAMETERS = parameters_of_kind("bias")


class BiasIdentificationNode(IdentificationNode):
    """Bias of all joints."""

    def __init__(self) -> None:
        super().__init__("bias_identification", "bias", PARAMETERS)


def main() -> None:
    """Run the node."""
    run(BiasIdentificationNode)
'''
TOY_KIND = Kind(
    "bias of all joints", "taking the middle", "toy.estimator:BiasIdentification", "toy.report:write_result_report"
)


@pytest.fixture(name="toy_folder", autouse=True)
def fixture_toy_folder(tmp_path, monkeypatch):
    """Add the toy identification during a test and return the folder of its files."""
    for name, text in {
        "toy/__init__.py": "",
        "toy/estimator.py": ESTIMATOR,
        "toy/section.py": SECTION,
        "toy/report.py": REPORT,
        "nodes/bias_identification.py": NODE,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    planned_recording().write_npz(tmp_path / "run.npz")
    planned_recording(1).write_npz(tmp_path / "other.npz")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(KINDS, "bias", TOY_KIND)
    monkeypatch.setattr(dynid_ros.nodes, "__path__", [*dynid_ros.nodes.__path__, str(tmp_path / "nodes")])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy" or "bias_identification" in name]:
        del sys.modules[name]


def test_command_offers_the_new_identification_with_its_settings(toy_folder, capsys):
    assert "bias of all joints" in run(capsys, "identify", "--help")[1]
    text = run(capsys, "identify", "bias", "--help")[1]
    assert "--trimmed" in text
    assert "{mean,median}" in text
    files = (
        "--recording",
        toy_folder / "run.npz",
        "--validate",
        toy_folder / "other.npz",
        "--output",
        toy_folder / "out",
    )
    code, out, err = run(capsys, "identify", "bias", "--urdf", URDF, *files, "--center", "median")
    assert code == 0, err
    assert "unseen torque (other) is predicted" in out
    document = load_identified(toy_folder / "out" / "identified.yaml")
    assert set(document["bias"]) == set(document["robot"]["joints"])
    assert document["source"]["settings"] == {"trimmed": 0.0, "center": "median"}
    assert len(document["validation"]) == 1
    page = Page((toy_folder / "out" / "report.html").read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert "The bias of 6 joints was identified." in page.text
    assert f"joint_2 {document['bias']['joint_2']:.3f}".replace("-", "−") in page.text.replace("-", "−")
    code, _, err = run(capsys, "identify", "bias", "--urdf", URDF, *files, "--trimmed", "-1")
    assert (code, "trimmed is -1.0; expected a number of 0 or more" in err) == (2, True)


def test_node_offers_the_new_identification(toy_folder, keep):
    make = importlib.import_module("dynid_ros.nodes.bias_identification").BiasIdentificationNode
    parameters = {
        "robot_description": URDF,
        "effort_convention": "torque",
        "output": toy_folder / "node",
        "center": "median",
    }
    bench = keep(IdentificationBench(make, recording=toy_folder / "run.npz", **parameters))
    assert_success(bench.identify())
    assert bench.result()["bias"] == load_identified(toy_folder / "node" / "identified.yaml")["bias"]
    assert bench.result()["source"]["settings"]["center"] == "median"


def test_documentation_lists_the_new_parameters(toy_folder, monkeypatch):
    config = toy_folder / "config"
    config.mkdir()
    (config / "bias_identification.yaml").write_text(generate.parameter_file("bias_identification"), encoding="utf-8")
    monkeypatch.setattr(generate, "CONFIG", config)
    text = generate.page()
    assert "## bias_identification" in text
    assert "Node that turns a recording into the bias of each joint." in text
    assert "| `trimmed` | double | `0.0` | share of the samples left out at both ends; 0 or more |" in text
    assert "`center`" in text
    assert "trimmed: 0.0" in Path(config / "bias_identification.yaml").read_text(encoding="utf-8")
