"""Test that no default and no ready-made file names a topic or node outside its namespace."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml

from dynid_ros.nodes import module_of

ROOT = Path(__file__).parents[2]
NODES = sorted(["demo", *(path.stem for path in (ROOT / "dynid_ros/nodes").glob("[!_]*.py"))])
FILES = sorted((ROOT / "config").rglob("*.yaml"))


def list_texts(values):
    """Return all texts in a parameter value or a document."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [text for value in values for text in list_texts(value)]
    return [values] if isinstance(values, str) else []


@pytest.mark.parametrize("node", NODES)
def test_defaults_stay_within_the_namespace(node):
    parameters = import_module(module_of(node)).PARAMETERS
    assert not {p.name: p.default for p in parameters if any(text.startswith("/") for text in list_texts(p.default))}


@pytest.mark.parametrize("node", NODES)
def test_optional_topics_describe_the_empty_value(node):
    for parameter in import_module(module_of(node)).PARAMETERS:
        if parameter.name.endswith(("_topic", "_topics")):
            is_optional = parameter.default in ("", [""]) or "empty: " in parameter.description
            assert parameter.required != is_optional, parameter.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_config_files_stay_within_the_namespace(path):
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert not [text for text in list_texts(document) if text.startswith("/")]
