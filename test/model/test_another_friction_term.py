"""Extension by a friction term: all modules support a term that is added to `friction_terms.py`."""

import shutil
import subprocess
import sys
from pathlib import Path

import dynid_ros

PACKAGE = Path(dynid_ros.__file__).parent
FLAG = "    spring: bool = False\n"
ROW = '    "rotor_inertia": TermKind('
TOY_ROW = '    "drag": TermKind("v * abs(v)", "Drag", "N m s²/rad²", is_nonnegative=True),\n'
EDITS = {FLAG: FLAG + "    drag: bool = False\n", ROW: TOY_ROW + ROW}
PROGRAM = """
import numpy as np
from dynid_ros.identified.friction import format_of, friction_model, friction_section
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.model import FrictionModel, RobotModel
from dynid_ros.model.friction import OneSampleFriction, friction_code
from dynid_ros.model.friction_terms import FRICTION_TERMS, friction_terms
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.model.base_parameters import describe_parameters
from dynid_ros.report.link_quality import FAMILIES

robot = RobotModel.from_dh([{"a": 0.3, "alpha": 0.4, "d": 0.1, "theta": 0.0, "type": "revolute"}] * 2)
joint = friction_terms("coulomb,drag,rotor_inertia")
friction = FrictionModel(joint)
assert joint.terms == ("coulomb", "drag", "rotor_inertia") and "drag" in FRICTION_TERMS and "Drag" in FAMILIES["drag"]
assert friction.names(robot)[1] == "drag joint_1"
assert describe_parameters(robot, friction.names(robot))["unit"][:2] == ["N m", "N m s²/rad²"]

q, qd, qdd = np.random.default_rng(0).normal(size=(3, 9, 2))
matrix = friction.regressor(qd, qdd)
np.testing.assert_array_equal(matrix[:, 1, 4], qd[:, 1] * abs(qd[:, 1]))
one = OneSampleFriction(friction, 2)
entries = [one.evaluate(*sample, [], [0.0, 0.0]) for sample in zip(q.tolist(), qd.tolist(), qdd.tolist())]
np.testing.assert_allclose(np.tensordot(entries, one.places, 1), matrix, rtol=1e-14)
assert (1, 4, "v1 * abs(v1)") in friction_code(friction, 2)[1]

columns = LinkColumns.of(robot, friction)
assert columns.nonnegative(columns.first)[columns.n_inertial + 1]

names = friction.names(robot)
estimate = BaseEstimate(names, names, np.arange(6.0), np.eye(6), np.full(6, np.nan), np.full(6, 9.0))
section = friction_section(robot, friction, np.arange(6.0), estimate)
assert section["joint_2"]["drag"] == 4.0 and format_of(friction, 2) != format_of(FrictionModel(), 2)
again, coefficients = friction_model({"friction": section, "file": "toy.yaml"}, robot)
assert list(again.per_joint(2)) == [joint] * 2 and coefficients.tolist() == list(range(6))
"""


def test_new_friction_term_needs_one_file_only(tmp_path):
    copy = tmp_path / "dynid_ros"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "model" / "friction_terms.py"
    text = file.read_text(encoding="utf-8")
    for before, after in EDITS.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
