"""Test that the parameter page and the parameter files agree with the code."""

import pytest

from docs.generate_parameters import CONFIG, PAGE, WRITTEN, kind, nodes, page, parameter_file, written

pytest.importorskip("mujoco")


def test_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


@pytest.mark.parametrize("node", WRITTEN)
def test_parameter_file_is_up_to_date(node):
    assert (CONFIG / f"{node}.yaml").read_text(encoding="utf-8") == parameter_file(node), "run `make docs`"


def test_each_node_has_a_section():
    assert [name for name in nodes() if f"\n## {name}\n" not in page()] == []


@pytest.mark.parametrize(
    ("default", "type_name", "text"),
    [
        (True, "bool", "true"),
        (3, "integer", "3"),
        (0.05, "double", "0.05"),
        (float("nan"), "double", ".nan"),
        ([float("-inf")], "list of doubles", "[-.inf]"),
        ("", "string", '""'),
        (["a", ""], "list of strings", '["a", ""]'),
    ],
)
def test_defaults_are_written_like_parameter_files(default, type_name, text):
    assert (kind(default), written(default)) == (type_name, text)
