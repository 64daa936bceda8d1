"""The interfaces are as recorded; what a difference looks like."""

import pytest

from benchmarks.golden_interfaces import MISSING, PARTS, differences, interfaces, recorded
from benchmarks.golden_runs import Shape

SLOW = {"commands", "files", "installed", "nodes"}


def test_record_holds_all_parts():
    assert set(recorded()) == set(PARTS)


@pytest.mark.parametrize("part", [pytest.param(part, marks=[pytest.mark.slow] * (part in SLOW)) for part in PARTS])
def test_interfaces_are_as_recorded(part):
    pytest.importorskip("rclpy")
    pytest.importorskip("mujoco")
    found = list(differences(recorded()[part], interfaces([part])[part], part))
    assert not found, "\n".join(["; write what is meant with python -m benchmarks.golden_interfaces --write", *found])


@pytest.mark.parametrize(
    ("was", "now", "lines"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1}}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a/b: was 1, is 2"]),
        ({"a": "x"}, {}, [f"a: was x, is {MISSING}"]),
        ({"a": ["x", "y"]}, {"a": ["y", "z"]}, [f"a: was x, is {MISSING}", f"a: was {MISSING}, is z"]),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}, ['a: was ["x", "y"], is ["y", "x"]']),
        ({"a": [1]}, {"a": None}, ["a: was [1], is null"]),
    ],
)
def test_differences_have_a_line_each(was, now, lines):
    assert list(differences(was, now)) == lines


def test_shape_merges_joints_and_items_of_lists():
    shape = Shape(names={"left|right": "<joint>"}, kept=("format",), texts=("remarks",), tables=("labels",))
    document = {
        "format": "dynid/1",
        "left": {"gain": 1.0},
        "right": {"gain": None},
        "runs": [{"a": 1}, {"b": True}],
        "remarks": [],
        "labels": {"one": 1, "two": "text"},
    }
    assert shape.of(document) == {
        "format": "'dynid/1'",
        "<joint>": {"gain": "null or number"},
        "runs": {"[]": {"a": "number", "b": "flag"}},
        "remarks": "list of texts",
        "labels": {"<…>": "number or text"},
    }
