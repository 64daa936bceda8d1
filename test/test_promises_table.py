"""Each row of docs/promises.md names existing tests, and each test of a promise is named in a row."""

import ast
from functools import cache
from pathlib import Path

import pytest
from promises import TEST, promises

ROOT = Path(__file__).parents[1]
PROMISES = promises()


def test_file(name: str) -> Path:
    (path,) = (ROOT / "test").rglob(name)
    return path


test_file.__test__ = False  # type: ignore[attr-defined]


@cache
def content(path):
    """Test functions of a file, and all words in it, where the names of cases are."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {name for name in functions if name.startswith("test_")}, words | functions


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.fault)
def test_line_names_tests(promise):
    assert all(promise.answers)
    assert promise.within
    for test in promise.tests:
        named = TEST.match(test)
        assert named, f"{test} is no `file::name` or `file::name[case]`"
        functions, words = content(test_file(named["file"]))
        assert named["name"] in functions
        assert named["case"] is None or named["case"] in words


def test_lines_are_unique():
    assert len({(promise.fault, promise.tests) for promise in PROMISES}) == len(PROMISES)


def named_tests():
    return {test.strip("`") for promise in PROMISES for test in promise.tests}


@pytest.mark.parametrize("path", sorted((ROOT / "test/nodes").glob("test_*_faults.py")), ids=lambda path: path.stem)
def test_each_test_of_a_promise_is_named(path):
    matches = [TEST.match(f"`{test}`") for test in named_tests()]
    assert content(path)[0] == {match["name"] for match in matches if match["file"] == path.name}
