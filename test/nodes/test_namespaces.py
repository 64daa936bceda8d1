"""A namespace holds an arm: no default and no ready file names a topic or node beyond it."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml

from dynid_ros.nodes import module_of

ROOT = Path(__file__).parents[2]
NODES = sorted(["demo", *(path.stem for path in (ROOT / "dynid_ros/nodes").glob("[!_]*.py"))])
FILES = sorted((ROOT / "config").rglob("*.yaml"))


def names(values):
    """Texts in the value of a parameter, or in all of a file."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [text for value in values for text in names(value)]
    return [values] if isinstance(values, str) else []


@pytest.mark.parametrize("node", NODES)
def test_no_default_names_what_is_outside_of_the_namespace(node):
    parameters = import_module(module_of(node)).PARAMETERS
    assert not {p.name: p.default for p in parameters if any(text.startswith("/") for text in names(p.default))}


@pytest.mark.parametrize("node", NODES)
def test_a_topic_that_may_be_left_out_says_what_then(node):
    for parameter in import_module(module_of(node)).PARAMETERS:
        if parameter.name.endswith(("_topic", "_topics")):
            may = parameter.default in ("", [""]) or "empty: " in parameter.description
            assert parameter.required != may, parameter.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_ready_file_names_what_is_outside_of_the_namespace(path):
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert not [text for text in names(document) if text.startswith("/")]
