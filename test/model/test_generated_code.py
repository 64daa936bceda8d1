"""Generated source code: plain arithmetic, without needless operations."""

import re

import numpy as np

from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.generated_code import MAX_BRACKET_DEPTH, compiled
from dynid_ros.model.gravity import gravity_source

ALLOWED = re.compile(
    r"def gravity_torque\(q, (?:x, y, )?sin=sin, cos=cos, array=array\):"
    r"|    (?:([qxy])\d+, )+= \1\.tolist\(\)"
    r"|    [sc]\d+ = (?:sin|cos)\(q\d+\)"
    r"|    [a-z]\d+[xyz]? = [-+*() \w.]+"
    r"|    return array\(\([-+*() \w., ]+,\), float, \d+\)"
)


def _source(kinds: str, alphas: list[float]) -> str:
    types = {"R": "revolute", "P": "prismatic"}
    rows = [
        {"a": 0.2, "alpha": np.radians(alpha), "d": 0.1, "theta": 0.0, "type": types[kind]}
        for kind, alpha in zip(kinds, alphas, strict=True)
    ]
    robot = RobotModel.from_dh(rows)
    gravity = GravityModel(robot)
    vector = np.linspace(-1.0, 1.0, len(gravity.names)) / 3.0
    return gravity_source(robot.chain, robot.gravity, [vector[gravity.columns(i)] for i in range(robot.n_joints)])


def test_source_is_plain_arithmetic():
    for kinds, alphas in (("RRR", [90, 0, 0]), ("RPRPR", [10, 20, 30, -90, 0]), ("R", [0])):
        assert all(ALLOWED.fullmatch(line) for line in _source(kinds, alphas).splitlines())
    robot = RobotModel.from_dh([{"a": 0.2, "alpha": 0.4, "d": 0.1, "theta": 0.3, "type": "revolute"}] * 3)
    with_moments = gravity_source(robot.chain, robot.gravity)
    assert all(ALLOWED.fullmatch(line) for line in with_moments.splitlines())


def test_right_angles_need_no_products():
    # Gravity is constant; its rotation takes two products, that of the moment four and two, and each torque two.
    source = _source("RRRR", [90, 90, -90, 0])
    assert source.count("*") == 2 + 4 + 2 + 3 * 2
    assert "e-1" not in source


def test_single_uses_are_inlined_up_to_a_bracket_depth():
    source = _source("R" * 60, [90] * 60)
    names = [line.split(" = ")[0].strip() for line in source.splitlines() if " = " in line and "tolist" not in line]
    body = source.split("tolist()")[1]
    uses = [len(re.findall(rf"\b{name}\b", body)) - 1 for name in names]
    assert min(uses) > 0
    deepest = max(line.count("(") for line in source.splitlines() if " = " in line)
    assert 1 <= deepest <= MAX_BRACKET_DEPTH
    compiled(source, "gravity_torque", np.fromiter)
